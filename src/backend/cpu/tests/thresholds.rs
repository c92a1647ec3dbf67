//! Programs of sizes at which kernels change their way: the results must not.

use bytemuck::cast_slice;

use super::{main_of, run, values};

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
