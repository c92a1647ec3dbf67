//! One launch on all of this process's devices.

use std::ffi::c_void;
use std::sync::Arc;

use lockstep::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, ExecuteOptions, LoadedExecutable, Result,
    SingleDeviceShardSemantics, Status,
};

use crate::abi::caller::Caller;
use crate::abi::ffi;
use crate::buffer::Buffer;
use crate::executable::Loaded;
use crate::{event, handle};

/// `PJRT_LoadedExecutable_Execute`: returns at once; outputs and events arrive later.
pub(crate) fn execute(
    args: &mut ffi::PJRT_LoadedExecutable_Execute_Args,
    caller: &Caller,
) -> Result<()> {
    let loaded = handle::find::<Loaded>(args.executable)?;
    let executable = loaded.executable()?.ifrt();
    let options = options(caller, args.options)?;
    let num_devices = loaded.addressable().len();
    if args.num_devices != num_devices {
        return Err(Status::invalid_argument(format!(
            "{} runs on {num_devices} devices of this process, arguments are for {}",
            executable.name(),
            args.num_devices
        )));
    }
    if !args.execute_device.is_null() && loaded.addressable() != [args.execute_device] {
        return Err(Status::unimplemented(
            "launches on another device than that of the compilation",
        ));
    }
    let lists: Vec<*mut c_void> =
        caller.items(args.argument_lists, num_devices, "argument_lists")?;
    let mut buffers = Vec::with_capacity(num_devices);
    for list in lists {
        let list: Vec<*mut c_void> = caller.items(list, args.num_args, "argument_lists")?;
        buffers.push(list.into_iter().map(handle::find).collect::<Result<Vec<Arc<Buffer>>>>()?);
    }
    let arguments = arguments(&loaded, &buffers, &options)?;
    let outputs: Vec<*mut c_void> = caller.items(args.output_lists, num_devices, "output_lists")?;
    let result = executable.execute(&arguments, &options)?;
    drop(arguments);

    let mut shards = vec![Vec::with_capacity(result.outputs.len()); num_devices];
    for output in result.outputs {
        for (shards, part) in shards.iter_mut().zip(parts(output, executable.num_devices())?) {
            shards.push(handle::insert(Arc::new(Buffer::new(loaded.client(), part)?)));
        }
    }
    for (list, shards) in outputs.into_iter().zip(&shards) {
        caller.fill(list, shards, "output_lists")?;
    }
    if !args.device_complete_events.is_null() {
        let events: Vec<*mut c_void> =
            (0..num_devices).map(|_| event::of(result.status.clone())).collect();
        caller.fill(args.device_complete_events, &events, "device_complete_events")?;
    }
    Ok(())
}

fn options(caller: &Caller, at: *mut c_void) -> Result<ExecuteOptions> {
    if at.is_null() {
        return Ok(ExecuteOptions::default());
    }
    let options: ffi::PJRT_ExecuteOptions = caller.structure(at, "options")?;
    if options.num_send_ops != 0 || options.num_recv_ops != 0 {
        return Err(Status::unimplemented("callbacks for send and recv"));
    }
    let kept: Vec<i64> = caller.items(
        options.non_donatable_input_indices,
        options.num_non_donatable_input_indices,
        "non_donatable_input_indices",
    )?;
    let index = |&index: &i64| {
        usize::try_from(index).map_err(|_| {
            Status::invalid_argument(format!("non_donatable_input_indices has {index}"))
        })
    };
    Ok(ExecuteOptions {
        non_donatable_input_indices: kept.iter().map(index).collect::<Result<_>>()?,
        ..ExecuteOptions::default()
    })
}

/// The arguments as arrays over all devices of the executable, of the buffers of each.
fn arguments(
    loaded: &Loaded,
    buffers: &[Vec<Arc<Buffer>>],
    options: &ExecuteOptions,
) -> Result<Vec<ArrayRef>> {
    let executable = loaded.executable()?.ifrt();
    let specs = executable.parameter_specs();
    let count = buffers.first().map_or(0, Vec::len);
    if count != specs.len() {
        return Err(Status::invalid_argument(format!(
            "{} takes {} arguments, got {count}",
            executable.name(),
            specs.len()
        )));
    }
    if executable.num_devices() == 1 {
        // A buffer is an array on one device.
        let own = buffers.iter().flatten().map(|buffer| Arc::clone(buffer.array()));
        return Ok(own.collect());
    }
    let assembled = specs.iter().enumerate().map(|(index, spec)| {
        let parts = buffers.iter().filter_map(|buffers| buffers.get(index));
        let parts: Vec<ArrayRef> = parts.map(|buffer| Arc::clone(buffer.array())).collect();
        assemble(loaded, spec, &parts)
            .map_err(|status| status.context(format!("argument {index} of {}", executable.name())))
    });
    let assembled = assembled.collect::<Result<Vec<_>>>()?;
    donate(executable, buffers, options)?;
    Ok(assembled)
}

fn assemble(loaded: &Loaded, spec: &ArraySpec, parts: &[ArrayRef]) -> Result<ArrayRef> {
    loaded.client().runtime().assemble_array_from_single_device_arrays(
        spec,
        parts,
        ArrayCopySemantics::ReuseInput,
        SingleDeviceShardSemantics::AddressableShards,
    )
}

/// Takes the buffers that the launch takes over from their owners, so that the arrays assembled of
/// them are the only ones that have them.
fn donate(
    executable: &dyn LoadedExecutable,
    buffers: &[Vec<Arc<Buffer>>],
    options: &ExecuteOptions,
) -> Result<()> {
    let kept = &options.non_donatable_input_indices;
    let donated = executable.donatable_input_indices().iter().filter(|index| !kept.contains(index));
    let donated: Vec<usize> = donated.copied().collect();
    for buffers in buffers {
        for &index in &donated {
            let Some(donor) = buffers.get(index) else { continue };
            let mut others = buffers.iter().enumerate().filter(|(other, _)| *other != index);
            if let Some((other, _)) = others.find(|(_, buffer)| Arc::ptr_eq(buffer, donor)) {
                return Err(Status::invalid_argument(format!(
                    "arguments {index} and {other} of {} are one buffer, and argument {index} is \
                     donated",
                    executable.name()
                )));
            }
        }
    }
    for buffer in buffers.iter().flat_map(|buffers| donated.iter().filter_map(|&i| buffers.get(i)))
    {
        // The memory lives on in the assembled array.
        drop(buffer.array().delete());
    }
    Ok(())
}

/// The addressable shards of an output.
fn parts(output: ArrayRef, num_devices: usize) -> Result<Vec<ArrayRef>> {
    if num_devices == 1 {
        return Ok(vec![output]);
    }
    output.disassemble_into_single_device_arrays(
        ArrayCopySemantics::DonateInput,
        SingleDeviceShardSemantics::AddressableShards,
    )
}
