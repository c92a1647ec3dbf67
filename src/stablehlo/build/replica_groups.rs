//! Replica groups that are told by a mesh and some of its axes.

use crate::ifrt::DType;
use crate::stablehlo::Mesh;
use crate::stablehlo::attribute::{Attribute, NamedAttribute};
use crate::stablehlo::build::matrix_elements;
use crate::stablehlo::build::module::Meshes;
use crate::stablehlo::op::AxisRef;

/// The most devices of a mesh.
const MAX_DEVICES: usize = 1 << 16;

/// The attribute, with its dialect.
const NAME: &str = "stablehlo.replica_group_mesh_axes";

/// Puts the mesh itself where the replica groups of an operation say its name. Answers how many
/// devices the groups will have, for which a reader takes care that the source has paid (invariant
/// I5).
pub(in crate::stablehlo) fn look_up(attributes: &mut [NamedAttribute], meshes: &Meshes) -> usize {
    let mut total = 0_usize;
    for entry in attributes {
        let Attribute::Fields { name, fields } = &mut entry.value else { continue };
        if name != NAME {
            continue;
        }
        for (field, value) in fields {
            // Bytecode has a string where text has a symbol.
            if let ("mesh", Attribute::Symbol(symbol) | Attribute::String(symbol)) =
                (field.as_str(), value.resolved())
                && let Some(mesh) = meshes.named(symbol)
                && devices(mesh).is_some()
            {
                *value = Attribute::Mesh(Box::new(mesh.clone()));
            }
            if field == "mesh" {
                let count = to_mesh(value.resolved()).ok().and_then(|mesh| devices(&mesh));
                total = total.saturating_add(count.unwrap_or(0));
            }
        }
    }
    total
}

/// The groups that `attribute` stands for, if it is of this kind; or what is wrong with it.
pub(super) fn groups(attribute: &Attribute) -> Option<Result<Vec<Vec<i64>>, String>> {
    let Attribute::Fields { name, fields } = attribute.resolved() else { return None };
    (name == NAME).then(|| {
        let mesh = to_mesh(field(fields, "mesh")?)?;
        let axes = items(field(fields, "axes")?)?.iter().map(axis_ref);
        over(&mesh, &axes.collect::<Result<Vec<_>, _>>()?)
    })
}

type Fields = [(String, Attribute)];

fn field<'a>(fields: &'a Fields, name: &str) -> Result<&'a Attribute, String> {
    optional(fields, name).ok_or_else(|| format!("they lack `{name}`"))
}

fn optional<'a>(fields: &'a Fields, name: &str) -> Option<&'a Attribute> {
    fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.resolved())
}

fn items(attribute: &Attribute) -> Result<&[Attribute], String> {
    match attribute {
        Attribute::Array(items) => Ok(items),
        _ => Err("`axes` must be a list".to_owned()),
    }
}

fn string(attribute: &Attribute) -> Result<String, String> {
    match attribute {
        Attribute::String(text) => Ok(text.clone()),
        _ => Err("the name of an axis must be a string".to_owned()),
    }
}

fn size(attribute: &Attribute) -> Result<usize, String> {
    match attribute {
        &Attribute::Integer(value, _) => usize::try_from(value).ok().filter(|&size| size > 0),
        _ => None,
    }
    .ok_or_else(|| "the size of an axis must be a number greater than 0".to_owned())
}

fn to_mesh(attribute: &Attribute) -> Result<Mesh, String> {
    let fields = match attribute {
        Attribute::Mesh(mesh) => return Ok((**mesh).clone()),
        Attribute::Symbol(name) | Attribute::String(name) => {
            return Err(format!(
                "there is no mesh @{name} of 1 to {MAX_DEVICES} devices before this use"
            ));
        }
        Attribute::Fields { name, fields } if name == "stablehlo.mesh" => fields,
        _ => return Err("`mesh` must be `#stablehlo.mesh<…>` or the name of a mesh".to_owned()),
    };
    let axis = |axis: &Attribute| match axis.resolved() {
        Attribute::Fields { fields, .. } => {
            Ok((string(field(fields, "name")?)?, size(field(fields, "size")?)?))
        }
        _ => Err("an axis of a mesh must be `<name = …, size = …>`".to_owned()),
    };
    let axes = items(field(fields, "axes")?)?.iter().map(axis).collect::<Result<_, _>>()?;
    let device_ids = match optional(fields, "device_ids") {
        None => None,
        Some(Attribute::Elements(ids)) if ids.ty().dtype == DType::S64 => matrix_elements(ids),
        Some(_) => return Err("`device_ids` must be numbers".to_owned()),
    };
    Ok(Mesh { name: String::new(), axes, device_ids })
}

fn axis_ref(attribute: &Attribute) -> Result<AxisRef, String> {
    let Attribute::Fields { fields, .. } = attribute.resolved() else {
        return Err("an axis must be `#stablehlo.axis_ref<…>`".to_owned());
    };
    let part = |part: &Attribute| match part {
        Attribute::Fields { fields, .. } => {
            Ok((size(field(fields, "pre_size")?)?, size(field(fields, "size")?)?))
        }
        _ => Err("a part of an axis must be `(pre_size)size`".to_owned()),
    };
    let sub_axis = optional(fields, "sub_axis_info").map(part).transpose()?;
    Ok(AxisRef { name: string(field(fields, "name")?)?, sub_axis })
}

