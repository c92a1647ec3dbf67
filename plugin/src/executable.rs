//! Executables, and what callers may ask of them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lockstep::client::to_hlo_sharding;
use lockstep::ifrt::{ArraySpec, Attribute, LoadedExecutable, ProgramCost, Result, Status};
use lockstep::stablehlo::xla;

use crate::abi::caller::{Caller, Plain, Shared};
use crate::abi::ffi;
use crate::attributes::NamedValues;
use crate::client::Client;
use crate::extension::layouts::MemoryLayouts;
use crate::{dtype, handle, serialized};

/// A compiled program, wherever it runs.
pub(crate) struct Executable {
    loaded: Arc<dyn LoadedExecutable>,
    num_partitions: usize,
    fingerprint: String,
    outputs: Outputs,
    parameter_kinds: Texts,
    parameter_shardings: Option<Texts>,
    output_shardings: Option<Texts>,
    parameter_layouts: OnceLock<MemoryLayouts>,
    output_layouts: OnceLock<MemoryLayouts>,
    /// What one device runs, and what that costs; both only when somebody asks.
    text: OnceLock<Result<String>>,
    costs: OnceLock<Result<NamedValues>>,
}

/// What a program gives back, shard by shard, in the form that callers read.
struct Outputs {
    types: Vec<u32>,
    /// Dimensions of all, one after the other.
    dims: Vec<i64>,
    ranks: Vec<usize>,
    kinds: Texts,
}

/// Byte strings, as a list of addresses and one of lengths.
pub(crate) struct Texts {
    addresses: Shared<Vec<*mut c_void>>,
    lengths: Vec<usize>,
    _texts: Vec<Vec<u8>>,
}

impl Texts {
    fn new(texts: Vec<Vec<u8>>) -> Self {
        Self {
            addresses: Shared(texts.iter().map(|text| text.as_ptr().cast_mut().cast()).collect()),
            lengths: texts.iter().map(Vec::len).collect(),
            _texts: texts,
        }
    }

    /// How many there are, where their addresses are, and where their lengths.
    pub(crate) fn parts(&self) -> (usize, *mut c_void, *mut c_void) {
        let (addresses, lengths) = (&self.addresses.0, &self.lengths);
        let address = addresses.as_ptr().cast_mut().cast();
        (lengths.len(), address, lengths.as_ptr().cast_mut().cast())
    }
}

/// An executable on its devices.
pub(crate) struct Loaded {
    executable: Arc<Executable>,
    client: Arc<Client>,
    assignment: xla::DeviceAssignment,
    /// Its devices that are this process's, in the order of the assignment, and their numbers there.
    addressable: Shared<Vec<*mut c_void>>,
    /// Where its outputs are, if it is on one device of this process alone: the device, and the
    /// memory of each.
    output_places: Option<Shared<(*mut c_void, Vec<*mut c_void>)>>,
    logical_ids: Vec<ffi::PJRT_LogicalDeviceIds>,
    deleted: AtomicBool,
}

impl Executable {
    fn new(loaded: Arc<dyn LoadedExecutable>) -> Result<Self> {
        let num_partitions = loaded.num_devices();
        let kinds = |specs: &[ArraySpec]| {
            let kind = |spec: &ArraySpec| spec.sharding.memory_kind().name().as_bytes().to_vec();
            Texts::new(specs.iter().map(kind).collect())
        };
        let shardings = |specs: &[ArraySpec]| -> Result<Option<Texts>> {
            // A program for one device has none; of no outputs, JAX expects none either.
            if num_partitions == 1 || specs.is_empty() {
                return Ok(None);
            }
            let sharding = |spec: &ArraySpec| Ok(to_hlo_sharding(spec.sharding.spec())?.to_proto());
            specs.iter().map(sharding).collect::<Result<_>>().map(|all| Some(Texts::new(all)))
        };
        let specs = loaded.output_specs();
        let mut dims = Vec::new();
        let mut ranks = Vec::new();
        for spec in specs {
            let shard = spec.sharding.shard_shape(&spec.shape)?;
            ranks.push(shard.rank());
            dims.extend(shard.dims().iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)));
        }
        let outputs = Outputs {
            types: specs.iter().map(|spec| dtype::to_abi(spec.dtype)).collect(),
            dims,
            ranks,
            kinds: kinds(specs),
        };
        let parameters = loaded.parameter_specs();
        Ok(Self {
            num_partitions,
            fingerprint: format!("{:016x}", loaded.fingerprint()),
            outputs,
            parameter_kinds: kinds(parameters),
            parameter_shardings: shardings(parameters)?,
            output_shardings: shardings(specs)?,
            parameter_layouts: OnceLock::new(),
            output_layouts: OnceLock::new(),
            text: OnceLock::new(),
            costs: OnceLock::new(),
            loaded,
        })
    }

    /// What it is to the runtime.
    pub(crate) fn ifrt(&self) -> &dyn LoadedExecutable {
        &*self.loaded
    }

    /// How parameters are spread; `None` for a program on one device.
    pub(crate) fn parameter_shardings(&self) -> Option<&Texts> {
        self.parameter_shardings.as_ref()
    }

    /// How outputs are spread; `None` for a program on one device.
    pub(crate) fn output_shardings(&self) -> Option<&Texts> {
        self.output_shardings.as_ref()
    }

    /// In which order the elements of parameters are.
    pub(crate) fn parameter_layouts(&self) -> &MemoryLayouts {
        let layouts = || MemoryLayouts::new(self.loaded.parameter_layouts());
        self.parameter_layouts.get_or_init(layouts)
    }

    /// In which order the elements of outputs are.
    pub(crate) fn output_layouts(&self) -> &MemoryLayouts {
        self.output_layouts.get_or_init(|| MemoryLayouts::new(self.loaded.output_layouts()))
    }
}

