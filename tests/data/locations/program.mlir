module @places {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32> loc("a.py":7:3)
    %1 = stablehlo.negate %0 : tensor<2xf32> loc("named"("a.py":8:5))
    %2 = stablehlo.sine %1 : tensor<2xf32> loc(callsite("inner"("b.py":9:2) at "outer"("c.py":10:1)))
    return %2 : tensor<2xf32>
  }
}
