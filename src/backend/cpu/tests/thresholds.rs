//! Programs of sizes at which kernels change their way: the results must not.

use bytemuck::cast_slice;

use super::{compile, main_of, run, values};

/// Indices with repetitions, and some outside `0..rows`.
fn indices(count: usize, rows: usize) -> Vec<i32> {
    (0..count as i32).map(|i| i * 7919 % (rows as i32 + 20) - 10).collect()
}

#[test]
fn rows_are_gathered_by_one_thread_or_several() {
    for (rows, len, count) in [(50, 3, 7), (200, 64, 500), (3000, 64, 1000), (900, 1, 40_000)] {
        let table: Vec<i32> = (0..rows * len).map(|i| 3 * i as i32).collect();
        let picks = indices(count, rows);
        let text = main_of(
            &format!(
                "(%t: tensor<{rows}x{len}xi32>, %i: tensor<{count}xi32>) -> tensor<{count}x{len}xi32>"
            ),
            &format!(
                "%r = \"stablehlo.gather\"(%t, %i) <{{dimension_numbers = #stablehlo.gather<\
                 offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], \
                 index_vector_dim = 1>, slice_sizes = array<i64: 1, {len}>}}> : \
                 (tensor<{rows}x{len}xi32>, tensor<{count}xi32>) -> tensor<{count}x{len}xi32>\n\
                 return %r : tensor<{count}x{len}xi32>"
            ),
        );
        let expected: Vec<i32> = picks
            .iter()
            .flat_map(|&pick| {
                let row = pick.clamp(0, rows as i32 - 1) as usize;
                table[row * len..(row + 1) * len].to_vec()
            })
            .collect();
        let found = run(&text, &[cast_slice(&table), cast_slice(&picks)]);
        assert_eq!(values::<i32>(&found[0]), expected, "{rows} rows of {len}, {count} picked");
    }
}

#[test]
fn rows_meet_their_updates_in_order_on_one_thread_or_several() {
    for (rows, len, count) in [(50, 3, 7), (200, 300, 90), (3000, 64, 1000), (900, 1, 70_000)] {
        let table: Vec<f32> = (0..rows * len).map(|i| i as f32).collect();
        let picks = indices(count, rows);
        // Sums of these depend on their order.
        let updates: Vec<f32> = (0..count * len).map(|i| 1e7 / (i % 97 + 1) as f32).collect();
        for add in [true, false] {
            let body = if add {
                "%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32>"
            } else {
                "stablehlo.return %b : tensor<f32>"
            };
            let text = main_of(
                &format!(
                    "(%t: tensor<{rows}x{len}xf32>, %i: tensor<{count}xi32>, \
                     %u: tensor<{count}x{len}xf32>) -> tensor<{rows}x{len}xf32>"
                ),
                &format!(
                    "%r = \"stablehlo.scatter\"(%t, %i, %u) <{{scatter_dimension_numbers = \
                     #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], \
                     scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{\n\
                     ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n{body}\n}}) : \
                     (tensor<{rows}x{len}xf32>, tensor<{count}xi32>, tensor<{count}x{len}xf32>) \
                     -> tensor<{rows}x{len}xf32>\nreturn %r : tensor<{rows}x{len}xf32>"
                ),
            );
            let mut expected = table.clone();
            for (update, &pick) in updates.chunks(len).zip(&picks) {
                if !(0..rows as i32).contains(&pick) {
                    continue;
                }
                let row = &mut expected[pick as usize * len..][..len];
                for (x, &u) in row.iter_mut().zip(update) {
                    *x = if add { *x + u } else { u };
                }
            }
            let inputs: [&[u8]; 3] = [cast_slice(&table), cast_slice(&picks), cast_slice(&updates)];
            let found = run(&text, &inputs);
            assert_eq!(values::<f32>(&found[0]), expected, "{rows} rows of {len}, {count} updates");
        }
    }
}

