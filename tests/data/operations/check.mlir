// The dialect of StableHLO's own tests.
// jaxlib: unknown
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>, %i: tensor<3xi32>) {
  check.expect_eq %i, %i : tensor<3xi32>
  check.expect_eq_const %i, dense<[1, 2, 3]> : tensor<3xi32>
  check.expect_almost_eq %a, %b : tensor<2xf32>
  check.expect_almost_eq %a, %b, tolerance = 0.001 : tensor<2xf32>
  check.expect_almost_eq %a, %b, tolerance = 0.001 : f64 : tensor<2xf32>
  check.expect_almost_eq_const %a, dense<[0.999999, 2.0]> : tensor<2xf32>
  check.expect_almost_eq_const %a, dense<[0.999999, 2.0]> : tensor<2xf32>, tolerance = 1.000000e-05
  check.expect_close %a, %b, max_ulp_difference = 3 : tensor<2xf32>, tensor<2xf32>
  check.expect_close %a, %b, max_ulp_difference = 3, min_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>
  "check.expect_close"(%a, %b) <{max_ulp_difference = 2 : ui64, min_ulp_difference = 0 : ui64}> : (tensor<2xf32>, tensor<2xf32>) -> ()
  "check.expect_almost_eq"(%a, %b) <{tolerance = 5.000000e-01 : f64}> : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
// -----
// refused: check.expect_eq
func.func @main(%a: tensor<2xf32>, %i: tensor<2xi32>) {
  "check.expect_eq"(%a, %i) : (tensor<2xf32>, tensor<2xi32>) -> ()
  return
}
// -----
// refused: check.expect_eq_const
func.func @main(%a: tensor<2xf32>) {
  "check.expect_eq_const"(%a) <{value = dense<1> : tensor<2xi32>}> : (tensor<2xf32>) -> ()
  return
}
// -----
// refused: check.expect_almost_eq (I1)
func.func @main(%i: tensor<2xi32>) {
  check.expect_almost_eq %i, %i : tensor<2xi32>
  return
}
// -----
// refused: check.expect_almost_eq_const
func.func @main(%a: tensor<2xf32>) {
  check.expect_almost_eq_const %a, dense<1.0> : tensor<2xf32>, tolerance = -1.0
  return
}
// -----
// refused: check.expect_close
func.func @main(%a: tensor<2xf32>) {
  check.expect_close %a, %a, max_ulp_difference = 3, min_ulp_difference = 4 : tensor<2xf32>, tensor<2xf32>
  return
}
// -----
// refused: check.expect_almost_eq
func.func @main(%a: tensor<2xf32>) {
  "check.expect_almost_eq"(%a, %a) <{tolerance = 0x7FF0000000000000 : f64}> : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
