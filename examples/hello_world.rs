//! The devices of the job, one global array over all of them, and one sum across processes.
//!
//! ```text
//! lockstep run -n 4 hello_world
//! ```

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::time::Duration;

use lockstep::client;
use lockstep::ifrt::{
    ArrayCopySemantics, Client as _, CompileOptions, ExecuteOptions, HostBuffer,
    HostBufferSemantics, StableHloProgram,
};

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let client = client::Client::from_environment()?;
    let devices = client.devices().clone();
    println!(
        "process {} of {} sees {} devices, {} of them its own",
        client.process_index(),
        client.process_count(),
        devices.len(),
        client.addressable_devices().len(),
    );

    // A program that JAX emitted: it sums one number from each device.
    let path =
        format!("{}/examples/data/hello/sum_{}.mlir", env!("CARGO_MANIFEST_DIR"), devices.len());
    let program = StableHloProgram::Text(std::fs::read_to_string(path)?);
    let executable = client
        .compiler()
        .compile_and_load(&program, &CompileOptions::new(devices.clone()))
        .wait_timeout(PATIENCE)?;

    // One logical array, [1, 2, 3, …], of which each device holds one element.
    let spec = &executable.parameter_specs()[0];
    let values: Vec<f32> = (1..=devices.len()).map(|i| i as f32).collect();
    let buffer = HostBuffer::from_slice(&values, spec.dtype, spec.shape.clone())?;
    let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
    let array = client.make_array_from_host_buffer(&buffer, &spec.sharding, semantics)?;

    let outputs = executable.execute(&[array], &ExecuteOptions::default())?.outputs;
    let sum = outputs[0].copy_to_host_buffer(ArrayCopySemantics::AlwaysCopy)?;
    let sum: Vec<f32> = sum.wait_timeout(PATIENCE)?.to_vec()?;
    println!("process {}: the sum over all devices is {}", client.process_index(), sum[0]);
    Ok(())
}