#[test]
fn a_loop_of_scalars_is_the_loop_of_arrays_with_one_element() {
    let text = |float: &str, integer: &str, boolean: &str| {
        main_of(
            &format!("(%n: {integer}, %x: {float}) -> ({float}, {float}, {integer})"),
            &format!(
                "%one = stablehlo.constant dense<1> : {integer}\n\
                 %zero = stablehlo.constant dense<0> : {integer}\n\
                 %scale = stablehlo.constant dense<1.001> : {float}\n\
                 %outside = stablehlo.tanh %x : {float}\n\
                 %r:3 = \"stablehlo.while\"(%zero, %x, %scale) ({{\n\
                 ^bb0(%i: {integer}, %a: {float}, %b: {float}):\n\
                 %c = stablehlo.compare LT, %i, %n : ({integer}, {integer}) -> {boolean}\n\
                 %s = stablehlo.reshape %c : ({boolean}) -> tensor<i1>\n\
                 stablehlo.return %s : tensor<i1>\n\
                 }}, {{\n\
                 ^bb0(%i: {integer}, %a: {float}, %b: {float}):\n\
                 %next = stablehlo.add %i, %one : {integer}\n\
                 %f = stablehlo.convert %i : ({integer}) -> {float}\n\
                 %p = stablehlo.multiply %a, %scale : {float}\n\
                 %q = stablehlo.add %p, %f : {float}\n\
                 %e = stablehlo.logistic %q : {float}\n\
                 %d = stablehlo.subtract %e, %outside : {float}\n\
                 stablehlo.return %next, %b, %d : {integer}, {float}, {float}\n\
                 }}) : ({integer}, {float}, {float}) -> ({integer}, {float}, {float})\n\
                 return %r#1, %r#2, %r#0 : {float}, {float}, {integer}"
            ),
        )
    };
    let scalars = text("tensor<f32>", "tensor<i32>", "tensor<i1>");
    let arrays = text("tensor<1xf32>", "tensor<1xi32>", "tensor<1xi1>");
    for n in [0, 1, 2, 7, 1000] {
        let (turns, start) = ([n], [0.7_f32]);
        let inputs: [&[u8]; 2] = [cast_slice(&turns), cast_slice(&start)];
        let found = run(&scalars, &inputs);
        assert_eq!(found, run(&arrays, &inputs), "{n} turns");
        assert_eq!(values::<i32>(&found[2]), [n]);
    }
}

/// Operations that become one instruction do so only where nothing else wants what is between
/// them, whichever side it is on and whatever else it is called.
#[test]
fn a_loop_of_scalars_keeps_what_is_wanted_twice() {
    let text = main_of(
        "(%n: tensor<i32>, %x: tensor<i32>) -> (tensor<i32>, tensor<i32>, tensor<i32>)",
        "%zero = stablehlo.constant dense<0> : tensor<i32>
         %one = stablehlo.constant dense<1> : tensor<i32>
         %three = stablehlo.constant dense<3> : tensor<i32>
         %0:4 = stablehlo.while(%i = %zero, %a = %x, %b = %x, %c = %x) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
         cond {
           %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %1 : tensor<i1>
         } do {
           %once = stablehlo.multiply %a, %three : tensor<i32>
           %right = stablehlo.subtract %i, %once : tensor<i32>
           %third = stablehlo.add %right, %b : tensor<i32>
           %twice = stablehlo.multiply %b, %three : tensor<i32>
           %sum = stablehlo.add %twice, %c : tensor<i32>
           %square = stablehlo.multiply %twice, %twice : tensor<i32>
           %named = stablehlo.subtract %c, %i : tensor<i32>
           %alias = stablehlo.reshape %named : (tensor<i32>) -> tensor<i32>
           %from_alias = stablehlo.multiply %alias, %sum : tensor<i32>
           %from_named = stablehlo.add %named, %square : tensor<i32>
           %next = stablehlo.add %i, %one : tensor<i32>
           stablehlo.return %next, %from_alias, %third, %from_named : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
         }
         return %0#1, %0#2, %0#3 : tensor<i32>, tensor<i32>, tensor<i32>",
    );
    let start = 5_i32;
    let (mut a, mut b, mut c) = (start, start, start);
    for n in 0..20_i32 {
        let found = run(&text, &[cast_slice(&[n]), cast_slice(&[start])]);
        let found = found.iter().flat_map(|bytes| values::<i32>(bytes)).collect::<Vec<_>>();
        assert_eq!(found, [a, b, c], "{n} turns");
        let (twice, named) = (b.wrapping_mul(3), c.wrapping_sub(n));
        let third = n.wrapping_sub(a.wrapping_mul(3)).wrapping_add(b);
        a = named.wrapping_mul(twice.wrapping_add(c));
        (b, c) = (third, named.wrapping_add(twice.wrapping_mul(twice)));
    }
}

