//! Arrays from host memory, from single-device arrays, and from errors.

use std::borrow::Cow;
use std::sync::Arc;

use super::Core;
use super::array::{Array, require_addressable};
use super::region;
use crate::backend::Buffer;
use crate::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, DType, Device, Future, HostBuffer, HostBufferShards,
    IndexDomain, MemoryKind, Result, Sharding, ShardingSpec, SingleDeviceShardSemantics, Status,
    Value,
};
use crate::stablehlo::TensorType;

impl Core {
    /// Every semantics is met by copying during the call.
    pub(super) fn array_from_host_buffer(
        &self,
        buffer: &HostBuffer<'_>,
        sharding: &Sharding,
    ) -> Result<ArrayRef> {
        let spec = ArraySpec {
            dtype: buffer.dtype(),
            shape: buffer.shape().clone(),
            sharding: sharding.clone(),
        };
        let domains = self.addressable_domains(&spec)?;
        let mut shards = Vec::with_capacity(domains.len());
        // Replicas follow one another often enough to keep the last domain's bytes.
        let mut last: Option<(&IndexDomain, Cow<'_, [u8]>)> = None;
        for (domain, device) in domains.iter().zip(&spec.sharding.devices().addressable()) {
            let bytes = match last.take() {
                Some((same, bytes)) if same == domain => bytes,
                _ => contents(buffer, domain)?,
            };
            shards.push(self.buffer(device, spec.dtype, domain, &bytes)?);
            last = Some((domain, bytes));
        }
        Ok(Arc::new(Array::new(spec, shards)))
    }

    pub(super) fn array_from_shards(&self, array: &HostBufferShards<'_>) -> Result<ArrayRef> {
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
                let bytes = contents(buffer, &IndexDomain::whole(buffer.shape().clone()))?;
                *shard = Some(self.buffer(device, spec.dtype, domain, &bytes)?);
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
        let shards = vec![Future::ready(Err(status.clone())); count];
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
        if *sharding.memory_kind() != MemoryKind::DEVICE {
            return Err(Status::invalid_argument(format!(
                "devices of this client have {} memory, not {}",
                MemoryKind::DEVICE,
                sharding.memory_kind()
            )));
        }
        Ok(())
    }

    fn buffer(
        &self,
        device: &Device,
        dtype: DType,
        domain: &IndexDomain,
        bytes: &[u8],
    ) -> Result<Future<Buffer>> {
        let ty = TensorType::new(dtype, domain.shape().clone());
        let buffer = self.backend.buffer_from_host(self.local_device(device)?, &ty, bytes)?;
        Ok(Future::ready(Ok(buffer)))
    }
}

/// The dense elements of a part of `buffer`: in place when it is all of it and dense.
fn contents<'a>(buffer: &'a HostBuffer<'_>, domain: &IndexDomain) -> Result<Cow<'a, [u8]>> {
    match buffer.as_dense() {
        Some(bytes) if domain.shape() == buffer.shape() => Ok(Cow::Borrowed(bytes)),
        _ => region::extract(buffer, domain)
            .map(Cow::Owned)
            .ok_or_else(|| Status::internal(format!("{domain} does not lie within {buffer:?}"))),
    }
}
