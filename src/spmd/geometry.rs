//! Meshes and shardings as geometry: which device holds which part of an array.
//!
//! Devices of a mesh are counted row-major, the last axis fastest. `device_ids` renames them:
//! the device at position `i` is partition `device_ids[i]`.

use super::SpmdError;
use crate::ifrt::Shape;
use crate::stablehlo::op::{AxisRef, ReductionOp, Sharding};
use crate::stablehlo::{Mesh, TensorType};

/// How many devices `mesh` has, at least one.
///
/// # Errors
/// When an axis has no device, two have one name, there are more devices than fit `u32`, or
/// `device_ids` does not name each device once.
pub fn device_count(mesh: &Mesh) -> Result<usize, SpmdError> {
    let bad = |reason| SpmdError::BadMesh { mesh: mesh.name.clone(), reason };
    let mut count = 1_usize;
    for (i, (name, size)) in mesh.axes.iter().enumerate() {
        if *size == 0 {
            return Err(bad("an axis has no devices"));
        }
        if mesh.axes.iter().take(i).any(|(other, _)| other == name) {
            return Err(bad("two axes have the same name"));
        }
        count = count
            .checked_mul(*size)
            .filter(|&count| u32::try_from(count).is_ok())
            .ok_or_else(|| bad("it has more devices than any machine"))?;
    }
    if let Some(ids) = &mesh.device_ids {
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        let each_once = sorted.iter().enumerate().all(|(i, &id)| i64::try_from(i) == Ok(id));
        if ids.len() != count || !each_once {
            return Err(bad("its device ids do not name each device once"));
        }
    }
    Ok(count)
}

/// Where partition `partition` stands in `mesh`: its coordinate on each axis.
///
/// `None` when the mesh has no such device.
pub fn position_of(mesh: &Mesh, partition: usize) -> Option<Vec<usize>> {
    let mut position = match &mesh.device_ids {
        None => partition,
        Some(ids) => {
            let partition = i64::try_from(partition).ok()?;
            ids.iter().position(|&id| id == partition)?
        }
    };
    let mut coordinates = vec![0; mesh.axes.len()];
    for (coordinate, (_, size)) in coordinates.iter_mut().zip(&mesh.axes).rev() {
        *coordinate = position.checked_rem(*size)?;
        position /= size;
    }
    (position == 0).then_some(coordinates)
}

/// The axes of size over one that cut each dimension, by position in the mesh, outermost first.
///
/// # Errors
/// When the sharding names an axis that `mesh` does not have, uses one twice, cuts by a part of an
/// axis, or is to be reduced by anything but sums. `what` is the thing that has the sharding, for the message.
pub fn axes_of(mesh: &Mesh, sharding: &Sharding, what: &str) -> Result<Vec<Vec<usize>>, SpmdError> {
    let mut used = vec![false; mesh.axes.len()];
    let mut axis = |axis: &AxisRef| {
        let unknown = || SpmdError::UnknownAxis {
            what: what.to_owned(),
            axis: axis.name.clone(),
            mesh: mesh.name.clone(),
        };
        if axis.sub_axis.is_some() {
            return Err(SpmdError::SubAxis { what: what.to_owned(), axis: axis.name.clone() });
        }
        let found = mesh.axes.iter().position(|(name, _)| *name == axis.name);
        let position = found.ok_or_else(unknown)?;
        if std::mem::replace(&mut used[position], true) {
            return Err(unknown());
        }
        Ok(position)
    };
    let mut dims = Vec::with_capacity(sharding.dims.len());
    for dim in &sharding.dims {
        let mut axes = dim.axes.iter().map(&mut axis).collect::<Result<Vec<usize>, _>>()?;
        axes.retain(|&axis| mesh.axes[axis].1 > 1);
        dims.push(axes);
    }
    for other in sharding.replicated.iter().chain(&sharding.unreduced) {
        axis(other)?;
    }
    match sharding.unreduced.first() {
        Some(AxisRef { name, .. }) if sharding.reduction_op != ReductionOp::Sum => {
            let (what, axis) = (what.to_owned(), name.clone());
            Err(SpmdError::Unreduced { what, axis, by: sharding.reduction_op.name() })
        }
        _ => Ok(dims),
    }
}

