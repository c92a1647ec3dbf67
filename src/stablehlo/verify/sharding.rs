//! Meshes, shardings and `sdy` operations.

use std::collections::HashSet;

use super::check::Check;
use super::{Checked, VerifyError, shown};
use crate::ifrt::Shape;
use crate::stablehlo::op::{
    AxisRef, ManualComputation, NamedComputation, PropagationDirection, Sharding, ShardingRule,
};
use crate::stablehlo::{Location, Mesh, Module, TensorType, Type};

/// Meshes have different names, and axes with different names and at least one device.
pub(super) fn meshes(module: &Module) -> Checked {
    let mut names = HashSet::with_capacity(module.meshes.len());
    for mesh in &module.meshes {
        let error = |message: String| VerifyError {
            message,
            subject: format!("sdy.mesh @{}", mesh.name),
            function: String::new(),
            location: Location::default(),
            constraint: None,
        };
        if !names.insert(mesh.name.as_str()) {
            return Err(error("it is defined twice".to_owned()));
        }
        let mut devices = 1_usize;
        let mut axes = HashSet::with_capacity(mesh.axes.len());
        for (axis, size) in &mesh.axes {
            if !axes.insert(axis.as_str()) {
                return Err(error(format!("it has the axis \"{axis}\" twice")));
            }
            if *size == 0 {
                return Err(error(format!("the axis \"{axis}\" has no devices")));
            }
            devices = devices
                .checked_mul(*size)
                .ok_or_else(|| error("it has too many devices".to_owned()))?;
        }
        if let Some(ids) = &mesh.device_ids {
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            let each_once = sorted.iter().enumerate().all(|(i, &id)| i64::try_from(i) == Ok(id));
            let is_maximal = mesh.is_maximal() && ids.iter().all(|&id| id >= 0);
            if !is_maximal && (ids.len() != devices || !each_once) {
                return Err(error(format!("device_ids must name each of {devices} devices once")));
            }
        }
    }
    Ok(())
}

/// Whether a value of type `ty` can have `sharding`; the answer is what is wrong.
pub(super) fn fits(module: &Module, sharding: &Sharding, ty: &Type) -> Result<(), String> {
    let mesh = module
        .mesh(&sharding.mesh)
        .ok_or_else(|| format!("its sharding names @{}, which is no mesh", sharding.mesh))?;
    if mesh.is_maximal() {
        return without_dimensions(sharding);
    }
    let rank = rank(ty);
    if sharding.dims.len() != rank {
        let found = sharding.dims.len();
        return Err(format!("its sharding has {found} dimensions, its type {ty} has {rank}"));
    }
    let axes = sharding.dims.iter().flat_map(|dim| &dim.axes);
    let axes = axes.chain(&sharding.replicated).chain(&sharding.unreduced);
    distinct(mesh, axes, "its sharding")
}

/// Whether a sharding cuts nothing, as one that only says which device does something.
fn without_dimensions(sharding: &Sharding) -> Result<(), String> {
    let Sharding { dims, replicated, unreduced, .. } = sharding;
    if dims.is_empty() && replicated.is_empty() && unreduced.is_empty() {
        return Ok(());
    }
    Err("a sharding that only names a device has no dimensions and no axes".to_owned())
}

/// The number of dimensions that a sharding of a value of type `ty` has.
fn rank(ty: &Type) -> usize {
    match ty {
        Type::Tensor(ty) => ty.shape.rank(),
        Type::Quantized(ty) => ty.shape().rank(),
        Type::Dynamic(ty) => ty.dims.len(),
        Type::Tuple(types) => match types.as_slice() {
            [ty] => rank(ty),
            _ => 0,
        },
        Type::Token | Type::Future(_) => 0,
    }
}