impl Loaded {
    pub(crate) fn new(
        client: &Arc<Client>,
        executable: Arc<dyn LoadedExecutable>,
        assignment: xla::DeviceAssignment,
    ) -> Result<Self> {
        let mut output_places = None;
        if let [device] = executable.devices().iter().as_slice()
            && device.is_addressable()
        {
            let (handle, device) = client.device(device.id())?;
            let memory = |spec: &ArraySpec| device.memory(spec.sharding.memory_kind());
            let memories = executable.output_specs().iter().map(memory).collect();
            output_places = Some(Shared((handle, memories)));
        }
        let (mut addressable, mut logical_ids) = (Vec::new(), Vec::new());
        for (partition, device) in (0..).zip(executable.devices()) {
            if device.is_addressable() {
                addressable.push(client.device(device.id())?.0);
                logical_ids.push(ffi::PJRT_LogicalDeviceIds { replica: 0, partition });
            }
        }
        Ok(Self {
            executable: Arc::new(Executable::new(executable)?),
            client: Arc::clone(client),
            assignment,
            addressable: Shared(addressable),
            output_places,
            logical_ids,
            deleted: AtomicBool::new(false),
        })
    }

    /// The client whose devices it is on.
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// The handles of its devices in this process.
    pub(crate) fn addressable(&self) -> &[*mut c_void] {
        &self.addressable.0
    }

    /// The handle of its device, if it has no other, and of the memory of each output.
    pub(crate) fn output_places(&self) -> Option<(*mut c_void, &[*mut c_void])> {
        self.output_places.as_ref().map(|Shared((device, memories))| (*device, &memories[..]))
    }

    /// The executable, if it was not deleted.
    ///
    /// # Errors
    /// `InvalidArgument` when it was.
    pub(crate) fn executable(&self) -> Result<&Executable> {
        if self.deleted.load(Ordering::Acquire) {
            let name = self.executable.loaded.name();
            return Err(Status::invalid_argument(format!("the executable {name} was deleted")));
        }
        Ok(&self.executable)
    }
}

/// `PJRT_LoadedExecutable_GetExecutable`.
pub(crate) fn unloaded(
    args: &mut ffi::PJRT_LoadedExecutable_GetExecutable_Args,
    _: &Caller,
) -> Result<()> {
    let loaded = handle::find::<Loaded>(args.loaded_executable)?;
    args.executable = handle::insert(Arc::clone(&loaded.executable));
    Ok(())
}

/// `PJRT_LoadedExecutable_AddressableDevices`.
pub(crate) fn addressable_devices(
    args: &mut ffi::PJRT_LoadedExecutable_AddressableDevices_Args,
    _: &Caller,
) -> Result<()> {
    let loaded = handle::find::<Loaded>(args.executable)?;
    let devices = loaded.addressable();
    (args.addressable_devices, args.num_addressable_devices) =
        (devices.as_ptr().cast_mut().cast(), devices.len());
    Ok(())
}

/// `PJRT_LoadedExecutable_AddressableDeviceLogicalIds`.
pub(crate) fn addressable_ids(
    args: &mut ffi::PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args,
    _: &Caller,
) -> Result<()> {
    let loaded = handle::find::<Loaded>(args.executable)?;
    let ids = &loaded.logical_ids;
    (args.addressable_device_logical_ids, args.num_addressable_device_logical_ids) =
        (ids.as_ptr().cast_mut().cast(), ids.len());
    Ok(())
}

