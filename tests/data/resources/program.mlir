module @resources {
  func.func public @main() -> (tensor<2x2xf32>, tensor<3xi4>, tensor<3xi1>, tensor<4xi8>) {
    %0 = stablehlo.constant dense_resource<floats> : tensor<2x2xf32>
    %1 = stablehlo.constant dense_resource<narrow> : tensor<3xi4>
    %2 = stablehlo.constant dense_resource<flags> : tensor<3xi1>
    %3 = stablehlo.constant dense_resource<one> : tensor<4xi8>
    return %0, %1, %2, %3 : tensor<2x2xf32>, tensor<3xi4>, tensor<3xi1>, tensor<4xi8>
  }
}
{-#
  dialect_resources: {
    builtin: {
      floats: "0x400000000000803F000000400000404000008040",
      narrow: "0x010000000F0307",
      flags: "0x01000000010001",
      one: "0x0400000001020304"
    }
  }
#-}
