// Control flow, calls, tuples, tokens and what happens later.
module {
  func.func private @double(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %x, %x : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%s: tensor<f32>, %p: tensor<i1>, %i: tensor<i32>, %v: tensor<4xf32>, %t: !stablehlo.token) -> tensor<f32> {
    %call = func.call @double(%s) : (tensor<f32>) -> tensor<f32>
    %if = "stablehlo.if"(%p) ({
      stablehlo.return %s : tensor<f32>
    }, {
      stablehlo.return %call : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    %case = "stablehlo.case"(%i) ({
      stablehlo.return %s : tensor<f32>
    }, {
      stablehlo.return %if : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    %while:2 = stablehlo.while(%x = %i, %y = %case) : tensor<i32>, tensor<f32>
      cond {
        %less = stablehlo.compare LT, %x, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %less : tensor<i1>
      } do {
        stablehlo.return %x, %y : tensor<i32>, tensor<f32>
      }
    %optimization_barrier:2 = stablehlo.optimization_barrier %s, %i : tensor<f32>, tensor<i32>
    %tuple = stablehlo.tuple %s, %i : tuple<tensor<f32>, tensor<i32>>
    %get_tuple_element = stablehlo.get_tuple_element %tuple[1] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<i32>
    %after_all = stablehlo.after_all %t, %t : !stablehlo.token
    %create_token = stablehlo.create_token : !stablehlo.token
    %infeed:2 = "stablehlo.infeed"(%t) <{infeed_config = "in"}> : (!stablehlo.token) -> (tensor<3xi32>, !stablehlo.token)
    %outfeed = "stablehlo.outfeed"(%s, %t) <{outfeed_config = "out"}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
    %send = "stablehlo.send"(%s, %t) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 2>, is_host_transfer = true}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
    %recv:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
    %custom_call = stablehlo.custom_call @target(%v, %s) {api_version = 4 : i32, backend_config = {axis = 1 : i64, name = "x"}, called_computations = [@double], has_side_effect = true, operand_layouts = [dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %composite = stablehlo.composite "my.op" %s {composite_attributes = {axes = dense<[0, 1]> : tensor<2xi64>, strict = true}, decomposition = @double, version = 3 : i32} : (tensor<f32>) -> tensor<f32>
    %async_start = "stablehlo.async_start"(%v) ({
    ^bb0(%x: tensor<4xf32>):
      %slice = stablehlo.slice %x [1:3] : (tensor<4xf32>) -> tensor<2xf32>
      stablehlo.return %slice : tensor<2xf32>
    }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>
    %async_done = "stablehlo.async_done"(%async_start) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
    return %composite : tensor<f32>
  }
}
// -----
// A composite whose own meaning has a region.
func.func @main(%s: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.composite "my.map" %s ({
  ^bb0(%x: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }) {decomposition = @same} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @same(%s: tensor<f32>) -> tensor<f32> {
  return %s : tensor<f32>
}
// -----
// refused: func.call
func.func @main(%s: tensor<f32>) {
  %0 = func.call @nowhere(%s) : (tensor<f32>) -> tensor<f32>
  return
}
// -----
// refused: stablehlo.return
func.func @main(%s: tensor<f32>) -> tensor<f32> {
  return
}
// -----
// refused: stablehlo.if (C2)
func.func @main(%p: tensor<i1>, %s: tensor<f32>, %i: tensor<i32>) {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %s : tensor<f32>
  }, {
    stablehlo.return %i : tensor<i32>
  }) : (tensor<i1>) -> tensor<f32>
  return
}
// -----
// refused: stablehlo.case (C1)
func.func @main(%i: tensor<i32>) {
  "stablehlo.case"(%i) : (tensor<i32>) -> ()
  return
}
// -----
// refused: stablehlo.while (C1)
func.func @main(%i: tensor<i32>) {
  %0 = stablehlo.while(%x = %i) : tensor<i32>
    cond {
      stablehlo.return %x : tensor<i32>
    } do {
      stablehlo.return %x : tensor<i32>
    }
  return
}
// -----
// refused: stablehlo.optimization_barrier (C1)
func.func @main(%i: tensor<i32>) {
  %0 = "stablehlo.optimization_barrier"(%i) : (tensor<i32>) -> tensor<i64>
  return
}
// -----
// refused: stablehlo.tuple (C1)
func.func @main(%i: tensor<i32>) {
  %0 = "stablehlo.tuple"(%i) : (tensor<i32>) -> tuple<tensor<i64>>
  return
}
// -----
// refused: stablehlo.get_tuple_element (C1)
func.func @main(%t: tuple<tensor<i32>>) {
  %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<i32>>) -> tensor<i32>
  return
}
// -----
// refused: stablehlo.after_all (I1)
func.func @main(%i: tensor<i32>) {
  %0 = "stablehlo.after_all"(%i) : (tensor<i32>) -> !stablehlo.token
  return
}
// -----
// refused: stablehlo.infeed (C1)
func.func @main(%t: !stablehlo.token) {
  "stablehlo.infeed"(%t) : (!stablehlo.token) -> ()
  return
}
// -----
// refused: stablehlo.outfeed (O1)
func.func @main(%t: !stablehlo.token) {
  %0 = "stablehlo.outfeed"(%t) : (!stablehlo.token) -> tensor<i32>
  return
}
// -----
// refused: stablehlo.send (C5)
func.func @main(%t: !stablehlo.token) {
  %0 = "stablehlo.send"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 2>}> : (!stablehlo.token) -> !stablehlo.token
  return
}
// -----
// refused: stablehlo.recv (O1)
func.func @main(%t: !stablehlo.token) {
  %0 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> tensor<i32>
  return
}
// -----
// refused: stablehlo.custom_call
func.func @main(%s: tensor<f32>) {
  %0 = stablehlo.custom_call @target(%s) {called_computations = [@nowhere]} : (tensor<f32>) -> tensor<f32>
  return
}
// -----
// refused: stablehlo.composite (C1)
func.func @main(%s: tensor<f32>) {
  stablehlo.composite "op" %s {decomposition = @main} : (tensor<f32>) -> ()
  return
}
// -----
// refused: stablehlo.async_start (C2)
func.func @main(%s: tensor<f32>) {
  %0 = "stablehlo.async_start"(%s) ({
  ^bb0(%x: tensor<f32>):
    %1 = stablehlo.negate %x : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<f32>) -> !stablehlo.future<tensor<f32>>
  return
}
// -----
// refused: stablehlo.async_start (C4)
func.func @main(%s: tensor<4xf32>) {
  %0 = "stablehlo.async_start"(%s) ({
  ^bb0(%x: tensor<4xf32>):
    %1 = stablehlo.slice %x [1:3] : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  return
}
// -----
// refused: stablehlo.async_done (C1)
func.func @main(%f: !stablehlo.future<tensor<f32>>) {
  %0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<f32>>) -> tensor<f64>
  return
}