/// `PJRT_LoadedExecutable_GetDeviceAssignment`.
pub(crate) fn device_assignment(
    args: &mut ffi::PJRT_LoadedExecutable_GetDeviceAssignment_Args,
    _: &Caller,
) -> Result<()> {
    let loaded = handle::find::<Loaded>(args.executable)?;
    (
        args.serialized_bytes,
        args.serialized_bytes_size,
        args.serialized_device_assignment,
        args.serialized_device_assignment_deleter,
    ) = serialized::lend(loaded.assignment.to_proto());
    Ok(())
}

/// `PJRT_LoadedExecutable_Fingerprint`.
pub(crate) fn loaded_fingerprint(
    args: &mut ffi::PJRT_LoadedExecutable_Fingerprint_Args,
    _: &Caller,
) -> Result<()> {
    let loaded = handle::find::<Loaded>(args.executable)?;
    let text = &loaded.executable.fingerprint;
    (args.executable_fingerprint, args.executable_fingerprint_size) =
        (text.as_ptr().cast_mut().cast(), text.len());
    Ok(())
}

/// `PJRT_LoadedExecutable_Delete`: it cannot be launched any more.
pub(crate) fn delete(args: &mut ffi::PJRT_LoadedExecutable_Delete_Args, _: &Caller) -> Result<()> {
    handle::find::<Loaded>(args.executable)?.deleted.store(true, Ordering::Release);
    Ok(())
}

/// `PJRT_LoadedExecutable_IsDeleted`.
pub(crate) fn is_deleted(
    args: &mut ffi::PJRT_LoadedExecutable_IsDeleted_Args,
    _: &Caller,
) -> Result<()> {
    args.is_deleted =
        handle::find::<Loaded>(args.executable)?.deleted.load(Ordering::Acquire).into();
    Ok(())
}

/// `PJRT_LoadedExecutable_Destroy`.
pub(crate) fn destroy_loaded(
    args: &mut ffi::PJRT_LoadedExecutable_Destroy_Args,
    _: &Caller,
) -> Result<()> {
    handle::remove::<Loaded>(args.executable).map(|_| ())
}

/// `PJRT_Executable_Destroy`.
pub(crate) fn destroy(args: &mut ffi::PJRT_Executable_Destroy_Args, _: &Caller) -> Result<()> {
    handle::remove::<Executable>(args.executable).map(|_| ())
}

/// `PJRT_Executable_Name`.
pub(crate) fn name(args: &mut ffi::PJRT_Executable_Name_Args, _: &Caller) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    let name = executable.loaded.name();
    (args.executable_name, args.executable_name_size) =
        (name.as_ptr().cast_mut().cast(), name.len());
    Ok(())
}

/// `PJRT_Executable_NumReplicas`.
pub(crate) fn num_replicas(
    args: &mut ffi::PJRT_Executable_NumReplicas_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Executable>(args.executable)?;
    args.num_replicas = 1;
    Ok(())
}

/// `PJRT_Executable_NumPartitions`.
pub(crate) fn num_partitions(
    args: &mut ffi::PJRT_Executable_NumPartitions_Args,
    _: &Caller,
) -> Result<()> {
    args.num_partitions = handle::find::<Executable>(args.executable)?.num_partitions;
    Ok(())
}

/// `PJRT_Executable_NumOutputs`.
pub(crate) fn num_outputs(
    args: &mut ffi::PJRT_Executable_NumOutputs_Args,
    _: &Caller,
) -> Result<()> {
    args.num_outputs = handle::find::<Executable>(args.executable)?.outputs.types.len();
    Ok(())
}

/// `PJRT_Executable_OutputElementTypes`.
pub(crate) fn output_types(
    args: &mut ffi::PJRT_Executable_OutputElementTypes_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    let types = &executable.outputs.types;
    (args.output_types, args.num_output_types) = (types.as_ptr().cast_mut().cast(), types.len());
    Ok(())
}

/// `PJRT_Executable_OutputDimensions`: of shards.
pub(crate) fn output_dimensions(
    args: &mut ffi::PJRT_Executable_OutputDimensions_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    let Outputs { dims, ranks, .. } = &executable.outputs;
    args.num_outputs = ranks.len();
    args.dims = dims.as_ptr().cast_mut().cast();
    args.dim_sizes = ranks.as_ptr().cast_mut().cast();
    Ok(())
}

/// `PJRT_Executable_OutputMemoryKinds`.
pub(crate) fn output_memory_kinds(
    args: &mut ffi::PJRT_Executable_OutputMemoryKinds_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    (args.num_outputs, args.memory_kinds, args.memory_kind_sizes) =
        executable.outputs.kinds.parts();
    Ok(())
}