/// The axes of size over one along which the shards are summands, by position in the mesh.
///
/// `sharding` is one that [`axes_of`] takes.
pub(super) fn unreduced_axes(mesh: &Mesh, sharding: &Sharding) -> Vec<usize> {
    let axes = mesh.axes.iter().enumerate();
    let unreduced = axes.filter(|(_, (name, size))| {
        *size > 1 && sharding.unreduced.iter().any(|axis| axis.name == *name)
    });
    unreduced.map(|(position, _)| position).collect()
}

/// The shape that each device holds of an array of type `ty`.
///
/// # Errors
/// As [`axes_of`]; when the sharding has not one entry per dimension, or a dimension cannot be
/// shared evenly.
pub fn local_shape(
    mesh: &Mesh,
    sharding: &Sharding,
    ty: &TensorType,
    what: &str,
) -> Result<Shape, SpmdError> {
    let axes = axes_of(mesh, sharding, what)?;
    let dims = ty.shape.dims();
    if axes.len() != dims.len() {
        let (what, ty, found) = (what.to_owned(), ty.clone(), axes.len());
        return Err(SpmdError::Rank { what, ty, found });
    }
    let mut local = Vec::with_capacity(dims.len());
    for (dim, (&size, axes)) in dims.iter().zip(&axes).enumerate() {
        let parts = axes.iter().try_fold(1_usize, |n, &axis| n.checked_mul(mesh.axes[axis].1));
        let parts = parts.ok_or(SpmdError::NotVerified("a mesh is too large"))?;
        if !size.is_multiple_of(parts) {
            return Err(SpmdError::NotDivisible { what: what.to_owned(), dim, size, parts });
        }
        local.push(size / parts);
    }
    Shape::new(local).map_err(|_| SpmdError::NotVerified("a shape is too large"))
}

