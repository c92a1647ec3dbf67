// Operations that make and move elements. Each part is a program; one that begins with
// `refused` violates that constraint of that operation.
module {
  func.func @main(%a: tensor<2x3xf32>, %v: tensor<3xf32>, %s: tensor<f32>, %i: tensor<i32>, %n: tensor<2xi32>, %k: tensor<4x1xi32>) {
    %constant = stablehlo.constant dense<[[1.0, -2.5e-3, 0x7FC00000], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %constant_i1 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %constant_i4 = stablehlo.constant dense<[-8, 7]> : tensor<2xi4>
    %constant_c = stablehlo.constant dense<(1.0,-2.0)> : tensor<4xcomplex<f32>>
    %constant_e = stablehlo.constant dense<> : tensor<0x4xi8>
    %iota = stablehlo.iota dim = 1 : tensor<2x3xui8>
    %dynamic_iota = stablehlo.dynamic_iota %n, dim = 0 : (tensor<2xi32>) -> tensor<2x3xi64>
    %broadcast = stablehlo.broadcast %v, sizes = [4, 2] : (tensor<3xf32>) -> tensor<4x2x3xf32>
    %broadcast_in_dim = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %dynamic_broadcast_in_dim = "stablehlo.dynamic_broadcast_in_dim"(%v, %n) <{broadcast_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>}> : (tensor<3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %reshape = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<3x2x1xf32>
    %dynamic_reshape = stablehlo.dynamic_reshape %a, %n : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<3x2xf32>
    %transpose = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %slice = stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
    %dynamic_slice = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 2] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    %real_dynamic_slice = stablehlo.real_dynamic_slice %a, %n, %n, %n : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x2xf32>
    %dynamic_update_slice = stablehlo.dynamic_update_slice %a, %dynamic_slice, %i, %i : (tensor<2x3xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %concatenate = stablehlo.concatenate %a, %constant, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %pad = stablehlo.pad %a, %s, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x4xf32>
    %dynamic_pad = stablehlo.dynamic_pad %a, %s, %n, %n, %n : (tensor<2x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4x4xf32>
    %reverse = stablehlo.reverse %a, dims = [1] : tensor<2x3xf32>
    %gather = "stablehlo.gather"(%a, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 2>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<4x2xf32>
    %dynamic_gather = "stablehlo.dynamic_gather"(%a, %k, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>, tensor<2xi32>) -> tensor<4x2xf32>
    %scatter = "stablehlo.scatter"(%a, %k, %gather) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<4x1xi32>, tensor<4x2xf32>) -> tensor<2x3xf32>
    %sort:2 = "stablehlo.sort"(%a, %iota) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>, %xi: tensor<ui8>, %yi: tensor<ui8>):
      %less = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    }) : (tensor<2x3xf32>, tensor<2x3xui8>) -> (tensor<2x3xf32>, tensor<2x3xui8>)
    %get_dimension_size = stablehlo.get_dimension_size %a, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
    %set_dimension_size = stablehlo.set_dimension_size %a, %i, dim = 1 : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
    %torch_index_select = "stablehlo.torch_index_select"(%a, %n) <{batch_dims = 0 : i64, dim = 1 : i64}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x2xf32>
    %bitcast_convert = stablehlo.bitcast_convert %a : (tensor<2x3xf32>) -> tensor<2x3x4xui8>
    return
  }
}
// -----
// refused: stablehlo.constant (C1)
func.func @main() {
  %0 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i64>
  return
}
// -----
// refused: stablehlo.iota (C1)
func.func @main() {
  %0 = stablehlo.iota dim = 1 : tensor<3xi32>
  return
}
// -----
// refused: stablehlo.dynamic_iota (C2)
func.func @main(%n: tensor<2xi32>) {
  %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<2xi32>) -> tensor<3xi64>
  return
}
// -----
// refused: stablehlo.broadcast
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.broadcast %v, sizes = [2] : (tensor<3xf32>) -> tensor<3x2xf32>
  return
}
// -----
// refused: stablehlo.broadcast_in_dim (C5)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.dynamic_broadcast_in_dim (C8)
func.func @main(%v: tensor<3xf32>, %n: tensor<1xi32>) {
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%v, %n) <{broadcast_dimensions = array<i64: 0>, known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>}> : (tensor<3xf32>, tensor<1xi32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.reshape (C2)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.reshape %v : (tensor<3xf32>) -> tensor<2xf32>
  return
}
// -----
// refused: stablehlo.dynamic_reshape (C4)
func.func @main(%v: tensor<4xf32>, %n: tensor<1xi32>) {
  %0 = stablehlo.dynamic_reshape %v, %n : (tensor<4xf32>, tensor<1xi32>) -> tensor<2x2xf32>
  return
}
// -----
// refused: stablehlo.transpose (C3)
func.func @main(%a: tensor<2x3xf32>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.slice (C3)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.slice %v [1:4] : (tensor<3xf32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.dynamic_slice (C4)
func.func @main(%v: tensor<3xf32>, %i: tensor<i32>) {
  %0 = stablehlo.dynamic_slice %v, %i, sizes = [4] : (tensor<3xf32>, tensor<i32>) -> tensor<4xf32>
  return
}
// -----
// refused: stablehlo.real_dynamic_slice
func.func @main(%v: tensor<3xf32>, %n: tensor<2xi32>) {
  %0 = stablehlo.real_dynamic_slice %v, %n, %n, %n : (tensor<3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1xf32>
  return
}
// -----
// refused: stablehlo.dynamic_update_slice (C6)
func.func @main(%v: tensor<3xf32>, %w: tensor<4xf32>, %i: tensor<i32>) {
  %0 = stablehlo.dynamic_update_slice %v, %w, %i : (tensor<3xf32>, tensor<4xf32>, tensor<i32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.concatenate (C6)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.concatenate %v, %v, dim = 0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<5xf32>
  return
}
// -----
// refused: stablehlo.pad (C4)
func.func @main(%v: tensor<3xf32>, %s: tensor<f32>) {
  %0 = stablehlo.pad %v, %s, low = [1], high = [1], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  return
}
// -----
// refused: stablehlo.dynamic_pad (C2)
func.func @main(%v: tensor<3xf32>, %s: tensor<f32>, %n: tensor<2xi32>) {
  %0 = stablehlo.dynamic_pad %v, %s, %n, %n, %n : (tensor<3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<6xf32>
  return
}
// -----
// refused: stablehlo.reverse (C3)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.reverse %v, dims = [1] : tensor<3xf32>
  return
}
// -----
// refused: stablehlo.gather (C22)
func.func @main(%a: tensor<2x3xf32>, %k: tensor<4x1xi32>) {
  %0 = "stablehlo.gather"(%a, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<4x3xf32>
  return
}
// -----
// refused: stablehlo.dynamic_gather (C11)
func.func @main(%a: tensor<2x3xf32>, %k: tensor<4x1xi32>, %n: tensor<3xi32>) {
  %0 = "stablehlo.dynamic_gather"(%a, %k, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>, tensor<3xi32>) -> tensor<4x2xf32>
  return
}
// -----
// refused: stablehlo.dynamic_gather (C13)
func.func @main(%a: tensor<2x3xf32>, %k: tensor<4x1xi32>, %n: tensor<2xi32>) {
  %0 = "stablehlo.dynamic_gather"(%a, %k, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<2x3xf32>, tensor<4x1xi32>, tensor<2xi32>) -> tensor<5x2xf32>
  return
}
// -----
// refused: stablehlo.scatter (C2)
func.func @main(%a: tensor<2x3xf32>, %k: tensor<4x1xi32>, %u: tensor<4x2xf32>) {
  %0 = "stablehlo.scatter"(%a, %k, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<4x1xi32>, tensor<4x2xf32>) -> tensor<2x3xf32>
  return
}
// -----
// refused: stablehlo.sort (C4)
func.func @main(%v: tensor<3xf32>) {
  %0 = "stablehlo.sort"(%v) <{dimension = 1 : i64}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<3xf32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.get_dimension_size (C1)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.get_dimension_size %v, dim = 1 : (tensor<3xf32>) -> tensor<i32>
  return
}
// -----
// refused: stablehlo.set_dimension_size
func.func @main(%v: tensor<3xf32>, %i: tensor<i32>) {
  %0 = stablehlo.set_dimension_size %v, %i, dim = 1 : (tensor<3xf32>, tensor<i32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.torch_index_select
func.func @main(%v: tensor<3xf32>, %n: tensor<2xi32>) {
  %0 = "stablehlo.torch_index_select"(%v, %n) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<3xf32>, tensor<2xi32>) -> tensor<3xf32>
  return
}
// -----
// refused: stablehlo.bitcast_convert (C1)
func.func @main(%v: tensor<3xf32>) {
  %0 = stablehlo.bitcast_convert %v : (tensor<3xf32>) -> tensor<3xi16>
  return
}
