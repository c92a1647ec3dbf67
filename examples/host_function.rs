//! A function of the host that runs next to the data, on shards of uneven size.
//!
//! Each process reads its own part of the data, as from a file, and no process ever has it all.
//!
//! ```text
//! $ lockstep run -n 3 host_function
//! process 0 has rows 0..4 of 10
//! …
//! process 0: the means of the rows are [0.5, 2.5, 4.5, …]
//! ```

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use lockstep::client;
use lockstep::ifrt::{
    ArraySpec, Client as _, CompileOptions, DType, ExecuteOptions, HostBuffer, HostBufferSemantics,
    HostBytes, HostCall, HostFunctionProgram, Mesh, Result, Shape, Sharding, Status,
};

const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: usize = 10;

fn main() -> anyhow::Result<()> {
    let client = client::Client::from_environment()?;
    let devices = client.devices().clone();
    let process = client.process_index();
    let mesh = Mesh::new([("x", devices.len())])?;
    let matrix = Sharding::tiled(devices.clone(), mesh.tiling(&[&["x"], &[]])?)?;
    let column = Sharding::tiled(devices.clone(), mesh.tiling(&[&["x"]])?)?;

    // The local part of the data, by the local part of the index space.
    let shape = Shape::new([ROWS, 2])?;
    let part = matrix.process_domain(&shape, process)?;
    let (first, count) = part.map_or((0, 0), |part| (part.origin()[0], part.shape().dims()[0]));
    println!("process {process} has rows {first}..{} of {ROWS}", first + count);
    let local: Vec<f32> = (2 * first..2 * (first + count)).map(|number| number as f32).collect();
    let local = HostBuffer::from_slice(&local, DType::F32, Shape::new([count, 2])?)?;
    let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
    let array = client.make_array_from_process_data(&local, &shape, &matrix, semantics)?;

    // It is called once for each device, on that device's thread.
    let means = |call: &HostCall| -> Result<Vec<HostBuffer<'static>>> {
        let [matrix] = call.arguments.as_slice() else { return Ok(Vec::new()) };
        let numbers: Vec<f32> = matrix.to_vec()?;
        let means: Vec<u8> = numbers
            .chunks(2)
            .flat_map(|row| (row.iter().sum::<f32>() / row.len() as f32).to_le_bytes())
            .collect();
        let shape = matrix.shape().dims()[..1].to_vec();
        let shape =
            Shape::new(shape).map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(vec![HostBuffer::dense(HostBytes::Shared(Arc::new(means)), DType::F32, shape)?])
    };
    let program = HostFunctionProgram {
        name: "row_means".to_owned(),
        parameters: vec![array.spec().clone()],
        outputs: vec![ArraySpec {
            dtype: DType::F32,
            shape: Shape::new([ROWS])?,
            sharding: column,
        }],
        function: Arc::new(means),
    };
    let options = CompileOptions::new(devices);
    let executable = client.compiler().compile_and_load(&program, &options).wait()?;
    let outputs = executable.execute(&[array], &ExecuteOptions::default())?.outputs;

    let means = client.gather(outputs.first().context("it has one output")?)?;
    let means: Vec<f32> = means.wait_timeout(PATIENCE)?.to_vec()?;
    println!("process {process}: the means of the rows are {means:?}");
    ensure!(means.iter().zip(0..).all(|(mean, row)| *mean == 2.0 * row as f32 + 0.5));
    Ok(())
}
