//! Element types and operations at their edges, in whole programs.

use super::*;

/// A program that reduces all of `%x` by one operation.
fn reduction(op: &str, n: usize, element: &str) -> String {
    main_of(
        &format!("(%x: tensor<{n}x{element}>, %init: tensor<{element}>) -> tensor<{element}>"),
        &format!(
            "%0 = stablehlo.reduce(%x init: %init) applies stablehlo.{op} across dimensions = [0] : (tensor<{n}x{element}>, tensor<{element}>) -> tensor<{element}>
             return %0 : tensor<{element}>"
        ),
    )
}

/// N11: the greatest of many negative zeros is a zero, not the infinity folds start from.
#[test]
fn the_greatest_of_negative_zeros_is_zero_at_every_length() {
    for n in [1, 31, 512, 513, 8192, 8193] {
        let x = vec![-0.0_f32; n];
        let init = f32::NEG_INFINITY;
        let results = run(&reduction("maximum", n, "f32"), &[cast_slice(&x), cast_slice(&[init])]);
        assert_eq!(values::<f32>(&results[0])[0].to_bits(), (-0.0_f32).to_bits(), "{n}");
    }
}

/// N23: complex numbers have no order; asking for it is an error, as constants, too.
#[test]
fn ordering_complex_numbers_is_an_error() {
    for operand in ["%x", "%constant"] {
        let text = main_of(
            "(%x: tensor<2xcomplex<f32>>) -> tensor<2xi1>",
            &format!(
                "%constant = stablehlo.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
                 %0 = stablehlo.compare LT, {operand}, {operand} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xi1>
                 return %0 : tensor<2xi1>"
            ),
        );
        let module = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let refused = verify(&module).is_err() || CpuBackend::new(1).compile(&module).is_err();
        assert!(refused, "{operand}");
    }
}

fn select_and_scatter(n: usize, out: usize, window: usize, stride: usize, low: i64) -> String {
    let high = (out - 1) * stride + window - n;
    let high = high as i64 - low;
    main_of(
        &format!("(%x: tensor<{n}xf32>, %s: tensor<{out}xf32>, %init: tensor<f32>) -> tensor<{n}xf32>"),
        &format!(
            "%0 = \"stablehlo.select_and_scatter\"(%x, %s, %init) <{{window_dimensions = array<i64: {window}>, window_strides = array<i64: {stride}>, padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({{
               ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                 %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
                 stablehlo.return %c : tensor<i1>
             }}, {{
               ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                 %c = stablehlo.add %a, %b : tensor<f32>
                 stablehlo.return %c : tensor<f32>
             }}) : (tensor<{n}xf32>, tensor<{out}xf32>, tensor<f32>) -> tensor<{n}xf32>
             return %0 : tensor<{n}xf32>"
        ),
    )
}

/// Windows that reach to the edge are accumulated; padding that is not neutral counts as often as
/// windows meet it.
#[test]
fn cumulative_windows_count_their_padding() {
    for n in [2_usize, 5, TILE + 3] {
        for (low, high) in [(n - 1, 0), (0, n - 1)] {
            for init in [0_i32, 3] {
                let text = main_of(
                    &format!("(%x: tensor<{n}xi32>) -> tensor<{n}xi32>"),
                    &format!(
                        "%init = stablehlo.constant dense<{init}> : tensor<i32>
                         %0 = \"stablehlo.reduce_window\"(%x, %init) <{{window_dimensions = array<i64: {n}>, padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({{
                           ^bb0(%a: tensor<i32>, %b: tensor<i32>):
                             %c = stablehlo.add %a, %b : tensor<i32>
                             stablehlo.return %c : tensor<i32>
                         }}) : (tensor<{n}xi32>, tensor<i32>) -> tensor<{n}xi32>
                         return %0 : tensor<{n}xi32>"
                    ),
                );
                let x: Vec<i32> = (0..n as i32).map(|i| i * i - 7).collect();
                let expected: Vec<i32> = (0..n)
                    .map(|i| {
                        let window = if high == 0 { &x[..=i] } else { &x[i..] };
                        let padding = (n - window.len()) as i32;
                        window.iter().sum::<i32>() + init * (1 + padding)
                    })
                    .collect();
                let results = run(&text, &[cast_slice(&x)]);
                assert_eq!(values::<i32>(&results[0]), expected, "{n} {low} {init}");
            }
        }
    }
}

