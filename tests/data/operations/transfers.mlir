module @transfers {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<2xf32>) {
    %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg1) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
    %1 = "stablehlo.map"(%0#1, %0#2) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %9 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %2 = stablehlo.create_token : !stablehlo.token
    %3 = "stablehlo.send"(%1, %2) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
    %4:2 = "stablehlo.recv"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
    %5 = "stablehlo.outfeed"(%1, %4#1) <{outfeed_config = "out"}> : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
    %6:2 = "stablehlo.infeed"(%5) <{infeed_config = "in"}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
    %7 = stablehlo.tuple %6#0, %4#0 : tuple<tensor<2xf32>, tensor<2xf32>>
    %8 = stablehlo.get_tuple_element %7[1] : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
    return %0#0, %8 : tensor<2x3x4xf32>, tensor<2xf32>
  }
}
