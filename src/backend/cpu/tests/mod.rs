//! Whole programs, small enough to know the answer: what fusing, planning and control flow must
//! not change, and the values that other runtimes have got wrong (notes/pains.md, section N).

mod coverage;
mod numbers;
mod results;
mod threads;
mod thresholds;

use std::fmt::Write;

use bytemuck::{Pod, cast_slice};

use super::CpuBackend;
use super::tile::TILE;
use crate::backend::{
    Backend, Buffer, CollectiveContext, CollectiveSite, Executable, LocalDevice, Reduction,
};
use crate::ifrt::{Code, DType, Result, Status};
use crate::stablehlo::{parse, verify};

/// A world of one device: a collective leaves its operand as it is.
struct Alone;

impl CollectiveContext for Alone {
    fn partition_id(&self) -> u32 {
        0
    }
    fn replica_id(&self) -> u32 {
        7
    }
    fn all_reduce(
        &self,
        site: &CollectiveSite<'_>,
        _: Reduction,
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        // What identifies the call is added to the first element, for a test to look at.
        output.copy_from_slice(input);
        if let Some(first) = output.first_mut() {
            *first += u8::try_from(100 * site.ordinal + site.iteration as u32).unwrap();
        }
        Ok(())
    }
    fn all_gather(&self, _: &CollectiveSite<'_>, _: DType, _: &[u8], _: &mut [u8]) -> Result<()> {
        Err(Status::aborted("rank 3 is gone"))
    }
    fn reduce_scatter(
        &self,
        _: &CollectiveSite<'_>,
        _: Reduction,
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        output.copy_from_slice(input);
        Ok(())
    }
    fn all_to_all(&self, _: &CollectiveSite<'_>, _: DType, i: &[u8], o: &mut [u8]) -> Result<()> {
        o.copy_from_slice(i);
        Ok(())
    }
    fn collective_permute(
        &self,
        _: &CollectiveSite<'_>,
        _: &[(i64, i64)],
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        output.copy_from_slice(input);
        Ok(())
    }
    fn collective_broadcast(
        &self,
        _: &CollectiveSite<'_>,
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        output.copy_from_slice(input);
        Ok(())
    }
}

const DEVICE: LocalDevice = LocalDevice(0);

fn compile(text: &str) -> Result<std::sync::Arc<dyn Executable>> {
    let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    CpuBackend::new(1).compile(&module)
}

fn buffers(executable: &dyn Executable, inputs: &[&[u8]]) -> Vec<Buffer> {
    inputs
        .iter()
        .zip(executable.parameter_types())
        .map(|(bytes, ty)| CpuBackend::new(1).buffer_from_host(DEVICE, ty, bytes).unwrap())
        .collect()
}

/// The results of `main`, as bytes. Arguments are shared in a first run and given away in a
/// second, which must not matter.
fn run(text: &str, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let executable = compile(text).unwrap_or_else(|error| panic!("{error}"));
    let arguments = buffers(&*executable, inputs);
    let shared = executable.execute(DEVICE, arguments.clone(), &Alone).unwrap();
    for (argument, input) in arguments.iter().zip(inputs) {
        assert_eq!(argument.bytes(), *input, "a shared argument is left alone");
    }
    let given = executable.execute(DEVICE, arguments, &Alone).unwrap();
    for (shared, given) in shared.iter().zip(&given) {
        assert_eq!(shared.bytes(), given.bytes(), "sharing an argument changes no result");
    }
    given.iter().map(|buffer| buffer.bytes().to_vec()).collect()
}

fn values<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// `main` with the given signature and body.
fn main_of(signature: &str, body: &str) -> String {
    format!("module {{\n func.func public @main{signature} {{\n{body}\n }}\n}}\n")
}

#[test]
fn fused_loops_agree_with_scalars_around_the_tile() {
    for n in [0, 1, TILE - 1, TILE, TILE + 1, 3 * TILE + 5] {
        let text = main_of(
            &format!("(%a: tensor<{n}xf32>, %b: tensor<{n}xf32>) -> (tensor<{n}xf32>, tensor<{n}xi1>, tensor<{n}xi32>)"),
            &format!(
                "%two = stablehlo.constant dense<2.0> : tensor<{n}xf32>
                 %0 = stablehlo.multiply %a, %two : tensor<{n}xf32>
                 %1 = stablehlo.add %0, %b : tensor<{n}xf32>
                 %2 = stablehlo.compare GT, %1, %0 : (tensor<{n}xf32>, tensor<{n}xf32>) -> tensor<{n}xi1>
                 %3 = stablehlo.select %2, %1, %a : tensor<{n}xi1>, tensor<{n}xf32>
                 %4 = stablehlo.convert %3 : (tensor<{n}xf32>) -> tensor<{n}xi32>
                 return %3, %2, %4 : tensor<{n}xf32>, tensor<{n}xi1>, tensor<{n}xi32>"
            ),
        );
        let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let b: Vec<f32> =
            (0..n).map(|i| if i % 3 == 0 { -1.0 - i as f32 } else { i as f32 }).collect();
        let results = run(&text, &[cast_slice(&a), cast_slice(&b)]);
        let expected: Vec<f32> = a
            .iter()
            .zip(&b)
            .map(|(&a, &b)| if a * 2.0 + b > a * 2.0 { a * 2.0 + b } else { a })
            .collect();
        assert_eq!(values::<f32>(&results[0]), expected, "{n}");
        let greater: Vec<u8> =
            a.iter().zip(&b).map(|(&a, &b)| u8::from(a * 2.0 + b > a * 2.0)).collect();
        assert_eq!(results[1], greater);
        assert_eq!(
            values::<i32>(&results[2]),
            expected.iter().map(|&x| x as i32).collect::<Vec<_>>()
        );
    }
}