/// Whether the axes that `what` uses are some of a mesh, and none is used twice; the answer is
/// what is wrong.
pub(super) fn distinct<'a>(
    mesh: &Mesh,
    axes: impl Iterator<Item = &'a AxisRef>,
    what: &str,
) -> Result<(), String> {
    // The devices along an axis that each reference takes: from one stride up to another.
    let mut taken: Vec<(&str, usize, usize)> = Vec::new();
    for AxisRef { name, sub_axis } in axes {
        let Some(size) = size_of(mesh, name) else {
            return Err(format!("@{} has no axis \"{name}\"", mesh.name));
        };
        let (from, parts) = sub_axis.unwrap_or((1, size));
        let to = from.checked_mul(parts).filter(|&to| to > 0 && size.is_multiple_of(to));
        let Some(to) = to else {
            return Err(format!("({from}){parts} is no part of the axis \"{name}\" of {size}"));
        };
        taken.push((name, from, to));
    }
    taken.sort_unstable();
    match taken.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[1].1 < pair[0].2) {
        Some(pair) => Err(format!("{what} uses the axis \"{}\" twice", pair[0].0)),
        None => Ok(()),
    }
}

pub(super) fn size_of(mesh: &Mesh, axis: &str) -> Option<usize> {
    mesh.axes.iter().find(|(name, _)| name == axis).map(|(_, size)| *size)
}

/// `sdy.sharding_constraint`.
pub(super) fn sharding_constraint(check: &Check<'_>, sharding: &Sharding) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    check.equal("type of the result", operand, check.result(0)?, "")?;
    fits(check.module, sharding, &Type::Tensor(operand.clone()))
        .map_err(|message| check.error("", message))
}

/// `sdy.sharding_group`.
pub(super) fn sharding_group(check: &Check<'_>) -> Checked {
    check.counts(1, 0, 0)?;
    check.operand(0).map(|_| ())
}

/// `sdy.propagation_barrier`.
pub(super) fn propagation_barrier(check: &Check<'_>, direction: PropagationDirection) -> Checked {
    check.counts(1, 1, 0)?;
    check.equal("type of the result", check.operand(0)?, check.result(0)?, "")?;
    check.require(direction != PropagationDirection::Both, "", || {
        "a barrier that lets everything through is none".to_owned()
    })
}

/// `sdy.data_flow_edge`.
pub(super) fn data_flow_edge(check: &Check<'_>, place: Option<&Sharding>) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    check.equal("type of the result", operand, check.result(0)?, "")?;
    match place {
        Some(sharding) => fits(check.module, sharding, &Type::Tensor(operand.clone()))
            .map_err(|message| check.error("", message)),
        None => Ok(()),
    }
}

/// `sdy.named_computation`: its body takes the operands and returns the results.
pub(super) fn named_computation(check: &Check<'_>, named: &NamedComputation) -> Checked {
    let (operands, results) = (check.operand_types(), check.result_types());
    check.counts(operands.len(), results.len(), 1)?;
    check.region_type(0, &operands, &results, "")?;
    for (what, shardings, types) in [
        ("in_shardings", &named.in_shardings, &operands),
        ("out_shardings", &named.out_shardings, &results),
    ] {
        if shardings.is_empty() {
            continue;
        }
        check.length(what, shardings.len(), types.len(), "")?;
        for (i, (sharding, ty)) in shardings.iter().zip(types).enumerate() {
            fits(check.module, sharding, ty)
                .map_err(|message| check.error("", format!("{what}, {i}: {message}")))?;
        }
    }
    Ok(())
}

/// The `sdy.sharding` of any operation has one entry per result, or without results one that may
/// name a device.
pub(super) fn results(check: &Check<'_>) -> Checked {
    let shardings = &check.data.shardings;
    if shardings.is_empty() {
        return Ok(());
    }
    if let ([], [sharding]) = (check.data.results.as_slice(), shardings.as_slice()) {
        let place = fits(check.module, sharding, &Type::Token);
        return place.map_err(|message| check.error("", message));
    }
    check.length("sdy.sharding", shardings.len(), check.data.results.len(), "")?;
    for (i, (sharding, ty)) in shardings.iter().zip(check.result_types()).enumerate() {
        fits(check.module, sharding, &ty)
            .map_err(|message| check.error("", format!("result {i}: {message}")))?;
    }
    Ok(())
}

