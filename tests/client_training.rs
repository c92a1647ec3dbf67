//! The example's training step on one, two and four devices of this process: the same course,
//! and the same bits on all devices.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::path::Path;
use std::sync::Arc;

use lockstep::client::Client;
use lockstep::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client as _, CompileOptions, DType, ExecuteOptions,
    HostBuffer, HostBufferSemantics, HostBytes, LoadedExecutable, StableHloProgram,
};

const STEPS: usize = 4;
/// Six parameters and six velocities come before images and labels, and after the loss.
const STATE: usize = 12;

fn compile(client: &Client, name: &str) -> Arc<dyn LoadedExecutable> {
    let devices = client.devices().clone();
    let file = format!("examples/data/mlp/{name}_{}.mlir", devices.len());
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let program = StableHloProgram::Text(text);
    client.compiler().compile_and_load(&program, &CompileOptions::new(devices)).wait().unwrap()
}

/// Argument `index`: small weights of both signs for parameters, zero for velocities.
fn argument(client: &Client, index: usize, spec: &ArraySpec) -> ArrayRef {
    let count = spec.shape.num_elements();
    let noise = |i: usize| (i.wrapping_mul(2_654_435_761) >> 7) % 1000;
    let bytes: Vec<u8> = match (index, spec.dtype) {
        (0..6, DType::F32) => (0..count)
            .flat_map(|i| ((noise(i + index) as f32 - 499.5) / 5000.0).to_ne_bytes())
            .collect(),
        (6..STATE, DType::F32) => vec![0; count * 4],
        (_, DType::F32) => {
            (0..count).flat_map(|i| (noise(i) as f32 / 1000.0).to_ne_bytes()).collect()
        }
        (_, DType::S32) => {
            (0..count).flat_map(|i| i32::try_from(i % 10).unwrap().to_ne_bytes()).collect()
        }
        other => panic!("{other:?}"),
    };
    let buffer = HostBuffer::dense(HostBytes::Borrowed(&bytes), spec.dtype, spec.shape.clone());
    let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
    client.make_array_from_host_buffer(&buffer.unwrap(), &spec.sharding, semantics).unwrap()
}

/// The loss of each step.
fn train(devices: u32) -> Vec<f32> {
    let client = Client::solo(devices).unwrap();
    let step = compile(&client, "train");
    let mut arguments: Vec<ArrayRef> = step
        .parameter_specs()
        .iter()
        .enumerate()
        .map(|(index, spec)| argument(&client, index, spec))
        .collect();
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        let mut outputs = step.execute(&arguments, &ExecuteOptions::default()).unwrap().outputs;
        let loss = outputs.remove(0).copy_to_host_buffer(ArrayCopySemantics::ReuseInput).unwrap();
        losses.extend(loss.wait().unwrap().to_vec::<f32>().unwrap());
        arguments.splice(..STATE, outputs);
    }
    let identical = compile(&client, "identical");
    let parameters = &arguments[..identical.parameter_specs().len()];
    let differing = identical.execute(parameters, &ExecuteOptions::default()).unwrap().outputs;
    let differing = differing[0].copy_to_host_buffer(ArrayCopySemantics::ReuseInput).unwrap();
    assert_eq!(differing.wait().unwrap().to_vec::<i32>().unwrap(), [0]);
    assert_eq!(step.statistics().launches, STEPS as u64);
    losses
}

#[test]
fn the_course_does_not_depend_on_the_number_of_devices() {
    let alone = train(1);
    assert!(alone.windows(2).all(|pair| pair[1] < pair[0]), "{alone:?}");
    for devices in [2, 4] {
        let losses = train(devices);
        for (loss, expected) in losses.iter().zip(&alone) {
            assert!((loss - expected).abs() <= 1e-4 * expected, "{losses:?}, {alone:?}");
        }
        assert_eq!(losses, train(devices), "the same bits every time");
    }
}