#[test]
fn broadcasts_of_rows_and_columns_join_a_loop() {
    let (rows, columns) = (37_usize, 41_usize);
    let ty = format!("tensor<{rows}x{columns}xi32>");
    let text = main_of(
        &format!("(%m: {ty}, %row: tensor<{columns}xi32>, %column: tensor<{rows}xi32>) -> {ty}"),
        &format!(
            "%0 = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<{columns}xi32>) -> {ty}
             %1 = stablehlo.broadcast_in_dim %column, dims = [0] : (tensor<{rows}xi32>) -> {ty}
             %2 = stablehlo.iota dim = 1 : {ty}
             %3 = stablehlo.add %m, %0 : {ty}
             %4 = stablehlo.subtract %3, %1 : {ty}
             %5 = stablehlo.multiply %4, %2 : {ty}
             return %5 : {ty}"
        ),
    );
    let m: Vec<i32> = (0..(rows * columns) as i32).map(|i| i * 7 % 1000).collect();
    let row: Vec<i32> = (0..columns as i32).map(|i| i * i).collect();
    let column: Vec<i32> = (0..rows as i32).map(|i| 3 * i).collect();
    let results = run(&text, &[cast_slice(&m), cast_slice(&row), cast_slice(&column)]);
    let expected: Vec<i32> = (0..rows * columns)
        .map(|i| (m[i] + row[i % columns] - column[i / columns]) * (i % columns) as i32)
        .collect();
    assert_eq!(values::<i32>(&results[0]), expected);
}

/// 16 bytes an element, the widest there is.
#[test]
fn the_widest_elements_fit_the_tiles() {
    let n = TILE + 1;
    let ty = format!("tensor<{n}xcomplex<f64>>");
    let text = main_of(
        &format!("(%p: tensor<{n}xi1>, %x: {ty}, %y: {ty}) -> {ty}"),
        &format!("%0 = stablehlo.select %p, %x, %y : tensor<{n}xi1>, {ty}\n return %0 : {ty}"),
    );
    let predicate: Vec<u8> = (0..n).map(|i| u8::from(i % 3 == 0)).collect();
    let x: Vec<f64> = (0..2 * n).map(|i| i as f64).collect();
    let y: Vec<f64> = x.iter().map(|v| -v - 1.0).collect();
    let expected: Vec<f64> =
        (0..2 * n).map(|i| if predicate[i / 2] == 1 { x[i] } else { y[i] }).collect();
    let results = run(&text, &[&predicate, cast_slice(&x), cast_slice(&y)]);
    assert_eq!(values::<f64>(&results[0]), expected);
}

/// State that swaps places, passes through, is overwritten in place and is used after its
/// successor exists.
#[test]
fn loops_carry_their_state_in_parallel() {
    let text = main_of(
        "(%n: tensor<i32>, %x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<6xi32>)",
        "%zero = stablehlo.constant dense<0> : tensor<i32>
         %one = stablehlo.constant dense<1> : tensor<i32>
         %log = stablehlo.constant dense<0> : tensor<6xi32>
         %0:5 = stablehlo.while(%i = %zero, %a = %x, %b = %y, %c = %x, %l = %log) : tensor<i32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<6xi32>
         cond {
           %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %1 : tensor<i1>
         } do {
           %1 = stablehlo.add %i, %one : tensor<i32>
           %2 = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<4xi32>
           %3 = stablehlo.add %a, %2 : tensor<4xi32>
           %4 = stablehlo.multiply %i, %i : tensor<i32>
           %5 = stablehlo.reshape %4 : (tensor<i32>) -> tensor<1xi32>
           %6 = stablehlo.dynamic_update_slice %l, %5, %i : (tensor<6xi32>, tensor<1xi32>, tensor<i32>) -> tensor<6xi32>
           stablehlo.return %1, %b, %3, %c, %6 : tensor<i32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<6xi32>
         }
         return %0#1, %0#2, %0#3, %0#4 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<6xi32>",
    );
    let (x, y) = ([1, 2, 3, 4], [50, 60, 70, 80]);
    for n in 0..6_i32 {
        let (mut a, mut b) = (x, y);
        let mut log = [0; 6];
        for i in 0..n {
            (a, b) = (b, a.map(|v| v + i));
            log[i as usize] = i * i;
        }
        let results = run(&text, &[cast_slice(&[n]), cast_slice(&x), cast_slice(&y)]);
        assert_eq!(values::<i32>(&results[0]), a, "{n}");
        assert_eq!(values::<i32>(&results[1]), b, "{n}");
        assert_eq!(values::<i32>(&results[2]), x, "{n}");
        assert_eq!(values::<i32>(&results[3]), log, "{n}");
    }
}

