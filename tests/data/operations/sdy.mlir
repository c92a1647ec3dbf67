// The operations of Shardy.
module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @one = <[], device_ids=[3]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}p1]>}, %b: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}], replicated={"y"}>}) {
    %tanh = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x8xf32>
    %sharding_constraint = sdy.sharding_constraint %a <@mesh, [{"x", "y":(2)2}, {}]> : tensor<8x8xf32>
    %reshard = sdy.reshard %a <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
    sdy.sharding_group %a group_id=12 : tensor<8x8xf32>
    %propagation_barrier = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<8x8xf32>
    %named_computation = sdy.named_computation<"f">(%a) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] (%x: tensor<8x8xf32>) {
      sdy.return %x : tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %manual_computation = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%x: tensor<4x2xf32>) {
      sdy.return %x : tensor<4x2xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %slice = sdy.all_slice [{"x"}, {"y"}] %b out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    %sum = sdy.all_reduce {"x"} %b out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
    %scattered = sdy.reduce_scatter [{"y":(1)2}, {}] %b out_sharding=<@mesh, [{"y":(1)2}, {}]> : tensor<8x8xf32>
    return %a : tensor<8x8xf32>
  }
}
// -----
// Collectives whose operands must have shardings, which portable artifacts hide behind casts.
// jaxlib: text only
module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %tanh = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x8xf32>
    %all_gather = sdy.all_gather [{}, {"y"}] %tanh out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %all_slice = sdy.all_slice [{}, {"y"}] %all_gather out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    %all_to_all = sdy.all_to_all [{"y"}: 1->0] %all_slice out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<8x8xf32>
    %collective_permute = sdy.collective_permute %all_to_all out_sharding=<@mesh, [{"y", "x"}, {}]> : tensor<8x8xf32>
    %sharded_to_unreduced = sdy.sharded_to_unreduced [{"x"}, {}] %collective_permute out_sharding=<@mesh, [{"y"}, {}], unreduced={"x"}> : tensor<8x8xf32>
    %all_reduce = sdy.all_reduce {"x"} %sharded_to_unreduced out_sharding=<@mesh, [{"y"}, {}]> : tensor<8x8xf32>
    %replicated_to_unreduced = sdy.replicated_to_unreduced {"x"} %all_reduce out_sharding=<@mesh, [{"y"}, {}], unreduced={"x"}> : tensor<8x8xf32>
    %reduce_scatter = sdy.reduce_scatter [{}, {"x"}] %replicated_to_unreduced out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<8x8xf32>
    return %reduce_scatter : tensor<8x8xf32>
  }
}
// -----
// The generic form.
"builtin.module"() <{sym_name = "generic"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{function_type = (tensor<8xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%a: tensor<8xf32>):
    %0 = "sdy.propagation_barrier"(%a) <{allowed_direction = 2 : i32}> : (tensor<8xf32>) -> tensor<8xf32>
    "sdy.sharding_group"(%a) <{group_id = 3 : i64}> : (tensor<8xf32>) -> ()
    %1 = "sdy.named_computation"(%a) <{name = "g"}> ({
    ^bb0(%x: tensor<8xf32>):
      "sdy.return"(%x) : (tensor<8xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %2 = "sdy.all_slice"(%a) <{out_sharding = #sdy.sharding<@mesh, [{"x"}]>, slicing_axes = #sdy<list_of_axis_ref_lists[{"x"}]>}> : (tensor<8xf32>) -> tensor<8xf32>
    %3 = "sdy.all_reduce"(%a) <{out_sharding = #sdy.sharding<@mesh, [{}]>, reduction_axes = #sdy<axis_ref_list{"x"}>}> : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Meshes written in place, a device for what has no results, a constant that is not to be folded.
module {
  sdy.mesh @named = <["x"=2, "y"=2]>
  sdy.mesh @one = <[], device_ids=[1]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>, [{"x"}, {"y", ?}p1]>}, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=4]>, [{"x"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>, [{"x"}, {}], replicated={"y"}>}) {
    %0 = stablehlo.add %b, %b {sdy.sharding = #sdy.sharding_per_value<[<@named, [{"y"}]>]>} : tensor<8xf32>
    %1 = stablehlo.abs %b {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8xf32>
    stablehlo.custom_call @log(%b) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[2]>, []>]>} : (tensor<8xf32>) -> ()
    return %a : tensor<8x8xf32>
  }
}
// -----
// Which dimensions belong together, and where shardings meet.
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>) {
    %0 = stablehlo.custom_call @product(%a, %b) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k} blocked_propagation={i, j}, custom>} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.add %b, %b : tensor<4x16xf32>
    %3 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x", ?}, {?}]> : tensor<8x16xf32>
    %4 = sdy.data_flow_edge %2 : tensor<4x16xf32>
    %1:2 = stablehlo.custom_call @split(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([i, jk], []) {i=4, j=2, k=4} need_replication={k} permutation={j}>} : (tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<f32>)
    return
  }
}
// -----
// Reductions other than the sum.
// jaxlib: unknown
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced=max{"x"}>}, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], replicated={"y"}, unreduced=min{"x"}>}) {
    %0 = sdy.all_reduce max {"x"} %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    %1 = sdy.reduce_scatter min [{"x"}] %b out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
    %2 = sdy.all_reduce sum {"y"} %b out_sharding=<@mesh, [{}], unreduced=max{"x"}> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.all_gather
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.all_gather
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.all_gather [{}, {}] %b out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.all_gather
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@other, [{}, {"y"}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.all_slice
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.all_slice [{"x"}, {}] %b out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.all_to_all
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.all_to_all [{"y":(2)2}: 1->0] %a out_sharding=<@mesh, [{"x"}, {"y":(1)2}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.reduce_scatter
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.reduce_scatter [{}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.all_reduce
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.all_reduce {} %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.sharded_to_unreduced
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.sharded_to_unreduced [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.replicated_to_unreduced
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.replicated_to_unreduced {"x"} %b out_sharding=<@mesh, [{"y"}, {}], unreduced={"x"}> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.collective_permute
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x8xf32>) {
    %0 = sdy.collective_permute %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: stablehlo.custom_call
func.func @main(%a: tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}
// -----
// refused: stablehlo.custom_call
func.func @main(%a: tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i], [j]) {i=8, j=4}>} : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}
// -----
// refused: stablehlo.custom_call
func.func @main(%a: tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k])->([i]) {i=8, j=4}>} : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}
// -----
// refused: stablehlo.custom_call
func.func @main(%a: tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={j} permutation={j}>} : (tensor<8x4xf32>) -> tensor<8xf32>
  return
}
// -----
// refused: sdy.data_flow_edge
module {
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.data_flow_edge %a sharding=<@mesh, [{}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.manual_computation
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%x: tensor<8xf32>) {
      sdy.return %x : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.sharding_constraint
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%a: tensor<8x8xf32>) {
    %0 = sdy.sharding_constraint %a <@mesh, [{"x":(1)2}, {"x"}]> : tensor<8x8xf32>
    return
  }
}
// -----
// refused: sdy.reshard
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.reshard %a <@mesh, [{"x":(1)3}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.sharding_group
func.func @main(%t: !stablehlo.token) {
  sdy.sharding_group %t group_id=1 : !stablehlo.token
  return
}
// -----
// refused: sdy.propagation_barrier
func.func @main(%a: tensor<8xf32>) {
  %0 = sdy.propagation_barrier %a allowed_direction=BOTH : tensor<8xf32>
  return
}
// -----
// refused: sdy.named_computation
func.func @main(%a: tensor<8xf32>) {
  %0 = sdy.named_computation<"f">(%a) (%x: tensor<8xf32>) {
    sdy.return %x : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<4xf32>
  return
}
// -----
// refused: sdy.all_gather
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.all_slice
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.all_slice [{"z"}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.all_to_all
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.collective_permute
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.collective_permute %a out_sharding=<@mesh, [{}, {}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.all_reduce
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.all_reduce {"x", "x"} %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.reduce_scatter
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.reduce_scatter [] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.sharded_to_unreduced
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.sharded_to_unreduced [{"x"}] %a out_sharding=<@other, [{}]> : tensor<8xf32>
    return
  }
}
// -----
// refused: sdy.replicated_to_unreduced
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) {
    %0 = sdy.replicated_to_unreduced {} %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
    return
  }
}
