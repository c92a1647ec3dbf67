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
  check.expect_serialized_eq %a, probe_id = "a probe" : tensor<2xf32>
  check.expect_serialized_eq %a, probe_id = "a probe", iter = 2 : tensor<2xf32>
  return
}
// -----
// refused: check.expect_serialized_eq
func.func @main(%a: tensor<2xf32>) {
  "check.expect_serialized_eq"(%a, %a) <{probe_id = "a"}> : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
// -----
// The dialect of StableHLO's interpreter.
// jaxlib: unknown
func.func @f(%a: tensor<2xf32>) -> tensor<i32> {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  return %0 : tensor<i32>
}
func.func @g() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @main(%a: tensor<2xf32>) {
  interpreter.print %a : tensor<2xf32>
  %0 = interpreter.probe %a, probe_id = "a probe" : tensor<2xf32>
  %1:2 = "interpreter.run_parallel"(%a, %0) <{infeed = [@g, @g], programs = [[@f], [@f]]}> : (tensor<2xf32>, tensor<2xf32>) -> (tensor<i32>, tensor<i32>)
  %2 = "interpreter.run_parallel"() {programs = [["g"]]} : () -> tensor<2xf32>
  return
}
// -----
// refused: interpreter.print
func.func @main(%a: tensor<2xf32>) {
  "interpreter.print"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
// -----
// refused: interpreter.probe
func.func @main(%a: tensor<2xf32>) {
  %0 = "interpreter.probe"(%a) <{probe_id = "a"}> : (tensor<2xf32>) -> tensor<3xf32>
  return
}
// -----
// refused: interpreter.run_parallel
func.func @main(%a: tensor<2xf32>) {
  "interpreter.run_parallel"(%a) <{programs = [[@g]]}> : (tensor<2xf32>) -> ()
  return
}
func.func @g() { return }
// -----
// refused: chlo.top_k
func.func @main(%a: tensor<2xf32>) {
  %0:2 = chlo.top_k(%a, k = 3) : tensor<2xf32> -> (tensor<3xf32>, tensor<3xi32>)
  return
}
// -----
// refused: chlo.erf (I1)
func.func @main(%a: tensor<2xi32>) {
  %0 = chlo.erf %a : tensor<2xi32> -> tensor<2xi32>
  return
}
// -----
// refused: chlo.broadcast_add
func.func @main(%a: tensor<2xi32>, %b: tensor<3xi32>) {
  %0 = chlo.broadcast_add %a, %b : (tensor<2xi32>, tensor<3xi32>) -> tensor<3xi32>
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
