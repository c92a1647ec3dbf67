module @jit_train attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<64x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg6: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg7: tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg8: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg9: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg10: tensor<64x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg11: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg12: tensor<96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg13: tensor<96xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<64x128xf32> {jax.result_info = "result[1]"}, tensor<128xf32> {jax.result_info = "result[2]"}, tensor<128x64xf32> {jax.result_info = "result[3]"}, tensor<64xf32> {jax.result_info = "result[4]"}, tensor<64x10xf32> {jax.result_info = "result[5]"}, tensor<10xf32> {jax.result_info = "result[6]"}, tensor<64x128xf32> {jax.result_info = "result[7]"}, tensor<128xf32> {jax.result_info = "result[8]"}, tensor<128x64xf32> {jax.result_info = "result[9]"}, tensor<64xf32> {jax.result_info = "result[10]"}, tensor<64x10xf32> {jax.result_info = "result[11]"}, tensor<10xf32> {jax.result_info = "result[12]"}) {
    %0:13 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11, %arg12, %arg13) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}]>] out_shardings=[<@mesh, []>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}]>] manual_axes={"data"} (%arg14: tensor<64x128xf32>, %arg15: tensor<128xf32>, %arg16: tensor<128x64xf32>, %arg17: tensor<64xf32>, %arg18: tensor<64x10xf32>, %arg19: tensor<10xf32>, %arg20: tensor<64x128xf32>, %arg21: tensor<128xf32>, %arg22: tensor<128x64xf32>, %arg23: tensor<64xf32>, %arg24: tensor<64x10xf32>, %arg25: tensor<10xf32>, %arg26: tensor<24x64xf32>, %arg27: tensor<24xi32>) {
      %1 = stablehlo.dot_general %arg26, %arg14, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<24x64xf32>, tensor<64x128xf32>) -> tensor<24x128xf32>
      %2 = stablehlo.broadcast_in_dim %arg15, dims = [1] : (tensor<128xf32>) -> tensor<1x128xf32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<24x128xf32>
      %4 = stablehlo.add %1, %3 : tensor<24x128xf32>
      %5 = func.call @relu(%4) : (tensor<24x128xf32>) -> tensor<24x128xf32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<24x128xf32>
      %7 = stablehlo.compare GT, %4, %6, FLOAT : (tensor<24x128xf32>, tensor<24x128xf32>) -> tensor<24x128xi1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<24x128xf32>
      %9 = stablehlo.dot_general %5, %arg16, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<24x128xf32>, tensor<128x64xf32>) -> tensor<24x64xf32>
      %10 = stablehlo.broadcast_in_dim %arg17, dims = [1] : (tensor<64xf32>) -> tensor<1x64xf32>
      %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<24x64xf32>
      %12 = stablehlo.add %9, %11 : tensor<24x64xf32>
      %13 = func.call @relu_0(%12) : (tensor<24x64xf32>) -> tensor<24x64xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %14 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<24x64xf32>
      %15 = stablehlo.compare GT, %12, %14, FLOAT : (tensor<24x64xf32>, tensor<24x64xf32>) -> tensor<24x64xi1>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<24x64xf32>
      %17 = stablehlo.dot_general %13, %arg18, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<24x64xf32>, tensor<64x10xf32>) -> tensor<24x10xf32>
      %18 = stablehlo.broadcast_in_dim %arg19, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
      %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<1x10xf32>) -> tensor<24x10xf32>
      %20 = stablehlo.add %17, %19 : tensor<24x10xf32>
      %21:3 = func.call @log_softmax(%20) : (tensor<24x10xf32>) -> (tensor<24x10xf32>, tensor<24x10xf32>, tensor<24x1xf32>)
      %22 = func.call @_one_hot(%arg27) : (tensor<24xi32>) -> tensor<24x10xf32>
      %23 = stablehlo.multiply %21#0, %22 : tensor<24x10xf32>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %24 = stablehlo.reduce(%23 init: %cst_3) applies stablehlo.add across dimensions = [0, 1] : (tensor<24x10xf32>, tensor<f32>) -> tensor<f32>
      %25 = stablehlo.negate %24 : tensor<f32>
      %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %26 = stablehlo.negate %cst_4 : tensor<f32>
      %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<f32>) -> tensor<24x10xf32>
      %28 = stablehlo.multiply %27, %22 : tensor<24x10xf32>
      %29 = func.call @log_softmax_1(%21#1, %21#2, %28) : (tensor<24x10xf32>, tensor<24x1xf32>, tensor<24x10xf32>) -> tensor<24x10xf32>
      %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %30 = stablehlo.reduce(%29 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<24x10xf32>, tensor<f32>) -> tensor<10xf32>
      %31 = stablehlo.reshape %30 : (tensor<10xf32>) -> tensor<1x10xf32>
      %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %32 = stablehlo.reduce(%31 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<1x10xf32>, tensor<f32>) -> tensor<10xf32>
      %33 = stablehlo.dot_general %29, %13, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<24x10xf32>, tensor<24x64xf32>) -> tensor<10x64xf32>
      %34 = stablehlo.transpose %33, dims = [1, 0] : (tensor<10x64xf32>) -> tensor<64x10xf32>
      %35 = stablehlo.dot_general %29, %arg18, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<24x10xf32>, tensor<64x10xf32>) -> tensor<24x64xf32>
      %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %36 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<24x64xf32>
      %37 = stablehlo.select %15, %35, %36 : tensor<24x64xi1>, tensor<24x64xf32>
      %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %38 = stablehlo.reduce(%37 init: %cst_8) applies stablehlo.add across dimensions = [0] : (tensor<24x64xf32>, tensor<f32>) -> tensor<64xf32>
      %39 = stablehlo.reshape %38 : (tensor<64xf32>) -> tensor<1x64xf32>
      %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %40 = stablehlo.reduce(%39 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<1x64xf32>, tensor<f32>) -> tensor<64xf32>
      %41 = stablehlo.dot_general %37, %5, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<24x64xf32>, tensor<24x128xf32>) -> tensor<64x128xf32>
      %42 = stablehlo.transpose %41, dims = [1, 0] : (tensor<64x128xf32>) -> tensor<128x64xf32>
      %43 = stablehlo.dot_general %37, %arg16, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<24x64xf32>, tensor<128x64xf32>) -> tensor<24x128xf32>
      %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %44 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<24x128xf32>
      %45 = stablehlo.select %7, %43, %44 : tensor<24x128xi1>, tensor<24x128xf32>
      %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %46 = stablehlo.reduce(%45 init: %cst_11) applies stablehlo.add across dimensions = [0] : (tensor<24x128xf32>, tensor<f32>) -> tensor<128xf32>
      %47 = stablehlo.reshape %46 : (tensor<128xf32>) -> tensor<1x128xf32>
      %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %48 = stablehlo.reduce(%47 init: %cst_12) applies stablehlo.add across dimensions = [0] : (tensor<1x128xf32>, tensor<f32>) -> tensor<128xf32>
      %49 = stablehlo.dot_general %45, %arg26, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<24x128xf32>, tensor<24x64xf32>) -> tensor<128x64xf32>
      %50 = stablehlo.transpose %49, dims = [1, 0] : (tensor<128x64xf32>) -> tensor<64x128xf32>
      %51 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<1xf32>
      %52 = stablehlo.reshape %50 : (tensor<64x128xf32>) -> tensor<8192xf32>
      %53 = stablehlo.reshape %42 : (tensor<128x64xf32>) -> tensor<8192xf32>
      %54 = stablehlo.reshape %34 : (tensor<64x10xf32>) -> tensor<640xf32>
      %55 = stablehlo.concatenate %51, %52, %48, %53, %40, %54, %32, dim = 0 : (tensor<1xf32>, tensor<8192xf32>, tensor<128xf32>, tensor<8192xf32>, tensor<64xf32>, tensor<640xf32>, tensor<10xf32>) -> tensor<17227xf32>
      %56 = "stablehlo.all_reduce"(%55) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg28: tensor<f32>, %arg29: tensor<f32>):
        %106 = stablehlo.add %arg28, %arg29 : tensor<f32>
        stablehlo.return %106 : tensor<f32>
      }) : (tensor<17227xf32>) -> tensor<17227xf32>
      %cst_13 = stablehlo.constant dense<9.600000e+01> : tensor<f32>
      %57 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<17227xf32>
      %58 = stablehlo.divide %56, %57 : tensor<17227xf32>
      %59 = stablehlo.slice %58 [0:1] : (tensor<17227xf32>) -> tensor<1xf32>
      %60 = stablehlo.reshape %59 : (tensor<1xf32>) -> tensor<f32>
      %61 = stablehlo.slice %58 [1:8193] : (tensor<17227xf32>) -> tensor<8192xf32>
      %62 = stablehlo.reshape %61 : (tensor<8192xf32>) -> tensor<64x128xf32>
      %cst_14 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %63 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
      %64 = stablehlo.multiply %63, %arg20 : tensor<64x128xf32>
      %65 = stablehlo.add %64, %62 : tensor<64x128xf32>
      %cst_15 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %66 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
      %67 = stablehlo.multiply %66, %65 : tensor<64x128xf32>
      %68 = stablehlo.subtract %arg14, %67 : tensor<64x128xf32>
      %69 = stablehlo.slice %58 [8193:8321] : (tensor<17227xf32>) -> tensor<128xf32>
      %cst_16 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %70 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<128xf32>
      %71 = stablehlo.multiply %70, %arg21 : tensor<128xf32>
      %72 = stablehlo.add %71, %69 : tensor<128xf32>
      %cst_17 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %73 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<128xf32>
      %74 = stablehlo.multiply %73, %72 : tensor<128xf32>
      %75 = stablehlo.subtract %arg15, %74 : tensor<128xf32>
      %76 = stablehlo.slice %58 [8321:16513] : (tensor<17227xf32>) -> tensor<8192xf32>
      %77 = stablehlo.reshape %76 : (tensor<8192xf32>) -> tensor<128x64xf32>
      %cst_18 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %78 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<128x64xf32>
      %79 = stablehlo.multiply %78, %arg22 : tensor<128x64xf32>
      %80 = stablehlo.add %79, %77 : tensor<128x64xf32>
      %cst_19 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %81 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<128x64xf32>
      %82 = stablehlo.multiply %81, %80 : tensor<128x64xf32>
      %83 = stablehlo.subtract %arg16, %82 : tensor<128x64xf32>
      %84 = stablehlo.slice %58 [16513:16577] : (tensor<17227xf32>) -> tensor<64xf32>
      %cst_20 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %85 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %86 = stablehlo.multiply %85, %arg23 : tensor<64xf32>
      %87 = stablehlo.add %86, %84 : tensor<64xf32>
      %cst_21 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %88 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %89 = stablehlo.multiply %88, %87 : tensor<64xf32>
      %90 = stablehlo.subtract %arg17, %89 : tensor<64xf32>
      %91 = stablehlo.slice %58 [16577:17217] : (tensor<17227xf32>) -> tensor<640xf32>
      %92 = stablehlo.reshape %91 : (tensor<640xf32>) -> tensor<64x10xf32>
      %cst_22 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %93 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<64x10xf32>
      %94 = stablehlo.multiply %93, %arg24 : tensor<64x10xf32>
      %95 = stablehlo.add %94, %92 : tensor<64x10xf32>
      %cst_23 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %96 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<64x10xf32>
      %97 = stablehlo.multiply %96, %95 : tensor<64x10xf32>
      %98 = stablehlo.subtract %arg18, %97 : tensor<64x10xf32>
      %99 = stablehlo.slice %58 [17217:17227] : (tensor<17227xf32>) -> tensor<10xf32>
      %cst_24 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %100 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<10xf32>
      %101 = stablehlo.multiply %100, %arg25 : tensor<10xf32>
      %102 = stablehlo.add %101, %99 : tensor<10xf32>
      %cst_25 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %103 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<10xf32>
      %104 = stablehlo.multiply %103, %102 : tensor<10xf32>
      %105 = stablehlo.subtract %arg19, %104 : tensor<10xf32>
      sdy.return %60, %68, %75, %83, %90, %98, %105, %65, %72, %80, %87, %95, %102 : tensor<f32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>
    } : (tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>, tensor<96x64xf32>, tensor<96xi32>) -> (tensor<f32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>)
    return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7, %0#8, %0#9, %0#10, %0#11, %0#12 : tensor<f32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x64xf32>, tensor<64xf32>, tensor<64x10xf32>, tensor<10xf32>
  }
  func.func private @relu(%arg0: tensor<24x128xf32>) -> tensor<24x128xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<24x128xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<24x128xf32>
    return %1 : tensor<24x128xf32>
  }
  func.func private @relu_0(%arg0: tensor<24x64xf32>) -> tensor<24x64xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<24x64xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<24x64xf32>
    return %1 : tensor<24x64xf32>
  }
  func.func private @log_softmax(%arg0: tensor<24x10xf32>) -> (tensor<24x10xf32>, tensor<24x10xf32>, tensor<24x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<24x10xf32>, tensor<f32>) -> tensor<24xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<24xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<24xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<24xf32>) -> tensor<24x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<24x1xf32>) -> tensor<24x10xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<24x10xf32>
    %6 = stablehlo.exponential %5 : tensor<24x10xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<24x10xf32>, tensor<f32>) -> tensor<24xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<24xf32>) -> tensor<24x1xf32>
    %9 = stablehlo.log %8 : tensor<24x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<24x1xf32>) -> tensor<24x10xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<24x10xf32>
    return %11, %6, %8 : tensor<24x10xf32>, tensor<24x10xf32>, tensor<24x1xf32>
  }
  func.func private @_one_hot(%arg0: tensor<24xi32>) -> tensor<24x10xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %1 = stablehlo.iota dim = 1 : tensor<1x10xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<24x1xi32>) -> tensor<24x10xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x10xi32>) -> tensor<24x10xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<24x10xi32>, tensor<24x10xi32>) -> tensor<24x10xi1>
    %5 = stablehlo.convert %4 : (tensor<24x10xi1>) -> tensor<24x10xf32>
    return %5 : tensor<24x10xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<24x10xf32>, %arg1: tensor<24x1xf32>, %arg2: tensor<24x10xf32>) -> tensor<24x10xf32> {
    %0 = stablehlo.negate %arg2 : tensor<24x10xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<24x10xf32>, tensor<f32>) -> tensor<24xf32>
    %2 = stablehlo.reshape %1 : (tensor<24xf32>) -> tensor<24x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<24x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<24x1xf32>, tensor<f32>) -> tensor<24xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<24xf32>) -> tensor<24x10xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<24x10xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<24x10xf32>
    return %7 : tensor<24x10xf32>
  }
}
