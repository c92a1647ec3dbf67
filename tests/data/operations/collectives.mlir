// Operations between devices.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func @main(%a: tensor<4x2xf32>) {
    %partition_id = stablehlo.partition_id : tensor<ui32>
    %replica_id = stablehlo.replica_id : tensor<ui32>
    %all_reduce = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %all_gather = "stablehlo.all_gather"(%a) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x4xf32>
    %reduce_scatter = "stablehlo.reduce_scatter"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
    %all_to_all = "stablehlo.all_to_all"(%a) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    %collective_permute = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %collective_broadcast = "stablehlo.collective_broadcast"(%a) <{replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return
  }
}
// -----
// Newer than the newest jaxlib that Lockstep is tested with.
// jaxlib: unknown
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%a: tensor<4x2xf32>, %roots: tensor<1xi32>) {
    %collective_reduce = "stablehlo.collective_reduce"(%a, %roots) <{has_dynamic_root, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<4x2xf32>, tensor<1xi32>) -> tensor<4x2xf32>
    return
  }
}
// -----
// refused: stablehlo.partition_id (O1)
func.func @main() {
  %0 = stablehlo.partition_id : tensor<i32>
  return
}
// -----
// refused: stablehlo.replica_id (O1)
func.func @main() {
  %0 = stablehlo.replica_id : tensor<1xui32>
  return
}
// -----
// refused: stablehlo.all_reduce (C1)
func.func @main(%a: tensor<4xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
// refused: stablehlo.all_gather (C6)
func.func @main(%a: tensor<4xf32>) {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
  return
}
// -----
// refused: stablehlo.reduce_scatter (C8)
func.func @main(%a: tensor<4xf32>) {
  %0 = "stablehlo.reduce_scatter"(%a) <{replica_groups = dense<0> : tensor<1x1xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<2xf32>
  return
}
// -----
// refused: stablehlo.all_to_all (C8)
func.func @main(%a: tensor<4xf32>) {
  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
// refused: stablehlo.collective_permute (C4)
func.func @main(%a: tensor<4xf32>) {
  %0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, -1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
// refused: stablehlo.collective_broadcast (C2)
func.func @main(%a: tensor<4xf32>) {
  %0 = "stablehlo.collective_broadcast"(%a) <{replica_groups = dense<-2> : tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
// refused: stablehlo.collective_reduce (C3)
func.func @main(%a: tensor<4xf32>) {
  %0 = "stablehlo.collective_reduce"(%a) <{has_dynamic_root, replica_groups = dense<0> : tensor<1x1xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
