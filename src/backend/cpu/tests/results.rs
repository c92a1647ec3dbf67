//! What a program returns: computed values, arguments and constants, more than once, and whose
//! memory they are.

use super::*;

/// A value that several loops of different sizes need, and one that is returned twice.
#[test]
fn values_are_stored_once_and_returned_as_often_as_asked() {
    let text = main_of(
        "(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>)",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.add %a, %a : tensor<2x3xf32>
         %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
         %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
         %3 = stablehlo.divide %0, %2 : tensor<2x3xf32>
         return %3, %1, %0, %3 : tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>",
    );
    let a = [1.0_f32, 2.0, 5.0, 3.0, 3.0, 2.0];
    let results = run(&text, &[cast_slice(&a)]);
    let expected = [0.125_f32, 0.25, 0.625, 0.375, 0.375, 0.25];
    assert_eq!(values::<f32>(&results[0]), expected);
    assert_eq!(values::<f32>(&results[1]), [16.0, 16.0]);
    assert_eq!(values::<f32>(&results[2]), [2.0, 4.0, 10.0, 6.0, 6.0, 4.0]);
    assert_eq!(values::<f32>(&results[3]), expected);
}

/// An argument is returned in memory of its own while others hold it, and in its own if not.
#[test]
fn a_result_shares_no_memory_with_an_argument_that_is_kept() {
    let ty = "tensor<20xf32>";
    let text = main_of(
        &format!("(%a: {ty}, %b: {ty}) -> ({ty}, {ty}, {ty}, {ty})"),
        &format!(
            "%c = stablehlo.add %a, %a : {ty}
             return %b, %a, %b, %c : {ty}, {ty}, {ty}, {ty}"
        ),
    );
    let [a, b] = [1_u8, 100].map(|first| (first..).map(f32::from).take(20).collect::<Vec<_>>());
    let doubled: Vec<f32> = a.iter().map(|value| value * 2.0).collect();
    let expected = [&b, &a, &b, &doubled];
    let executable = compile(&text).unwrap();
    let arguments = buffers(&*executable, &[cast_slice(&a), cast_slice(&b)]);
    let place = |buffer: &Buffer| buffer.bytes().as_ptr();
    let kept: Vec<_> = arguments.iter().map(place).collect();
    let results = executable.execute(DEVICE, arguments.clone(), &Alone).unwrap();
    for (number, (result, expected)) in results.iter().zip(expected).enumerate() {
        assert_eq!(values::<f32>(result.bytes()), *expected, "result {number}");
        assert!(!kept.contains(&place(result)), "result {number}");
        let earlier = &results[..number];
        assert!(earlier.iter().all(|other| place(other) != place(result)), "result {number}");
    }
    let given = executable.execute(DEVICE, arguments, &Alone).unwrap();
    for (number, (result, expected)) in given.iter().zip(expected).enumerate() {
        assert_eq!(values::<f32>(result.bytes()), *expected, "result {number}");
    }
    assert_eq!(place(&given[1]), kept[0]);
}