/// A copy that a loop's body makes of a value from outside is not there for the steps after it.
#[test]
fn bodies_keep_their_copies_to_themselves() {
    let text = main_of(
        "(%n: tensor<i32>, %x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)",
        "%zero = stablehlo.constant dense<0> : tensor<i32>
         %one = stablehlo.constant dense<1> : tensor<i32>
         %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
         %init = stablehlo.constant dense<0.0> : tensor<3x2xf32>
         %0:2 = stablehlo.while(%i = %zero, %a = %init) : tensor<i32>, tensor<3x2xf32>
         cond {
           %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %1 : tensor<i1>
         } do {
           %1 = stablehlo.add %i, %one : tensor<i32>
           stablehlo.return %1, %t : tensor<i32>, tensor<3x2xf32>
         }
         return %0#1, %t : tensor<3x2xf32>, tensor<3x2xf32>",
    );
    let x = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let transposed = [1.0_f32, 4.0, 2.0, 5.0, 3.0, 6.0];
    for n in 0..3_i32 {
        let results = run(&text, &[cast_slice(&[n]), cast_slice(&x)]);
        let expected = if n == 0 { [0.0; 6] } else { transposed };
        assert_eq!(values::<f32>(&results[0]), expected, "{n}");
        assert_eq!(values::<f32>(&results[1]), transposed, "{n}");
    }
}

#[test]
fn choices_take_one_branch() {
    let text = main_of(
        "(%i: tensor<i32>, %p: tensor<i1>, %x: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>)",
        "%0 = \"stablehlo.case\"(%i) ({
           %a = stablehlo.add %x, %x : tensor<3xi32>
           stablehlo.return %a : tensor<3xi32>
         }, {
           stablehlo.return %x : tensor<3xi32>
         }, {
           %a = stablehlo.negate %x : tensor<3xi32>
           stablehlo.return %a : tensor<3xi32>
         }) : (tensor<i32>) -> tensor<3xi32>
         %1 = \"stablehlo.if\"(%p) ({
           stablehlo.return %0 : tensor<3xi32>
         }, {
           %a = stablehlo.multiply %x, %x : tensor<3xi32>
           stablehlo.return %a : tensor<3xi32>
         }) : (tensor<i1>) -> tensor<3xi32>
         return %0, %1 : tensor<3xi32>, tensor<3xi32>",
    );
    let x = [1, -2, 3];
    let branches = [x.map(|v| 2 * v), x, x.map(|v: i32| -v)];
    // An index out of range takes the last branch.
    for (index, taken) in [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2), (i32::MIN, 2)] {
        for truth in [0_u8, 1] {
            let results = run(&text, &[cast_slice(&[index]), &[truth], cast_slice(&x)]);
            assert_eq!(values::<i32>(&results[0]), branches[taken], "{index}");
            let second = if truth == 1 { branches[taken] } else { x.map(|v| v * v) };
            assert_eq!(values::<i32>(&results[1]), second, "{index} {truth}");
        }
    }
}

#[test]
fn collectives_know_their_place_and_their_turn() {
    let text = main_of(
        "(%n: tensor<ui8>, %x: tensor<2xui8>) -> (tensor<2xui8>, tensor<2xui8>, tensor<ui32>)",
        "%zero = stablehlo.constant dense<0> : tensor<ui8>
         %one = stablehlo.constant dense<1> : tensor<ui8>
         %first = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
           ^bb0(%a: tensor<ui8>, %b: tensor<ui8>):
             %c = stablehlo.add %a, %b : tensor<ui8>
             stablehlo.return %c : tensor<ui8>
         }) : (tensor<2xui8>) -> tensor<2xui8>
         %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<ui8>, tensor<2xui8>
         cond {
           %1 = stablehlo.compare LT, %i, %n : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
           stablehlo.return %1 : tensor<i1>
         } do {
           %1 = stablehlo.add %i, %one : tensor<ui8>
           %2 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
             ^bb0(%b: tensor<ui8>, %c: tensor<ui8>):
               %d = stablehlo.maximum %b, %c : tensor<ui8>
               stablehlo.return %d : tensor<ui8>
           }) : (tensor<2xui8>) -> tensor<2xui8>
           stablehlo.return %1, %2 : tensor<ui8>, tensor<2xui8>
         }
         %id = stablehlo.replica_id : tensor<ui32>
         return %first, %0#1, %id : tensor<2xui8>, tensor<2xui8>, tensor<ui32>",
    );
    let results = run(&text, &[&[3], &[5, 6]]);
    assert_eq!(results[0], [5, 6], "ordinal 0, iteration 0");
    assert_eq!(results[1], [5 + 100 + 2, 6], "ordinal 1, iteration 2");
    assert_eq!(values::<u32>(&results[2]), [7]);
}

