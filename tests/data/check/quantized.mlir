// Quantized numbers: stored, moved, and computed with by way of floats.

func.func @there_and_back() {
  %a = stablehlo.constant dense<[4.0, 15.3, -200.0]> : tensor<3xf32>
  %0 = stablehlo.uniform_quantize %a : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32, 0.5:10>>
  %1 = stablehlo.bitcast_convert %0 : (tensor<3x!quant.uniform<i8:f32, 0.5:10>>) -> tensor<3xi8>
  check.expect_eq_const %1, dense<[18, 41, -128]> : tensor<3xi8>
  %2 = stablehlo.uniform_dequantize %0 : (tensor<3x!quant.uniform<i8:f32, 0.5:10>>) -> tensor<3xf32>
  check.expect_eq_const %2, dense<[4.0, 15.5, -69.0]> : tensor<3xf32>
  return
}

func.func @arithmetic() {
  %a = stablehlo.constant dense<[1.0, 2.5, -3.0]> : tensor<3xf32>
  %qa = stablehlo.uniform_quantize %a : (tensor<3xf32>) -> tensor<3x!quant.uniform<u8:f32, 0.5:128>>
  %0 = stablehlo.add %qa, %qa : tensor<3x!quant.uniform<u8:f32, 0.5:128>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<3x!quant.uniform<u8:f32, 0.5:128>>) -> tensor<3xf32>
  check.expect_eq_const %1, dense<[2.0, 5.0, -6.0]> : tensor<3xf32>
  %2 = stablehlo.uniform_quantize %qa : (tensor<3x!quant.uniform<u8:f32, 0.5:128>>) -> tensor<3x!quant.uniform<i8:f32, 1.0>>
  %3 = stablehlo.uniform_dequantize %2 : (tensor<3x!quant.uniform<i8:f32, 1.0>>) -> tensor<3xf32>
  check.expect_eq_const %3, dense<[1.0, 2.0, -3.0]> : tensor<3xf32>
  return
}

func.func @products_per_axis() {
  %a = stablehlo.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %b = stablehlo.constant dense<[[1.0, 0.5], [2.0, 0.25]]> : tensor<2x2xf32>
  %qb = stablehlo.uniform_quantize %b : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32:1, {1.0, 0.25:3}>>
  %0 = stablehlo.dot_general %a, %qb, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x2x!quant.uniform<i8:f32:1, {1.0, 0.25:3}>>) -> tensor<1x2xf32>
  check.expect_eq_const %0, dense<[[5.0, 1.0]]> : tensor<1x2xf32>
  %1 = stablehlo.transpose %qb, dims = [0, 1] : (tensor<2x2x!quant.uniform<i8:f32:1, {1.0, 0.25:3}>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {1.0, 0.25:3}>>
  %2 = stablehlo.uniform_dequantize %1 : (tensor<2x2x!quant.uniform<i8:f32:1, {1.0, 0.25:3}>>) -> tensor<2x2xf32>
  check.expect_eq %2, %b : tensor<2x2xf32>
  return
}