/// Which piece of each dimension partition `partition` holds, counted from 0 in pieces of the
/// local shape.
///
/// `None` when the mesh has no such device or the sharding does not fit the mesh.
pub fn shard_index(mesh: &Mesh, sharding: &Sharding, partition: usize) -> Option<Vec<usize>> {
    let axes = axes_of(mesh, sharding, "").ok()?;
    let position = position_of(mesh, partition)?;
    let piece = |axes: &Vec<usize>| {
        axes.iter().fold(0, |piece, &axis| piece * mesh.axes[axis].1 + position[axis])
    };
    Some(axes.iter().map(piece).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::DType;
    use crate::stablehlo::op::DimSharding;

    fn mesh(device_ids: Option<Vec<i64>>) -> Mesh {
        let axes = vec![("x".to_owned(), 2), ("one".to_owned(), 1), ("y".to_owned(), 3)];
        Mesh { name: "mesh".to_owned(), axes, device_ids }
    }

    fn sharding(dims: &[&[&str]]) -> Sharding {
        let axis = |name: &&str| AxisRef { name: (*name).to_owned(), sub_axis: None };
        let dim = |axes: &&[&str]| DimSharding {
            axes: axes.iter().map(axis).collect(),
            is_open: false,
            priority: None,
        };
        Sharding {
            mesh: "mesh".to_owned(),
            dims: dims.iter().map(dim).collect(),
            replicated: Vec::new(),
            unreduced: Vec::new(),
            reduction_op: ReductionOp::default(),
        }
    }

    fn tensor(dims: &[usize]) -> TensorType {
        TensorType::new(DType::F32, Shape::new(dims).unwrap())
    }

    #[test]
    fn devices_are_counted_with_the_last_axis_fastest() {
        let mesh = mesh(None);
        assert_eq!(device_count(&mesh), Ok(6));
        assert_eq!(position_of(&mesh, 0), Some(vec![0, 0, 0]));
        assert_eq!(position_of(&mesh, 2), Some(vec![0, 0, 2]));
        assert_eq!(position_of(&mesh, 4), Some(vec![1, 0, 1]));
        assert_eq!(position_of(&mesh, 6), None);
    }

    #[test]
    fn device_ids_say_which_partition_stands_where() {
        let mesh = mesh(Some(vec![5, 4, 3, 2, 1, 0]));
        assert_eq!(device_count(&mesh), Ok(6));
        assert_eq!(position_of(&mesh, 5), Some(vec![0, 0, 0]));
        assert_eq!(position_of(&mesh, 1), Some(vec![1, 0, 1]));
        assert_eq!(position_of(&mesh, 6), None);
    }

    #[test]
    fn several_axes_cut_one_dimension_outermost_first() {
        let mesh = mesh(None);
        let sharding = sharding(&[&["y", "x"], &["one"]]);
        let shape = local_shape(&mesh, &sharding, &tensor(&[12, 5]), "a").unwrap();
        assert_eq!(shape.dims(), [2, 5]);
        // Partition 4 is x = 1, y = 1.
        assert_eq!(shard_index(&mesh, &sharding, 4), Some(vec![3, 0]));
        let pieces: Vec<_> = (0..6).map(|p| shard_index(&mesh, &sharding, p).unwrap()[0]).collect();
        assert_eq!(pieces, [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mesh = mesh(None);
        let error = local_shape(&mesh, &sharding(&[&["y"]]), &tensor(&[4]), "a").unwrap_err();
        let SpmdError::NotDivisible { dim: 0, size: 4, parts: 3, .. } = error else {
            panic!("{error}");
        };
        for (dims, shape) in [
            (vec![&["z"] as &[&str]], vec![6]),
            (vec![&["x"], &["x"]], vec![6, 6]),
            (vec![&["x"]], vec![6, 6]),
        ] {
            assert!(
                local_shape(&mesh, &sharding(&dims), &tensor(&shape), "a").is_err(),
                "{dims:?}"
            );
        }
    }

    #[test]
    fn summands_have_the_shape_of_what_they_make_up() {
        let mesh = mesh(None);
        let axis = |name: &str| AxisRef { name: name.to_owned(), sub_axis: None };
        let mut sharding = sharding(&[&["y"]]);
        sharding.unreduced = vec![axis("one"), axis("x")];
        assert_eq!(local_shape(&mesh, &sharding, &tensor(&[6]), "a").unwrap().dims(), [2]);
        assert_eq!(unreduced_axes(&mesh, &sharding), [0]);
        sharding.reduction_op = ReductionOp::Max;
        let error = axes_of(&mesh, &sharding, "a").unwrap_err().to_string();
        assert!(error.contains("max"), "{error}");
        sharding.reduction_op = ReductionOp::Sum;
        sharding.unreduced.push(axis("y"));
        axes_of(&mesh, &sharding, "a").unwrap_err();
    }

    #[test]
    fn meshes_that_are_none_are_refused() {
        let axis = |name: &str, size| (name.to_owned(), size);
        for axes in [
            vec![axis("x", 0)],
            vec![axis("x", 2), axis("x", 3)],
            vec![axis("x", usize::MAX), axis("y", 2)],
        ] {
            let mesh = Mesh { name: "m".to_owned(), axes, device_ids: None };
            assert!(device_count(&mesh).is_err(), "{mesh:?}");
        }
        for ids in [vec![0, 1, 2], vec![0, 0, 1, 2, 3, 4], vec![1, 2, 3, 4, 5, 6]] {
            assert!(device_count(&mesh(Some(ids))).is_err());
        }
    }
}
