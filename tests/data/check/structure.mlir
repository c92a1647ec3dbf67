// What passes values on: tuples, tokens, composites, loops; and operations older than the
// specification.

func.func private @twice(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func private @swap(%a: tuple<tensor<i32>, tuple<tensor<f32>, !stablehlo.token>>) -> tuple<tensor<f32>, tensor<i32>> {
  %0 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<i32>, tuple<tensor<f32>, !stablehlo.token>>) -> tuple<tensor<f32>, !stablehlo.token>
  %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<f32>, !stablehlo.token>) -> tensor<f32>
  %2 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<i32>, tuple<tensor<f32>, !stablehlo.token>>) -> tensor<i32>
  %3 = stablehlo.tuple %1, %2 : tuple<tensor<f32>, tensor<i32>>
  return %3 : tuple<tensor<f32>, tensor<i32>>
}

func.func @tuples_and_tokens() {
  %i = stablehlo.constant dense<3> : tensor<i32>
  %f = stablehlo.constant dense<0.5> : tensor<f32>
  %t = stablehlo.create_token : !stablehlo.token
  %u = stablehlo.after_all %t, %t : !stablehlo.token
  %0 = stablehlo.tuple %f, %u : tuple<tensor<f32>, !stablehlo.token>
  %1 = stablehlo.tuple %i, %0 : tuple<tensor<i32>, tuple<tensor<f32>, !stablehlo.token>>
  %2 = func.call @swap(%1) : (tuple<tensor<i32>, tuple<tensor<f32>, !stablehlo.token>>) -> tuple<tensor<f32>, tensor<i32>>
  %3 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<i32>
  check.expect_eq_const %3, dense<3> : tensor<i32>
  %4:2 = stablehlo.optimization_barrier %f, %i : tensor<f32>, tensor<i32>
  check.expect_eq_const %4#0, dense<0.5> : tensor<f32>
  return
}

func.func @composites() {
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = stablehlo.composite "my.twice" %a {decomposition = @twice} : (tensor<2xf32>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[2.0, 4.0]> : tensor<2xf32>
  return
}

func.func @a_loop_with_a_token() {
  %n = stablehlo.constant dense<4> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = stablehlo.while(%i = %zero, %token = %t) : tensor<i32>, !stablehlo.token
  cond {
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %1, %token : tensor<i32>, !stablehlo.token
  }
  check.expect_eq_const %0#0, dense<4> : tensor<i32>
  return
}

func.func @older_operations() {
  %a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %b = stablehlo.constant dense<[1, 0, 2]> : tensor<3xi32>
  %0 = stablehlo.dot %a, %b : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2xi32>
  check.expect_eq_const %0, dense<[7, 16]> : tensor<2xi32>
  %1 = stablehlo.broadcast %b, sizes = [2] : (tensor<3xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %1, dense<[[1, 0, 2], [1, 0, 2]]> : tensor<2x3xi32>
  %2 = stablehlo.einsum %a, %a, config = "ab,cb->ca" : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %2, dense<[[14, 32], [32, 77]]> : tensor<2x2xi32>
  %3 = stablehlo.unary_einsum %a, config = "ab->b" : (tensor<2x3xi32>) -> tensor<3xi32>
  check.expect_eq_const %3, dense<[5, 7, 9]> : tensor<3xi32>
  %4 = "stablehlo.torch_index_select"(%a, %b) <{dim = 1 : i64, batch_dims = 0 : i64}> : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %4, dense<[[2, 1, 3], [5, 4, 6]]> : tensor<2x3xi32>
  %5 = "stablehlo.sort"(%a) ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %p = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }) : (tensor<2x3xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %5, dense<[[3, 2, 1], [6, 5, 4]]> : tensor<2x3xi32>
  return
}
