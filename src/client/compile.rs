//! From a program to an executable: read, verify, make local, agree, hand to the backend.

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lockstep_collectives::{CallRefusal, Group, Member, Session, SessionError};

use super::agreement::{Proposal, Record, Store};
use super::assignment::DeviceAssignment;
use super::collective::{Scope, Station, leads};
use super::executable::{Executable, LocalPart};
use super::launch::Statistics;
use super::serialized;
use super::{Client, Core};
use crate::backend;
use crate::ifrt::{
    ArraySpec, Code, CompileOptions, Compiler, Device, DeviceList, Future, HostCallbacks,
    HostFunctionProgram, LoadedExecutable, MemoryKind, Mesh, MeshAxis, Program, Result,
    ShardingSpec, StableHloProgram, Status, UnreducedSharding, fingerprint,
};
use crate::spmd::{self, Localized};
use crate::stablehlo::{self, Function, Module, TensorType, op};

impl Compiler for Client {
    /// Compiles on the calling thread: the future is resolved.
    fn compile_and_load(
        &self,
        program: &dyn Program,
        options: &CompileOptions,
    ) -> Future<Arc<dyn LoadedExecutable>> {
        let kind = program.type_name();
        let _span = tracing::debug_span!("compile_and_load", kind).entered();
        let executable = self.core.compile(program, options);
        Future::ready(
            executable.map(|executable| -> Arc<dyn LoadedExecutable> { Arc::new(executable) }),
        )
    }

    /// As [`Compiler::compile_and_load`].
    fn deserialize_and_load(
        &self,
        serialized: &[u8],
        devices: Option<&DeviceList>,
    ) -> Future<Arc<dyn LoadedExecutable>> {
        let _span = tracing::debug_span!("deserialize_and_load").entered();
        let executable = self.core.deserialize(serialized, devices);
        Future::ready(
            executable.map(|executable| -> Arc<dyn LoadedExecutable> { Arc::new(executable) }),
        )
    }
}

/// An executable that is compiled, and not on its devices yet.
pub(super) struct Unloaded {
    pub(super) name: String,
    pub(super) fingerprint: u64,
    pub(super) devices: DeviceList,
    pub(super) num_partitions: usize,
    pub(super) parameters: Vec<ArraySpec>,
    pub(super) outputs: Vec<ArraySpec>,
    pub(super) donatable: Vec<usize>,
    pub(super) program: Arc<dyn backend::Executable>,
    /// See [`Executable::source`].
    pub(super) source: Option<(StableHloProgram, Module)>,
    pub(super) host_callbacks: Option<HostCallbacks>,
}

/// What processes compare of a compilation.
pub(super) struct Agreement<'a> {
    /// Of the program, its devices and the runtime, or why there is none.
    pub(super) fingerprint: Result<u64>,
    /// The program line by line.
    pub(super) listing: &'a dyn Fn() -> String,
}

impl Core {
    fn compile(
        self: &Arc<Self>,
        program: &dyn Program,
        options: &CompileOptions,
    ) -> Result<Executable> {
        let devices = &options.devices;
        self.require_own(devices)?;
        require_distinct(devices)?;
        let any: &dyn Any = program;
        if let Some(program) = any.downcast_ref::<HostFunctionProgram>() {
            return self.compile_host_function(program, options);
        }
        let prepared = Prepared::new(program, devices);
        let listing = || match &prepared {
            Ok(prepared) => prepared.global.listing().join("\n"),
            Err(_) => String::new(),
        };
        let fingerprint = prepared.as_ref().map(|prepared| prepared.fingerprint);
        let fingerprint = fingerprint.map_err(Clone::clone);
        self.agree(&Agreement { fingerprint, listing: &listing }, options)?;
        let Prepared { global, local, parameters, outputs, fingerprint } = prepared?;
        let main = main(&global)?;
        let is_donated = |&index: &usize| {
            main.params.get(index).is_some_and(|p| p.donated || p.aliases_output.is_some())
        };
        let source = any.downcast_ref::<StableHloProgram>().cloned();
        self.load(Unloaded {
            name: name(&global).to_owned(),
            fingerprint,
            devices: devices.clone(),
            num_partitions: local.num_partitions,
            donatable: (0..parameters.len()).filter(is_donated).collect(),
            parameters,
            outputs,
            program: self.backend.compile(&local.module)?,
            source: source.map(|source| (source, local.module)),
            host_callbacks: options.host_callbacks.clone(),
        })
    }

    fn deserialize(
        self: &Arc<Self>,
        serialized: &[u8],
        devices: Option<&DeviceList>,
    ) -> Result<Executable> {
        let serialized = serialized::decode(self.backend.platform_name(), serialized)?;
        let own = match devices {
            Some(devices) => devices.clone(),
            None => {
                let device = |id: &u32| {
                    let found = self.devices.iter().find(|device| device.id().0 == *id).cloned();
                    found.ok_or_else(|| {
                        Status::failed_precondition(format!(
                            "the executable was compiled for device {id}, this client has {}: \
                             name the devices to load it on",
                            self.devices
                        ))
                    })
                };
                let found: Vec<Device> =
                    serialized.devices.iter().map(device).collect::<Result<_>>()?;
                DeviceList::new(found)
            }
        };
        let same_ids = own.ids().map(|id| id.0).eq(serialized.devices.iter().copied());
        let executable = self.compile(&serialized.program, &CompileOptions::new(own))?;
        if same_ids && executable.fingerprint != serialized.fingerprint {
            return Err(Status::data_loss(format!(
                "the executable was {:016x} and is loaded as {:016x}",
                serialized.fingerprint, executable.fingerprint
            )));
        }
        Ok(executable)
    }

