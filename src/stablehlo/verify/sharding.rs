//! Meshes, shardings and `sdy` operations.

use std::collections::HashSet;

use super::check::Check;
use super::{Checked, VerifyError, shown};
use crate::ifrt::Shape;
use crate::stablehlo::op::{ManualComputation, Sharding};
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
            // A mesh without axes may name the one device of everything on it.
            let is_maximal = mesh.axes.is_empty() && ids.len() == 1 && ids[0] >= 0;
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
    let rank = match ty {
        Type::Tensor(ty) => ty.shape.rank(),
        Type::Token | Type::Tuple(_) => 0,
    };
    if sharding.dims.len() != rank {
        let found = sharding.dims.len();
        return Err(format!("its sharding has {found} dimensions, its type {ty} has {rank}"));
    }
    let axes = sharding.dims.iter().flat_map(|dim| &dim.axes).chain(&sharding.replicated);
    let mut whole = Vec::new();
    for axis in axes {
        if size_of(mesh, &axis.name).is_none() {
            return Err(format!("@{} has no axis \"{}\"", mesh.name, axis.name));
        }
        if axis.sub_axis.is_none() {
            whole.push(axis.name.as_str());
        }
    }
    whole.sort_unstable();
    match whole.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("its sharding uses the axis \"{}\" twice", pair[0])),
        None => Ok(()),
    }
}

fn size_of(mesh: &Mesh, axis: &str) -> Option<usize> {
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

/// The `sdy.sharding` of any operation has one entry per result.
pub(super) fn results(check: &Check<'_>) -> Checked {
    let shardings = &check.data.shardings;
    if shardings.is_empty() {
        return Ok(());
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
