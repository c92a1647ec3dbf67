//! Arrays that move: to other devices, to another sharding, in one process or between several.
//!
//! Owns the execution of a [`Route`]. One device's stream of each process, its lead, does the
//! process's part: it exchanges with the leads of the others what has to go between processes,
//! and puts the shards together. Within a process nothing is exchanged. Invariants: all processes
//! make the same movements in the same order, which the exchange checks (I2); a process that
//! cannot send what it should poisons what depends on it, everywhere (I9).

use std::sync::{Arc, PoisonError};

use lockstep_collectives::{Call, CollectiveKey, Communicator, Group, Member, Rank};

use super::Core;
use super::array::{Array, Shards, take_shards};
use super::collective::{element, status};
use super::region;
use super::route::{Holding, Origin, Part, Route};
use crate::backend::{Backend, Buffer, LocalDevice};
use crate::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Code, DType, Device, DeviceList, Future, IndexDomain,
    MemoryKind, Promise, Result, SingleDeviceShardSemantics, Status, fingerprint,
};
use crate::stablehlo::TensorType;

/// One array on its way, as one process sees it.
struct Movement {
    backend: Arc<dyn Backend>,
    dtype: DType,
    process: u32,
    route: Route,
    /// All shards of the source.
    sources: Vec<Holding>,
    /// Those of this process: their number, device and contents.
    local: Vec<(usize, Device, Future<Buffer>)>,
    /// The shards that this process makes.
    destinations: Vec<Destination>,
    /// If anything goes between this process and others.
    exchange: Option<Exchange>,
}

struct Destination {
    /// Its number among all shards.
    number: usize,
    device: Device,
    local_device: LocalDevice,
    domain: IndexDomain,
    promise: Promise<Buffer>,
}

/// The leads of the processes between which something goes.
struct Exchange {
    communicator: Communicator,
    group: Group,
    /// The processes, in the order of the group.
    processes: Vec<u32>,
    key: CollectiveKey,
}

/// How the shards of a source become those of a destination, the same on all processes.
struct Way {
    sources: Vec<Holding>,
    /// What each destination is to have.
    destinations: Vec<IndexDomain>,
    route: Route,
}

impl Core {
    /// See [`crate::ifrt::Client::reshard_arrays`].
    pub(super) fn reshard(
        self: &Arc<Self>,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        if copy == ArrayCopySemantics::ReuseInput {
            return Err(Status::invalid_argument(
                "resharding makes arrays of their own: it copies its input or takes it over",
            ));
        }
        if arrays.len() != specs.len() {
            return Err(Status::invalid_argument(format!(
                "{} arrays cannot take {} specifications",
                arrays.len(),
                specs.len()
            )));
        }
        self.move_arrays(arrays, specs, copy)
    }

    fn move_arrays(
        self: &Arc<Self>,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let mut sources = Vec::with_capacity(arrays.len());
        for (index, (array, to)) in arrays.iter().zip(specs).enumerate() {
            let from = array.spec();
            if (from.dtype, &from.shape) != (to.dtype, &to.shape) {
                return Err(Status::invalid_argument(format!(
                    "array {index} is {} {}: it cannot become {} {}",
                    from.dtype, from.shape, to.dtype, to.shape
                )));
            }
            self.require_usable(&to.sharding)?;
            sources.push(Array::of(array)?);
        }
        let ways = arrays.iter().zip(specs).map(|(array, to)| self.way(array.spec(), to));
        let ways = ways.collect::<Result<Vec<_>>>()?;
        let donates = copy == ArrayCopySemantics::DonateInput;
        let shards = take_shards(&sources, &vec![donates; sources.len()])?;
        let moves = arrays.iter().zip(specs).zip(ways).zip(shards);
        moves
            .map(|(((array, to), way), shards)| self.start(array.spec(), to, way, shards))
            .collect()
    }

    /// See [`crate::ifrt::Client::copy_arrays`].
    pub(super) fn copy(
        self: &Arc<Self>,
        arrays: &[ArrayRef],
        devices: Option<&DeviceList>,
        memory_kind: Option<&MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let Some(first) = arrays.first() else { return Ok(Vec::new()) };
        let first = first.sharding();
        let mut specs = Vec::with_capacity(arrays.len());
        for (index, array) in arrays.iter().enumerate() {
            let sharding = array.sharding();
            if (sharding.devices(), sharding.memory_kind())
                != (first.devices(), first.memory_kind())
            {
                return Err(Status::invalid_argument(format!(
                    "arrays that are copied together must be on the same devices and in the same \
                     memory: array 0 is {first}, array {index} is {sharding}"
                )));
            }
            let sharding = sharding.with_device_assignment(devices.cloned(), memory_kind.cloned());
            specs.push(ArraySpec { sharding: sharding?, ..array.spec().clone() });
        }
        self.move_arrays(arrays, &specs, copy)
    }

