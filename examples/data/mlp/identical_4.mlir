module @jit_identical attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<64x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<i32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>] out_shardings=[<@mesh, []>] manual_axes={"data"} (%arg6: tensor<64x128xf32>, %arg7: tensor<128xf32>, %arg8: tensor<128x64xf32>, %arg9: tensor<64xf32>, %arg10: tensor<64x10xf32>, %arg11: tensor<10xf32>) {
      %1 = stablehlo.bitcast_convert %arg6 : (tensor<64x128xf32>) -> tensor<64x128xui32>
      %2 = stablehlo.reshape %1 : (tensor<64x128xui32>) -> tensor<8192xui32>
      %3 = stablehlo.bitcast_convert %arg7 : (tensor<128xf32>) -> tensor<128xui32>
      %4 = stablehlo.bitcast_convert %arg8 : (tensor<128x64xf32>) -> tensor<128x64xui32>
      %5 = stablehlo.reshape %4 : (tensor<128x64xui32>) -> tensor<8192xui32>
      %6 = stablehlo.bitcast_convert %arg9 : (tensor<64xf32>) -> tensor<64xui32>
      %7 = stablehlo.bitcast_convert %arg10 : (tensor<64x10xf32>) -> tensor<64x10xui32>
      %8 = stablehlo.reshape %7 : (tensor<64x10xui32>) -> tensor<640xui32>
      %9 = stablehlo.bitcast_convert %arg11 : (tensor<10xf32>) -> tensor<10xui32>
      %10 = stablehlo.concatenate %2, %3, %5, %6, %8, %9, dim = 0 : (tensor<8192xui32>, tensor<128xui32>, tensor<8192xui32>, tensor<64xui32>, tensor<640xui32>, tensor<10xui32>) -> tensor<17226xui32>
      %11 = "stablehlo.all_reduce"(%10) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg12: tensor<ui32>, %arg13: tensor<ui32>):
        %16 = stablehlo.maximum %arg12, %arg13 : tensor<ui32>
        stablehlo.return %16 : tensor<ui32>
      }) : (tensor<17226xui32>) -> tensor<17226xui32>
      %12 = "stablehlo.all_reduce"(%10) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg12: tensor<ui32>, %arg13: tensor<ui32>):
        %16 = stablehlo.minimum %arg12, %arg13 : tensor<ui32>
        stablehlo.return %16 : tensor<ui32>
      }) : (tensor<17226xui32>) -> tensor<17226xui32>
      %13 = stablehlo.compare NE, %11, %12, UNSIGNED : (tensor<17226xui32>, tensor<17226xui32>) -> tensor<17226xi1>
      %14 = stablehlo.convert %13 : (tensor<17226xi1>) -> tensor<17226xi32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %15 = stablehlo.reduce(%14 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<17226xi32>, tensor<i32>) -> tensor<i32>
      sdy.return %15 : tensor<i32>
    } : (tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