    /// Puts an executable on this process's devices.
    pub(super) fn load(self: &Arc<Self>, unloaded: Unloaded) -> Result<Executable> {
        let Unloaded { devices, num_partitions, program, source, .. } = unloaded;
        let members: Vec<Member> = devices.ids().map(|id| Member(id.0)).collect();
        let assignment = DeviceAssignment::new(members.clone(), num_partitions);
        let assignment = assignment.ok_or_else(|| {
            Status::internal(format!("{devices} are not replicas of {num_partitions}"))
        })?;
        let everyone = |device| -> Result<Group> {
            let group = self.communicator(device)?.group(&members);
            group.map_err(|error| Status::wrap(Code::InvalidArgument, error))
        };
        let meets_briefly = program.is_brief() && devices.process_indices().len() > 1;
        let scopes: Arc<[Scope]> = match &source {
            Some((_, module)) => Scope::of_program(module),
            None => Arc::new([]),
        };
        let leads = leads(&devices, &scopes, &assignment);
        let assignment = Arc::new(assignment);
        let mut parts = Vec::new();
        for position in devices.addressable_positions() {
            let Some(device) = devices.get(position) else { continue };
            let device = self.local_device(device)?;
            let everyone = meets_briefly.then(|| everyone(device)).transpose()?;
            let communicator = self.communicator(device)?;
            let is_lead = |leads: &&Arc<[Member]>| leads.contains(&communicator.member());
            let station = Station {
                leads: leads.as_ref().filter(is_lead).cloned(),
                communicator,
                assignment: Arc::clone(&assignment),
                position,
                program: unloaded.fingerprint,
                host_callbacks: unloaded.host_callbacks.clone(),
            };
            parts.push(LocalPart { device, station: Arc::new(station), everyone });
        }
        Ok(Executable {
            core: Arc::clone(self),
            name: unloaded.name,
            fingerprint: unloaded.fingerprint,
            parameters: unloaded.parameters,
            shared_outputs: unloaded.outputs.iter().cloned().map(Arc::new).collect(),
            outputs: unloaded.outputs,
            donatable: unloaded.donatable,
            program,
            source,
            scopes,
            devices,
            local: parts,
            next_launch: AtomicU64::new(0),
            statistics: Arc::new(Statistics::default()),
        })
    }

    /// Compares the program with those of the other processes that own one of the devices.
    pub(super) fn agree(&self, agreement: &Agreement<'_>, options: &CompileOptions) -> Result<()> {
        let devices = &options.devices;
        let ranks = devices.process_indices();
        let rank = self.world.rank().0;
        if ranks.len() < 2 || !ranks.contains(&rank) {
            return Ok(());
        }
        let Some(session) = self.world.session() else {
            return Err(Status::internal("a job of several processes has no rendezvous"));
        };
        let list = devices.fingerprint();
        let number = {
            let mut compilations = self.compilations.lock().unwrap_or_else(PoisonError::into_inner);
            let next = compilations.entry(list).or_default();
            *next += 1;
            *next
        };
        let key = |number: u64| format!("lockstep/compile/{list:016x}/{number}");
        let proposal = Proposal {
            what: format!("compilation {number} on {devices}"),
            key: key(number),
            previous_key: number.checked_sub(1).filter(|&last| last > 0).map(key),
            rank,
            ranks: &ranks,
            record: Record {
                runtime: env!("CARGO_PKG_VERSION").to_owned(),
                program: match &agreement.fingerprint {
                    Ok(fingerprint) => Ok(*fingerprint),
                    Err(status) => Err(status.message().to_owned()),
                },
            },
            listing: agreement.listing,
            timeout: options.agreement_timeout,
        };
        proposal.agree(session)
    }
}

/// A program made ready for its devices; all of it is the same on every process.
struct Prepared {
    /// In global shapes, as it came.
    global: Module,
    /// In the shapes of one device.
    local: Localized,
    parameters: Vec<ArraySpec>,
    outputs: Vec<ArraySpec>,
    /// Of the program, its devices and the runtime.
    fingerprint: u64,
}

