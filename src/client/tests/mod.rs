//! The client over a backend that runs a closure, without arithmetic in the way.

mod arrays;
mod jobs;
mod launches;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use lockstep_collectives::World;

use super::Client;
use crate::backend::{
    self, Backend, Buffer, CollectiveContext, CollectiveSite, DeviceMemory, LocalDevice, Reduction,
};
use crate::ifrt::{
    Array, ArrayCopySemantics, ArrayRef, ArraySpec, Client as _, Code, CompileOptions, DType,
    DeviceId, DeviceList, ExecuteOptions, HostBuffer, HostBufferSemantics, HostBufferShards,
    LoadedExecutable, MemoryKind, Mesh, Result, Shape, Sharding, ShardingSpec,
    SingleDeviceShardSemantics, StableHloProgram, Status,
};
use crate::stablehlo::{Module, TensorType, Type};

const DURING_CALL: HostBufferSemantics = HostBufferSemantics::ImmutableOnlyDuringCall;

/// What a program does on one device.
type Run =
    dyn Fn(LocalDevice, Vec<Buffer>, &dyn CollectiveContext) -> Result<Vec<Buffer>> + Send + Sync;

struct FakeBackend {
    devices: usize,
    run: Arc<Run>,
}

struct FakeExecutable {
    parameters: Vec<TensorType>,
    results: Vec<TensorType>,
    run: Arc<Run>,
}

struct FakeMemory(Vec<u8>);

impl DeviceMemory for FakeMemory {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn buffer(bytes: Vec<u8>) -> Buffer {
    Buffer::new(Arc::new(FakeMemory(bytes)))
}

impl Backend for FakeBackend {
    fn platform_name(&self) -> &'static str {
        "fake"
    }

    fn device_count(&self) -> usize {
        self.devices
    }

    fn buffer_from_host(
        &self,
        device: LocalDevice,
        ty: &TensorType,
        bytes: &[u8],
    ) -> Result<Buffer> {
        assert!(device.0 < self.devices);
        assert_eq!(bytes.len(), ty.size_bytes());
        Ok(buffer(bytes.to_vec()))
    }

    fn compile(&self, module: &Module) -> Result<Arc<dyn backend::Executable>> {
        let main = module.function("main").unwrap();
        let tensor = |ty: &Type| match ty {
            Type::Tensor(ty) => ty.clone(),
            other => panic!("{other}"),
        };
        Ok(Arc::new(FakeExecutable {
            parameters: main.params.iter().map(|param| tensor(main.ty(param.value))).collect(),
            results: main.results.iter().map(|result| tensor(&result.ty)).collect(),
            run: Arc::clone(&self.run),
        }))
    }
}

impl backend::Executable for FakeExecutable {
    fn parameter_types(&self) -> &[TensorType] {
        &self.parameters
    }

    fn result_types(&self) -> &[TensorType] {
        &self.results
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn execute(
        &self,
        device: LocalDevice,
        arguments: Vec<Buffer>,
        context: &dyn CollectiveContext,
    ) -> Result<Vec<Buffer>> {
        (self.run)(device, arguments, context)
    }
}

fn client(
    devices: u32,
    run: impl Fn(LocalDevice, Vec<Buffer>, &dyn CollectiveContext) -> Result<Vec<Buffer>>
    + Send
    + Sync
    + 'static,
) -> Arc<Client> {
    let backend = FakeBackend { devices: devices as usize, run: Arc::new(run) };
    Client::new(World::solo(devices), Arc::new(backend)).unwrap()
}

fn idle(devices: u32) -> Arc<Client> {
    client(devices, |_, arguments, _| Ok(arguments.into_iter().take(1).collect()))
}

fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}

fn tiled(devices: &DeviceList) -> Sharding {
    let mesh = Mesh::new([("x", devices.len())]).unwrap();
    Sharding::tiled(devices.clone(), mesh.tiling(&[&["x"]]).unwrap()).unwrap()
}

fn array(client: &Client, elements: &[u32], sharding: &Sharding) -> ArrayRef {
    let buffer = HostBuffer::from_slice(elements, DType::U32, shape(&[elements.len()])).unwrap();
    client.make_array_from_host_buffer(&buffer, sharding, DURING_CALL).unwrap()
}

fn elements(array: &dyn Array) -> Result<Vec<u32>> {
    array.copy_to_host_buffer(ArrayCopySemantics::ReuseInput)?.wait()?.to_vec()
}

/// Elements by shard.
fn shards(array: &dyn Array) -> Vec<Vec<u32>> {
    let parts = array.disassemble_into_single_device_arrays(
        ArrayCopySemantics::ReuseInput,
        SingleDeviceShardSemantics::AddressableShards,
    );
    parts.unwrap().iter().map(|part| elements(&**part).unwrap()).collect()
}

