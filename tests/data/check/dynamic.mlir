// Shapes that are operands or are known when the arguments are.

func.func private @double(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = stablehlo.add %a, %a : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

func.func @arithmetic_of_shapes() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %d = stablehlo.dynamic_reshape %a, %s : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  %0 = func.call @double(%d) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  check.expect_eq_const %1, dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %n = stablehlo.multiply %1, %three : tensor<i32>
  %shape = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %0, %shape : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
  %3 = stablehlo.negate %2 : tensor<?xf32>
  %4 = stablehlo.dynamic_reshape %3, %shape : (tensor<?xf32>, tensor<1xi32>) -> tensor<6xf32>
  check.expect_eq_const %4, dense<[-2.0, -4.0, -6.0, -8.0, -10.0, -12.0]> : tensor<6xf32>
  return
}

func.func @every_dynamic_operation() {
  %s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
  %t = stablehlo.constant dense<[2, 2, 3]> : tensor<3xi32>
  %u = stablehlo.constant dense<12> : tensor<1xi32>
  %0 = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>
  %1 = stablehlo.dynamic_broadcast_in_dim %0, %t, dims = [1, 2] : (tensor<?x?xi32>, tensor<3xi32>) -> tensor<?x2x3xi32>
  %2 = stablehlo.dynamic_reshape %1, %u : (tensor<?x2x3xi32>, tensor<1xi32>) -> tensor<12xi32>
  check.expect_eq_const %2, dense<[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]> : tensor<12xi32>
  return
}

func.func @edges_and_slices() {
  %a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %none = stablehlo.constant dense<0> : tensor<1xi32>
  %fill = stablehlo.constant dense<9> : tensor<i32>
  %limit = stablehlo.constant dense<6> : tensor<1xi32>
  %0 = stablehlo.dynamic_pad %a, %fill, %one, %two, %none : (tensor<4xi32>, tensor<i32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32>
  %1 = stablehlo.real_dynamic_slice %0, %one, %limit, %two : (tensor<?xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %n = stablehlo.constant dense<10> : tensor<1xi32>
  %3 = stablehlo.dynamic_reshape %2, %n : (tensor<?xi32>, tensor<1xi32>) -> tensor<10xi32>
  check.expect_eq_const %3, dense<[9, 1, 2, 3, 4, 9, 9, 1, 3, 9]> : tensor<10xi32>
  %i = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
  %4 = "stablehlo.dynamic_gather"(%a, %i, %two) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4xi32>, tensor<2x1xi32>, tensor<1xi32>) -> tensor<2x?xi32>
  %5 = stablehlo.reduce(%4 init: %fill) applies stablehlo.add across dimensions = [1] : (tensor<2x?xi32>, tensor<i32>) -> tensor<2xi32>
  check.expect_eq_const %5, dense<[16, 12]> : tensor<2xi32>
  return
}
