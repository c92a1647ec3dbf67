//! Which properties an operation has: they are encoded by position, without names.

use super::table::VHLO_PROPERTIES;

/// A property that is always there, or one that a flag announces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Property {
    pub(super) name: &'static str,
    pub(super) is_optional: bool,
}

const fn required(name: &'static str) -> Property {
    Property { name, is_optional: false }
}

const fn optional(name: &'static str) -> Property {
    Property { name, is_optional: true }
}

/// The operations of other dialects in portable artifacts, with their properties.
const OTHERS: &[(&str, &[Property])] = &[
    ("builtin.module", &[optional("sym_name"), optional("sym_visibility")]),
    ("chlo.top_k", &[required("k")]),
    ("sdy.all_gather", &[required("gathering_axes"), required("out_sharding")]),
    ("sdy.all_reduce", &[required("out_sharding"), required("reduction_axes")]),
    ("sdy.all_slice", &[required("out_sharding"), required("slicing_axes")]),
    ("sdy.all_to_all", &[required("out_sharding"), required("params")]),
    ("sdy.collective_permute", &[required("out_sharding")]),
    ("sdy.constant", &[required("value")]),
    ("sdy.data_flow_edge", &[optional("sharding")]),
    (
        "sdy.manual_computation",
        &[required("in_shardings"), required("manual_axes"), required("out_shardings")],
    ),
    ("sdy.mesh", &[required("mesh"), required("sym_name")]),
    (
        "sdy.named_computation",
        &[optional("in_shardings"), required("name"), optional("out_shardings")],
    ),
    ("sdy.propagation_barrier", &[required("allowed_direction")]),
    ("sdy.reduce_scatter", &[required("out_sharding"), required("reduce_scatter_axes")]),
    ("sdy.replicated_to_unreduced", &[required("axes"), required("out_sharding")]),
    ("sdy.reshard", &[required("sharding")]),
    ("sdy.sharded_to_unreduced", &[required("axes"), required("out_sharding")]),
    ("sdy.sharding_constraint", &[required("sharding")]),
    ("sdy.sharding_group", &[required("group_id")]),
];

/// The properties of the operation `dialect.name`, in the order they are encoded in; `None` when
/// that is not known.
pub(super) fn of(dialect: &str, name: &str) -> Option<Vec<Property>> {
    if dialect == "vhlo" {
        let position = VHLO_PROPERTIES.binary_search_by(|(op, _)| (*op).cmp(name)).ok()?;
        let (_, names) = VHLO_PROPERTIES.get(position)?;
        return Some(names.iter().copied().map(required).collect());
    }
    let found = OTHERS.iter().find(|(op, _)| op.split_once('.') == Some((dialect, name)));
    found.map(|(_, properties)| properties.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_properties_are_too() {
        assert!(VHLO_PROPERTIES.is_sorted_by(|a, b| a.0 < b.0));
        for (op, names) in VHLO_PROPERTIES {
            assert!(names.is_sorted_by(|a, b| a < b), "{op}");
        }
    }

    #[test]
    fn properties_by_operation() {
        let names = |dialect, op| {
            let properties = of(dialect, op)?;
            Some(properties.iter().map(|property| property.name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("vhlo", "slice_v1").unwrap(), "limit_indices start_indices strides");
        assert_eq!(names("vhlo", "add_v1").unwrap(), "");
        assert_eq!(names("sdy", "mesh").unwrap(), "mesh sym_name");
        // Of StableHLO 1.18.
        assert_eq!(names("vhlo", "custom_call_v2"), None);
    }
}
