module @jit_evaluate attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<64x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg6: tensor<360x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg7: tensor<360xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> (tensor<i32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}]>] out_shardings=[<@mesh, []>] manual_axes={"data"} (%arg8: tensor<64x128xf32>, %arg9: tensor<128xf32>, %arg10: tensor<128x64xf32>, %arg11: tensor<64xf32>, %arg12: tensor<64x10xf32>, %arg13: tensor<10xf32>, %arg14: tensor<90x64xf32>, %arg15: tensor<90xi32>) {
      %1 = stablehlo.dot_general %arg14, %arg8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<90x64xf32>, tensor<64x128xf32>) -> tensor<90x128xf32>
      %2 = stablehlo.broadcast_in_dim %arg9, dims = [1] : (tensor<128xf32>) -> tensor<1x128xf32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<90x128xf32>
      %4 = stablehlo.add %1, %3 : tensor<90x128xf32>
      %5 = func.call @relu(%4) : (tensor<90x128xf32>) -> tensor<90x128xf32>
      %6 = stablehlo.dot_general %5, %arg10, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<90x128xf32>, tensor<128x64xf32>) -> tensor<90x64xf32>
      %7 = stablehlo.broadcast_in_dim %arg11, dims = [1] : (tensor<64xf32>) -> tensor<1x64xf32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<90x64xf32>
      %9 = stablehlo.add %6, %8 : tensor<90x64xf32>
      %10 = func.call @relu_0(%9) : (tensor<90x64xf32>) -> tensor<90x64xf32>
      %11 = stablehlo.dot_general %10, %arg12, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<90x64xf32>, tensor<64x10xf32>) -> tensor<90x10xf32>
      %12 = stablehlo.broadcast_in_dim %arg13, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
      %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<1x10xf32>) -> tensor<90x10xf32>
      %14 = stablehlo.add %11, %13 : tensor<90x10xf32>
      %15 = func.call @argmax(%14) : (tensor<90x10xf32>) -> tensor<90xi32>
      %16 = stablehlo.compare EQ, %15, %arg15, SIGNED : (tensor<90xi32>, tensor<90xi32>) -> tensor<90xi1>
      %17 = stablehlo.convert %16 : (tensor<90xi1>) -> tensor<90xi32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %18 = stablehlo.reduce(%17 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<90xi32>, tensor<i32>) -> tensor<i32>
      %19 = "stablehlo.all_reduce"(%18) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg16: tensor<i32>, %arg17: tensor<i32>):
        %20 = stablehlo.add %arg16, %arg17 : tensor<i32>
        stablehlo.return %20 : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      sdy.return %19 : tensor<i32>
    } : (tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>, tensor<360x64xf32>, tensor<360xi32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @relu(%arg0: tensor<90x128xf32>) -> tensor<90x128xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<90x128xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<90x128xf32>
    return %1 : tensor<90x128xf32>
  }
  func.func private @relu_0(%arg0: tensor<90x64xf32>) -> tensor<90x64xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<90x64xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<90x64xf32>
    return %1 : tensor<90x64xf32>
  }
  func.func private @argmax(%arg0: tensor<90x10xf32>) -> tensor<90xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<90x10xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<90x10xf32>, tensor<90x10xi32>, tensor<f32>, tensor<i32>) -> (tensor<90xf32>, tensor<90xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<90xi32>
  }
}
