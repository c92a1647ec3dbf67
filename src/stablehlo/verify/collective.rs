//! Operations between devices.

use super::Checked;
use super::check::Check;
use crate::ifrt::DType;
use crate::stablehlo::op::{Collective, OpKind};

/// `partition_id` and `replica_id`.
pub(super) fn id(check: &Check<'_>) -> Checked {
    check.counts(0, 1, 0)?;
    let result = check.result(0)?;
    check.require(result.dtype == DType::U32 && result.shape.rank() == 0, "O1", || {
        format!("the result must be a scalar ui32, found {result}")
    })
}

/// The constraints of one operation on its groups.
struct Constraints {
    unique: &'static str,
    size: &'static str,
    range: &'static str,
    global_ids: &'static str,
}

/// Checks the groups, and answers how many processes a group has, where all have as many.
fn groups(check: &Check<'_>, collective: &Collective, names: &Constraints) -> Checked<Members> {
    check.require(
        !collective.use_global_device_ids || collective.channel_id > 0,
        names.global_ids,
        || "use_global_device_ids needs a channel_id greater than 0".to_owned(),
    )?;
    let count = processes(check, collective);
    let mut ids: Vec<i64> =
        collective.replica_groups.iter().flatten().copied().filter(|&id| id != -1).collect();
    let most = count.unwrap_or(usize::MAX);
    if let Some(id) = ids.iter().find(|&&id| !is_less(id, most)) {
        let count = most;
        let message = format!("replica_groups has {id}, ids are less than {count}");
        return Err(check.error(names.range, message));
    }
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(check.error(names.unique, format!("replica_groups has {} twice", pair[0])));
    }
    let named = ids.len();
    // Without a number of processes, all those up to the greatest id must be there.
    let count = count.unwrap_or_else(|| {
        ids.last()
            .map_or(0, |&id| usize::try_from(id).map_or(usize::MAX, |id| id.saturating_add(1)))
    });
    check.require(names.size.is_empty() || named == count, names.size, || {
        format!("replica_groups names {named} of {count} processes")
    })?;
    let padded = collective.replica_groups.iter().flatten().any(|&id| id == -1);
    let columns = collective.replica_groups.first().map_or(0, Vec::len);
    let even = collective.replica_groups.iter().all(|group| group.len() == columns);
    check.require(even, "", || "replica_groups has rows of several lengths".to_owned())?;
    // Members of a group of replicas across all partitions.
    let across = matches!(
        check.data.kind,
        OpKind::AllReduce(_) | OpKind::AllGather { .. } | OpKind::ReduceScatter { .. }
    ) && collective.channel_id > 0
        && !collective.use_global_device_ids;
    let members = match partitions_known(check) {
        _ if padded => return Ok(Members::Uneven),
        None if across => None,
        Some(partitions) if across => columns.checked_mul(partitions),
        _ => Some(columns),
    };
    // No groups at all mean one of all processes.
    Ok(members.filter(|_| columns > 0).map_or(Members::Unknown, Members::Of))
}

/// How many processes a group has.
#[derive(Clone, Copy)]
enum Members {
    /// So many in each group.
    Of(usize),
    /// Not as many in each.
    Uneven,
    /// As many as there are, which the module does not say.
    Unknown,
}

impl Members {
    /// The number; where it is not known, that which the shapes before and after tell. Groups of
    /// several sizes give results of several shapes, which one program cannot have.
    fn or_told_by(
        self,
        check: &Check<'_>,
        great: Option<&usize>,
        small: Option<&usize>,
    ) -> Checked<usize> {
        match (self, great, small) {
            (Self::Of(members), ..) => Ok(members),
            (Self::Unknown, Some(great), Some(small)) => {
                Ok(great.checked_div(*small).unwrap_or(1).max(1))
            }
            _ => Err(check.error("", "the groups must have the same size")),
        }
    }
}

/// Whether `id` is one of `count` ids.
fn is_less(id: i64, count: usize) -> bool {
    usize::try_from(id).is_ok_and(|id| id < count)
}

/// How many ids the groups are about: by the mode that the specification derives from the
/// channel and `use_global_device_ids`. `None` when the module does not say.
fn processes(check: &Check<'_>, collective: &Collective) -> Option<usize> {
    let module = check.module;
    if collective.use_global_device_ids {
        let all = module.num_replicas.saturating_mul(module.num_partitions);
        return partitions_known(check).map(|_| all);
    }
    partitions_or_replicas(check, collective.channel_id)
}