fn compile(client: &Client, text: &str) -> Result<Arc<dyn LoadedExecutable>> {
    let program = StableHloProgram::Text(text.to_owned());
    let options = CompileOptions::new(client.devices().clone());
    client.compiler().compile_and_load(&program, &options).wait()
}

/// `ui32[4]` on each of `devices`, to its sum over all of them.
fn all_reduce_program(devices: usize) -> String {
    let all: Vec<String> = (0..devices).map(|id| id.to_string()).collect();
    let all = all.join(", ");
    format!(
        "module @step attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
           sdy.mesh @mesh = <[\"x\"={devices}]>
           func.func public @main(%arg0: tensor<4xui32>) -> (tensor<4xui32>) {{
             %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{}}]>] out_shardings=[<@mesh, [{{}}]>] manual_axes={{\"x\"}} (%arg1: tensor<4xui32>) {{
               %1 = \"stablehlo.all_reduce\"(%arg1) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[{all}]]> : tensor<1x{devices}xi64>, use_global_device_ids}}> ({{
               ^bb0(%arg2: tensor<ui32>, %arg3: tensor<ui32>):
                 %2 = stablehlo.add %arg2, %arg3 : tensor<ui32>
                 stablehlo.return %2 : tensor<ui32>
               }}) : (tensor<4xui32>) -> tensor<4xui32>
               sdy.return %1 : tensor<4xui32>
             }} : (tensor<4xui32>) -> tensor<4xui32>
             return %0 : tensor<4xui32>
           }}
         }}"
    )
}

/// `ui32[4]` on each of four devices, summed over pairs of them and then over pairs of pairs.
fn two_groups_program() -> String {
    let sum = |input: &str, output: &str, groups: &str| {
        format!(
            "{output} = \"stablehlo.all_reduce\"({input}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<{groups}> : tensor<2x2xi64>, use_global_device_ids}}> ({{
               ^bb0(%arg2: tensor<ui32>, %arg3: tensor<ui32>):
                 %sum = stablehlo.add %arg2, %arg3 : tensor<ui32>
                 stablehlo.return %sum : tensor<ui32>
               }}) : (tensor<4xui32>) -> tensor<4xui32>"
        )
    };
    format!(
        "module @step attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
           sdy.mesh @mesh = <[\"x\"=4]>
           func.func public @main(%arg0: tensor<4xui32>) -> (tensor<4xui32>) {{
             %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{}}]>] out_shardings=[<@mesh, [{{}}]>] manual_axes={{\"x\"}} (%arg1: tensor<4xui32>) {{
               {}
               {}
               sdy.return %2 : tensor<4xui32>
             }} : (tensor<4xui32>) -> tensor<4xui32>
             return %0 : tensor<4xui32>
           }}
         }}",
        sum("%arg1", "%1", "[[0, 1], [2, 3]]"),
        sum("%1", "%2", "[[0, 2], [1, 3]]"),
    )
}

/// `ui32[4]` in, `ui32[4]` out, no collective. One entry of `parameters` each: its attributes.
fn map_program(devices: usize, parameters: &[&str]) -> String {
    let parameters: Vec<String> = parameters
        .iter()
        .enumerate()
        .map(|(i, attributes)| format!("%arg{i}: tensor<4xui32>{attributes}"))
        .collect();
    format!(
        "module @map attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
           func.func public @main({}) -> (tensor<4xui32>) {{
             return %arg0 : tensor<4xui32>
           }}
         }}",
        parameters.join(", ")
    )
}

fn sum(context: &dyn CollectiveContext, argument: &Buffer) -> Result<Buffer> {
    sum_over(context, argument, 0, &[])
}

/// The collective at `ordinal` of a program, within each of `groups`.
fn sum_over(
    context: &dyn CollectiveContext,
    argument: &Buffer,
    ordinal: u32,
    groups: &[[i64; 2]],
) -> Result<Buffer> {
    let groups: Vec<Vec<i64>> = groups.iter().map(|group| group.to_vec()).collect();
    let site = CollectiveSite {
        ordinal,
        iteration: 0,
        replica_groups: &groups,
        channel_id: 1,
        use_global_device_ids: true,
    };
    let mut output = vec![0; argument.bytes().len()];
    context.all_reduce(&site, Reduction::Sum, DType::U32, argument.bytes(), &mut output)?;
    Ok(buffer(output))
}

fn replicated(client: &Client) -> Sharding {
    Sharding::replicated(client.devices().clone()).unwrap()
}
