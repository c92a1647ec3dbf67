//! From a program and `CompileOptionsProto` to a loaded executable.

use std::ffi::c_void;
use std::sync::Arc;

use lockstep::ifrt::{
    Code, CompileOptions, Device, DeviceId, DeviceList, LoadedExecutable, Result, StableHloProgram,
    Status,
};
use lockstep::stablehlo::xla;

use crate::abi::caller::Caller;
use crate::abi::{ffi, host_callback};
use crate::client::{self, Client};
use crate::executable::Loaded;
use crate::handle;

/// What bytecode of MLIR starts with.
const BYTECODE: &[u8] = b"ML\xefR";

/// `PJRT_Client_Compile`.
pub(crate) fn compile(args: &mut ffi::PJRT_Client_Compile_Args, caller: &Caller) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let program: ffi::PJRT_Program = caller.structure(args.program, "program")?;
    let format = caller.text(program.format, program.format_size, "format")?;
    if format != "mlir" {
        return Err(Status::unimplemented(format!(
            "programs of the format {format:?}; there is \"mlir\": StableHLO, as text or bytecode"
        )));
    }
    let code = caller.bytes(program.code, program.code_size, "code")?;
    let options = options(caller, args.compile_options, args.compile_options_size)?;
    let assignment = assignment(&client, &options)?;
    let devices = devices(&client, &assignment)?;
    let compiled = program_of(code).and_then(|program| {
        let mut options = CompileOptions::new(devices);
        options.host_callbacks = host_callback::registered();
        client.runtime().compiler().compile_and_load(&program, &options).wait()
    })?;
    args.executable = loaded(&client, compiled, assignment)?;
    Ok(())
}

/// `PJRT_Executable_DeserializeAndLoad`.
pub(crate) fn deserialize_and_load(
    args: &mut ffi::PJRT_Executable_DeserializeAndLoad_Args,
    caller: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let serialized = caller.bytes(
        args.serialized_executable,
        args.serialized_executable_size,
        "serialized_executable",
    )?;
    let overridden = match args.overridden_serialized_compile_options_size {
        0 => None,
        size => Some(options(caller, args.overridden_serialized_compile_options, size)?),
    };
    let assignment = match &overridden {
        Some(options) => Some(self::assignment(&client, options)?),
        None => None,
    };
    let devices = assignment.as_ref().map(|assignment| devices(&client, assignment)).transpose()?;
    let compiler = client.runtime().compiler();
    let executable = compiler.deserialize_and_load(serialized, devices.as_ref()).wait()?;
    let assignment = assignment.unwrap_or_else(|| {
        let ids = executable.devices().ids().map(|id| i64::from(id.0));
        xla::DeviceAssignment::of_partitions(ids.collect())
    });
    args.loaded_executable = loaded(&client, executable, assignment)?;
    Ok(())
}

fn loaded(
    client: &Arc<Client>,
    executable: Arc<dyn LoadedExecutable>,
    assignment: xla::DeviceAssignment,
) -> Result<*mut c_void> {
    Ok(handle::insert(Arc::new(Loaded::new(client, executable, assignment)?)))
}

fn options(caller: &Caller, at: *mut c_void, size: usize) -> Result<xla::CompileOptions> {
    let bytes = caller.bytes(at, size, "compile_options")?;
    xla::CompileOptions::from_proto(bytes)
        .map_err(|error| Status::wrap(Code::InvalidArgument, error))
}

/// The devices that are asked for; the first ones where none are.
fn assignment(client: &Client, options: &xla::CompileOptions) -> Result<xla::DeviceAssignment> {
    if options.num_replicas != 1 {
        return Err(Status::unimplemented(format!(
            "programs of {} replicas; spread one program over partitions instead",
            options.num_replicas
        )));
    }
    match &options.device_assignment {
        Some(assigned) => Ok(assigned.clone()),
        None => client::first_devices(client, options.num_partitions),
    }
}

fn devices(client: &Client, assignment: &xla::DeviceAssignment) -> Result<DeviceList> {
    let device = |partition| {
        let id = assignment.device(0, partition).and_then(|id| u32::try_from(id).ok());
        let id = id.ok_or_else(|| {
            Status::invalid_argument(format!("partition {partition} has no device that there is"))
        })?;
        Ok(client.device(DeviceId(id))?.1.ifrt().clone())
    };
    let devices: Vec<Device> =
        (0..assignment.num_partitions()).map(device).collect::<Result<_>>()?;
    Ok(DeviceList::new(devices))
}

fn program_of(code: &[u8]) -> Result<StableHloProgram> {
    if code.starts_with(BYTECODE) {
        return Ok(StableHloProgram::Bytecode(code.to_vec()));
    }
    let text = std::str::from_utf8(code).map_err(|_| {
        Status::invalid_argument("the program is neither bytecode of MLIR nor text in UTF-8")
    })?;
    Ok(StableHloProgram::Text(text.to_owned()))
}
