//! I4 on one machine: neither how many threads there are, nor whether an operand is a constant or
//! an argument, nor how often a program has run changes a bit of a result or the memory it takes.

use super::*;

/// Programs of one argument, each of a kernel that is shared among threads at this size, or of
/// several: a name, the argument's type and elements, the results' types, the body.
fn programs() -> Vec<(&'static str, String, usize, String, String)> {
    let add = "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.add %x, %y : tensor<f32> stablehlo.return %z : tensor<f32> })";
    let zero = "%zero = stablehlo.constant dense<0.0> : tensor<f32>";
    let line = |n: usize| format!("tensor<{n}xf32>");
    let square = |n: usize| format!("tensor<{n}x{n}xf32>");
    let one =
        |n: usize, name, body: &str| (name, line(n), n, line(n), body.replace("{T}", &line(n)));
    let n = (1 << 18) + 5;
    vec![
        one(
            n,
            "elementwise",
            "%e = stablehlo.exponential %a : {T}
             %l = stablehlo.tanh %e : {T}
             %0 = stablehlo.divide %l, %e : {T}",
        ),
        (
            "sum of a line",
            line(n),
            n,
            "tensor<f32>".into(),
            format!("{zero} %0 = \"stablehlo.reduce\"(%a, %zero) <{{dimensions = array<i64: 0>}}> {add} : ({}, tensor<f32>) -> tensor<f32>", line(n)),
        ),
        (
            "sums of rows",
            square(513),
            513 * 513,
            line(513),
            format!("{zero} %0 = \"stablehlo.reduce\"(%a, %zero) <{{dimensions = array<i64: 1>}}> {add} : ({}, tensor<f32>) -> {}", square(513), line(513)),
        ),
        (
            "sums of columns",
            square(513),
            513 * 513,
            line(513),
            format!("{zero} %0 = \"stablehlo.reduce\"(%a, %zero) <{{dimensions = array<i64: 0>}}> {add} : ({}, tensor<f32>) -> {}", square(513), line(513)),
        ),
        (
            "product",
            square(301),
            301 * 301,
            square(301),
            format!("%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : ({0}, {0}) -> {0}", square(301)),
        ),
        (
            "transpose",
            square(513),
            513 * 513,
            square(513),
            format!("%t = stablehlo.transpose %a, dims = [1, 0] : ({0}) -> {0} %0 = stablehlo.subtract %t, %a : {0}", square(513)),
        ),
        one(
            n,
            "sort",
            "%0 = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %z : tensor<i1> }) : ({T}) -> {T}",
        ),
        (
            "cumulative sum",
            line(n),
            n,
            line(n),
            format!("{zero} %0 = \"stablehlo.reduce_window\"(%a, %zero) <{{window_dimensions = array<i64: {n}>, padding = dense<[[{}, 0]]> : tensor<1x2xi64>}}> {add} : ({1}, tensor<f32>) -> {1}", n - 1, line(n)),
        ),
        (
            "scatter",
            "tensor<4096x33xf32>".into(),
            4096 * 33,
            "tensor<4096x33xf32>".into(),
            format!("%c = stablehlo.constant dense<37> : tensor<4096xi32>
             %i = stablehlo.iota dim = 0 : tensor<4096xi32>
             %r = stablehlo.remainder %i, %c : tensor<4096xi32>
             %0 = \"stablehlo.scatter\"(%a, %r, %a) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {add} : (tensor<4096x33xf32>, tensor<4096xi32>, tensor<4096x33xf32>) -> tensor<4096x33xf32>"),
        ),
        (
            "convolution",
            "tensor<4x40x40x8xf32>".into(),
            4 * 40 * 40 * 8,
            "tensor<4x40x40x8xf32>".into(),
            "%k = stablehlo.slice %a [0:1, 0:3, 0:24, 0:8] : (tensor<4x40x40x8xf32>) -> tensor<1x3x24x8xf32>
             %w = stablehlo.reshape %k : (tensor<1x3x24x8xf32>) -> tensor<3x3x8x8xf32>
             %0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x40x40x8xf32>, tensor<3x3x8x8xf32>) -> tensor<4x40x40x8xf32>".into(),
        ),
    ]
}

/// Numbers of both signs and many sizes, so that sums depend on their order.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 % 2003) as f32 - 1001.0) / (1 + i % 97) as f32).collect()
}

#[test]
fn results_are_the_same_on_any_number_of_threads() {
    for (name, ty, count, result, body) in programs() {
        let text =
            main_of(&format!("(%a: {ty}) -> {result}"), &format!("{body} return %0 : {result}"));
        let executable = compile(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let arguments = buffers(&*executable, &[cast_slice(&numbers(count))]);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let results = pool.install(|| executable.execute(DEVICE, arguments.clone(), &Alone));
            results.unwrap()[0].bytes().to_vec()
        };
        let expected = on(1);
        for threads in [2, 3, 8] {
            assert!(on(threads) == expected, "{name} on {threads} threads");
        }
    }
}

#[test]
fn results_are_the_same_for_constants_and_arguments() {
    for (name, ty, count, result, body) in programs() {
        let data = numbers(count);
        let mut hex = String::with_capacity(8 * count);
        for byte in cast_slice::<f32, u8>(&data) {
            write!(hex, "{byte:02X}").unwrap();
        }
        let returned = format!("return %0 : {result}");
        let constant = main_of(
            &format!("() -> {result}"),
            &format!("%a = stablehlo.constant dense<\"0x{hex}\"> : {ty}\n{body} {returned}"),
        );
        let argument = main_of(&format!("(%a: {ty}) -> {result}"), &format!("{body} {returned}"));
        assert!(run(&constant, &[]) == run(&argument, &[cast_slice(&data)]), "{name}");
    }
}

/// Bytes of this process that are in memory.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn ten_thousand_runs_take_no_more_memory_than_a_hundred() {
    let text = main_of(
        "(%a: tensor<64x64xf32>, %n: tensor<i32>) -> (tensor<64x64xf32>, tensor<64xf32>)",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>
         %none = stablehlo.constant dense<0> : tensor<i32>
         %one = stablehlo.constant dense<1> : tensor<i32>
         %0:2 = stablehlo.while(%i = %none, %x = %a) : tensor<i32>, tensor<64x64xf32>
         cond {
           %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1>
         } do {
           %j = stablehlo.add %i, %one : tensor<i32>
           %p = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
           %q = stablehlo.tanh %p : tensor<64x64xf32>
           stablehlo.return %j, %q : tensor<i32>, tensor<64x64xf32>
         }
         %s = stablehlo.reduce(%0#1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
         return %0#1, %s : tensor<64x64xf32>, tensor<64xf32>",
    );
    let executable = compile(&text).unwrap();
    let a = numbers(64 * 64);
    let arguments = buffers(&*executable, &[cast_slice(&a), cast_slice(&[2_i32])]);
    let runs = |count: usize| {
        for _ in 0..count {
            executable.execute(DEVICE, arguments.clone(), &Alone).unwrap();
        }
    };
    runs(100);
    let before = resident_bytes();
    runs(9_900);
    let grown = resident_bytes().saturating_sub(before);
    // A single result kept from each run would be 160 MB.
    assert!(grown < 16 << 20, "{grown} bytes more");
}
