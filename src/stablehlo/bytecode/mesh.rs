//! Attributes of `vhlo` that tell replica groups by a mesh and axes, as StableHLO's text has them.

use super::cursor::{Cursor, Read};
use super::pool::Pool;
use crate::stablehlo::attribute::Attribute;

/// The codes of the attributes.
mod code {
    pub(super) const SUB_AXIS_INFO: u64 = 21;
    pub(super) const AXIS_REF: u64 = 22;
    pub(super) const REPLICA_GROUP_MESH_AXES: u64 = 23;
    pub(super) const MESH_AXIS: u64 = 24;
    pub(super) const MESH: u64 = 25;
}

impl<'a> Pool<'a> {
    /// The attribute of this code, if it is one of these.
    pub(super) fn mesh_attribute(
        &mut self,
        code: u64,
        cursor: &mut Cursor<'a>,
    ) -> Read<Option<Attribute>> {
        let (name, fields) = match code {
            code::SUB_AXIS_INFO => {
                ("sub_axis_info", vec![("pre_size", number(cursor)?), ("size", number(cursor)?)])
            }
            code::AXIS_REF => {
                let mut fields = vec![("name", self.attribute(cursor)?)];
                if cursor.varint()? != 0 {
                    fields.push(("sub_axis_info", self.attribute(cursor)?));
                }
                ("axis_ref", fields)
            }
            code::REPLICA_GROUP_MESH_AXES => {
                let (mesh, axes) = (self.attribute(cursor)?, self.attribute(cursor)?);
                ("replica_group_mesh_axes", vec![("mesh", mesh), ("axes", axes)])
            }
            code::MESH_AXIS => {
                ("mesh_axis", vec![("name", self.attribute(cursor)?), ("size", number(cursor)?)])
            }
            code::MESH => {
                let mut fields = vec![("axes", self.attribute(cursor)?)];
                let device_ids = self.optional_attribute(cursor)?;
                fields.extend(device_ids.map(|device_ids| ("device_ids", device_ids)));
                ("mesh", fields)
            }
            _ => return Ok(None),
        };
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Some(Attribute::Fields { name: format!("stablehlo.{name}"), fields }))
    }
}

fn number(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    Ok(Attribute::Integer(cursor.signed_varint()?.into(), None))
}
