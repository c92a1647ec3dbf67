// Operations that compute, but those that work element by element on one or two operands.
module {
  func.func @main(%a: tensor<2x3xf32>, %v: tensor<3xf32>, %s: tensor<f32>, %p: tensor<2x3xi1>, %image: tensor<1x4x4x2xf32>, %kernel: tensor<3x3x2x5xf32>, %m: tensor<3x3xf32>, %state: tensor<2xui64>, %n: tensor<2xi64>, %padding: tensor<2x2xi64>, %source: tensor<1x3xf32>) {
    %compare = stablehlo.compare GE, %a, %a, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %select = stablehlo.select %p, %a, %a : tensor<2x3xi1>, tensor<2x3xf32>
    %clamp = stablehlo.clamp %s, %a, %s : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %convert = stablehlo.convert %a : (tensor<2x3xf32>) -> tensor<2x3xf8E4M3FN>
    %reduce_precision = stablehlo.reduce_precision %a, format = e5m10 : tensor<2x3xf32>
    %dot = stablehlo.dot %a, %v, precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
    %dot_general = stablehlo.dot_general %a, %m, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %dot_general_algorithm = stablehlo.dot_general %a, %m, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %einsum = stablehlo.einsum %a, %m, config = "ab,bc->ca" : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<3x2xf32>
    %unary_einsum = stablehlo.unary_einsum %a, config = "ab->b" : (tensor<2x3xf32>) -> tensor<3xf32>
    %convolution = stablehlo.convolution(%image, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, 1]], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x2x4x5xf32>
    %dynamic_conv = "stablehlo.dynamic_conv"(%image, %kernel, %padding) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 2, 1>}> : (tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>, tensor<2x2xi64>) -> tensor<1x2x4x5xf32>
    %fft = stablehlo.fft %a, type = RFFT, length = [3] : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>
    %cholesky = stablehlo.cholesky %m, lower = true : tensor<3x3xf32>
    %triangular_solve = "stablehlo.triangular_solve"(%m, %m) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %rng = stablehlo.rng %s, %s, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
    %rng_bit_generator:2 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %batch_norm_training:3 = "stablehlo.batch_norm_training"(%a, %v, %v) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %batch_norm_inference = "stablehlo.batch_norm_inference"(%a, %v, %v, %v, %v) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %batch_norm_grad:3 = "stablehlo.batch_norm_grad"(%a, %v, %v, %v, %a) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %map = "stablehlo.map"(%a, %a) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %product = stablehlo.multiply %x, %y : tensor<f32>
      stablehlo.return %product : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %reduce = stablehlo.reduce(%a init: %s) applies stablehlo.maximum across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %reduce_window = "stablehlo.reduce_window"(%a, %s) <{padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %select_and_scatter = "stablehlo.select_and_scatter"(%a, %source, %s) <{window_dimensions = array<i64: 2, 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %greater = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %greater : tensor<i1>
    }, {
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    return
  }
}
// -----
// Quantized numbers are of another dialect.
// jaxlib: unknown
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf64>) -> tensor<2xf32> {
  %uniform_quantize = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32:0, {0.1:-30, 0.5}>>
  %requantize = stablehlo.uniform_quantize %uniform_quantize : (tensor<2x!quant.uniform<i8:f32:0, {0.1:-30, 0.5}>>) -> tensor<2x!quant.uniform<u8<1:255>:f32, 2.500000e-01:128>>
  %narrow = "stablehlo.uniform_quantize"(%b) : (tensor<2xf64>) -> tensor<2x!quant.uniform<i4:f64, 1.0>>
  %uniform_dequantize = stablehlo.uniform_dequantize %requantize : (tensor<2x!quant.uniform<u8<1:255>:f32, 2.500000e-01:128>>) -> tensor<2xf32>
  return %uniform_dequantize : tensor<2xf32>
}
// -----
// How exact results are asked to be.
func.func @main(%a: tensor<4xf32>) {
  %0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4xf32>
  %1 = stablehlo.tanh %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, rtol = 5.000000e-01, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
  %2 = stablehlo.sine %a {result_accuracy = #stablehlo.result_accuracy<ulps = 4, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
  return
}
// -----
// refused: stablehlo.cosine
func.func @main(%a: tensor<4xf32>) {
  %0 = stablehlo.cosine %a {result_accuracy = #stablehlo.result_accuracy<ulps = -1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
  return
}
// -----
// refused: stablehlo.rsqrt
func.func @main(%a: tensor<4xf32>) {
  %0 = stablehlo.rsqrt %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e+999, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
  return
}
// -----
// refused: stablehlo.log
func.func @main(%a: tensor<4xf32>) {
  %0 = stablehlo.log %a {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4xf32>
  return
}
// -----
// refused: stablehlo.compare (C3)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.compare EQ, %v, %v, SIGNED : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return
}
// -----
// refused: stablehlo.select (C1)
func.func @main(%p: tensor<2xi1>, %v: tensor<3xf32>) {
  %0 = stablehlo.select %p, %v, %v : tensor<2xi1>, tensor<3xf32>
  return
}
// -----
// refused: stablehlo.clamp (C1)
func.func @main(%m: tensor<2xf32>, %v: tensor<3xf32>) {
  %0 = stablehlo.clamp %m, %v, %v : (tensor<2xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.convert (C1)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.convert %v : (tensor<3xf32>) -> tensor<1x3xf32>
  return
}
// -----
// refused: stablehlo.reduce_precision (C2)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.reduce_precision %v, format = e0m10 : tensor<3xf32>
  return
}
// -----
// refused: stablehlo.dot
func.func @main(%a: tensor<2x3xf32>) {
  %0 = stablehlo.dot %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.dot_general (C10)
func.func @main(%a: tensor<2x3xf32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.dot_general (C21)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0], precision = [HIGH, HIGH], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}
// -----
// refused: stablehlo.dot_general (C24)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 0, allow_imprecise_accumulation = false> : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}
// -----
// refused: stablehlo.einsum
func.func @main(%a: tensor<2x3xf32>) {
  %0 = stablehlo.einsum %a, %a, config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.unary_einsum
func.func @main(%a: tensor<2x3xf32>) {
  %0 = stablehlo.unary_einsum %a, config = "ab->a" : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.convolution (C25)
func.func @main(%a: tensor<1x4x2xf32>, %k: tensor<3x2x5xf32>) {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x2xf32>, tensor<3x2x5xf32>) -> tensor<1x3x5xf32>
  return
}
// -----
// refused: stablehlo.dynamic_conv (C4)
func.func @main(%a: tensor<1x4x2xf32>, %k: tensor<3x2x5xf32>, %p: tensor<2x2xi32>) {
  %0 = "stablehlo.dynamic_conv"(%a, %k, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<1x4x2xf32>, tensor<3x2x5xf32>, tensor<2x2xi32>) -> tensor<1x2x5xf32>
  return
}
// -----
// refused: stablehlo.fft (C4)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.fft %v, type = RFFT, length = [4] : (tensor<3xf32>) -> tensor<3xcomplex<f32>>
  return
}
// -----
// refused: stablehlo.cholesky (C3)
func.func @main(%a: tensor<2x3xf32>) {
  %0 = stablehlo.cholesky %a : tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.triangular_solve (C3)
func.func @main(%a: tensor<3x3xf32>, %b: tensor<2x3xf32>) {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.rng (C2)
func.func @main(%s: tensor<i32>, %n: tensor<1xi64>) {
  %0 = stablehlo.rng %s, %s, %n, distribution = NORMAL : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<3xi32>
  return
}
// -----
// refused: stablehlo.rng_bit_generator (C2)
func.func @main(%s: tensor<4xui64>) {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<4xui64>) -> (tensor<4xui64>, tensor<3xui32>)
  return
}
// -----
// refused: stablehlo.batch_norm_training (C1)
func.func @main(%a: tensor<2x3xf32>, %v: tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%a, %v, %v) <{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}
// -----
// refused: stablehlo.batch_norm_inference (C1)
func.func @main(%a: tensor<2x3xf32>, %v: tensor<3xf32>) {
  %0 = "stablehlo.batch_norm_inference"(%a, %v, %v, %v, %v) <{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.batch_norm_grad (C1)
func.func @main(%a: tensor<2x3xf32>, %v: tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_grad"(%a, %v, %v, %v, %a) <{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}
// -----
// refused: stablehlo.map (C3)
func.func @main(%a: tensor<2x3xf32>) {
  %0 = "stablehlo.map"(%a) <{dimensions = array<i64: 1, 0>}> ({
  ^bb0(%x: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.reduce (C5)
func.func @main(%v: tensor<3xf32>, %s: tensor<f32>) {
  %0 = stablehlo.reduce(%v init: %s) applies stablehlo.add across dimensions = [0, 0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  return
}
// -----
// refused: stablehlo.reduce_window (C5)
func.func @main(%v: tensor<3xf32>, %s: tensor<f32>) {
  %0 = "stablehlo.reduce_window"(%v, %s) <{window_dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.select_and_scatter (C2)
func.func @main(%v: tensor<3xf32>, %s: tensor<f32>) {
  %0 = "stablehlo.select_and_scatter"(%v, %v, %s) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %greater = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %greater : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.uniform_quantize (C2)
func.func @main(%v: tensor<3xf64>) {
  %0 = stablehlo.uniform_quantize %v : (tensor<3xf64>) -> tensor<3x!quant.uniform<i8:f32, 0.1>>
  return
}
// -----
// refused: stablehlo.uniform_dequantize (C1)
func.func @main(%v: tensor<3x!quant.uniform<i8:f32, 0.1>>) {
  %0 = stablehlo.uniform_dequantize %v : (tensor<3x!quant.uniform<i8:f32, 0.1>>) -> tensor<4xf32>
  return
}
