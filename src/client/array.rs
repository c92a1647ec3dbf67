//! Arrays of this client: a specification, and a future buffer for each addressable shard.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::{SmallVec, smallvec};

use super::region;
use crate::backend::Buffer;
use crate::ifrt::{
    self, ArrayCopySemantics, ArrayRef, ArraySpec, DeviceList, Future, HostBuffer, HostBytes,
    Result, Sharding, SingleDeviceShardSemantics, Status, UserContext, Value,
};

/// An array of [`super::Client`].
///
/// Buffers are immutable while anybody else refers to them, so all three copy semantics share
/// them: a donated buffer is written to only when nothing else holds it.
pub(super) struct Array {
    spec: Arc<ArraySpec>,
    user_context: Option<UserContext>,
    /// By addressable position; `None` once deleted or donated.
    shards: Mutex<Option<Shards>>,
}

/// The shards of an array on this process's devices, mostly one.
pub(super) type Shards = SmallVec<[Future<Buffer>; 1]>;

impl Array {
    /// An array of these addressable shards, each with the bytes of its true index domain.
    pub(super) fn new(spec: impl Into<Arc<ArraySpec>>, shards: Shards) -> Self {
        let user_context = UserContext::current();
        Self { spec: spec.into(), user_context, shards: Mutex::new(Some(shards)) }
    }

    /// This client's array behind an interface one.
    ///
    /// # Errors
    /// `InvalidArgument` when another kind of client made it.
    pub(super) fn of(array: &ArrayRef) -> Result<&Self> {
        let any: &dyn Any = &**array;
        any.downcast_ref()
            .ok_or_else(|| Status::invalid_argument("the array belongs to another kind of client"))
    }

    /// The addressable shards.
    ///
    /// # Errors
    /// `InvalidArgument` when the array is deleted.
    pub(super) fn shards(&self) -> Result<Shards> {
        self.lock().clone().ok_or_else(|| self.deleted())
    }

    /// The buffer of the only addressable shard; `None` when there are others, it has not arrived, is
    /// an error, or the array is deleted.
    pub(super) fn sole_buffer(&self) -> Option<Buffer> {
        let shards = self.lock();
        let [shard] = shards.as_deref()? else { return None };
        shard.peek()?.as_ref().ok().cloned()
    }

    /// The addressable shards, after which the array is deleted.
    ///
    /// # Errors
    /// `InvalidArgument` when it is deleted already.
    fn take_shards(&self) -> Result<Shards> {
        self.lock().take().ok_or_else(|| self.deleted())
    }

    /// Undoes [`Array::take_shards`].
    fn restore_shards(&self, shards: Shards) {
        *self.lock() = Some(shards);
    }