#[test]
fn a_failed_collective_is_the_launch_s_error() {
    let text = main_of(
        "(%x: tensor<2xf32>) -> tensor<4xf32>",
        "%0 = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xf32>) -> tensor<4xf32>
         return %0 : tensor<4xf32>",
    )
    .replacen("module", "module attributes {mhlo.num_replicas = 2 : i32}", 1);
    let executable = compile(&text).unwrap();
    for _ in 0..2 {
        let arguments = buffers(&*executable, &[cast_slice(&[1.0_f32, 2.0])]);
        let error = executable.execute(DEVICE, arguments, &Alone).unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::Aborted, "rank 3 is gone"));
    }
}

#[test]
fn what_is_missing_is_named_with_its_line_and_type() {
    let text = main_of(
        "(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>",
        "%0 = stablehlo.remainder %x, %x : tensor<2xcomplex<f32>>\n return %0 : tensor<2xcomplex<f32>>",
    );
    let error = compile(&text).err().unwrap();
    assert_eq!(error.code(), Code::Unimplemented);
    for words in ["line 3", "`stablehlo.remainder`", "tensor<2xcomplex<f32>>"] {
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn arguments_that_do_not_match_are_refused() {
    let text = main_of("(%x: tensor<2xf32>) -> tensor<2xf32>", "return %x : tensor<2xf32>");
    let executable = compile(&text).unwrap();
    let error = executable.execute(DEVICE, Vec::new(), &Alone).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let ty = crate::stablehlo::TensorType::new(DType::F32, crate::ifrt::Shape::new([3]).unwrap());
    let long = CpuBackend::new(1).buffer_from_host(DEVICE, &ty, &[0; 12]).unwrap();
    let error = executable.execute(DEVICE, vec![long], &Alone).unwrap_err();
    assert!(error.message().contains("8 bytes; the argument has 12"), "{error}");
}

/// N01: each of two nested slices is clamped by itself.
#[test]
fn nested_dynamic_slices_clamp_one_by_one() {
    let text = main_of(
        "(%x: tensor<10xi32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<1xi32>",
        "%0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (tensor<10xi32>, tensor<i32>) -> tensor<4xi32>
         %1 = stablehlo.dynamic_slice %0, %j, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
         return %1 : tensor<1xi32>",
    );
    let x: Vec<i32> = (100..110).collect();
    for (i, j) in [(9, 0), (3, 5), (6, 0)] {
        let results = run(&text, &[cast_slice(&x), cast_slice(&[i]), cast_slice(&[j])]);
        assert_eq!(values::<i32>(&results[0]), [106], "{i} {j}");
    }
}

/// N03: more batches than an 8-bit index can count.
#[test]
fn short_indices_reach_every_batch() {
    let text = main_of(
        "(%x: tensor<256x4xf32>, %i: tensor<256x1xi8>) -> tensor<256xf32>",
        "%0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<256x4xf32>, tensor<256x1xi8>) -> tensor<256xf32>
         return %0 : tensor<256xf32>",
    );
    let x: Vec<f32> = (0..1024_u16).map(f32::from).collect();
    let indices: Vec<i8> = (0..=255_u8).map(|i| (i % 4).cast_signed()).collect();
    let expected: Vec<f32> = (0..256).map(|i| x[4 * i + i % 4]).collect();
    let results = run(&text, &[cast_slice(&x), cast_slice(&indices)]);
    assert_eq!(values::<f32>(&results[0]), expected);
}

/// N05: a point along one dimension, a window along another.
#[test]
fn scatter_mixes_points_and_windows() {
    let text = main_of(
        "(%x: tensor<2x3x5xf32>, %i: tensor<2xi32>, %u: tensor<2x2xf32>) -> tensor<2x3x5xf32>",
        "%0 = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1, 2], index_vector_dim = 0>}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %c = stablehlo.multiply %a, %b : tensor<f32>
             stablehlo.return %c : tensor<f32>
         }) : (tensor<2x3x5xf32>, tensor<2xi32>, tensor<2x2xf32>) -> tensor<2x3x5xf32>
         return %0 : tensor<2x3x5xf32>",
    );
    let x: Vec<f32> = (1..=30_u8).map(f32::from).collect();
    let updates = [2.0_f32, 3.0, 5.0, 7.0];
    // A window that reaches past the end or before 0 is skipped, all of it.
    for (row, column) in [(1, 2), (0, 0), (2, 4), (1, -1), (3, 0), (-1, 2)] {
        let mut expected = x.clone();
        for outer in 0..2_i32 {
            for inner in 0..2_i32 {
                let at = column + inner;
                if (0..3).contains(&row) && (0..4).contains(&column) {
                    let position = usize::try_from(outer * 15 + row * 5 + at).unwrap();
                    expected[position] *= updates[usize::try_from(2 * outer + inner).unwrap()];
                }
            }
        }
        let results =
            run(&text, &[cast_slice(&x), cast_slice(&[row, column]), cast_slice(&updates)]);
        assert_eq!(values::<f32>(&results[0]), expected, "{row} {column}");
    }
}

