//! Arrays from host memory, from single-device arrays, and from errors.

use std::ops::Range;
use std::sync::Arc;

use smallvec::smallvec;

use super::Core;
use super::array::{Array, require_addressable};
use super::region;
use crate::backend::{Backend, Buffer, LocalDevice};
use crate::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Device, Future, HostBuffer, HostBufferSemantics,
    HostBufferShards, HostBytes, IndexDomain, MemoryKind, Result, Sharding, ShardingSpec,
    SingleDeviceShardSemantics, Status, Value,
};
use crate::stablehlo::TensorType;

impl Core {
    pub(super) fn array_from_host_buffer(
        &self,
        buffer: &HostBuffer<'_>,
        sharding: &Sharding,
        semantics: HostBufferSemantics,
    ) -> Result<ArrayRef> {
        let spec = ArraySpec {
            dtype: buffer.dtype(),
            shape: buffer.shape().clone(),
            sharding: sharding.clone(),
        };
        let domains = self.addressable_domains(&spec)?;
        let devices = spec.sharding.devices().addressable();
        let origin = vec![0; buffer.shape().rank()];
        let shards = domains.iter().zip(&devices).map(|(domain, device)| {
            let part = buffer.part(&origin, domain)?;
            self.shard(device, &part, semantics)
        });
        let shards = shards.collect::<Result<_>>()?;
        Ok(Arc::new(Array::new(spec, shards)))
    }

    pub(super) fn array_from_shards(
        &self,
        array: &HostBufferShards<'_>,
        semantics: HostBufferSemantics,
    ) -> Result<ArrayRef> {
        let HostBufferShards { spec, buffers } = array;
        let domains = self.addressable_domains(spec)?;
        let devices = spec.sharding.devices().addressable();
        let mut shards: Vec<Option<Future<Buffer>>> = vec![None; domains.len()];
        for (indices, buffer) in buffers {
            for &index in indices {
                let (Some(domain), Some(device), Some(shard)) =
                    (domains.get(index), devices.get(index), shards.get_mut(index))
                else {
                    return Err(Status::invalid_argument(format!(
                        "there is no addressable shard {index}: this process has {} of {}",
                        domains.len(),
                        spec.sharding
                    )));
                };
                if shard.is_some() {
                    return Err(Status::invalid_argument(format!(
                        "addressable shard {index} is given twice"
                    )));
                }
                if buffer.dtype() != spec.dtype || buffer.shape() != domain.shape() {
                    return Err(Status::invalid_argument(format!(
                        "addressable shard {index} is {} {} ({domain} of the array), its buffer \
                         is {} {}",
                        spec.dtype,
                        domain.shape(),
                        buffer.dtype(),
                        buffer.shape()
                    )));
                }
                *shard = Some(self.shard(device, buffer, semantics)?);
            }
        }
        let missing: Vec<usize> =
            (0..shards.len()).filter(|&index| shards[index].is_none()).collect();
        if !missing.is_empty() {
            return Err(Status::invalid_argument(format!(
                "no buffer is given for the addressable shards {missing:?} of {}",
                domains.len()
            )));
        }
        Ok(Arc::new(Array::new(spec.clone(), shards.into_iter().flatten().collect())))
    }

    pub(super) fn error_array(&self, status: &Status, spec: &ArraySpec) -> Result<ArrayRef> {
        self.require_usable(&spec.sharding)?;
        let count = spec.sharding.devices().addressable().len();
        let shards = smallvec![Future::ready(Err(status.clone())); count];
        Ok(Arc::new(Array::new(spec.clone(), shards)))
    }

    pub(super) fn assemble(
        &self,
        spec: &ArraySpec,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
        shards: SingleDeviceShardSemantics,
    ) -> Result<ArrayRef> {
        if shards == SingleDeviceShardSemantics::AllShards {
            require_addressable(spec.sharding.devices())?;
        }
        self.require_usable(&spec.sharding)?;
        let devices = spec.sharding.devices().addressable();
        let shapes = match spec.sharding.spec() {
            // Nobody knows what they should be.
            ShardingSpec::Opaque(_) => arrays.iter().map(|array| array.shape().clone()).collect(),
            _ => spec
                .sharding
                .shard_shapes(&spec.shape, SingleDeviceShardSemantics::AddressableShards)?,
        };
        if arrays.len() != devices.len() {
            return Err(Status::invalid_argument(format!(
                "{} has {} addressable shards, got {} arrays",
                spec.sharding,
                devices.len(),
                arrays.len()
            )));
        }
        let mut parts = Vec::with_capacity(arrays.len());
        for (index, ((array, shape), device)) in
            arrays.iter().zip(&shapes).zip(&devices).enumerate()
        {
            let found = array.spec();
            let on_device = found.sharding.devices().len() == 1
                && found.sharding.devices().get(0) == Some(device);
            if found.dtype != spec.dtype || found.shape != *shape || !on_device {
                return Err(Status::invalid_argument(format!(
                    "addressable shard {index} is {} {} on {device:?}, array {index} is {} {}, {}",
                    spec.dtype, shape, found.dtype, found.shape, found.sharding
                )));
            }
            parts.push(Array::of(array)?);
        }
        // All is checked before any input is given up.
        let buffers = parts.iter().map(|part| part.shards()).collect::<Result<Vec<_>>>()?;
        if copy == ArrayCopySemantics::DonateInput {
            for part in parts {
                // The memory lives on in the new array.
                drop(part.delete());
            }
        }
        Ok(Arc::new(Array::new(spec.clone(), buffers.into_iter().flatten().collect())))
    }