/// Chains longer than a loop may grow, of values that are needed at once and more than it may have
/// of those, and constants more than it may read.
#[test]
fn long_chains_are_cut_into_loops_that_agree() {
    type Function = fn(u32, u32) -> u32;
    let ops: [(&str, Function); 4] = [
        ("add", u32::wrapping_add),
        ("multiply", u32::wrapping_mul),
        ("xor", |a, b| a ^ b),
        ("subtract", u32::wrapping_sub),
    ];
    for (count, reach) in [(40, 3), (600, 3), (600, 31), (600, 40), (1300, 500)] {
        let start = [1_u32, 7, 1 << 31, u32::MAX, 12345];
        let mut body = String::new();
        let mut known = vec![start];
        for i in 0..count {
            let (name, function) = ops[i % ops.len()];
            let last = known.len() - 1;
            let other = last - (i * 7919 % reach).min(last);
            let constant = u32::try_from(i % 90 + 2).unwrap();
            body += &format!(
                "%c{i} = stablehlo.constant dense<{constant}> : tensor<5xui32>\n\
                 %s{i} = stablehlo.{name} %v{last}, %v{other} : tensor<5xui32>\n\
                 %v{} = stablehlo.add %s{i}, %c{i} : tensor<5xui32>\n",
                last + 1,
            );
            let (last, other) = (known[last], known[other]);
            known.push(std::array::from_fn(|k| function(last[k], other[k]).wrapping_add(constant)));
        }
        let last = known.len() - 1;
        let text = main_of(
            "(%v0: tensor<5xui32>) -> tensor<5xui32>",
            &format!("{body}return %v{last} : tensor<5xui32>"),
        );
        let found = run(&text, &[cast_slice(&start)]);
        assert_eq!(values::<u32>(&found[0]), known[last], "{count} operations, {reach} apart");
    }
}

#[test]
fn programs_are_brief_if_they_are_short_and_wait_for_nobody() {
    let is_brief =
        |signature: &str, body: &str| compile(&main_of(signature, body)).unwrap().is_brief();
    // The sum is where its operand was.
    for (count, expected) in [(1, true), (4096, true), (4097, false), (1 << 20, false)] {
        let ty = format!("tensor<{count}xf32>");
        let sum = format!("%r = stablehlo.add %a, %a : {ty}\nreturn %r : {ty}");
        assert_eq!(is_brief(&format!("(%a: {ty}) -> {ty}"), &sum), expected, "{count}");
    }
    // Steps whose kernels are not fused.
    for (count, expected) in [(32, true), (33, false)] {
        let step = |i: usize| {
            let from = if i == 0 { "%a".to_owned() } else { format!("%s{}", i - 1) };
            format!(
                "%s{i} = stablehlo.dot {from}, %a : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>"
            )
        };
        let mut lines: Vec<String> = (0..count).map(step).collect();
        lines.push(format!("return %s{} : tensor<2x2xf32>", count - 1));
        let signature = "(%a: tensor<2x2xf32>) -> tensor<2x2xf32>";
        assert_eq!(is_brief(signature, &lines.join("\n")), expected, "{count}");
    }
    // However small, what these take is not in their sizes.
    let scalar = "%r = stablehlo.while(%i = %n) : tensor<i32>
         cond {
           %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1>
         } do { stablehlo.return %i : tensor<i32> }
         return %r : tensor<i32>";
    assert!(!is_brief("(%n: tensor<i32>) -> tensor<i32>", scalar));
    let array = scalar
        .replace("(%i = %n) : tensor<i32>", "(%i = %n, %b = %a) : tensor<i32>, tensor<2xi32>");
    let array = array.replace("{ stablehlo.return %i : tensor<i32> }", "{ %d = stablehlo.add %b, %b : tensor<2xi32> stablehlo.return %i, %d : tensor<i32>, tensor<2xi32> }");
    let array = array
        .replace("%r =", "%r:2 =")
        .replace("return %r : tensor<i32>", "return %r#1 : tensor<2xi32>");
    assert!(!is_brief("(%n: tensor<i32>, %a: tensor<2xi32>) -> tensor<2xi32>", &array));
    let collective =
        "%r = \"stablehlo.all_reduce\"(%n) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
           ^bb0(%a: tensor<i32>, %b: tensor<i32>):
             %c = stablehlo.add %a, %b : tensor<i32>
             stablehlo.return %c : tensor<i32>
         }) : (tensor<i32>) -> tensor<i32>
         return %r : tensor<i32>";
    // What others take is not its own.
    assert!(is_brief("(%n: tensor<i32>) -> tensor<i32>", collective));
}