/// N25: windows that are all padding, windows that overlap, and equals in a window.
#[test]
fn windows_scatter_to_the_first_of_their_greatest_elements() {
    // Windows of 2 at -3, -1, 1, 3 and 5: the first and the last meet nothing.
    let text = select_and_scatter(5, 5, 2, 2, 3);
    let x = [-4.0_f32, -1.0, -1.0, -7.0, -2.0];
    let source = [100.0_f32, 1.0, 2.0, 4.0, 200.0];
    let results = run(&text, &[cast_slice(&x), cast_slice(&source), cast_slice(&[0.5_f32])]);
    assert_eq!(values::<f32>(&results[0]), [1.5, 2.5, 0.5, 0.5, 4.5]);
    // Overlapping windows of 3, more of them than a tile has.
    let n = 2 * TILE + 7;
    let x: Vec<f32> = (0..n).map(|i| (i * 7919 % 5) as f32).collect();
    let source: Vec<f32> = (0..n - 2).map(|i| (i % 9) as f32).collect();
    let mut expected = vec![0.0_f32; n];
    for (i, &value) in source.iter().enumerate() {
        let window = &x[i..i + 3];
        let greatest = window.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        expected[i + window.iter().position(|&x| x == greatest).unwrap()] += value;
    }
    let text = select_and_scatter(n, n - 2, 3, 1, 0);
    let results = run(&text, &[cast_slice(&x), cast_slice(&source), cast_slice(&[0.0_f32])]);
    assert_eq!(values::<f32>(&results[0]), expected);
}

/// N31: a product of constants has the same bits on every run.
#[test]
fn products_of_constants_give_the_same_bits_every_time() {
    let row: Vec<String> =
        (0..40).map(|i| format!("({}.125, -{}.75)", i * 7 % 11, i * 5 % 13)).collect();
    let row = format!("[{}]", row.join(", "));
    let rows = vec![row.as_str(); 40].join(", ");
    let ty = "tensor<40x40xcomplex<f64>>";
    let text = main_of(
        &format!("() -> {ty}"),
        &format!(
            "%a = stablehlo.constant dense<[{rows}]> : {ty}
             %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : ({ty}, {ty}) -> {ty}
             return %0 : {ty}"
        ),
    );
    let executable = compile(&text).unwrap();
    let launch = || executable.execute(DEVICE, Vec::new(), &Alone).unwrap();
    let first = launch();
    assert!(values::<f64>(first[0].bytes()).iter().all(|x| x.is_finite()));
    for _ in 0..50 {
        assert_eq!(launch()[0].bytes(), first[0].bytes());
    }
}

#[test]
fn sums_of_short_types_are_rounded_once() {
    // Each addition rounded on its own would stop at 16, 256 and 2048.
    let n = 5000;
    let f8 = run(&reduction("add", n, "f8E4M3FN"), &[&vec![0x18; n], &[0]]);
    assert_eq!(f8[0], [0x7a], "5000 / 16 = 312.5, which goes to 320");
    let ones = vec![half::bf16::ONE; n];
    let zero = [half::bf16::ZERO];
    let bf16 = run(&reduction("add", n, "bf16"), &[cast_slice(&ones), cast_slice(&zero)]);
    assert_eq!(values::<half::bf16>(&bf16[0]), [half::bf16::from_f32(5000.0)]);
    let ones = vec![half::f16::ONE; n];
    let zero = [half::f16::ZERO];
    let f16 = run(&reduction("add", n, "f16"), &[cast_slice(&ones), cast_slice(&zero)]);
    assert_eq!(values::<half::f16>(&f16[0]), [half::f16::from_f32(5000.0)]);
}