/// N07: holes of a dilated operand hold the initial value, at every size.
#[test]
fn window_reductions_see_holes_as_initial_values() {
    for (rows, columns) in [(8_usize, 8_usize), (64, 128)] {
        let dilated = 2 * columns - 1;
        let out_rows = (rows - 3) / 2 + 1;
        let text = main_of(
            &format!("(%x: tensor<{rows}x{columns}xi32>, %init: tensor<i32>) -> tensor<{out_rows}x{dilated}xi32>"),
            &format!(
                "%0 = \"stablehlo.reduce_window\"(%x, %init) <{{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, base_dilations = array<i64: 1, 2>, window_dilations = array<i64: 2, 1>}}> ({{
                   ^bb0(%a: tensor<i32>, %b: tensor<i32>):
                     %c = stablehlo.add %a, %b : tensor<i32>
                     stablehlo.return %c : tensor<i32>
                 }}) : (tensor<{rows}x{columns}xi32>, tensor<i32>) -> tensor<{out_rows}x{dilated}xi32>
                 return %0 : tensor<{out_rows}x{dilated}xi32>"
            ),
        );
        let x: Vec<i32> = (0..(rows * columns) as i32).map(|i| i * 3 + 1).collect();
        let init = 1000;
        let mut expected = Vec::new();
        for row in 0..out_rows {
            for column in 0..dilated {
                let at = |row: usize| {
                    if column % 2 == 0 { x[row * columns + column / 2] } else { init }
                };
                expected.push(init + at(2 * row) + at(2 * row + 2));
            }
        }
        let results = run(&text, &[cast_slice(&x), cast_slice(&[init])]);
        assert_eq!(values::<i32>(&results[0]), expected, "{rows}x{columns}");
    }
}

/// Padding is not part of any type, so its size is checked where it is made.
#[test]
fn absurd_padding_is_an_error() {
    let text = main_of(
        "(%x: tensor<2xi32>, %init: tensor<i32>) -> tensor<1xi32>",
        "%0 = \"stablehlo.reduce_window\"(%x, %init) <{window_dimensions = array<i64: 1>, window_strides = array<i64: 9223372036854775807>, padding = dense<[[4611686018427387904, 0]]> : tensor<1x2xi64>}> ({
           ^bb0(%a: tensor<i32>, %b: tensor<i32>):
             %c = stablehlo.add %a, %b : tensor<i32>
             stablehlo.return %c : tensor<i32>
         }) : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
         return %0 : tensor<1xi32>",
    );
    let error = compile(&text).err().unwrap();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
}

/// N09: a NaN wins whichever operand it is and whether it is a constant or an argument.
#[test]
fn extremes_of_constants_and_arguments_agree() {
    let mut body = String::from("%nan = stablehlo.constant dense<0x7FC00000> : tensor<2xf32>\n");
    let mut results = Vec::new();
    for (i, (op, operands)) in [
        ("maximum", "%nan, %x"),
        ("maximum", "%x, %nan"),
        ("minimum", "%nan, %x"),
        ("minimum", "%x, %nan"),
        ("maximum", "%y, %x"),
        ("minimum", "%x, %y"),
    ]
    .into_iter()
    .enumerate()
    {
        writeln!(body, "%{i} = stablehlo.{op} {operands} : tensor<2xf32>").unwrap();
        results.push(format!("%{i}"));
    }
    let types = vec!["tensor<2xf32>"; results.len()].join(", ");
    writeln!(body, "return {} : {types}", results.join(", ")).unwrap();
    let text = main_of(&format!("(%x: tensor<2xf32>, %y: tensor<2xf32>) -> ({types})"), &body);
    for result in run(&text, &[cast_slice(&[1.0_f32, -0.0]), cast_slice(&[f32::NAN; 2])]) {
        assert!(values::<f32>(&result).iter().all(|x| x.is_nan()), "{result:?}");
    }
}