    /// What each addressable shard holds, of an array that this client can have.
    fn addressable_domains(&self, spec: &ArraySpec) -> Result<Vec<IndexDomain>> {
        self.require_usable(&spec.sharding)?;
        spec.sharding.index_domains(&spec.shape, SingleDeviceShardSemantics::AddressableShards)
    }

    /// Checks that an array of this client can be spread like that.
    pub(super) fn require_usable(&self, sharding: &Sharding) -> Result<()> {
        self.require_own(sharding.devices())?;
        let kinds = self.backend.memory_kinds();
        if !kinds.contains(sharding.memory_kind()) {
            let kinds: Vec<&str> = kinds.iter().map(MemoryKind::name).collect();
            return Err(Status::invalid_argument(format!(
                "devices of this client have {} memory, not {}",
                kinds.join(", "),
                sharding.memory_kind()
            )));
        }
        Ok(())
    }

    /// Copies during the call, unless the memory may be kept and the device computes from it.
    fn shard(
        &self,
        device: &Device,
        contents: &HostBuffer<'_>,
        semantics: HostBufferSemantics,
    ) -> Result<Future<Buffer>> {
        let ty = TensorType::new(contents.dtype(), contents.shape().clone());
        let device = self.local_device(device)?;
        let may_keep = matches!(
            semantics,
            HostBufferSemantics::ImmutableZeroCopy | HostBufferSemantics::MutableZeroCopy
        );
        if let (true, Some(kept)) = (may_keep, kept(contents))
            && let Some(buffer) = self.backend.buffer_in_place(device, &ty, &kept)?
        {
            return Ok(Future::ready(Ok(buffer)));
        }
        Ok(Future::ready(Ok(device_buffer(&*self.backend, device, &ty, contents)?)))
    }
}

/// The bytes of a dense part of shared host memory.
struct Kept {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

/// The bytes of `contents`, to be kept; `None` when they are not dense, or only lent.
fn kept(contents: &HostBuffer<'_>) -> Option<Arc<dyn AsRef<[u8]> + Send + Sync>> {
    let HostBytes::Shared(owner) = contents.bytes() else { return None };
    let len = contents.as_dense()?.len();
    let start = if len == 0 { 0 } else { contents.offset_bytes() };
    Some(Arc::new(Kept { owner: Arc::clone(owner), range: start..start + len }))
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or_default()
    }
}

/// A device buffer of what is in host memory, in whatever order it lies there.
pub(super) fn device_buffer(
    backend: &dyn Backend,
    device: LocalDevice,
    ty: &TensorType,
    contents: &HostBuffer<'_>,
) -> Result<Buffer> {
    match contents.as_dense() {
        Some(bytes) => backend.buffer_from_host(device, ty, bytes),
        None => backend.buffer_filled(device, ty, &mut |into| {
            region::gather(contents, into).ok_or_else(|| {
                Status::internal(format!("{contents:?} does not fill {} bytes", into.len()))
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::ifrt::{Client as _, DType, Mesh, Shape};

    /// Numbers that start on a multiple of 16 bytes.
    struct Aligned(Vec<u128>);

    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }
    }

    #[test]
    fn memory_that_may_be_kept_is_where_arrays_lie_and_what_is_read() {
        let client = Client::solo(2).unwrap();
        let owner: Arc<Aligned> = Arc::new(Aligned((0..8).collect()));
        let place = owner.0.as_ptr().addr();
        let shape = Shape::new([32]).unwrap();
        let tiling = Mesh::new([("x", 2)]).unwrap().tiling(&[&["x"]]).unwrap();
        let sharding = Sharding::tiled(client.devices().clone(), tiling).unwrap();
        let places = |semantics| -> Vec<usize> {
            let bytes = HostBytes::Shared(owner.clone());
            let buffer = HostBuffer::dense(bytes, DType::U32, shape.clone()).unwrap();
            let array = client.make_array_from_host_buffer(&buffer, &sharding, semantics).unwrap();
            let parts = array.disassemble_into_single_device_arrays(
                ArrayCopySemantics::ReuseInput,
                SingleDeviceShardSemantics::AddressableShards,
            );
            let place = |part: &ArrayRef| {
                let read = part.copy_to_host_buffer(ArrayCopySemantics::ReuseInput).unwrap();
                read.wait().unwrap().as_dense().unwrap().as_ptr().addr()
            };
            parts.unwrap().iter().map(place).collect()
        };
        assert_eq!(places(HostBufferSemantics::ImmutableZeroCopy), [place, place + 64]);
        assert_eq!(places(HostBufferSemantics::MutableZeroCopy), [place, place + 64]);
        for copied in places(HostBufferSemantics::ImmutableUntilTransferCompletes) {
            assert!(!(place..place + 128).contains(&copied));
        }
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
