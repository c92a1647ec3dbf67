//! What a program sees when something fails, and how it goes on.
//!
//! ```text
//! $ lockstep run -n 2 failure_handling
//! process 1: NotFound at "reading the input": the file is not there
//! process 0: Aborted: …: rank 1 …: the file is not there
//! process 0: devices of its own still compute: 8
//! …
//! ```

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use lockstep::client;
use lockstep::ifrt::{
    ArrayRef, ArraySpec, Client as _, CompileOptions, DType, ExecuteOptions, HostBuffer,
    HostBufferSemantics, HostCall, HostFunctionProgram, Mesh, Shape, Sharding, StableHloProgram,
    Status, UserContext,
};

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let client = client::Client::from_environment()?;
    let devices = client.devices().clone();
    let process = client.process_index();
    let last = client.process_count() - 1;
    let mesh = Mesh::new([("x", devices.len())])?;
    let rows = Sharding::tiled(devices.clone(), mesh.tiling(&[&["x"]])?)?;
    let spec = ArraySpec { dtype: DType::F32, shape: Shape::new([devices.len()])?, sharding: rows };
    let numbers: Vec<f32> = (0..devices.len()).map(|number| number as f32).collect();
    let buffer = HostBuffer::from_slice(&numbers, DType::F32, spec.shape.clone())?;
    let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
    let array = client.make_array_from_host_buffer(&buffer, &spec.sharding, semantics)?;

    // A step that fails on the last process, and nowhere else.
    let step = HostFunctionProgram {
        name: "read_input".to_owned(),
        parameters: vec![spec.clone()],
        outputs: vec![spec],
        function: Arc::new(move |call: &HostCall| {
            if call.device.process_index() == last {
                return Err(Status::not_found("the file is not there"));
            }
            Ok(call.arguments.clone())
        }),
    };
    let step = client.compiler().compile_and_load(&step, &CompileOptions::new(devices.clone()));
    let step = step.wait()?;
    let result = {
        let _scope = UserContext::new("reading the input").enter();
        step.execute(&[array], &ExecuteOptions::default())?
    };
    let output = result.outputs.first().context("it has one output")?;

    // The launch returned at once; what depends on it fails with the first cause, on all processes.
    let gathered = client.resharded(output, Sharding::replicated(devices)?)?;
    let failure = gathered.ready().wait_timeout(PATIENCE).err().context("the step fails")?;
    let asked_for = failure.user_context().map(UserContext::description).unwrap_or_default();
    println!("process {process}: {:?} {asked_for:?}: {failure}", failure.code());
    ensure!(failure.message().contains("the file is not there"));

    // The client goes on. What needs nobody else never notices.
    let own =
        client.make_device_list(&[client.addressable_devices().get(0).context("one")?.id()])?;
    let text = "func.func @main(%a: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.add %a, %a : tensor<f32>
        return %0 : tensor<f32>
    }";
    let program = StableHloProgram::Text(text.to_owned());
    let program = client.compiler().compile_and_load(&program, &CompileOptions::new(own.clone()));
    let program = program.wait()?;
    let four = HostBuffer::from_slice(&[4.0_f32], DType::F32, Shape::scalar())?;
    let sharding = Sharding::single_device(own)?;
    let four: ArrayRef = client.make_array_from_host_buffer(&four, &sharding, semantics)?;
    let eight = program.execute(&[four], &ExecuteOptions::default())?.outputs;
    let eight = client_read(eight.first().context("it has one output")?)?;
    println!("process {process}: devices of its own still compute: {eight}");
    Ok(())
}

fn client_read(array: &ArrayRef) -> anyhow::Result<f32> {
    let read = array.copy_to_host_buffer(lockstep::ifrt::ArrayCopySemantics::AlwaysCopy)?;
    let numbers: Vec<f32> = read.wait_timeout(PATIENCE)?.to_vec()?;
    numbers.first().copied().context("it has one element")
}
