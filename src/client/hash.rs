//! Hashes of what arrays contain, the same on every process that asks.

use std::sync::Arc;

use lockstep_collectives::{Call, CollectiveKey, ElementType, Reduction};

use super::Core;
use super::array::Array;
use super::collective::status;
use crate::backend::{Buffer, LocalDevice};
use crate::ifrt::{
    ArrayRef, Future, HashMode, IndexDomain, Promise, Result, ShardingSpec,
    SingleDeviceShardSemantics, Status,
};

/// One shard of this process that counts, and what it has of its array.
struct Piece {
    array: usize,
    /// Mixed into the elements' places: nothing for logical hashes, the shard's for physical ones.
    salt: u64,
    domain: IndexDomain,
    strides: Vec<usize>,
    element_bytes: usize,
    shard: Future<Buffer>,
}

impl Core {
    /// See [`crate::ifrt::Client::hash_arrays`].
    pub(super) fn hash(
        self: &Arc<Self>,
        arrays: &[ArrayRef],
        mode: HashMode,
    ) -> Result<Future<Vec<u64>>> {
        let mut pieces = Vec::new();
        let mut processes = Vec::new();
        for (number, array) in arrays.iter().enumerate() {
            let spec = array.spec();
            let devices = spec.sharding.devices();
            let shards = Array::of(array)?.shards()?;
            let mut shards = shards.into_iter();
            let all = SingleDeviceShardSemantics::AllShards;
            let domains = spec.sharding.index_domains(&spec.shape, all)?;
            if mode == HashMode::Logical
                && matches!(spec.sharding.spec(), ShardingSpec::Concrete(_))
            {
                require_apart(&domains)?;
            }
            for (position, (device, domain)) in devices.iter().zip(&domains).enumerate() {
                processes.push(device.process_index());
                let shard = if device.is_addressable() { shards.next() } else { None };
                // Of replicas, the first counts.
                let counts = mode == HashMode::Physical || !domains[..position].contains(domain);
                if let (Some(shard), true) = (shard, counts) {
                    pieces.push(Piece {
                        array: number,
                        salt: if mode == HashMode::Physical { position as u64 + 1 } else { 0 },
                        domain: domain.clone(),
                        strides: spec.shape.strides(),
                        element_bytes: spec.dtype.size_bytes(),
                        shard,
                    });
                }
            }
        }
        processes.sort_unstable();
        processes.dedup();
        if arrays.is_empty() {
            return Ok(Future::ready(Ok(Vec::new())));
        }
        let own = self.world.rank().0;
        if !processes.contains(&own) {
            return Err(Status::invalid_argument(format!(
                "process {own} has no shard of the arrays to hash, which are on the processes \
                 {processes:?}"
            )));
        }
        let exchange = self.lead_group(&processes)?;
        let number = self.next_exchange(processes);
        let count = arrays.len();
        let (promise, hashes) = Promise::new();
        let communicator = self.communicator(LocalDevice(0))?;
        self.submit_to_lead(move || {
            if let Some(group) = &exchange {
                group.begin_epoch();
            }
            let hash = || -> Result<Vec<u64>> {
                let mut sums = vec![0_u64; count];
                for piece in &pieces {
                    let buffer = piece.shard.wait().inspect_err(|status| {
                        if let Some(group) = &exchange {
                            communicator.decline(group, status.message());
                        }
                    })?;
                    sums[piece.array] = sums[piece.array].wrapping_add(piece.sum(buffer.bytes()));
                }
                if let Some(group) = &exchange {
                    let key = CollectiveKey {
                        launch: number,
                        program: HASHING,
                        ordinal: 0,
                        iteration: 0,
                    };
                    let call = Call { key: Some(key), ..Call::on(group) };
                    let bytes = bytemuck::cast_slice_mut(&mut sums);
                    communicator
                        .all_reduce_in_place(&call, ElementType::U64, Reduction::Sum, bytes)
                        .map_err(status)?;
                }
                Ok(sums)
            };
            promise.set(hash());
        });
        Ok(hashes)
    }
}

/// Checks that parts are the same or apart, so that no element counts twice.
fn require_apart(domains: &[IndexDomain]) -> Result<()> {
    for (number, domain) in domains.iter().enumerate() {
        let overlaps =
            |other: &&IndexDomain| *other != domain && domain.intersection(other).is_some();
        if let Some(other) = domains[..number].iter().find(overlaps) {
            return Err(Status::invalid_argument(format!(
                "{other} and {domain} overlap: reshard the array to hash its elements once each"
            )));
        }
    }
    Ok(())
}

/// What the key of a collective has for a program when arrays are hashed.
const HASHING: u64 = u64::from_le_bytes(*b"hashing ");

impl Piece {
    /// The sum of the hashes of the elements, each with its place in the array: sums of parts are
    /// the sum of the whole, however it is cut.
    fn sum(&self, bytes: &[u8]) -> u64 {
        let ranges: Vec<(usize, usize)> = self.domain.ranges().collect();
        let mut index: Vec<usize> = ranges.iter().map(|(from, _)| *from).collect();
        let mut sum = 0_u64;
        for element in bytes.chunks_exact(self.element_bytes) {
            let place: usize = index.iter().zip(&self.strides).map(|(i, stride)| i * stride).sum();
            let value = element.chunks(8).fold(self.salt, |value, chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                mixed(value ^ u64::from_le_bytes(word))
            });
            sum = sum.wrapping_add(mixed(value.wrapping_add(mixed(place as u64 + 1))));
            for (i, (from, to)) in index.iter_mut().zip(&ranges).rev() {
                *i += 1;
                if *i < *to {
                    break;
                }
                *i = *from;
            }
        }
        sum
    }
}

/// A permutation of 64 bits in which every bit of the input changes half of the output's: the
/// finaliser of SplitMix64.
fn mixed(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
