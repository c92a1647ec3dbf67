//! Functions of the host as executables: run next to the data, on the stream of each device.

use std::sync::Arc;

use super::Core;
use super::array::BufferBytes;
use super::compile::{Agreement, Unloaded};
use super::executable::Executable;
use crate::backend::{self, Backend, Buffer, CollectiveContext, LocalDevice};
use crate::ifrt::{
    ArraySpec, CompileOptions, DeviceList, HostBuffer, HostBytes, HostCall, HostFunction,
    HostFunctionProgram, Result, Shape, SingleDeviceShardSemantics, Status, fingerprint,
};
use crate::stablehlo::TensorType;

/// The function as a backend's executable.
struct HostExecutable {
    backend: Arc<dyn Backend>,
    name: String,
    devices: DeviceList,
    function: Arc<HostFunction>,
    parameters: Vec<Shards>,
    outputs: Vec<Shards>,
    /// Of the padded shards.
    parameter_types: Vec<TensorType>,
    output_types: Vec<TensorType>,
}

/// An array, and the true shape of each of its shards.
struct Shards {
    spec: ArraySpec,
    shapes: Vec<Shape>,
}

impl Core {
    pub(super) fn compile_host_function(
        self: &Arc<Self>,
        program: &HostFunctionProgram,
        options: &CompileOptions,
    ) -> Result<Executable> {
        let HostFunctionProgram { name, parameters, outputs, function } = program;
        let devices = &options.devices;
        let shards = |specs: &[ArraySpec]| -> Result<Vec<Shards>> {
            let shards = |spec: &ArraySpec| {
                if spec.sharding.devices() != devices {
                    return Err(Status::invalid_argument(format!(
                        "{name} is compiled for {devices}, an array of it is {}",
                        spec.sharding
                    )));
                }
                let all = SingleDeviceShardSemantics::AllShards;
                let shapes = spec.sharding.shard_shapes(&spec.shape, all)?;
                Ok(Shards { spec: spec.clone(), shapes })
            };
            specs.iter().map(shards).collect()
        };
        let checked = shards(parameters).and_then(|inputs| Ok((inputs, shards(outputs)?)));
        let listing = || {
            let line = |what: &str, spec: &ArraySpec| {
                format!("{what} {} {}, {}", spec.dtype, spec.shape, spec.sharding)
            };
            let inputs = parameters.iter().map(|spec| line("takes", spec));
            let outputs = outputs.iter().map(|spec| line("makes", spec));
            let mut lines = vec![format!("host function {name}")];
            lines.extend(inputs.chain(outputs));
            lines.join("\n")
        };
        let version = env!("CARGO_PKG_VERSION");
        let fingerprint = fingerprint(listing().bytes().chain(version.bytes()));
        let agreement = Agreement {
            fingerprint: checked.as_ref().map(|_| fingerprint).map_err(Clone::clone),
            listing: &listing,
        };
        self.agree(&agreement, options)?;
        let (inputs, made) = checked?;
        let types = |shards: &[Shards]| -> Vec<TensorType> {
            let ty = |Shards { spec, shapes }: &Shards| {
                let padded = spec.sharding.shard_shape(&spec.shape).ok();
                let shape = padded.or_else(|| shapes.first().cloned());
                TensorType::new(spec.dtype, shape.unwrap_or_else(Shape::scalar))
            };
            shards.iter().map(ty).collect()
        };
        let executable = HostExecutable {
            backend: Arc::clone(&self.backend),
            name: name.clone(),
            devices: devices.clone(),
            function: Arc::clone(function),
            parameter_types: types(&inputs),
            output_types: types(&made),
            parameters: inputs,
            outputs: made,
        };
        self.load(Unloaded {
            name: name.clone(),
            fingerprint,
            devices: devices.clone(),
            num_partitions: devices.len(),
            parameters: parameters.clone(),
            outputs: outputs.clone(),
            donatable: Vec::new(),
            program: Arc::new(executable),
            source: None,
            host_callbacks: None,
        })
    }
}

impl backend::Executable for HostExecutable {
    fn parameter_types(&self) -> &[TensorType] {
        &self.parameter_types
    }

    fn result_types(&self) -> &[TensorType] {
        &self.output_types
    }

    /// What the function takes is its own.
    fn memory_bytes(&self) -> usize {
        0
    }

    fn execute(
        &self,
        device: LocalDevice,
        arguments: Vec<Buffer>,
        context: &dyn CollectiveContext,
    ) -> Result<Vec<Buffer>> {
        let shard = context.partition_id() as usize;
        let place = self.devices.get(shard).cloned();
        let place = place.ok_or_else(|| Status::internal("a device runs what is not its own"))?;
        let arguments = self.parameters.iter().zip(arguments).map(|(parameter, buffer)| {
            let bytes = HostBytes::Shared(Arc::new(BufferBytes(buffer)));
            HostBuffer::dense(bytes, parameter.spec.dtype, parameter.shape_of(shard)?)
        });
        let call = HostCall { device: place, shard, arguments: arguments.collect::<Result<_>>()? };
        let made = (self.function)(&call)?;
        if made.len() != self.outputs.len() {
            return Err(Status::invalid_argument(format!(
                "{} made {} outputs, promised {}",
                self.name,
                made.len(),
                self.outputs.len()
            )));
        }
        let buffers = self.outputs.iter().zip(made).enumerate().map(|(index, (output, made))| {
            let shape = output.shape_of(shard)?;
            let dtype = output.spec.dtype;
            if made.dtype() != dtype || *made.shape() != shape {
                return Err(Status::invalid_argument(format!(
                    "output {index} of {} is {dtype} {shape} in shard {shard}, it made {} {}",
                    self.name,
                    made.dtype(),
                    made.shape()
                )));
            }
            let ty = TensorType::new(dtype, shape);
            super::host::device_buffer(&*self.backend, device, &ty, &made)
        });
        buffers.collect()
    }
}

impl Shards {
    fn shape_of(&self, shard: usize) -> Result<Shape> {
        let shape = self.shapes.get(shard).cloned();
        shape.ok_or_else(|| Status::internal(format!("{:?} has no shard {shard}", self.spec)))
    }
}