#[test]
fn narrow_integers_reduce_sort_and_count() {
    let x = [7_u8, 9, 1, 15, 8, 3];
    assert_eq!(run(&reduction("add", 6, "i4"), &[&x, &[0]])[0], [(7 + 9 + 1 + 15 + 8 + 3) % 16]);
    assert_eq!(run(&reduction("maximum", 6, "i4"), &[&x, &[8]])[0], [7]);
    assert_eq!(run(&reduction("maximum", 6, "ui4"), &[&x, &[0]])[0], [15]);
    let text = main_of(
        "(%x: tensor<6xi4>) -> (tensor<6xi4>, tensor<6xi4>, tensor<6xui2>)",
        "%0 = \"stablehlo.sort\"(%x) <{dimension = 0 : i64}> ({
           ^bb0(%a: tensor<i4>, %b: tensor<i4>):
             %c = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i4>, tensor<i4>) -> tensor<i1>
             stablehlo.return %c : tensor<i1>
         }) : (tensor<6xi4>) -> tensor<6xi4>
         %one = stablehlo.constant dense<1> : tensor<6xi4>
         %1 = stablehlo.shift_right_arithmetic %x, %one : tensor<6xi4>
         %2 = stablehlo.iota dim = 0 : tensor<6xui2>
         return %0, %1, %2 : tensor<6xi4>, tensor<6xi4>, tensor<6xui2>",
    );
    let results = run(&text, &[&x]);
    assert_eq!(results, [[8, 9, 15, 1, 3, 7], [3, 12, 0, 15, 12, 1], [0, 1, 2, 3, 0, 1]]);
}

#[test]
fn eight_bit_floats_convert_to_and_from_every_kind_of_number() {
    let converted = |from: &str, to: &str, bytes: &[u8]| -> Vec<u8> {
        let n = 4;
        let text = main_of(
            &format!("(%x: tensor<{n}x{from}>) -> tensor<{n}x{to}>"),
            &format!(
                "%0 = stablehlo.convert %x : (tensor<{n}x{from}>) -> tensor<{n}x{to}>
                 return %0 : tensor<{n}x{to}>"
            ),
        );
        run(&text, &[bytes]).remove(0)
    };
    // 1, -2, 448 and NaN.
    let codes = [0x38, 0xc0, 0x7e, 0x7f];
    assert_eq!(values::<i32>(&converted("f8E4M3FN", "i32", &codes)), [1, -2, 448, 0]);
    assert_eq!(converted("f8E4M3FN", "i1", &codes), [1, 1, 1, 1]);
    assert_eq!(converted("f8E4M3FN", "i4", &codes), [1, 14, 7, 0]);
    assert_eq!(converted("f8E4M3FN", "f8E5M2", &codes)[..3], [0x3c, 0xc0, 0x5f]);
    // The last rounds to infinity, and would to the greatest number if it were rounded twice.
    let integers = [3_i64, -20, 61439, 61440];
    assert_eq!(converted("i64", "f8E5M2", cast_slice(&integers)), [0x42, 0xcd, 0x7b, 0x7c]);
    assert_eq!(converted("i4", "f8E4M3FN", &[1, 15, 7, 8]), [0x38, 0xb8, 0x4e, 0xd0]);
}

#[test]
fn maps_apply_their_body_to_every_element() {
    for n in [0, 1, TILE, TILE + 3] {
        let text = main_of(
            &format!("(%x: tensor<{n}xi32>, %y: tensor<{n}xi32>) -> tensor<{n}xi64>"),
            &format!(
                "%0 = \"stablehlo.map\"(%x, %y) <{{dimensions = array<i64: 0>}}> ({{
                   ^bb0(%a: tensor<i32>, %b: tensor<i32>):
                     %c = stablehlo.multiply %a, %b : tensor<i32>
                     %d = stablehlo.convert %c : (tensor<i32>) -> tensor<i64>
                     stablehlo.return %d : tensor<i64>
                 }}) : (tensor<{n}xi32>, tensor<{n}xi32>) -> tensor<{n}xi64>
                 return %0 : tensor<{n}xi64>"
            ),
        );
        let x: Vec<i32> = (0..n as i32).collect();
        let y: Vec<i32> = x.iter().map(|x| 5 - 3 * x).collect();
        let expected: Vec<i64> = x.iter().zip(&y).map(|(x, y)| i64::from(x * y)).collect();
        let results = run(&text, &[cast_slice(&x), cast_slice(&y)]);
        assert_eq!(values::<i64>(&results[0]), expected);
    }
}