/// N13: columns are sorted, NaN has a place, equal keys keep their order.
#[test]
fn sorts_along_the_outer_dimension_and_with_nan() {
    let text = main_of(
        "(%x: tensor<5x7xi64>) -> tensor<5x7xi64>",
        "%0 = \"stablehlo.sort\"(%x) <{dimension = 0 : i64, is_stable = true}> ({
           ^bb0(%a: tensor<i64>, %b: tensor<i64>):
             %c = stablehlo.compare LT, %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i1>
             stablehlo.return %c : tensor<i1>
         }) : (tensor<5x7xi64>) -> tensor<5x7xi64>
         return %0 : tensor<5x7xi64>",
    );
    let x: Vec<i64> = (0..35).map(|i| (i * 17 % 35) - 10).collect();
    let sorted = values::<i64>(&run(&text, &[cast_slice(&x)])[0]);
    for column in 0..7 {
        let mut expected: Vec<i64> = (0..5).map(|row| x[row * 7 + column]).collect();
        expected.sort_unstable();
        let found: Vec<i64> = (0..5).map(|row| sorted[row * 7 + column]).collect();
        assert_eq!(found, expected, "column {column}");
    }

    let text = main_of(
        "(%x: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)",
        "%0:2 = \"stablehlo.sort\"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
             %e = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
             stablehlo.return %e : tensor<i1>
         }) : (tensor<8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
         return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>",
    );
    let inf = f32::INFINITY;
    let x = [f32::NAN, 0.0, inf, -f32::NAN, -0.0, 1.0, -inf, 1.0];
    let results = run(&text, &[cast_slice(&x), cast_slice(&[0, 1, 2, 3, 4, 5, 6, 7])]);
    assert_eq!(values::<i32>(&results[1]), [3, 6, 4, 1, 5, 7, 2, 0]);
}

/// N15: a gather of a constant is that of an argument with the same elements.
#[test]
fn gathers_from_constants_keep_their_order() {
    let gather = |operand: &str| {
        format!(
            "%i = stablehlo.constant dense<[[3], [0], [4], [1], [2]]> : tensor<5x1xi32>
             %0 = \"stablehlo.gather\"({operand}, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1>}}> : (tensor<2x5xi32>, tensor<5x1xi32>) -> tensor<2x5xi32>
             %1 = stablehlo.add %0, %one : tensor<2x5xi32>
             return %1 : tensor<2x5xi32>"
        )
    };
    let one = "%one = stablehlo.constant dense<1> : tensor<2x5xi32>";
    let constant = main_of(
        "() -> tensor<2x5xi32>",
        &format!(
            "{one}\n%l = stablehlo.iota dim = 0 : tensor<5xi32>\n%c = stablehlo.broadcast_in_dim %l, dims = [1] : (tensor<5xi32>) -> tensor<2x5xi32>\n{}",
            gather("%c")
        ),
    );
    let argument =
        main_of("(%x: tensor<2x5xi32>) -> tensor<2x5xi32>", &format!("{one}\n{}", gather("%x")));
    let x = [0, 1, 2, 3, 4, 0, 1, 2, 3, 4];
    let expected = [4, 1, 5, 2, 3, 4, 1, 5, 2, 3];
    assert_eq!(values::<i32>(&run(&constant, &[])[0]), expected);
    assert_eq!(values::<i32>(&run(&argument, &[cast_slice(&x)])[0]), expected);
}

/// N27: rounding to a short float happens, though wider values are at hand in the same loop.
#[test]
fn fused_loops_keep_every_rounding() {
    let text = main_of(
        "(%x: tensor<3xf32>, %y: tensor<3xbf16>, %z: tensor<3xbf16>) -> (tensor<3xf32>, tensor<3xbf16>, tensor<3xf32>)",
        "%0 = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xbf16>
         %1 = stablehlo.convert %0 : (tensor<3xbf16>) -> tensor<3xf32>
         %2 = stablehlo.add %y, %z : tensor<3xbf16>
         %3 = stablehlo.subtract %2, %y : tensor<3xbf16>
         %4 = stablehlo.reduce_precision %x, format = e8m7 : tensor<3xf32>
         return %1, %3, %4 : tensor<3xf32>, tensor<3xbf16>, tensor<3xf32>",
    );
    let bf16 = |values: [f32; 3]| values.map(half::bf16::from_f32);
    let x = [1.003_f32, 257.0, -3.13];
    let (y, z) = (bf16([256.0, 1.0, 512.0]), bf16([1.0, 2.0, 3.0]));
    let results = run(&text, &[cast_slice(&x), cast_slice(&y), cast_slice(&z)]);
    let rounded = [1.0_f32, 256.0, -3.125];
    assert_eq!(values::<f32>(&results[0]), rounded);
    assert_eq!(values::<half::bf16>(&results[1]), bf16([0.0, 2.0, 4.0]));
    assert_eq!(values::<f32>(&results[2]), rounded);
}