/// `sdy.manual_computation`: the body works on what the manual axes leave of each dimension.
pub(super) fn manual_computation(check: &Check<'_>, manual: &ManualComputation) -> Checked {
    let (operands, results) = (check.data.operands.len(), check.data.results.len());
    check.counts(operands, results, 1)?;
    check.length("in_shardings", manual.in_shardings.len(), operands, "")?;
    check.length("out_shardings", manual.out_shardings.len(), results, "")?;
    let mut arguments = Vec::with_capacity(operands);
    for (i, sharding) in manual.in_shardings.iter().enumerate() {
        arguments.push(local(check, manual, sharding, check.operand(i)?)?);
    }
    let mut returned = Vec::with_capacity(results);
    for (i, sharding) in manual.out_shardings.iter().enumerate() {
        returned.push(local(check, manual, sharding, check.result(i)?)?);
    }
    let (found_arguments, found_returned) = check.region(0)?;
    check.require(found_arguments == arguments, "", || {
        format!("the body takes {}, expected {}", shown(&found_arguments), shown(&arguments))
    })?;
    check.require(found_returned == returned, "", || {
        format!("the body returns {}, expected {}", shown(&found_returned), shown(&returned))
    })
}

/// The type inside the body of a value of type `ty` outside.
fn local(
    check: &Check<'_>,
    manual: &ManualComputation,
    sharding: &Sharding,
    ty: &TensorType,
) -> Checked<Type> {
    fits(check.module, sharding, &Type::Tensor(ty.clone()))
        .map_err(|message| check.error("", message))?;
    let mut dims = ty.shape.dims().to_vec();
    for (dim, (size, axes)) in dims.iter_mut().zip(&sharding.dims).enumerate() {
        for axis in axes.axes.iter().filter(|axis| manual.manual_axes.contains(&axis.name)) {
            let whole = check.module.mesh(&sharding.mesh).and_then(|m| size_of(m, &axis.name));
            let parts = axis.sub_axis.map_or(whole, |(_, size)| Some(size)).unwrap_or(0);
            check.require(size.checked_rem(parts) == Some(0), "", || {
                format!("dimension {dim} of {ty} cannot be cut in {parts} along \"{}\"", axis.name)
            })?;
            *size /= parts;
        }
    }
    let shape = Shape::new(dims).map_err(|error| check.error("", error.to_string()))?;
    Ok(Type::Tensor(TensorType::new(ty.dtype, shape)))
}

/// `sdy.sharding_rule` of a custom call: it maps each dimension of each operand and result to
/// factors that it has.
pub(super) fn rule(check: &Check<'_>, rule: &ShardingRule) -> Checked {
    for (what, mappings, types) in [
        ("operand", &rule.operands, check.operand_types()),
        ("result", &rule.results, check.result_types()),
    ] {
        check.length(
            &format!("the {what}s of the sharding rule"),
            mappings.len(),
            types.len(),
            "",
        )?;
        for (i, (dims, ty)) in mappings.iter().zip(&types).enumerate() {
            let what = format!("the sharding rule of {what} {i}");
            check.length(&what, dims.len(), rank(ty), "")?;
            check.in_range(&what, &dims.concat(), rule.factor_sizes.len(), "")?;
        }
    }
    let kinds = [&rule.reduction, &rule.need_replication, &rule.permutation];
    let kinds: Vec<usize> = kinds.into_iter().flatten().copied().collect();
    for factors in [&kinds, &rule.blocked_propagation] {
        check.in_range("the factors of the sharding rule", factors, rule.factor_sizes.len(), "")?;
        check.unique("the factors of the sharding rule", factors, "")?;
    }
    Ok(())
}
