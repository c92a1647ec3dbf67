module @jit_train attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=1]> {stablehlo.mesh = {axes = [{name = "data", size = 1 : i64}]}}
  func.func public @main(%arg0: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<64x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg6: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg7: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg8: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg9: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg10: tensor<64x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg11: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg12: tensor<96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg13: tensor<96xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<64x128xf32> {jax.result_info = "result[1]"}, tensor<128xf32> {jax.result_info = "result[2]"}, tensor<128x64xf32> {jax.result_info = "result[3]"}, tensor<64xf32> {jax.result_info = "result[4]"}, tensor<64x10xf32> {jax.result_info = "result[5]"}, tensor<10xf32> {jax.result_info = "result[6]"}, tensor<64x128xf32> {jax.result_info = "result[7]"}, tensor<128xf32> {jax.result_info = "result[8]"}, tensor<128x64xf32> {jax.result_info = "result[9]"}, tensor<64xf32> {jax.result_info = "result[10]"}, tensor<64x10xf32> {jax.result_info = "result[11]"}, tensor<10xf32> {jax.result_info = "result[12]"}) {
    %0 = stablehlo.dot_general %arg12, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<96x64xf32>, tensor<64x128xf32>) -> tensor<96x128xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<128xf32>) -> tensor<1x128xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<96x128xf32>
    %3 = stablehlo.add %0, %2 : tensor<96x128xf32>
    %4 = call @relu(%3) : (tensor<96x128xf32>) -> tensor<96x128xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<96x128xf32>
    %6 = stablehlo.compare GT, %3, %5, FLOAT : (tensor<96x128xf32>, tensor<96x128xf32>) -> tensor<96x128xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<96x128xf32>
    %8 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<96x128xf32>, tensor<128x64xf32>) -> tensor<96x64xf32>
    %9 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<64xf32>) -> tensor<1x64xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<96x64xf32>
    %11 = stablehlo.add %8, %10 : tensor<96x64xf32>
    %12 = call @relu_0(%11) : (tensor<96x64xf32>) -> tensor<96x64xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %14 = stablehlo.compare GT, %11, %13, FLOAT : (tensor<96x64xf32>, tensor<96x64xf32>) -> tensor<96x64xi1>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %16 = stablehlo.dot_general %12, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<96x64xf32>, tensor<64x10xf32>) -> tensor<96x10xf32>
    %17 = stablehlo.broadcast_in_dim %arg5, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1] : (tensor<1x10xf32>) -> tensor<96x10xf32>
    %19 = stablehlo.add %16, %18 : tensor<96x10xf32>
    %20:3 = call @log_softmax(%19) : (tensor<96x10xf32>) -> (tensor<96x10xf32>, tensor<96x10xf32>, tensor<96x1xf32>)
    %21 = call @_one_hot(%arg13) : (tensor<96xi32>) -> tensor<96x10xf32>
    %22 = stablehlo.multiply %20#0, %21 : tensor<96x10xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.reduce(%22 init: %cst_3) applies stablehlo.add across dimensions = [0, 1] : (tensor<96x10xf32>, tensor<f32>) -> tensor<f32>
    %24 = stablehlo.negate %23 : tensor<f32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %25 = stablehlo.negate %cst_4 : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<96x10xf32>
    %27 = stablehlo.multiply %26, %21 : tensor<96x10xf32>
    %28 = call @log_softmax_1(%20#1, %20#2, %27) : (tensor<96x10xf32>, tensor<96x1xf32>, tensor<96x10xf32>) -> tensor<96x10xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%28 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<96x10xf32>, tensor<f32>) -> tensor<10xf32>
    %30 = stablehlo.reshape %29 : (tensor<10xf32>) -> tensor<1x10xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %31 = stablehlo.reduce(%30 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<1x10xf32>, tensor<f32>) -> tensor<10xf32>
    %32 = stablehlo.dot_general %28, %12, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<96x10xf32>, tensor<96x64xf32>) -> tensor<10x64xf32>
    %33 = stablehlo.transpose %32, dims = [1, 0] : (tensor<10x64xf32>) -> tensor<64x10xf32>
    %34 = stablehlo.dot_general %28, %arg4, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<96x10xf32>, tensor<64x10xf32>) -> tensor<96x64xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %36 = stablehlo.select %14, %34, %35 : tensor<96x64xi1>, tensor<96x64xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.reduce(%36 init: %cst_8) applies stablehlo.add across dimensions = [0] : (tensor<96x64xf32>, tensor<f32>) -> tensor<64xf32>
    %38 = stablehlo.reshape %37 : (tensor<64xf32>) -> tensor<1x64xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.reduce(%38 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<1x64xf32>, tensor<f32>) -> tensor<64xf32>
    %40 = stablehlo.dot_general %36, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<96x64xf32>, tensor<96x128xf32>) -> tensor<64x128xf32>
    %41 = stablehlo.transpose %40, dims = [1, 0] : (tensor<64x128xf32>) -> tensor<128x64xf32>
    %42 = stablehlo.dot_general %36, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<96x64xf32>, tensor<128x64xf32>) -> tensor<96x128xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<96x128xf32>
    %44 = stablehlo.select %6, %42, %43 : tensor<96x128xi1>, tensor<96x128xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %45 = stablehlo.reduce(%44 init: %cst_11) applies stablehlo.add across dimensions = [0] : (tensor<96x128xf32>, tensor<f32>) -> tensor<128xf32>
    %46 = stablehlo.reshape %45 : (tensor<128xf32>) -> tensor<1x128xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %47 = stablehlo.reduce(%46 init: %cst_12) applies stablehlo.add across dimensions = [0] : (tensor<1x128xf32>, tensor<f32>) -> tensor<128xf32>
    %48 = stablehlo.dot_general %44, %arg12, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<96x128xf32>, tensor<96x64xf32>) -> tensor<128x64xf32>
    %49 = stablehlo.transpose %48, dims = [1, 0] : (tensor<128x64xf32>) -> tensor<64x128xf32>
    %50 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %51 = stablehlo.reshape %49 : (tensor<64x128xf32>) -> tensor<8192xf32>
    %52 = stablehlo.reshape %41 : (tensor<128x64xf32>) -> tensor<8192xf32>
    %53 = stablehlo.reshape %33 : (tensor<64x10xf32>) -> tensor<640xf32>
    %54 = stablehlo.concatenate %50, %51, %47, %52, %39, %53, %31, dim = 0 : (tensor<1xf32>, tensor<8192xf32>, tensor<128xf32>, tensor<8192xf32>, tensor<64xf32>, tensor<640xf32>, tensor<10xf32>) -> tensor<17227xf32>
    %55 = "stablehlo.all_reduce"(%54) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg14: tensor<f32>, %arg15: tensor<f32>):
      %105 = stablehlo.add %arg14, %arg15 : tensor<f32>
      stablehlo.return %105 : tensor<f32>
    }) : (tensor<17227xf32>) -> tensor<17227xf32>
    %cst_13 = stablehlo.constant dense<9.600000e+01> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<17227xf32>
    %57 = stablehlo.divide %55, %56 : tensor<17227xf32>
    %58 = stablehlo.slice %57 [0:1] : (tensor<17227xf32>) -> tensor<1xf32>
    %59 = stablehlo.reshape %58 : (tensor<1xf32>) -> tensor<f32>
    %60 = stablehlo.slice %57 [1:8193] : (tensor<17227xf32>) -> tensor<8192xf32>
    %61 = stablehlo.reshape %60 : (tensor<8192xf32>) -> tensor<64x128xf32>
    %cst_14 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
    %63 = stablehlo.multiply %62, %arg6 : tensor<64x128xf32>
    %64 = stablehlo.add %63, %61 : tensor<64x128xf32>
    %cst_15 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %65 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
    %66 = stablehlo.multiply %65, %64 : tensor<64x128xf32>
    %67 = stablehlo.subtract %arg0, %66 : tensor<64x128xf32>
    %68 = stablehlo.slice %57 [8193:8321] : (tensor<17227xf32>) -> tensor<128xf32>
    %cst_16 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<128xf32>
    %70 = stablehlo.multiply %69, %arg7 : tensor<128xf32>
    %71 = stablehlo.add %70, %68 : tensor<128xf32>
    %cst_17 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<128xf32>
    %73 = stablehlo.multiply %72, %71 : tensor<128xf32>
    %74 = stablehlo.subtract %arg1, %73 : tensor<128xf32>
    %75 = stablehlo.slice %57 [8321:16513] : (tensor<17227xf32>) -> tensor<8192xf32>
    %76 = stablehlo.reshape %75 : (tensor<8192xf32>) -> tensor<128x64xf32>
    %cst_18 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<128x64xf32>
    %78 = stablehlo.multiply %77, %arg8 : tensor<128x64xf32>
    %79 = stablehlo.add %78, %76 : tensor<128x64xf32>
    %cst_19 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<128x64xf32>
    %81 = stablehlo.multiply %80, %79 : tensor<128x64xf32>
    %82 = stablehlo.subtract %arg2, %81 : tensor<128x64xf32>
    %83 = stablehlo.slice %57 [16513:16577] : (tensor<17227xf32>) -> tensor<64xf32>
    %cst_20 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %85 = stablehlo.multiply %84, %arg9 : tensor<64xf32>
    %86 = stablehlo.add %85, %83 : tensor<64xf32>
    %cst_21 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %87 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %88 = stablehlo.multiply %87, %86 : tensor<64xf32>
    %89 = stablehlo.subtract %arg3, %88 : tensor<64xf32>
    %90 = stablehlo.slice %57 [16577:17217] : (tensor<17227xf32>) -> tensor<640xf32>
    %91 = stablehlo.reshape %90 : (tensor<640xf32>) -> tensor<64x10xf32>
    %cst_22 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %92 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<64x10xf32>
    %93 = stablehlo.multiply %92, %arg10 : tensor<64x10xf32>
    %94 = stablehlo.add %93, %91 : tensor<64x10xf32>
    %cst_23 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<64x10xf32>
    %96 = stablehlo.multiply %95, %94 : tensor<64x10xf32>
    %97 = stablehlo.subtract %arg4, %96 : tensor<64x10xf32>
    %98 = stablehlo.slice %57 [17217:17227] : (tensor<17227xf32>) -> tensor<10xf32>
    %cst_24 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %99 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %100 = stablehlo.multiply %99, %arg11 : tensor<10xf32>
    %101 = stablehlo.add %100, %98 : tensor<10xf32>
    %cst_25 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %102 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %103 = stablehlo.multiply %102, %101 : tensor<10xf32>
    %104 = stablehlo.subtract %arg5, %103 : tensor<10xf32>
    return %59, %67, %74, %82, %89, %97, %104, %64, %71, %79, %86, %94, %101 : tensor<f32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>
  }
  func.func private @relu(%arg0: tensor<96x128xf32>) -> tensor<96x128xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<96x128xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<96x128xf32>
    return %1 : tensor<96x128xf32>
  }
  func.func private @relu_0(%arg0: tensor<96x64xf32>) -> tensor<96x64xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<96x64xf32>
    return %1 : tensor<96x64xf32>
  }
  func.func private @log_softmax(%arg0: tensor<96x10xf32>) -> (tensor<96x10xf32>, tensor<96x10xf32>, tensor<96x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<96x10xf32>, tensor<f32>) -> tensor<96xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<96xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<96xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<96xf32>) -> tensor<96x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<96x1xf32>) -> tensor<96x10xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<96x10xf32>
    %6 = stablehlo.exponential %5 : tensor<96x10xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<96x10xf32>, tensor<f32>) -> tensor<96xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<96xf32>) -> tensor<96x1xf32>
    %9 = stablehlo.log %8 : tensor<96x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<96x1xf32>) -> tensor<96x10xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<96x10xf32>
    return %11, %6, %8 : tensor<96x10xf32>, tensor<96x10xf32>, tensor<96x1xf32>
  }
  func.func private @_one_hot(%arg0: tensor<96xi32>) -> tensor<96x10xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<96xi32>) -> tensor<96x1xi32>
    %1 = stablehlo.iota dim = 1 : tensor<1x10xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<96x1xi32>) -> tensor<96x10xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x10xi32>) -> tensor<96x10xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<96x10xi32>, tensor<96x10xi32>) -> tensor<96x10xi1>
    %5 = stablehlo.convert %4 : (tensor<96x10xi1>) -> tensor<96x10xf32>
    return %5 : tensor<96x10xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<96x10xf32>, %arg1: tensor<96x1xf32>, %arg2: tensor<96x10xf32>) -> tensor<96x10xf32> {
    %0 = stablehlo.negate %arg2 : tensor<96x10xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<96x10xf32>, tensor<f32>) -> tensor<96xf32>
    %2 = stablehlo.reshape %1 : (tensor<96xf32>) -> tensor<96x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<96x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<96x1xf32>, tensor<f32>) -> tensor<96xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<96xf32>) -> tensor<96x10xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<96x10xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<96x10xf32>
    return %7 : tensor<96x10xf32>
  }
}