/// `PJRT_Executable_ParameterMemoryKinds`.
pub(crate) fn parameter_memory_kinds(
    args: &mut ffi::PJRT_Executable_ParameterMemoryKinds_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    (args.num_parameters, args.memory_kinds, args.memory_kind_sizes) =
        executable.parameter_kinds.parts();
    Ok(())
}

/// `PJRT_Executable_SizeOfGeneratedCodeInBytes`: no code is generated.
pub(crate) fn code_size(
    args: &mut ffi::PJRT_Executable_SizeOfGeneratedCodeInBytes_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Executable>(args.executable)?;
    args.size_in_bytes = 0;
    Ok(())
}

/// `PJRT_Executable_Fingerprint`.
pub(crate) fn fingerprint(
    args: &mut ffi::PJRT_Executable_Fingerprint_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    let text = &executable.fingerprint;
    (args.executable_fingerprint, args.executable_fingerprint_size) =
        (text.as_ptr().cast_mut().cast(), text.len());
    Ok(())
}

/// `PJRT_Executable_GetCompiledMemoryStats`: of the device that needs most.
pub(crate) fn memory_statistics(
    args: &mut ffi::PJRT_Executable_GetCompiledMemoryStats_Args,
    _: &Caller,
) -> Result<()> {
    let statistics = handle::find::<Executable>(args.executable)?.loaded.memory_statistics();
    let bytes = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    let temporary = statistics.temporary_bytes.unwrap_or(0);
    let total = statistics.argument_bytes + statistics.output_bytes + temporary;
    // The caller's memory holds anything before: every field is written.
    *args = ffi::PJRT_Executable_GetCompiledMemoryStats_Args {
        struct_size: args.struct_size,
        extension_start: args.extension_start,
        executable: args.executable,
        ..Plain::ZERO
    };
    args.argument_size_in_bytes = bytes(statistics.argument_bytes);
    args.output_size_in_bytes = bytes(statistics.output_bytes);
    args.alias_size_in_bytes = bytes(statistics.donated_bytes);
    args.temp_size_in_bytes = bytes(temporary);
    args.peak_memory_in_bytes = bytes(total);
    args.total_size_in_bytes = bytes(total);
    Ok(())
}

/// `PJRT_Executable_GetCostAnalysis`: by XLA's names; what is not counted is not there.
pub(crate) fn cost_analysis(
    args: &mut ffi::PJRT_Executable_GetCostAnalysis_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    let costs = executable.costs.get_or_init(|| {
        let ProgramCost { flops, bytes_accessed } = executable.loaded.cost()?;
        #[expect(clippy::cast_precision_loss, reason = "the interface has no wider numbers")]
        let value = |count: u64| Attribute::Float(count as f32);
        Ok(NamedValues::new([
            ("flops".to_owned(), value(flops)),
            ("bytes accessed".to_owned(), value(bytes_accessed)),
        ]))
    });
    (args.properties, args.num_properties) = costs.as_ref().map_err(Status::clone)?.parts();
    Ok(())
}

/// `PJRT_Executable_OptimizedProgram`: what one device runs, as text; its size where no memory is
/// given.
pub(crate) fn optimized_program(
    args: &mut ffi::PJRT_Executable_OptimizedProgram_Args,
    caller: &Caller,
) -> Result<()> {
    const FORMAT: &str = "mlir";
    let executable = handle::find::<Executable>(args.executable)?;
    let mut program: ffi::PJRT_Program = caller.structure(args.program, "program")?;
    let text = executable.text.get_or_init(|| executable.loaded.program_text());
    let code = text.as_ref().map_err(Status::clone)?.as_bytes();
    if !program.code.is_null() {
        if program.code_size < code.len() {
            return Err(Status::invalid_argument(format!(
                "the program has {} bytes, code_size is {}",
                code.len(),
                program.code_size
            )));
        }
        caller.fill(program.code, code, "code")?;
    }
    program.code_size = code.len();
    (program.format, program.format_size) = (FORMAT.as_ptr().cast_mut().cast(), FORMAT.len());
    caller.write_structure(args.program, &program);
    Ok(())
}

/// `PJRT_Executable_Serialize`.
pub(crate) fn serialize(args: &mut ffi::PJRT_Executable_Serialize_Args, _: &Caller) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    (
        args.serialized_bytes,
        args.serialized_bytes_size,
        args.serialized_executable,
        args.serialized_executable_deleter,
    ) = serialized::lend(executable.loaded.serialize()?);
    Ok(())
}
