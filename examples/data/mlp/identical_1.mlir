module @jit_identical attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=1]> {stablehlo.mesh = {axes = [{name = "data", size = 1 : i64}]}}
  func.func public @main(%arg0: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<64x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<i32> {jax.result_info = "result"}) {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<64x128xf32>) -> tensor<64x128xui32>
    %1 = stablehlo.reshape %0 : (tensor<64x128xui32>) -> tensor<8192xui32>
    %2 = stablehlo.bitcast_convert %arg1 : (tensor<128xf32>) -> tensor<128xui32>
    %3 = stablehlo.bitcast_convert %arg2 : (tensor<128x64xf32>) -> tensor<128x64xui32>
    %4 = stablehlo.reshape %3 : (tensor<128x64xui32>) -> tensor<8192xui32>
    %5 = stablehlo.bitcast_convert %arg3 : (tensor<64xf32>) -> tensor<64xui32>
    %6 = stablehlo.bitcast_convert %arg4 : (tensor<64x10xf32>) -> tensor<64x10xui32>
    %7 = stablehlo.reshape %6 : (tensor<64x10xui32>) -> tensor<640xui32>
    %8 = stablehlo.bitcast_convert %arg5 : (tensor<10xf32>) -> tensor<10xui32>
    %9 = stablehlo.concatenate %1, %2, %4, %5, %7, %8, dim = 0 : (tensor<8192xui32>, tensor<128xui32>, tensor<8192xui32>, tensor<64xui32>, tensor<640xui32>, tensor<10xui32>) -> tensor<17226xui32>
    %10 = "stablehlo.all_reduce"(%9) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg6: tensor<ui32>, %arg7: tensor<ui32>):
      %15 = stablehlo.maximum %arg6, %arg7 : tensor<ui32>
      stablehlo.return %15 : tensor<ui32>
    }) : (tensor<17226xui32>) -> tensor<17226xui32>
    %11 = "stablehlo.all_reduce"(%9) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg6: tensor<ui32>, %arg7: tensor<ui32>):
      %15 = stablehlo.minimum %arg6, %arg7 : tensor<ui32>
      stablehlo.return %15 : tensor<ui32>
    }) : (tensor<17226xui32>) -> tensor<17226xui32>
    %12 = stablehlo.compare NE, %10, %11, UNSIGNED : (tensor<17226xui32>, tensor<17226xui32>) -> tensor<17226xi1>
    %13 = stablehlo.convert %12 : (tensor<17226xi1>) -> tensor<17226xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.reduce(%13 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<17226xi32>, tensor<i32>) -> tensor<i32>
    return %14 : tensor<i32>
  }
}