/// I4: folding and fusing must not depend on what the compiler knows of an operand.
#[test]
fn constants_and_arguments_give_the_same_bits() {
    let n = TILE + 3;
    let data: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin() * 40.0).collect();
    let body = |operand: &str| {
        format!(
            "%zero = stablehlo.constant dense<0.0> : tensor<f32>
             %0 = stablehlo.exponential {operand} : tensor<{n}xf32>
             %1 = stablehlo.log %0 : tensor<{n}xf32>
             %2 = stablehlo.tanh %1 : tensor<{n}xf32>
             %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<{n}xf32>, tensor<f32>) -> tensor<f32>
             %4 = stablehlo.dot_general {operand}, %2, contracting_dims = [0] x [0] : (tensor<{n}xf32>, tensor<{n}xf32>) -> tensor<f32>
             return %2, %3, %4 : tensor<{n}xf32>, tensor<f32>, tensor<f32>"
        )
    };
    let types = format!("(tensor<{n}xf32>, tensor<f32>, tensor<f32>)");
    let mut hex = String::from("0x");
    for byte in cast_slice::<f32, u8>(&data) {
        write!(hex, "{byte:02X}").unwrap();
    }
    let constant = main_of(
        &format!("() -> {types}"),
        &format!("%c = stablehlo.constant dense<\"{hex}\"> : tensor<{n}xf32>\n{}", body("%c")),
    );
    let argument = main_of(&format!("(%x: tensor<{n}xf32>) -> {types}"), &body("%x"));
    assert_eq!(run(&constant, &[]), run(&argument, &[cast_slice(&data)]));
}

#[test]
fn narrow_integers_wrap_after_every_operation() {
    let text = main_of(
        "(%a: tensor<6xi4>, %b: tensor<6xi4>) -> (tensor<6xi4>, tensor<6xi1>, tensor<6xi4>)",
        "%0 = stablehlo.add %a, %b : tensor<6xi4>
         %1 = stablehlo.compare LT, %0, %b : (tensor<6xi4>, tensor<6xi4>) -> tensor<6xi1>
         %2 = stablehlo.divide %a, %b : tensor<6xi4>
         return %0, %1, %2 : tensor<6xi4>, tensor<6xi1>, tensor<6xi4>",
    );
    // 7 + 1, -8 / -1, -8 + -3, 5 / 0, -7 / 2, 3 - 3
    let (a, b) = ([7, 8, 8, 5, 9, 3], [1, 15, 13, 0, 2, 13]);
    let results = run(&text, &[&a, &b]);
    assert_eq!(results[0], [8, 7, 5, 5, 11, 0]);
    assert_eq!(results[1], [1, 0, 0, 0, 1, 0]);
    assert_eq!(results[2], [7, 8, 2, 15, 13, 15]);
}

#[test]
fn complex_numbers_compute_and_move() {
    let text = main_of(
        "(%re: tensor<2xf32>, %im: tensor<2xf32>) -> (tensor<2x2xcomplex<f32>>, tensor<2xf32>)",
        "%z = stablehlo.complex %re, %im : tensor<2xcomplex<f32>>
         %0 = stablehlo.broadcast_in_dim %z, dims = [1] : (tensor<2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
         %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
         %2 = stablehlo.multiply %0, %1 : tensor<2x2xcomplex<f32>>
         %3 = stablehlo.abs %z : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
         return %2, %3 : tensor<2x2xcomplex<f32>>, tensor<2xf32>",
    );
    let results = run(&text, &[cast_slice(&[3.0_f32, 0.5]), cast_slice(&[4.0_f32, -1.0])]);
    let products = [-7.0_f32, 24.0, 5.5, -1.0, 5.5, -1.0, -0.75, -1.0];
    assert_eq!(values::<f32>(&results[0]), products);
    assert_eq!(values::<f32>(&results[1]), [5.0, 0.5_f32.hypot(-1.0)]);
}

#[test]
fn a_composite_is_its_decomposition() {
    let text = "module {
         func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
           %0 = stablehlo.composite \"my.twice\" %a {decomposition = @twice} : (tensor<2xf32>) -> tensor<2xf32>
           return %0 : tensor<2xf32>
         }
         func.func private @twice(%a: tensor<2xf32>) -> tensor<2xf32> {
           %0 = stablehlo.add %a, %a : tensor<2xf32>
           return %0 : tensor<2xf32>
         }
       }";
    let results = run(text, &[cast_slice(&[1.5_f32, -4.0])]);
    assert_eq!(values::<f32>(&results[0]), [3.0, -8.0]);
}

