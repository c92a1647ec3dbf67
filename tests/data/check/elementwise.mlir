// Operations that work element by element, over every kind of element type.

func.func @integers() {
  %a2 = stablehlo.constant dense<[0, 1, -2]> : tensor<3xi2>
  %b2 = stablehlo.constant dense<[1, 1, -1]> : tensor<3xi2>
  %0 = stablehlo.add %a2, %b2 : tensor<3xi2>
  check.expect_eq_const %0, dense<[1, -2, 1]> : tensor<3xi2>
  %a4 = stablehlo.constant dense<[15, 8, 3]> : tensor<3xui4>
  %1 = stablehlo.add %a4, %a4 : tensor<3xui4>
  check.expect_eq_const %1, dense<[14, 0, 6]> : tensor<3xui4>
  %2 = stablehlo.popcnt %a4 : tensor<3xui4>
  check.expect_eq_const %2, dense<[4, 1, 2]> : tensor<3xui4>
  %3 = stablehlo.count_leading_zeros %a4 : tensor<3xui4>
  check.expect_eq_const %3, dense<[0, 0, 2]> : tensor<3xui4>
  %4 = stablehlo.not %b2 : tensor<3xi2>
  check.expect_eq_const %4, dense<[-2, -2, 0]> : tensor<3xi2>
  %5 = stablehlo.compare LT, %a2, %b2, SIGNED : (tensor<3xi2>, tensor<3xi2>) -> tensor<3xi1>
  check.expect_eq_const %5, dense<[true, false, true]> : tensor<3xi1>
  %6 = stablehlo.convert %a4 : (tensor<3xui4>) -> tensor<3xi2>
  check.expect_eq_const %6, dense<[-1, 0, -1]> : tensor<3xi2>
  %7 = stablehlo.clamp %a2, %b2, %b2 : tensor<3xi2>
  check.expect_eq_const %7, dense<[1, 1, -1]> : tensor<3xi2>
  return
}

func.func @floats_of_a_byte() {
  %a = stablehlo.constant dense<[1.0, -1.5, 0.5]> : tensor<3xf8E4M3FN>
  %0 = stablehlo.multiply %a, %a : tensor<3xf8E4M3FN>
  check.expect_eq_const %0, dense<[1.0, 2.25, 0.25]> : tensor<3xf8E4M3FN>
  %b = stablehlo.constant dense<[1.0, -1.5, 0.5]> : tensor<3xf8E5M2>
  %1 = stablehlo.add %b, %b : tensor<3xf8E5M2>
  check.expect_eq_const %1, dense<[2.0, -3.0, 1.0]> : tensor<3xf8E5M2>
  %c = stablehlo.constant dense<[4.0, 9.0, 0.25]> : tensor<3xf8E3M4>
  %2 = stablehlo.sqrt %c : tensor<3xf8E3M4>
  check.expect_eq_const %2, dense<[2.0, 3.0, 0.5]> : tensor<3xf8E3M4>
  %d = stablehlo.constant dense<[4.0, -8.0, 0.25]> : tensor<3xf8E4M3B11FNUZ>
  %3 = stablehlo.abs %d : tensor<3xf8E4M3B11FNUZ>
  check.expect_eq_const %3, dense<[4.0, 8.0, 0.25]> : tensor<3xf8E4M3B11FNUZ>
  %e = stablehlo.constant dense<[4.0, -8.0, 0.25]> : tensor<3xf8E4M3FNUZ>
  %4 = stablehlo.negate %e : tensor<3xf8E4M3FNUZ>
  check.expect_eq_const %4, dense<[-4.0, 8.0, -0.25]> : tensor<3xf8E4M3FNUZ>
  %f = stablehlo.constant dense<[4.0, -8.0, 0.25]> : tensor<3xf8E5M2FNUZ>
  %5 = stablehlo.sign %f : tensor<3xf8E5M2FNUZ>
  check.expect_eq_const %5, dense<[1.0, -1.0, 1.0]> : tensor<3xf8E5M2FNUZ>
  %g = stablehlo.constant dense<[4.0, 5.0, 0.25]> : tensor<3xf8E4M3>
  %h = stablehlo.constant dense<[5.0, 4.0, 0.5]> : tensor<3xf8E4M3>
  %6 = stablehlo.maximum %g, %h : tensor<3xf8E4M3>
  check.expect_eq_const %6, dense<[5.0, 5.0, 0.5]> : tensor<3xf8E4M3>
  return
}

