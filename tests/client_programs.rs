//! Programs that JAX emitted for `shard_map` over four devices, through the client, on four CPU
//! devices of this process.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::sync::Arc;

use lockstep::client::Client;
use lockstep::ifrt::{
    ArrayCopySemantics, Client as _, CompileOptions, DType, ExecuteOptions, HostBuffer,
    HostBufferSemantics, LoadedExecutable, Shape, StableHloProgram,
};

/// A matrix and how many columns it has.
type Matrix = (Vec<f32>, usize);

fn compile(client: &Client, case: &str) -> Arc<dyn LoadedExecutable> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus/lockstep");
    let file = |name| std::fs::read(folder.join(case).join(name)).unwrap();
    let text = String::from_utf8(file("program.stablehlo.mlir")).unwrap();
    let options = CompileOptions::new(client.devices().clone());
    let load = |program| client.compiler().compile_and_load(&program, &options).wait().unwrap();
    let executable = load(StableHloProgram::Bytecode(file("program.mlirbc")));
    // What a plugin is given and what people read is one program.
    assert_eq!(executable.fingerprint(), load(StableHloProgram::Text(text)).fingerprint());
    executable
}

/// The results of `case` for a matrix of this shape, whose elements are all different.
fn run(case: &str, rows: usize, columns: usize) -> (Matrix, Vec<Matrix>) {
    let client = Client::solo(4).unwrap();
    let executable = compile(&client, case);
    let input: Vec<f32> = (1..=rows * columns).map(|i| i as f32 * 0.5).collect();
    let shape = Shape::new([rows, columns]).unwrap();
    let buffer = HostBuffer::from_slice(&input, DType::F32, shape).unwrap();
    let sharding = &executable.parameter_shardings()[0];
    let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
    let array = client.make_array_from_host_buffer(&buffer, sharding, semantics).unwrap();
    let result = executable.execute(&[array], &ExecuteOptions::default()).unwrap();
    let read = |(array, spec): (&lockstep::ifrt::ArrayRef, &lockstep::ifrt::ArraySpec)| {
        assert_eq!(array.spec(), spec);
        let buffer = array.copy_to_host_buffer(ArrayCopySemantics::ReuseInput).unwrap();
        (buffer.wait().unwrap().to_vec().unwrap(), spec.shape.dims()[1])
    };
    let outputs = result.outputs.iter().zip(executable.output_specs()).map(read).collect();
    ((input, columns), outputs)
}

/// The matrix of `rows` and `columns` whose elements are `f(row, column)`.
fn matrix(rows: usize, columns: usize, f: impl Fn(usize, usize) -> f32) -> Matrix {
    let at = |i| f(i / columns, i % columns);
    ((0..rows * columns).map(at).collect(), columns)
}

fn at(matrix: &Matrix, row: usize, column: usize) -> f32 {
    matrix.0[row * matrix.1 + column]
}

#[test]
fn psum_over_one_axis_of_two() {
    let (input, outputs) = run("sm_psum", 8, 8);
    assert_eq!(outputs, [matrix(4, 8, |r, c| at(&input, r, c) + at(&input, r + 4, c))]);
}

#[test]
fn psum_over_both_axes() {
    let (input, outputs) = run("sm_psum_both", 8, 8);
    let expected = matrix(4, 4, |r, c| {
        [(0, 0), (0, 4), (4, 0), (4, 4)].iter().map(|(y, x)| at(&input, r + y, c + x)).sum()
    });
    assert_eq!(outputs, [expected]);
}

#[test]
fn pmax_pmin_pmean() {
    let (input, outputs) = run("sm_pmax_pmin_pmean", 8, 8);
    let rows =
        |f: fn(f32, f32) -> f32| matrix(4, 8, |r, c| f(at(&input, r, c), at(&input, r + 4, c)));
    let mean = matrix(8, 4, |r, c| f32::midpoint(at(&input, r, c), at(&input, r, c + 4)));
    assert_eq!(outputs, [rows(f32::max), rows(f32::min), mean]);
}

#[test]
fn psum_scatter() {
    let (input, outputs) = run("sm_psum_scatter", 8, 4);
    assert_eq!(outputs, [matrix(8, 4, |r, c| 4.0 * at(&input, r, c))]);
}

#[test]
fn all_gather() {
    let (input, outputs) = run("sm_all_gather", 8, 4);
    assert_eq!(outputs, [input]);
}

#[test]
fn all_to_all_changes_the_sharding_and_not_the_array() {
    let (input, outputs) = run("sm_all_to_all", 8, 8);
    assert_eq!(outputs, [input]);
}

#[test]
fn ppermute_shifts_shards() {
    let (input, outputs) = run("sm_ppermute", 8, 4);
    assert_eq!(outputs, [matrix(8, 4, |r, c| at(&input, (r + 6) % 8, c))]);
}

#[test]
fn axis_index_is_the_place_in_the_device_list() {
    let (input, outputs) = run("sm_axis_index", 8, 4);
    assert_eq!(outputs, [matrix(8, 4, |r, c| at(&input, r, c) + (r / 2) as f32)]);
}
