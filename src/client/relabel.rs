//! Arrays that are made of the buffers of others, without moving a byte: remapped and bitcast.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Core;
use super::array::{Array, Shards, take_shards};
use crate::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, DType, RemapPlan, Result, Shape,
    SingleDeviceShardSemantics, Status,
};

impl Core {
    /// See [`crate::ifrt::Client::remap_arrays`].
    pub(super) fn remap(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        plan.check_copy_semantics(copy)?;
        if arrays.len() != plan.inputs().len() {
            return Err(Status::invalid_argument(format!(
                "the remap plan is for {} arrays, got {}",
                plan.inputs().len(),
                arrays.len()
            )));
        }
        for (index, (array, expected)) in arrays.iter().zip(plan.inputs()).enumerate() {
            if array.spec() != expected {
                return Err(Status::invalid_argument(format!(
                    "the remap plan is for {expected:?} as input {index}, got {:?}",
                    array.spec()
                )));
            }
        }
        for spec in plan.outputs() {
            self.require_usable(&spec.sharding)?;
        }
        let buffers = taken(arrays, copy)?;
        let outputs = plan.outputs().iter().zip(plan.sources());
        let made = outputs.map(|(spec, sources)| -> Result<ArrayRef> {
            let shards = sources.iter().map(|&(input, shard)| {
                let found = buffers.get(input).and_then(|shards| shards.get(shard)).cloned();
                found.ok_or_else(|| Status::internal("a checked remap plan names no shard"))
            });
            Ok(Arc::new(Array::new(spec.clone(), shards.collect::<Result<_>>()?)))
        });
        made.collect()
    }

    /// See [`crate::ifrt::Client::bitcast_arrays`].
    pub(super) fn bitcast(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        if copy == ArrayCopySemantics::AlwaysCopy {
            return Err(Status::invalid_argument(
                "a bitcast moves no bytes: it reuses its input or takes it over",
            ));
        }
        if arrays.len() != specs.len() {
            return Err(Status::invalid_argument(format!(
                "{} arrays cannot take {} specifications",
                arrays.len(),
                specs.len()
            )));
        }
        for (index, (array, to)) in arrays.iter().zip(specs).enumerate() {
            let from = array.spec();
            self.require_usable(&to.sharding)?;
            let same_place = from.sharding.devices() == to.sharding.devices()
                && from.sharding.memory_kind() == to.sharding.memory_kind();
            let (old, new) = (shard_bytes(from)?, shard_bytes(to)?);
            if !same_place || old != new || is_bool(from) != is_bool(to) {
                return Err(Status::invalid_argument(format!(
                    "array {index} is {from:?} with shards of {old:?} bytes; it cannot be seen as \
                     {to:?} with shards of {new:?} bytes"
                )));
            }
        }
        let buffers = taken(arrays, copy)?;
        let made = specs
            .iter()
            .zip(buffers)
            .map(|(spec, shards)| -> ArrayRef { Arc::new(Array::new(spec.clone(), shards)) });
        Ok(made.collect())
    }
}

/// The shards of each array, which loses them if they are donated.
fn taken(arrays: &[ArrayRef], copy: ArrayCopySemantics) -> Result<SmallVec<[Shards; 4]>> {
    let donates = copy == ArrayCopySemantics::DonateInput;
    let arrays: Vec<&Array> = arrays.iter().map(Array::of).collect::<Result<_>>()?;
    take_shards(&arrays, &vec![donates; arrays.len()])
}

/// The bytes of each shard of all processes.
fn shard_bytes(spec: &ArraySpec) -> Result<Vec<usize>> {
    let all = SingleDeviceShardSemantics::AllShards;
    let shapes = spec.sharding.shard_shapes(&spec.shape, all)?;
    Ok(shapes.iter().map(Shape::num_elements).map(|n| n * spec.dtype.size_bytes()).collect())
}

/// Bytes that are anything are no booleans.
fn is_bool(spec: &ArraySpec) -> bool {
    spec.dtype == DType::Bool
}