    /// The way from one sharding to another.
    fn way(&self, from: &ArraySpec, to: &ArraySpec) -> Result<Way> {
        let all = SingleDeviceShardSemantics::AllShards;
        let domains = |spec: &ArraySpec| spec.sharding.index_domains(&spec.shape, all);
        let holdings = |spec: &ArraySpec, domains: &[IndexDomain]| -> Vec<Holding> {
            let processes = spec.sharding.devices().iter().map(Device::process_index);
            let holding = |(process, domain): (u32, &IndexDomain)| Holding {
                process,
                domain: domain.clone(),
            };
            processes.zip(domains).map(holding).collect()
        };
        if let (true, Err(_)) = (from.sharding.has_same_partitioning(&to.sharding), domains(from)) {
            // Nobody knows what shards have, but each is what it was.
            let shapes = from.sharding.shard_shapes(&from.shape, all)?;
            let destinations: Vec<_> = shapes.into_iter().map(IndexDomain::whole).collect();
            let sources = holdings(from, &destinations);
            let route = Route::shard_by_shard(&sources, &holdings(to, &destinations));
            return Ok(Way { sources, destinations, route });
        }
        let destinations = domains(to)?;
        let sources = holdings(from, &domains(from)?);
        let host = |process| self.world.topology().host_of(Rank(process));
        let distance = |a, b| u32::from(host(a) != host(b));
        let route = Route::new(&sources, &holdings(to, &destinations), distance);
        let route = route.map_err(|missing| {
            Status::invalid_argument(format!(
                "{} needs {missing} of the array, which no shard of {} has",
                to.sharding, from.sharding
            ))
        })?;
        Ok(Way { sources, destinations, route })
    }

    /// Sets one array moving and returns what it becomes.
    fn start(
        self: &Arc<Self>,
        from: &ArraySpec,
        to: &ArraySpec,
        way: Way,
        shards: Shards,
    ) -> Result<ArrayRef> {
        let Way { sources, destinations: domains, route } = way;
        let mut destinations = Vec::new();
        let mut made = Shards::new();
        for (number, (device, domain)) in to.sharding.devices().iter().zip(domains).enumerate() {
            if !device.is_addressable() {
                continue;
            }
            let (promise, shard) = Promise::new();
            made.push(shard);
            destinations.push(Destination {
                number,
                device: device.clone(),
                local_device: self.local_device(device)?,
                domain,
                promise,
            });
        }
        let array: ArrayRef = Arc::new(Array::new(to.clone(), made));
        let exchange = self.exchange(from, to, &route)?;
        if destinations.is_empty() && exchange.is_none() {
            return Ok(array);
        }
        let devices = from.sharding.devices().addressable();
        let positions = from.sharding.devices().addressable_positions();
        let local = positions.into_iter().zip(&devices).zip(shards);
        let movement = Movement {
            backend: Arc::clone(&self.backend),
            dtype: to.dtype,
            process: self.world.rank().0,
            route,
            sources,
            local: local.map(|((n, device), shard)| (n, device.clone(), shard)).collect(),
            destinations,
            exchange,
        };
        self.submit_to_lead(move || movement.run());
        Ok(array)
    }

    /// This process's part in the exchange, if it has one.
    fn exchange(
        &self,
        from: &ArraySpec,
        to: &ArraySpec,
        route: &Route,
    ) -> Result<Option<Exchange>> {
        let mut processes: Vec<u32> =
            route.transfers.iter().flat_map(|transfer| [transfer.from, transfer.to]).collect();
        processes.sort_unstable();
        processes.dedup();
        let Some(group) = self.lead_group(&processes)? else { return Ok(None) };
        let communicator = self.communicator(LocalDevice(0))?;
        let number = self.next_exchange(processes.clone());
        let what = format!("{} {}: {} to {}", to.dtype, to.shape, from.sharding, to.sharding);
        let program = fingerprint(what.bytes());
        let key = CollectiveKey { launch: number, program, ordinal: 0, iteration: 0 };
        Ok(Some(Exchange { communicator, group, processes, key }))
    }

    /// The leads of `processes`, of which each has a device, if this is one of several.
    pub(super) fn lead_group(&self, processes: &[u32]) -> Result<Option<Group>> {
        if processes.len() < 2 || !processes.contains(&self.world.rank().0) {
            return Ok(None);
        }
        let lead = |process: &u32| {
            let first = self.devices.iter().find(|device| device.process_index() == *process);
            first.map(|device| Member(device.id().0))
        };
        let leads: Vec<Member> = processes.iter().filter_map(lead).collect();
        let group = self.communicator(LocalDevice(0))?.group(&leads);
        group.map(Some).map_err(|error| Status::wrap(Code::Internal, error))
    }

    /// The number of the next exchange between the leads of `processes`.
    pub(super) fn next_exchange(&self, processes: Vec<u32>) -> u64 {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let next = exchanges.entry(processes).or_default();
        *next += 1;
        *next
    }
}