/// The number of partitions. One of one replica is what a module has that does not say: programs
/// that run in parallel or come from elsewhere may have more.
fn partitions_known(check: &Check<'_>) -> Option<usize> {
    let module = check.module;
    let is_said = module.num_partitions != 1 || module.num_replicas != 1;
    is_said.then_some(module.num_partitions)
}

pub(super) fn partitions_or_replicas(check: &Check<'_>, channel_id: i64) -> Option<usize> {
    let across_partitions = matches!(
        check.data.kind,
        OpKind::AllToAll { .. }
            | OpKind::CollectivePermute { .. }
            | OpKind::CollectiveBroadcast(_)
            | OpKind::CollectiveReduce { .. }
    );
    let module = check.module;
    let partitions = partitions_known(check)?;
    Some(if across_partitions && channel_id > 0 { partitions } else { module.num_replicas })
}

/// `all_reduce`.
pub(super) fn all_reduce(check: &Check<'_>, collective: &Collective) -> Checked {
    let count = check.data.operands.len();
    check.require(count > 0, "", || "it needs at least one operand".to_owned())?;
    check.counts(count, count, 1)?;
    let names = Constraints { unique: "C1", size: "C2", range: "C3", global_ids: "C4" };
    groups(check, collective, &names)?;
    for i in 0..count {
        let (operand, result) = (check.operand(i)?, check.result(i)?);
        let dtypes = check.combiner(0, &[operand.dtype], "C5")?;
        check.equal(&format!("shape of result {i}"), &operand.shape, &result.shape, "C6")?;
        let what = format!("element type of result {i}");
        check.equal(&what, &dtypes[0], &result.dtype, "C7")?;
    }
    Ok(())
}

/// `all_gather`.
pub(super) fn all_gather(check: &Check<'_>, dimension: usize, collective: &Collective) -> Checked {
    let count = check.data.operands.len();
    check.require(count > 0, "", || "it needs at least one operand".to_owned())?;
    check.counts(count, count, 0)?;
    let names = Constraints { unique: "C2", size: "C3", range: "C4", global_ids: "C5" };
    let members = groups(check, collective, &names)?;
    for i in 0..count {
        let (operand, result) = (check.operand(i)?, check.result(i)?);
        check.in_range("all_gather_dim", &[dimension], operand.shape.rank(), "C1")?;
        let mut expected = operand.shape.dims().to_vec();
        let size = expected[dimension];
        let members = members.or_told_by(check, result.shape.dims().get(dimension), Some(&size))?;
        expected[dimension] = size.saturating_mul(members);
        let fits = result.shape.dims() == expected && result.dtype == operand.dtype;
        check.require(fits, "C6", || {
            format!("result {i} is {result}, expected {expected:?} of {}", operand.dtype)
        })?;
    }
    Ok(())
}

/// `reduce_scatter`.
pub(super) fn reduce_scatter(
    check: &Check<'_>,
    dimension: usize,
    collective: &Collective,
) -> Checked {
    check.counts(1, 1, 1)?;
    let names = Constraints { unique: "C3", size: "C4", range: "C5", global_ids: "C6" };
    let members = groups(check, collective, &names)?;
    let operand = check.operand(0)?;
    check.in_range("scatter_dimension", &[dimension], operand.shape.rank(), "C2")?;
    let mut expected = operand.shape.dims().to_vec();
    let size = expected[dimension];
    let piece = check.result(0)?.shape.dims().get(dimension);
    let members = members.or_told_by(check, Some(&size), piece)?;
    check.require(size.checked_rem(members) == Some(0), "C1", || {
        format!("dimension {dimension} of size {size} cannot be cut in {members}")
    })?;
    expected[dimension] = size / members;
    let dtypes = check.combiner(0, &[operand.dtype], "C7")?;
    check.result_shape(&expected, "C8")?;
    check.result_dtype(dtypes[0], "C9")
}