    fn shards_for(&self, copy: ArrayCopySemantics) -> Result<Shards> {
        match copy {
            ArrayCopySemantics::AlwaysCopy | ArrayCopySemantics::ReuseInput => self.shards(),
            ArrayCopySemantics::DonateInput => self.take_shards(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shards>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deleted(&self) -> Status {
        Status::invalid_argument(format!("{self:?} is deleted or was donated"))
    }

    /// The error of reading an array of which this process holds a part only.
    fn partly_elsewhere(&self) -> Status {
        let devices = self.spec.sharding.devices();
        let held = devices.addressable_positions();
        let missing: Vec<usize> =
            (0..devices.len()).filter(|position| !held.contains(position)).collect();
        Status::invalid_argument(format!(
            "{self:?} cannot be copied to this host: it holds the shards {held:?}, the shards \
             {missing:?} are on other processes; read the local shards with \
             disassemble_into_single_device_arrays, or bring the others here with gather or fetch_to"
        ))
    }
}

impl Value for Array {
    fn ready(&self) -> Future<()> {
        match self.shards() {
            Ok(shards) => match &shards[..] {
                [shard] => shard.map_done(),
                _ => Future::join(shards).map_done(),
            },
            Err(status) => Future::ready(Err(status)),
        }
    }

    fn delete(&self) -> Future<()> {
        *self.lock() = None;
        Future::done()
    }

    fn is_deleted(&self) -> bool {
        self.lock().is_none()
    }

    fn size_bytes(&self) -> Option<usize> {
        let ArraySpec { dtype, shape, sharding } = &*self.spec;
        let shapes = sharding.shard_shapes(shape, SingleDeviceShardSemantics::AllShards).ok()?;
        Some(shapes.iter().map(|shape| shape.num_elements() * dtype.size_bytes()).sum())
    }

    fn user_context(&self) -> Option<&UserContext> {
        self.user_context.as_ref()
    }
}

impl ifrt::Array for Array {
    fn spec(&self) -> &ArraySpec {
        &self.spec
    }

    fn disassemble_into_single_device_arrays(
        &self,
        copy: ArrayCopySemantics,
        shards: SingleDeviceShardSemantics,
    ) -> Result<Vec<ArrayRef>> {
        let ArraySpec { dtype, shape, sharding } = &*self.spec;
        if shards == SingleDeviceShardSemantics::AllShards {
            require_addressable(sharding.devices())?;
        }
        let parts = sharding.disassemble(shape, SingleDeviceShardSemantics::AddressableShards)?;
        let buffers = self.shards_for(copy)?;
        Ok(parts
            .into_iter()
            .zip(buffers)
            .map(|((shape, sharding), buffer)| -> ArrayRef {
                let spec = ArraySpec { dtype: *dtype, shape, sharding };
                Arc::new(Self::new(spec, smallvec![buffer]))
            })
            .collect())
    }

    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef> {
        let sharding = &self.spec.sharding;
        if !sharding.is_fully_replicated() {
            return Err(Status::invalid_argument(format!("{self:?} is not fully replicated")));
        }
        let Some(device) = sharding.devices().iter().find(|device| device.is_addressable()) else {
            return Err(Status::invalid_argument(format!(
                "no shard of {self:?} is on this process"
            )));
        };
        let single = Sharding::new(
            ifrt::ShardingSpec::SingleDevice,
            DeviceList::new([device.clone()]),
            sharding.memory_kind().clone(),
        )?;
        let mut buffers = self.shards_for(copy)?;
        buffers.truncate(1);
        let spec = ArraySpec { sharding: single, ..ArraySpec::clone(&self.spec) };
        Ok(Arc::new(Self::new(spec, buffers)))
    }

    fn copy_to_host_buffer(&self, copy: ArrayCopySemantics) -> Result<Future<HostBuffer<'static>>> {
        let ArraySpec { dtype, shape, sharding } = ArraySpec::clone(&self.spec);
        let devices = sharding.devices();
        if sharding.is_fully_replicated() && !devices.addressable().is_empty() {
            let shards = self.shards_for(copy)?;
            let [shard, ..] = shards.as_slice() else {
                return Err(self.partly_elsewhere());
            };
            return Ok(shard.map(move |buffer| {
                let owner: Arc<dyn AsRef<[u8]> + Send + Sync> = match copy {
                    ArrayCopySemantics::AlwaysCopy => Arc::new(buffer.bytes().to_vec()),
                    _ => Arc::new(BufferBytes(buffer.clone())),
                };
                HostBuffer::dense(HostBytes::Shared(owner), dtype, shape)
            }));
        }
        if !devices.is_fully_addressable() {
            return Err(self.partly_elsewhere());
        }
        let domains = sharding.index_domains(&shape, SingleDeviceShardSemantics::AllShards)?;
        let shards = Future::join(self.shards_for(copy)?);
        Ok(shards.map(move |buffers| {
            let mut whole = vec![0; shape.num_elements() * dtype.size_bytes()];
            for (domain, buffer) in domains.iter().zip(buffers) {
                region::insert(&mut whole, &shape, dtype, domain, buffer.bytes()).ok_or_else(
                    || {
                        Status::internal(format!(
                            "a shard of {} bytes does not fit {domain} of {shape}",
                            buffer.bytes().len()
                        ))
                    },
                )?;
            }
            HostBuffer::dense(HostBytes::Shared(Arc::new(whole)), dtype, shape)
        }))
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArraySpec { dtype, shape, sharding } = &*self.spec;
        write!(f, "array of {dtype} {shape}, {sharding}")
    }
}

/// A device buffer as host bytes: devices of this client compute from host memory.
pub(super) struct BufferBytes(pub(super) Buffer);

impl AsRef<[u8]> for BufferBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The shards of each array; donated arrays lose theirs, unless one is deleted: then none does.
///
/// # Errors
/// `InvalidArgument` when an array is deleted; no array loses anything then.
pub(super) fn take_shards(arrays: &[&Array], donated: &[bool]) -> Result<SmallVec<[Shards; 4]>> {
    let mut taken = SmallVec::with_capacity(arrays.len());
    for (array, &donate) in arrays.iter().zip(donated) {
        match if donate { array.take_shards() } else { array.shards() } {
            Ok(shards) => taken.push(shards),
            Err(status) => {
                for ((array, shards), _) in
                    arrays.iter().zip(taken).zip(donated).filter(|(_, donate)| **donate)
                {
                    array.restore_shards(shards);
                }
                return Err(status);
            }
        }
    }
    Ok(taken)
}

/// Checks that this process can name all shards.
///
/// # Errors
/// `InvalidArgument` when one of `devices` is on another process.
pub(super) fn require_addressable(devices: &DeviceList) -> Result<()> {
    if devices.is_fully_addressable() {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "this process cannot name all shards on {devices}, only those on {}: ask for the \
         addressable shards",
        devices.addressable()
    )))
}