impl Movement {
    fn run(self) {
        let Self { backend, dtype, process, route, sources, local, destinations, exchange } = self;
        let _span = tracing::debug_span!("move", pieces = route.transfers.len()).entered();
        let received = || -> Result<_> {
            if let Some(exchange) = &exchange {
                exchange.group.begin_epoch();
            }
            let mut held: Vec<Option<(Device, Buffer)>> = vec![None; sources.len()];
            for (number, device, shard) in local {
                let buffer = shard.wait().inspect_err(|status| {
                    if let Some(Exchange { communicator, group, .. }) = &exchange {
                        communicator.decline(group, status.message());
                    }
                })?;
                held[number] = Some((device, buffer));
            }
            let received = match &exchange {
                Some(exchange) => exchange.run(process, &route, &sources, &held, dtype)?,
                None => Received::default(),
            };
            Ok((held, received))
        };
        match received() {
            Err(status) => {
                for destination in destinations {
                    destination.promise.set(Err(status.clone()));
                }
            }
            Ok((held, received)) => {
                for destination in destinations {
                    let parts = route.parts.get(destination.number).map_or(&[][..], Vec::as_slice);
                    let made =
                        destination.make(&*backend, dtype, parts, &sources, &held, &received);
                    destination.promise.set(made);
                }
            }
        }
    }
}

/// What other processes sent, one piece after the other.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    /// Of each transfer, by its place among all; empty for those to others.
    pieces: Vec<(IndexDomain, std::ops::Range<usize>)>,
}

impl Received {
    fn piece(&self, transfer: usize) -> Option<(&IndexDomain, &[u8])> {
        let (domain, range) = self.pieces.get(transfer)?;
        Some((domain, self.bytes.get(range.clone())?))
    }
}

impl Exchange {
    fn run(
        &self,
        process: u32,
        route: &Route,
        sources: &[Holding],
        held: &[Option<(Device, Buffer)>],
        dtype: DType,
    ) -> Result<Received> {
        let element_bytes = dtype.size_bytes();
        let mut send_counts = Vec::with_capacity(self.processes.len());
        let mut receive_counts = Vec::with_capacity(self.processes.len());
        let mut sent = Vec::new();
        let mut received_bytes = 0;
        let mut pieces: Vec<_> =
            route.transfers.iter().map(|transfer| (transfer.domain.clone(), 0..0)).collect();
        for &peer in &self.processes {
            let (mut send, mut receive) = (0, 0);
            for (transfer, piece) in route.transfers.iter().zip(&mut pieces) {
                let elements = transfer.domain.shape().num_elements();
                if (transfer.from, transfer.to) == (process, peer) {
                    let from = sources.get(transfer.source).zip(held.get(transfer.source));
                    let Some((source, Some((_, buffer)))) = from else { return Err(lost()) };
                    let start = sent.len();
                    sent.resize(start + elements * element_bytes, 0);
                    let to = (&transfer.domain, &mut sent[start..]);
                    let from = (&source.domain, buffer.bytes());
                    region::copy(&transfer.domain, element_bytes, to, from).ok_or_else(lost)?;
                    send += elements;
                } else if (transfer.from, transfer.to) == (peer, process) {
                    let start = received_bytes;
                    received_bytes += elements * element_bytes;
                    piece.1 = start..received_bytes;
                    receive += elements;
                }
            }
            send_counts.push(send);
            receive_counts.push(receive);
        }
        let mut bytes = vec![0; received_bytes];
        let call = Call { key: Some(self.key), ..Call::on(&self.group) };
        let element = element(dtype);
        self.communicator
            .all_to_all_v(&call, element, &send_counts, &sent, &receive_counts, &mut bytes)
            .map_err(status)?;
        Ok(Received { bytes, pieces })
    }
}

impl Destination {
    /// Puts the shard together.
    fn make(
        &self,
        backend: &dyn Backend,
        dtype: DType,
        parts: &[Part],
        sources: &[Holding],
        held: &[Option<(Device, Buffer)>],
        received: &Received,
    ) -> Result<Buffer> {
        let origin = |part: &Part| match part.origin {
            Origin::Shard(number) => {
                let buffer = held.get(number)?.as_ref()?.1.bytes();
                Some((&sources.get(number)?.domain, buffer))
            }
            Origin::Transfer(number) => received.piece(number),
        };
        let ty = TensorType::new(dtype, self.domain.shape().clone());
        if let [part] = parts
            && let Some((domain, bytes)) = origin(part)
            && *domain == self.domain
        {
            // Buffers never change while somebody else refers to them, so one serves two arrays.
            return match self.same_device(part, held) {
                Some(buffer) => Ok(buffer),
                None => backend.buffer_from_host(self.local_device, &ty, bytes),
            };
        }
        backend.buffer_filled(self.local_device, &ty, &mut |into| {
            for part in parts {
                let from = origin(part).ok_or_else(lost)?;
                let to = (&self.domain, &mut *into);
                region::copy(&part.domain, dtype.size_bytes(), to, from).ok_or_else(lost)?;
            }
            Ok(())
        })
    }

    fn same_device(&self, part: &Part, held: &[Option<(Device, Buffer)>]) -> Option<Buffer> {
        let Origin::Shard(number) = part.origin else { return None };
        let (device, buffer) = held.get(number)?.as_ref()?;
        (*device == self.device).then(|| buffer.clone())
    }
}

/// The route and the shards do not fit each other.
fn lost() -> Status {
    Status::internal("a part of an array is not where its route has it: please report this")
}