/// `all_to_all`.
pub(super) fn all_to_all(
    check: &Check<'_>,
    (split, concat): (usize, usize),
    split_count: usize,
    collective: &Collective,
) -> Checked {
    let count = check.data.operands.len();
    check.require(count > 0, "", || "it needs at least one operand".to_owned())?;
    check.counts(count, count, 0)?;
    check.require(split_count > 0, "C4", || "split_count is 0".to_owned())?;
    let names = Constraints { unique: "C5", size: "C6", range: "C7", global_ids: "" };
    let members = groups(check, collective, &names)?;
    let members = members.or_told_by(check, Some(&split_count), Some(&1))?;
    check.require(members == split_count, "C8", || {
        format!("groups of {members} processes cannot share {split_count} pieces")
    })?;
    for i in 0..count {
        let (operand, result) = (check.operand(i)?, check.result(i)?);
        check.in_range("split_dimension", &[split], operand.shape.rank(), "C1")?;
        check.in_range("concat_dimension", &[concat], operand.shape.rank(), "C3")?;
        let mut expected = operand.shape.dims().to_vec();
        check.require(expected[split] % split_count == 0, "C2", || {
            format!("dimension {split} of {operand} cannot be cut in {split_count}")
        })?;
        if split != concat {
            expected[split] /= split_count;
            let size = expected[concat].checked_mul(split_count);
            expected[concat] = size.ok_or_else(|| check.error("C9", "the result is too large"))?;
        }
        let fits = result.shape.dims() == expected && result.dtype == operand.dtype;
        check.require(fits, "C9", || {
            format!("result {i} is {result}, expected {expected:?} of {}", operand.dtype)
        })?;
    }
    Ok(())
}

/// `collective_permute`.
pub(super) fn collective_permute(
    check: &Check<'_>,
    pairs: &[(i64, i64)],
    channel_id: i64,
) -> Checked {
    check.counts(1, 1, 0)?;
    self::pairs(check, pairs, partitions_or_replicas(check, channel_id))?;
    check.equal("type of the result", check.operand(0)?, check.result(0)?, "C5")
}

/// Each of `count` processes, or of however many there are, sends to one other at most, and receives from one.
pub(super) fn pairs(check: &Check<'_>, pairs: &[(i64, i64)], count: Option<usize>) -> Checked {
    let count = count.unwrap_or(usize::MAX);
    let (mut sources, mut targets): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    for (ids, what, unique) in [(&mut sources, "source", "C2"), (&mut targets, "target", "C3")] {
        if let Some(id) = ids.iter().find(|&&id| !is_less(id, count)) {
            return Err(check.error("C4", format!("the {what} {id} is not less than {count}")));
        }
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(check.error(unique, format!("{} is a {what} twice", pair[0])));
        }
    }
    Ok(())
}

/// `collective_broadcast`.
pub(super) fn collective_broadcast(check: &Check<'_>, collective: &Collective) -> Checked {
    let count = check.data.operands.len();
    check.require(count > 0, "C3", || "it needs at least one operand".to_owned())?;
    check.counts(count, count, 0)?;
    let names = Constraints { unique: "C1", size: "", range: "C2", global_ids: "" };
    groups(check, collective, &names)?;
    for i in 0..count {
        check.equal(&format!("type of result {i}"), check.operand(i)?, check.result(i)?, "C3")?;
    }
    Ok(())
}

/// `collective_reduce`; with a dynamic root, the last operand names one for each of the others.
pub(super) fn collective_reduce(
    check: &Check<'_>,
    collective: &Collective,
    has_dynamic_root: bool,
) -> Checked {
    let operands = check.data.operands.len();
    let count = operands.saturating_sub(usize::from(has_dynamic_root));
    check.require(count > 0, "C3", || "it needs at least one operand".to_owned())?;
    check.counts(operands, count, 1)?;
    let names = Constraints { unique: "C1", size: "", range: "C2", global_ids: "" };
    groups(check, collective, &names)?;
    if has_dynamic_root {
        let roots = check.operand(count)?;
        check.require(roots.dtype == DType::S32 && roots.shape.dims() == [count], "C3", || {
            format!("the roots must be a list of {count} i32, found {roots}")
        })?;
    }
    for i in 0..count {
        let (operand, result) = (check.operand(i)?, check.result(i)?);
        let dtypes = check.combiner(0, &[operand.dtype], "C4")?;
        check.equal(&format!("shape of result {i}"), &operand.shape, &result.shape, "C3")?;
        check.equal(&format!("element type of result {i}"), &dtypes[0], &result.dtype, "C4")?;
    }
    Ok(())
}