#[test]
fn transforms_without_elements_are_empty() {
    let text = main_of(
        "(%x: tensor<0x4xcomplex<f32>>) -> tensor<0x4xcomplex<f32>>",
        "%0 = stablehlo.fft %x, type = FFT, length = [4] : (tensor<0x4xcomplex<f32>>) -> tensor<0x4xcomplex<f32>>
         return %0 : tensor<0x4xcomplex<f32>>",
    );
    assert!(run(&text, &[&[]])[0].is_empty());
}

/// An algorithm says what operands are rounded to and what sums are kept in.
#[test]
fn products_round_where_their_algorithm_says() {
    let product = |precision: &str, accumulation: &str, operations: usize| {
        let text = main_of(
            "(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<f32>",
            &format!(
                "%0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = {precision}, rhs_precision_type = {precision}, accumulation_type = {accumulation}, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {operations}, allow_imprecise_accumulation = false> : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
                 return %0 : tensor<f32>"
            ),
        );
        let (ninth, twelfth) = (2_f32.powi(-9), 2_f32.powi(-12));
        let (a, b) = ([1.0 + ninth + twelfth, 3.0], [1.0_f32; 2]);
        let found = run(&text, &[cast_slice(&a), cast_slice(&b)]);
        // How often the last digit lies above the four.
        (values::<f32>(&found[0])[0] - 4.0) / twelfth
    };
    assert_eq!(product("f32", "f32", 1), 9.0);
    assert_eq!(product("tf32", "f32", 1), 8.0);
    assert_eq!(product("f16", "f32", 1), 8.0);
    // Between 4 and the next number that has 10 bits of mantissa, and so even.
    assert_eq!(product("f16", "f16", 1), 0.0);
    assert_eq!(product("bf16", "f32", 1), 0.0);
    // The products of parts make up for the rounding.
    for operations in [3, 6, 9] {
        assert_eq!(product("bf16", "f32", operations), 9.0);
    }
    assert_eq!(product("f64", "f64", 1), 9.0);
}

#[test]
fn products_of_two_kinds_of_short_floats() {
    let text = main_of(
        "(%a: tensor<2xf8E4M3FN>, %b: tensor<2xf8E5M2>) -> tensor<f32>",
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<2xf8E4M3FN>, tensor<2xf8E5M2>) -> tensor<f32>
         return %0 : tensor<f32>",
    );
    // 1.5 x 2 + 1 x 3.
    let found = run(&text, &[&[0x3c, 0x38], &[0x40, 0x42]]);
    assert_eq!(values::<f32>(&found[0]), [6.0]);
    let text = main_of(
        "(%a: tensor<2xf32>, %b: tensor<2xbf16>) -> tensor<f32>",
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<2xf32>, tensor<2xbf16>) -> tensor<f32>
         return %0 : tensor<f32>",
    );
    // 1.001 x 2 + 1 x 3, where the first has more digits than the short type.
    let found = run(&text, &[bytemuck::cast_slice(&[1.001_f32, 1.0]), &[0x00, 0x40, 0x40, 0x40]]);
    assert_eq!(values::<f32>(&found[0]), [1.001 * 2.0 + 3.0]);
}

#[test]
fn integers_are_convolved_in_floats() {
    let text = main_of(
        "(%a: tensor<1x1x3xi8>, %b: tensor<1x1x2xi8>) -> tensor<1x1x2xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x3xi8>, tensor<1x1x2xi8>) -> tensor<1x1x2xf32>
         return %0 : tensor<1x1x2xf32>",
    );
    // 100 x 100 + 3 x 2, which no byte holds, and 3 x 100 - 1 x 2.
    let found = run(&text, &[&[100, 3, 255], &[100, 2]]);
    assert_eq!(values::<f32>(&found[0]), [10006.0, 298.0]);
}
