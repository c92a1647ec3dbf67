//! One launch on all of this process's devices.

use std::ffi::c_void;
use std::sync::Arc;

use lockstep::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, ExecuteOptions, Future, LoadedExecutable, Result,
    SingleDeviceShardSemantics, Status,
};
use smallvec::SmallVec;

use crate::abi::caller::{Caller, Items};
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
    let status = match loaded.output_places() {
        Some(places) => on_one_device(args, caller, &loaded, places, &options)?,
        None => on_several_devices(args, caller, &loaded, &options)?,
    };
    if !args.device_complete_events.is_null() {
        let mut events: Items<*mut c_void> = Items::new();
        for _ in 0..num_devices {
            events.push(event::of(status.clone()));
        }
        caller.fill(args.device_complete_events, &events, "device_complete_events")?;
    }
    Ok(())
}

/// A launch on one device, whose buffers are arrays; returns its end.
fn on_one_device(
    args: &ffi::PJRT_LoadedExecutable_Execute_Args,
    caller: &Caller,
    loaded: &Loaded,
    (device, memories): (*mut c_void, &[*mut c_void]),
    options: &ExecuteOptions,
) -> Result<Future<()>> {
    let executable = loaded.executable()?.ifrt();
    let list: *mut c_void = caller.item(args.argument_lists, "argument_lists")?;
    let mut arguments: SmallVec<[ArrayRef; 4]> = SmallVec::new();
    for buffer in caller.each(list, args.num_args, "argument_lists")? {
        arguments.push(handle::with(buffer, |buffer: &Arc<Buffer>| Arc::clone(buffer.array()))?);
    }
    let output_list = caller.item(args.output_lists, "output_lists")?;
    let result = executable.execute(&arguments, options)?;
    drop(arguments);
    let mut outputs: Items<*mut c_void> = Items::new();
    for (output, &memory) in result.outputs.into_iter().zip(memories) {
        let buffer = Buffer::at(loaded.client(), device, memory, output);
        outputs.push(handle::insert(Arc::new(buffer)));
    }
    caller.fill(output_list, &outputs, "output_lists")?;
    Ok(result.status)
}

/// A launch on several devices, whose arrays have a buffer on each; returns its end.
fn on_several_devices(
    args: &ffi::PJRT_LoadedExecutable_Execute_Args,
    caller: &Caller,
    loaded: &Loaded,
    options: &ExecuteOptions,
) -> Result<Future<()>> {
    let num_devices = loaded.addressable().len();
    let mut buffers = Vec::with_capacity(num_devices);
    for list in caller.each::<*mut c_void>(args.argument_lists, num_devices, "argument_lists")? {
        let list = caller.each(list, args.num_args, "argument_lists")?;
        buffers.push(list.map(handle::find).collect::<Result<Vec<Arc<Buffer>>>>()?);
    }
    let arguments = arguments(loaded, &buffers, options)?;
    let output_lists: Items<*mut c_void> =
        caller.items(args.output_lists, num_devices, "output_lists")?;
    let result = loaded.executable()?.ifrt().execute(&arguments, options)?;
    drop(arguments);
    let mut shards = vec![Vec::with_capacity(result.outputs.len()); num_devices];
    for output in result.outputs {
        let parts = output.disassemble_into_single_device_arrays(
            ArrayCopySemantics::DonateInput,
            SingleDeviceShardSemantics::AddressableShards,
        )?;
        for (shards, part) in shards.iter_mut().zip(parts) {
            shards.push(handle::insert(Arc::new(Buffer::new(loaded.client(), part)?)));
        }
    }
    for (list, shards) in output_lists.into_iter().zip(&shards) {
        caller.fill(list, shards, "output_lists")?;
    }
    Ok(result.status)
}

fn options(caller: &Caller, at: *mut c_void) -> Result<ExecuteOptions> {
    if at.is_null() {
        return Ok(ExecuteOptions::default());
    }
    let options: ffi::PJRT_ExecuteOptions = caller.structure(at, "options")?;
    if options.num_send_ops != 0 || options.num_recv_ops != 0 {
        return Err(Status::unimplemented("callbacks for send and recv"));
    }
    let mut own = ExecuteOptions::default();
    let kept = caller.each::<i64>(
        options.non_donatable_input_indices,
        options.num_non_donatable_input_indices,
        "non_donatable_input_indices",
    )?;
    for index in kept {
        let index = usize::try_from(index).map_err(|_| {
            Status::invalid_argument(format!("non_donatable_input_indices has {index}"))
        })?;
        own.non_donatable_input_indices.insert(index);
    }
    Ok(own)
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