func.func @floats_below_a_byte() {
  %a = stablehlo.constant dense<[1.0, -1.5, 3.0, 6.0]> : tensor<4xf4E2M1FN>
  %0 = stablehlo.add %a, %a : tensor<4xf4E2M1FN>
  check.expect_eq_const %0, dense<[2.0, -3.0, 6.0, 6.0]> : tensor<4xf4E2M1FN>
  %b = stablehlo.constant dense<[1.125, -1.5, 7.5]> : tensor<3xf6E2M3FN>
  %1 = stablehlo.multiply %b, %b : tensor<3xf6E2M3FN>
  check.expect_eq_const %1, dense<[1.25, 2.25, 7.5]> : tensor<3xf6E2M3FN>
  %c = stablehlo.constant dense<[1.25, -0.0625, 28.0]> : tensor<3xf6E3M2FN>
  %2 = stablehlo.convert %c : (tensor<3xf6E3M2FN>) -> tensor<3xf32>
  check.expect_eq_const %2, dense<[1.25, -0.0625, 28.0]> : tensor<3xf32>
  %d = stablehlo.constant dense<[1.0, 4.0, 0.5]> : tensor<3xf8E8M0FNU>
  %3 = stablehlo.multiply %d, %d : tensor<3xf8E8M0FNU>
  check.expect_eq_const %3, dense<[1.0, 16.0, 0.25]> : tensor<3xf8E8M0FNU>
  %4 = stablehlo.compare GT, %a, %0 : (tensor<4xf4E2M1FN>, tensor<4xf4E2M1FN>) -> tensor<4xi1>
  check.expect_eq_const %4, dense<[false, true, false, false]> : tensor<4xi1>
  return
}

func.func @booleans_and_complex_numbers() {
  %a = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %b = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %0 = stablehlo.add %a, %b : tensor<4xi1>
  check.expect_eq_const %0, dense<[true, true, true, false]> : tensor<4xi1>
  %1 = stablehlo.xor %a, %b : tensor<4xi1>
  check.expect_eq_const %1, dense<[false, true, true, false]> : tensor<4xi1>
  %c = stablehlo.constant dense<[(1.0, 2.0), (0.0, -1.0)]> : tensor<2xcomplex<f64>>
  %2 = stablehlo.multiply %c, %c : tensor<2xcomplex<f64>>
  check.expect_eq_const %2, dense<[(-3.0, 4.0), (-1.0, 0.0)]> : tensor<2xcomplex<f64>>
  %3 = stablehlo.abs %2 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  check.expect_almost_eq_const %3, dense<[5.0, 1.0]> : tensor<2xf64>
  %4 = stablehlo.imag %c : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  check.expect_eq_const %4, dense<[2.0, -1.0]> : tensor<2xf64>
  return
}

func.func @functions_of_sixteen_bits() {
  %a = stablehlo.constant dense<[0.0, 1.0, 2.0]> : tensor<3xbf16>
  %0 = stablehlo.exponential %a : tensor<3xbf16>
  check.expect_almost_eq_const %0, dense<[1.0, 2.71875, 7.375]> : tensor<3xbf16>, tolerance = 0.02
  %b = stablehlo.constant dense<[0.0, 1.0, 2.0]> : tensor<3xf16>
  %1 = stablehlo.tanh %b : tensor<3xf16>
  %2 = stablehlo.constant dense<[0.0, 0.76171875, 0.9638671875]> : tensor<3xf16>
  check.expect_close %1, %2, max_ulp_difference = 1 : tensor<3xf16>, tensor<3xf16>
  return
}
