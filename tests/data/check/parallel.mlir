// Programs on grids of replicas and partitions.

func.func @sum(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %s = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) : (tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @across_replicas() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.constant dense<[30, 40]> : tensor<2xi32>
  %0:2 = "interpreter.run_parallel"(%a, %b) <{programs = [[@sum], [@sum]]}> : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %0#0, dense<[31, 42]> : tensor<2xi32>
  check.expect_eq_const %0#1, dense<[31, 42]> : tensor<2xi32>
  return
}

func.func @place() -> tensor<2xui32> {
  %r = stablehlo.replica_id : tensor<ui32>
  %p = stablehlo.partition_id : tensor<ui32>
  %0 = stablehlo.reshape %r : (tensor<ui32>) -> tensor<1xui32>
  %1 = stablehlo.reshape %p : (tensor<ui32>) -> tensor<1xui32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
  return %2 : tensor<2xui32>
}

func.func @places() {
  %0:4 = "interpreter.run_parallel"() <{programs = [[@place, @place], [@place, @place]]}> : () -> (tensor<2xui32>, tensor<2xui32>, tensor<2xui32>, tensor<2xui32>)
  check.expect_eq_const %0#0, dense<[0, 0]> : tensor<2xui32>
  check.expect_eq_const %0#1, dense<[0, 1]> : tensor<2xui32>
  check.expect_eq_const %0#2, dense<[1, 0]> : tensor<2xui32>
  check.expect_eq_const %0#3, dense<[1, 1]> : tensor<2xui32>
  return
}

func.func @gather(%a: tensor<1x2xi32>) -> tensor<2x2xi32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> : (tensor<1x2xi32>) -> tensor<2x2xi32>
  return %0 : tensor<2x2xi32>
}

func.func @across_partitions() {
  %a = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi32>
  %b = stablehlo.constant dense<[[3, 4]]> : tensor<1x2xi32>
  %0:2 = "interpreter.run_parallel"(%a, %b) <{programs = [[@gather, @gather]]}> : (tensor<1x2xi32>, tensor<1x2xi32>) -> (tensor<2x2xi32>, tensor<2x2xi32>)
  check.expect_eq_const %0#0, dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  check.expect_eq_const %0#1, dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  return
}

func.func @moves(%a: tensor<2x2xi32>) -> (tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<1x2xi32>) {
  %0 = "stablehlo.all_to_all"(%a) <{split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xi32>) -> tensor<2x2xi32>
  %1 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xi32>) -> tensor<2x2xi32>
  %2 = "stablehlo.collective_broadcast"(%a) <{replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<2x2xi32>) -> tensor<2x2xi32>
  %3 = "stablehlo.reduce_scatter"(%a) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %s = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) : (tensor<2x2xi32>) -> tensor<1x2xi32>
  return %0, %1, %2, %3 : tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<1x2xi32>
}

func.func @movement() {
  %a = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %b = stablehlo.constant dense<[[5, 6], [7, 8]]> : tensor<2x2xi32>
  %0:8 = "interpreter.run_parallel"(%a, %b) <{programs = [[@moves], [@moves]]}> : (tensor<2x2xi32>, tensor<2x2xi32>) -> (tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<1x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>, tensor<1x2xi32>)
  check.expect_eq_const %0#0, dense<[[1, 5], [3, 7]]> : tensor<2x2xi32>
  check.expect_eq_const %0#4, dense<[[2, 6], [4, 8]]> : tensor<2x2xi32>
  check.expect_eq_const %0#1, dense<0> : tensor<2x2xi32>
  check.expect_eq %0#5, %a : tensor<2x2xi32>
  check.expect_eq %0#2, %b : tensor<2x2xi32>
  check.expect_eq_const %0#3, dense<[[6, 8]]> : tensor<1x2xi32>
  check.expect_eq_const %0#7, dense<[[10, 12]]> : tensor<1x2xi32>
  return
}

func.func @first() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @second() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @fed(%t: !stablehlo.token) -> (tensor<2xi32>, tensor<2xi32>) {
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = "", layout = []}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  %1:2 = "stablehlo.infeed"(%0#1) <{infeed_config = "", layout = []}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  %2 = "stablehlo.outfeed"(%1#0, %1#1) <{outfeed_config = ""}> : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  return %0#0, %1#0 : tensor<2xi32>, tensor<2xi32>
}

func.func @from_the_host() {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "interpreter.run_parallel"(%t) <{infeed = [@first, @second], programs = [[@fed]]}> : (!stablehlo.token) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %0#0, dense<[1, 2]> : tensor<2xi32>
  check.expect_eq_const %0#1, dense<[3, 4]> : tensor<2xi32>
  return
}

func.func @sender(%a: tensor<2xi32>) {
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.send"(%a, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  return
}

func.func @receiver() -> tensor<2xi32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  return %0#0 : tensor<2xi32>
}

func.func @by_a_channel() {
  %a = stablehlo.constant dense<[5, 6]> : tensor<2xi32>
  %0 = "interpreter.run_parallel"(%a) <{programs = [[@sender], [@receiver]]}> : (tensor<2xi32>) -> tensor<2xi32>
  check.expect_eq_const %0, dense<[5, 6]> : tensor<2xi32>
  return
}