#[test]
fn open_parameters_take_the_dimensions_of_the_arguments() {
    let text = main_of(
        "(%a: tensor<?x3xf32>, %n: tensor<i32>) -> (tensor<?xf32>, tensor<i32>)",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.add %a, %a : tensor<?x3xf32>
         %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
         %2 = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
         %3 = stablehlo.multiply %2, %n : tensor<i32>
         return %1, %3 : tensor<?xf32>, tensor<i32>",
    );
    let mut module = parse(&text).unwrap();
    verify(&module).unwrap();
    let error = CpuBackend::new(1).compile(&module).err().unwrap();
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
    let error = module.specialise(&[vec![2, 4], vec![]]).unwrap_err();
    assert!(error.message().contains("parameter 0 is tensor<?x3xf32>"), "{error}");
    assert!(module.has_open_parameters());
    module.specialise(&[vec![2, 3], vec![]]).unwrap();
    assert!(!module.has_open_parameters());
    let executable = CpuBackend::new(1).compile(&module).unwrap();
    let a = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let arguments = buffers(&*executable, &[cast_slice(&a), cast_slice(&[5_i32])]);
    let results = executable.execute(DEVICE, arguments, &Alone).unwrap();
    assert_eq!(values::<f32>(results[0].bytes()), [12.0, 30.0]);
    assert_eq!(values::<i32>(results[1].bytes()), [10]);
}

#[test]
fn custom_calls_factor_stacks_of_matrices() {
    let text = main_of(
        "(%a: tensor<2x2x2xf32>) -> (tensor<2x2xcomplex<f32>>, tensor<2x2x2xcomplex<f32>>, tensor<2x2xi32>, tensor<2x1xf32>, tensor<2x2x2xf32>)",
        "%w, %v = stablehlo.custom_call @lockstep.eig(%a) {mhlo.backend_config = {left = false, right = true}} : (tensor<2x2x2xf32>) -> (tensor<2x2xcomplex<f32>>, tensor<2x2x2xcomplex<f32>>)
         %lu, %pivots, %rows = stablehlo.custom_call @lockstep.lu(%a) : (tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2xi32>, tensor<2x2xi32>)
         %p, %d, %e, %taus = stablehlo.custom_call @lockstep.tridiagonal(%a) {mhlo.backend_config = {lower = true}} : (tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
         %t, %z = stablehlo.custom_call @lockstep.schur(%a) : (tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>)
         return %w, %v, %rows, %e, %t : tensor<2x2xcomplex<f32>>, tensor<2x2x2xcomplex<f32>>, tensor<2x2xi32>, tensor<2x1xf32>, tensor<2x2x2xf32>",
    );
    let a = [0.0_f32, -1.0, 1.0, 0.0, 3.0, 0.0, 0.0, 7.0];
    let results = run(&text, &[cast_slice(&a)]);
    let w = values::<[f32; 2]>(&results[0]);
    assert_eq!((w[0][1].abs(), w[0][1] + w[1][1]), (1.0, 0.0), "{w:?}");
    assert_eq!(w[2..], [[3.0, 0.0], [7.0, 0.0]]);
    assert_eq!(values::<i32>(&results[2]), [1, 0, 0, 1]);
    assert_eq!(values::<f32>(&results[3]), [1.0, 0.0]);
    assert_eq!(values::<f32>(&results[4])[4..], [3.0, 0.0, 0.0, 7.0]);
}

#[test]
fn custom_calls_are_held_to_their_types() {
    let refused = |target: &str, options: &str, operand: &str, results: &str| {
        let text = main_of(
            &format!("(%a: {operand}) -> ({results})"),
            &format!(
                "%0:2 = stablehlo.custom_call @{target}(%a) {{mhlo.backend_config = {{{options}}}}} : ({operand}) -> ({results})
                 return %0#0, %0#1 : {results}"
            ),
        );
        let error = compile(&text).err().unwrap();
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.message().contains(&format!("@{target}")), "{error}");
        error.message().to_owned()
    };
    for (target, options, operand, results, reason) in [
        ("Qr", "", "tensor<3x2xf32>", "tensor<3x2xf32>, tensor<3xf32>", "with these types"),
        ("Qr", "", "tensor<2x2xbf16>", "tensor<2x2xbf16>, tensor<2xbf16>", "with these types"),
        ("lockstep.schur", "", "tensor<2x3xf32>", "tensor<2x2xf32>, tensor<2x2xf32>", "not square"),
        (
            "lockstep.schur",
            "",
            "tensor<2x2xf16>",
            "tensor<2x2xf16>, tensor<2x2xf16>",
            "with these types",
        ),
        (
            "lockstep.eigh",
            "",
            "tensor<2x2xf32>",
            "tensor<2xf32>, tensor<2x2xf32>",
            "without `lower`",
        ),
        (
            "lockstep.unheard",
            "",
            "tensor<2x2xf32>",
            "tensor<2xf32>, tensor<2xf32>",
            "not implemented",
        ),
        ("unheard", "", "tensor<2x2xf32>", "tensor<2xf32>, tensor<2xf32>", "not implemented"),
    ] {
        let message = refused(target, options, operand, results);
        assert!(message.contains(reason), "{message}");
    }
}
