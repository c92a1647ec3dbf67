//! Operations between devices.

use super::{Attributes, Built, replica_groups};
use crate::stablehlo::op::{Collective, OpKind};

/// The operations of this file.
pub(super) const KNOWN: &[&str] = &[
    "partition_id",
    "replica_id",
    "all_reduce",
    "cross-replica-sum",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "collective_permute",
    "collective_broadcast",
    "collective_reduce",
];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(match op {
        "partition_id" => OpKind::PartitionId,
        "replica_id" => OpKind::ReplicaId,
        "all_reduce" => OpKind::AllReduce(collective(attributes)?),
        // The name of old of the sum between replicas, whose computation is implied.
        "cross-replica-sum" => OpKind::AllReduce(Collective {
            replica_groups: replica_groups(attributes)?,
            channel_id: 0,
            use_global_device_ids: false,
        }),
        "all_gather" => OpKind::AllGather {
            dimension: attributes.integer("all_gather_dim")?,
            collective: collective(attributes)?,
        },
        "reduce_scatter" => OpKind::ReduceScatter {
            dimension: attributes.integer("scatter_dimension")?,
            collective: collective(attributes)?,
        },
        "all_to_all" => OpKind::AllToAll {
            split_dimension: attributes.integer("split_dimension")?,
            concat_dimension: attributes.integer("concat_dimension")?,
            split_count: attributes.integer("split_count")?,
            collective: collective(attributes)?,
        },
        "collective_permute" => OpKind::CollectivePermute {
            source_target_pairs: pairs(attributes)?
                .ok_or_else(|| attributes.lacks("source_target_pairs"))?,
            channel_id: channel_id(attributes)?,
        },
        "collective_broadcast" => OpKind::CollectiveBroadcast(collective(attributes)?),
        "collective_reduce" => OpKind::CollectiveReduce {
            collective: collective(attributes)?,
            has_dynamic_root: attributes.flag("has_dynamic_root")?,
        },
        _ => return Ok(None),
    }))
}

fn collective(attributes: &mut Attributes) -> Built<Collective> {
    Ok(Collective {
        replica_groups: replica_groups(attributes)?,
        channel_id: channel_id(attributes)?,
        use_global_device_ids: attributes.flag("use_global_device_ids")?,
    })
}

/// `replica_groups`: rows of devices, or what axes of a mesh make of them.
fn replica_groups(attributes: &mut Attributes) -> Built<Vec<Vec<i64>>> {
    let Some(entry) = attributes.take("replica_groups") else {
        return Err(attributes.lacks("replica_groups"));
    };
    match replica_groups::groups(&entry.value) {
        Some(Ok(groups)) => Ok(groups),
        Some(Err(message)) => Err(attributes.wrong(&entry, &format!("right: {message}"))),
        None => attributes.to_rows(&entry),
    }
}

/// The channel; its type (0 or 1 for device to device) says what the operation says already.
fn channel_id(attributes: &mut Attributes) -> Built<i64> {
    let Some(mut channel) = attributes.fields("channel_handle", "stablehlo.channel_handle")? else {
        return Ok(0);
    };
    let handle = channel.integer("handle")?;
    let kind: i64 = channel.optional_integer("type")?.unwrap_or(0);
    if !(0..=1).contains(&kind) {
        return Err(channel.not_known("a channel to or from the host"));
    }
    channel.finish()?;
    Ok(handle)
}

/// `source_target_pairs`, if present.
pub(super) fn pairs(attributes: &mut Attributes) -> Built<Option<Vec<(i64, i64)>>> {
    let Some(rows) = attributes.rows("source_target_pairs")? else { return Ok(None) };
    let pairs = rows.iter().map(|row| match row.as_slice() {
        &[source, target] => Ok((source, target)),
        _ => Err(attributes.not_known("a source and target that is not a pair")),
    });
    pairs.collect::<Built<Vec<_>>>().map(Some)
}
