// Operations of `chlo`; expected values are those of SciPy.

func.func @special_functions() {
  %a = stablehlo.constant dense<[0.25, 0.5, -0.75]> : tensor<3xf64>
  %0 = chlo.erf %a : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %0, dense<[0.2763263901682369, 0.5204998778130465, -0.7111556336535151]> : tensor<3xf64>, tolerance = 1.0e-14
  %1 = chlo.erf_inv %0 : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq %1, %a, tolerance = 1.0e-14 : tensor<3xf64>
  %2 = chlo.erfc %a : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %2, dense<[0.7236736098317631, 0.4795001221869535, 1.711155633653515]> : tensor<3xf64>, tolerance = 1.0e-14
  %3 = chlo.lgamma %a : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %3, dense<[1.2880225246980774, 0.5723649429247001, 1.5757045971498584]> : tensor<3xf64>, tolerance = 1.0e-13
  %4 = chlo.digamma %a : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %4, dense<[-4.227453533376265, -1.9635100260214235, -2.894120200042932]> : tensor<3xf64>, tolerance = 1.0e-12
  %5 = chlo.bessel_i1e %a : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %5, dense<[0.0981126286973682, 0.15642080318487173, -0.189887793304855]> : tensor<3xf64>, tolerance = 1.0e-14
  return
}

func.func @circular_and_hyperbolic_functions() {
  %a = stablehlo.constant dense<[0.25, 0.5, -0.75]> : tensor<3xf32>
  %0 = chlo.asin %a : tensor<3xf32> -> tensor<3xf32>
  %1 = stablehlo.sine %0 : tensor<3xf32>
  check.expect_almost_eq %1, %a, tolerance = 1.0e-6 : tensor<3xf32>
  %2 = chlo.acos %a : tensor<3xf32> -> tensor<3xf32>
  %3 = stablehlo.cosine %2 : tensor<3xf32>
  check.expect_almost_eq %3, %a, tolerance = 1.0e-6 : tensor<3xf32>
  %4 = chlo.atanh %a : tensor<3xf32> -> tensor<3xf32>
  %5 = stablehlo.tanh %4 : tensor<3xf32>
  check.expect_almost_eq %5, %a, tolerance = 1.0e-6 : tensor<3xf32>
  %6 = chlo.atan %a : tensor<3xf32> -> tensor<3xf32>
  %7 = chlo.tan %6 : tensor<3xf32> -> tensor<3xf32>
  check.expect_almost_eq %7, %a, tolerance = 1.0e-6 : tensor<3xf32>
  %8 = chlo.asinh %a : tensor<3xf32> -> tensor<3xf32>
  %9 = chlo.sinh %8 : tensor<3xf32> -> tensor<3xf32>
  check.expect_almost_eq %9, %a, tolerance = 1.0e-6 : tensor<3xf32>
  %b = stablehlo.constant dense<[1.25, 2.5]> : tensor<2xbf16>
  %10 = chlo.acosh %b : tensor<2xbf16> -> tensor<2xbf16>
  %11 = chlo.cosh %10 : tensor<2xbf16> -> tensor<2xbf16>
  check.expect_almost_eq %11, %b, tolerance = 0.02 : tensor<2xbf16>
  return
}

func.func @two_operands() {
  %n = stablehlo.constant dense<[0.0, 1.0, 2.0]> : tensor<3xf64>
  %x = stablehlo.constant dense<[1.0, 1.0, 1.0]> : tensor<3xf64>
  %0 = chlo.polygamma %n, %x : tensor<3xf64>, tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %0, dense<[-0.5772156649015329, 1.6449340668482264, -2.4041138063191886]> : tensor<3xf64>, tolerance = 1.0e-12
  %two = stablehlo.constant dense<2.0> : tensor<3xf64>
  %1 = chlo.zeta %two, %x : tensor<3xf64>, tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %1, dense<1.6449340668482264> : tensor<3xf64>, tolerance = 1.0e-12
  %a = stablehlo.constant dense<[1.0, 0.0]> : tensor<2xf32>
  %b = stablehlo.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %2 = chlo.next_after %a, %b : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  check.expect_eq_const %2, dense<[0x3F800001, 0x80000001]> : tensor<2xf32>
  return
}

func.func @broadcasting() {
  %a = stablehlo.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %b = stablehlo.constant dense<[10, 20, 30]> : tensor<3xi32>
  %0 = chlo.broadcast_add %a, %b : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[11, 21, 31], [12, 22, 32]]> : tensor<2x3xi32>
  %c = stablehlo.constant dense<[5, 7]> : tensor<2xi32>
  %1 = chlo.broadcast_multiply %0, %c {broadcast_dimensions = array<i64: 0>} : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %1, dense<[[55, 105, 155], [84, 154, 224]]> : tensor<2x3xi32>
  %2 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi1>
  check.expect_eq_const %2, dense<true> : tensor<2x3xi1>
  %3 = "chlo.constant_like"(%a) <{value = 3 : i32}> : (tensor<2x1xi32>) -> tensor<2x1xi32>
  check.expect_eq_const %3, dense<3> : tensor<2x1xi32>
  return
}

func.func @top_k() {
  %a = stablehlo.constant dense<[[3.0, 1.0, 4.0, 1.5], [1.0, 5.0, 5.0, 2.0]]> : tensor<2x4xf32>
  %0:2 = chlo.top_k(%a, k = 2) : tensor<2x4xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
  check.expect_eq_const %0#0, dense<[[4.0, 3.0], [5.0, 5.0]]> : tensor<2x2xf32>
  check.expect_eq_const %0#1, dense<[[2, 0], [1, 2]]> : tensor<2x2xi32>
  return
}

func.func @tests_and_parts() {
  %a = stablehlo.constant dense<[0x7F800000, 0xFF800000, 1.0]> : tensor<3xf32>
  %0 = chlo.is_inf %a : tensor<3xf32> -> tensor<3xi1>
  check.expect_eq_const %0, dense<[true, true, false]> : tensor<3xi1>
  %1 = chlo.is_neg_inf %a : tensor<3xf32> -> tensor<3xi1>
  check.expect_eq_const %1, dense<[false, true, false]> : tensor<3xi1>
  %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
  %2 = chlo.conj %c : tensor<complex<f32>> -> tensor<complex<f32>>
  check.expect_eq_const %2, dense<(1.0, -2.0)> : tensor<complex<f32>>
  %3 = chlo.square %c : tensor<complex<f32>> -> tensor<complex<f32>>
  check.expect_eq_const %3, dense<(-3.0, 4.0)> : tensor<complex<f32>>
  return
}
