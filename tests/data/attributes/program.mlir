module @attributes {
  func.func public @main() {
    stablehlo.custom_call @f() {a.array = array<f32: 1.0, 2.0>, a.float = 1.5 : f16, a.function = (tensor<f32>) -> tensor<2xi8>, a.index = 3 : index, a.place = loc("x":1:2), a.symbol = @outer::@inner, a.token = !stablehlo.token, a.type = f8E4M3FN, a.unit, a.words = [1 : i8, "two", {three = 3 : ui16}]} : () -> ()
    return
  }
}