impl Prepared {
    fn new(program: &dyn Program, devices: &DeviceList) -> Result<Self> {
        let global = read(program)?;
        let invalid = |status: Status| status.context(name(&global).to_owned());
        stablehlo::verify(&global)
            .map_err(|error| invalid(Status::wrap(Code::InvalidArgument, error)))?;
        let local = spmd::partition(&global)
            .map_err(|error| invalid(Status::wrap(Code::InvalidArgument, error)))?;
        if local.num_partitions != devices.len() {
            return Err(invalid(Status::invalid_argument(format!(
                "the program is for {} partitions, the device list {devices} has {} devices",
                local.num_partitions,
                devices.len()
            ))));
        }
        let specs = |types: &[TensorType], shardings: &[op::Sharding]| -> Result<Vec<ArraySpec>> {
            let spec = |(ty, sharding): (&TensorType, &op::Sharding)| {
                let sharding = sharding_spec(&local, sharding)?;
                let sharding = sharding.to_sharding(devices.clone(), MemoryKind::DEVICE)?;
                Ok(ArraySpec { dtype: ty.dtype, shape: ty.shape.clone(), sharding })
            };
            types.iter().zip(shardings).map(spec).collect()
        };
        let parameters = specs(&local.global_parameters, &local.parameter_shardings)?;
        let outputs = specs(&local.global_results, &local.result_shardings)?;
        let fingerprint = fingerprint(
            (global.fingerprint().bytes().iter().copied())
                .chain(devices.fingerprint().to_le_bytes())
                .chain(env!("CARGO_PKG_VERSION").bytes()),
        );
        Ok(Self { global, local, parameters, outputs, fingerprint })
    }
}

fn read(program: &dyn Program) -> Result<Module> {
    let any: &dyn Any = program;
    match any.downcast_ref::<StableHloProgram>() {
        Some(StableHloProgram::Text(text)) => {
            stablehlo::parse(text).map_err(|error| Status::wrap(Code::InvalidArgument, error))
        }
        Some(StableHloProgram::Bytecode(bytes)) => stablehlo::parse_bytecode(bytes)
            .map_err(|error| Status::wrap(Code::InvalidArgument, error)),
        None => Err(Status::unimplemented(format!(
            "compiling programs of the kind {:?}",
            program.type_name()
        ))),
    }
}

fn name(module: &Module) -> &str {
    if module.name.is_empty() { "main" } else { &module.name }
}

fn main(module: &Module) -> Result<&Function> {
    module
        .function("main")
        .ok_or_else(|| Status::invalid_argument("the program has no function @main"))
}

/// How a parameter or result is spread over the devices.
fn sharding_spec(local: &Localized, sharding: &op::Sharding) -> Result<ShardingSpec> {
    let mesh = &local.mesh;
    if mesh.axes.is_empty() {
        return Ok(ShardingSpec::Replicated { num_shards: local.num_partitions });
    }
    let is_in_order = |ids: &Vec<i64>| (0..).zip(ids).all(|(place, &id)| place == id);
    if !mesh.device_ids.as_ref().is_none_or(is_in_order) {
        return Err(Status::unimplemented(format!(
            "the mesh @{} has its devices in an order of its own; order the device list instead",
            mesh.name
        )));
    }
    let axis = |axis: &op::AxisRef| MeshAxis { name: axis.name.clone(), sub_axis: axis.sub_axis };
    let mut dims: Vec<Vec<MeshAxis>> =
        sharding.dims.iter().map(|dim| dim.axes.iter().map(axis).collect()).collect();
    let is_unreduced = !sharding.unreduced.is_empty();
    if is_unreduced {
        dims.push(sharding.unreduced.iter().map(axis).collect());
    }
    let tiling = Mesh::new(mesh.axes.iter().cloned())?.tiling_along(&dims)?;
    Ok(match is_unreduced {
        true => ShardingSpec::Unreduced(UnreducedSharding::new(tiling)?),
        false => ShardingSpec::Tiled(tiling),
    })
}

fn require_distinct(devices: &DeviceList) -> Result<()> {
    let mut ids: Vec<_> = devices.ids().collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair.first() == pair.last()) {
        None => Ok(()),
        Some(pair) => Err(Status::invalid_argument(format!(
            "{devices} lists {:?} twice: a program runs once on each device",
            pair.first()
        ))),
    }
}

impl Store for Session {
    fn publish(&self, key: &str, value: Vec<u8>) -> Result<()> {
        self.set(key, value).map_err(unavailable)
    }

    fn decide(&self, key: &str, value: Vec<u8>) -> Result<Vec<u8>> {
        match self.set_once(key, value.clone()) {
            Ok(()) => Ok(value),
            Err(SessionError::Refused { refusal: CallRefusal::AlreadySet, .. }) => {
                let decided = self.try_get(key).map_err(unavailable)?;
                decided
                    .map(Vec::from)
                    .ok_or_else(|| Status::internal(format!("the key {key:?} was set and is not")))
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    fn read(&self, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>> {
        match self.get(key, timeout) {
            Ok(value) => Ok(Some(value.into())),
            Err(SessionError::Refused { refusal: CallRefusal::Late { .. }, .. }) => Ok(None),
            // The failure alone: what this process waited for when it came says nothing.
            Err(SessionError::Refused { refusal: CallRefusal::RankFailed(failure), .. }) => {
                Err(Status::wrap(Code::Unavailable, failure))
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    fn remove(&self, key: &str) -> Result<()> {
        self.delete(key).map(|_| ()).map_err(unavailable)
    }
}

fn unavailable(error: SessionError) -> Status {
    Status::wrap(Code::Unavailable, error)
}