/// How many devices a mesh has, if there are some and not too many.
fn devices(mesh: &Mesh) -> Option<usize> {
    let product =
        mesh.axes.iter().try_fold(1, |product: usize, &(_, size)| product.checked_mul(size));
    product.filter(|devices| (1..=MAX_DEVICES).contains(devices))
}

/// The groups of devices that differ along `axes`, the last of which runs fastest within a group;
/// the other axes tell groups apart, in the order of the mesh.
fn over(mesh: &Mesh, axes: &[AxisRef]) -> Result<Vec<Vec<i64>>, String> {
    let Some(devices) = devices(mesh) else {
        return Err(format!("a mesh has from 1 to {MAX_DEVICES} devices"));
    };
    let inside = axes.iter().map(|axis| part(mesh, axis)).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = inside.clone();
    sorted.sort_unstable_by_key(|part| std::cmp::Reverse(part.stride));
    if sorted.windows(2).any(|pair| pair[0].stride < pair[1].stride * pair[1].size) {
        return Err("an axis is used twice".to_owned());
    }
    // What is between the parts that the groups run along.
    let mut outside = Vec::new();
    let mut above = devices;
    for part in sorted.iter().chain([&Part { size: 1, stride: 1 }]) {
        let stride = part.stride * part.size;
        outside.push(Part { size: above / stride, stride });
        above = part.stride;
    }
    let id = |device: usize| match &mesh.device_ids {
        Some(ids) => ids.get(device).copied().ok_or("`device_ids` are not as many as devices"),
        None => i64::try_from(device).map_err(|_| "too many devices"),
    };
    let inside = offsets(&inside);
    let group = |first: usize| inside.iter().map(|offset| id(first + offset)).collect();
    let groups = offsets(&outside).into_iter().map(group).collect::<Result<_, &str>>();
    groups.map_err(str::to_owned)
}

/// A run of devices, so far apart.
#[derive(Clone, Copy, Debug)]
struct Part {
    size: usize,
    stride: usize,
}

/// The part of the devices that differ along `axis`.
fn part(mesh: &Mesh, axis: &AxisRef) -> Result<Part, String> {
    let Some(position) = mesh.axes.iter().position(|(name, _)| *name == axis.name) else {
        return Err(format!("the mesh has no axis {:?}", axis.name));
    };
    let below: usize = mesh.axes.iter().skip(position + 1).map(|(_, size)| size).product();
    let whole = mesh.axes.get(position).map_or(1, |(_, size)| *size);
    let (before, size) = axis.sub_axis.unwrap_or((1, whole));
    let used = before.checked_mul(size).filter(|used| whole.is_multiple_of(*used));
    let Some(used) = used else {
        return Err(format!("({before}){size} is no part of the axis {:?} of {whole}", axis.name));
    };
    Ok(Part { size, stride: below * (whole / used) })
}

/// The devices of all combinations, the last part running fastest.
fn offsets(parts: &[Part]) -> Vec<usize> {
    let mut offsets = vec![0];
    for part in parts {
        let along = |offset: usize| (0..part.size).map(move |i| offset + i * part.stride);
        offsets = offsets.into_iter().flat_map(along).collect();
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(axes: &[(&str, Option<(usize, usize)>)]) -> Result<Vec<Vec<i64>>, String> {
        let mesh = Mesh {
            name: String::new(),
            axes: vec![("x".to_owned(), 2), ("y".to_owned(), 4)],
            device_ids: None,
        };
        let axes = axes.iter().map(|&(name, sub_axis)| AxisRef { name: name.to_owned(), sub_axis });
        over(&mesh, &axes.collect::<Vec<_>>())
    }

    #[test]
    fn devices_of_a_group_differ_along_its_axes() {
        assert_eq!(groups(&[("x", None)]).unwrap(), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(groups(&[("y", None)]).unwrap(), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        let all = groups(&[("y", None), ("x", None)]).unwrap();
        assert_eq!(all, [[0, 4, 1, 5, 2, 6, 3, 7]]);
        let major = groups(&[("y", Some((1, 2)))]).unwrap();
        assert_eq!(major, [[0, 2], [1, 3], [4, 6], [5, 7]]);
        let minor = groups(&[("y", Some((2, 2)))]).unwrap();
        assert_eq!(minor, [[0, 1], [2, 3], [4, 5], [6, 7]]);
        let both = groups(&[("y", Some((2, 2))), ("x", None)]).unwrap();
        assert_eq!(both, [[0, 4, 1, 5], [2, 6, 3, 7]]);
        assert_eq!(groups(&[]).unwrap().len(), 8);
    }

    #[test]
    fn axes_that_are_not_there_or_overlap_are_refused() {
        for (axes, message) in [
            (&[("z", None)][..], "the mesh has no axis \"z\""),
            (&[("y", Some((3, 2)))], "(3)2 is no part of the axis \"y\" of 4"),
            (&[("y", None), ("y", Some((2, 2)))], "an axis is used twice"),
            (&[("x", None), ("x", None)], "an axis is used twice"),
        ] {
            assert_eq!(groups(axes).unwrap_err(), message);
        }
        let axes = vec![("x".to_owned(), 0)];
        let none = Mesh { name: String::new(), axes, device_ids: None };
        let axis = AxisRef { name: "x".to_owned(), sub_axis: None };
        assert!(over(&none, &[axis]).unwrap_err().contains("from 1 to"));
    }
}
