//! Attributes of `sdy`: meshes, shardings and axes.

use super::container::Entry;
use super::cursor::{Cursor, Read};
use super::pool::Pool;
use crate::stablehlo::Mesh;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::{AxesMove, AxisRef, DimSharding, ReductionOp, Sharding};

/// The codes of the attributes.
mod code {
    pub(super) const MANUAL_AXES: u64 = 0;
    pub(super) const MESH_AXIS: u64 = 1;
    pub(super) const MESH: u64 = 2;
    pub(super) const SUB_AXIS: u64 = 3;
    pub(super) const AXIS_REF: u64 = 4;
    pub(super) const DIM_SHARDING: u64 = 5;
    /// Before axes could be unreduced.
    pub(super) const SHARDING_V1: u64 = 6;
    pub(super) const SHARDINGS_V1: u64 = 7;
    pub(super) const SHARDING_RULE: u64 = 10;
    pub(super) const AXIS_REFS: u64 = 11;
    pub(super) const AXIS_REF_LISTS: u64 = 12;
    pub(super) const AXES_MOVE: u64 = 13;
    pub(super) const AXES_MOVES: u64 = 14;
    pub(super) const SHARDING: u64 = 15;
    pub(super) const SHARDINGS: u64 = 16;
    /// With another reduction than the sum.
    pub(super) const SHARDING_V3: u64 = 17;
}

/// About how many bytes a copy of `sharding` takes.
pub(super) fn weight(sharding: &Sharding) -> usize {
    let dims = sharding.dims.iter().flat_map(|dim| &dim.axes);
    let axes = dims.chain(&sharding.replicated).chain(&sharding.unreduced);
    axes_weight(axes)
        + size_of::<Sharding>()
        + size_of_val(sharding.dims.as_slice())
        + sharding.mesh.len()
}

/// About how many bytes a copy of `axes` takes.
pub(super) fn axes_weight<'a>(axes: impl IntoIterator<Item = &'a AxisRef>) -> usize {
    axes.into_iter().map(|axis| axis.name.len() + size_of::<AxisRef>()).sum()
}

impl<'a> Pool<'a> {
    /// An attribute of dialect `sdy`.
    pub(super) fn sdy_attribute(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        Ok(match cursor.varint()? {
            code::MANUAL_AXES => {
                Attribute::Axes(cursor.list(|cursor| self.string_attribute(cursor))?)
            }
            code::MESH => {
                let axes = cursor.list(|cursor| self.mesh_axis(cursor))?;
                let device_ids = cursor.list(Cursor::signed_varint)?;
                let device_ids = (!device_ids.is_empty()).then_some(device_ids);
                Attribute::Mesh(Box::new(Mesh { name: String::new(), axes, device_ids }))
            }
            code @ (code::SHARDING_V1 | code::SHARDING | code::SHARDING_V3) => {
                Attribute::Sharding(self.sharding(cursor, code)?)
            }
            code::SHARDINGS_V1 | code::SHARDINGS => {
                Attribute::Shardings(cursor.list(|cursor| {
                    let at = cursor.offset();
                    match self.attribute(cursor)? {
                        Attribute::Sharding(sharding) => Ok(sharding),
                        _ => Err(cursor.malformed(at, "this attribute is not a sharding")),
                    }
                })?)
            }
            code::SHARDING_RULE => Attribute::ShardingRule(Box::new(self.sharding_rule(cursor)?)),
            code::AXIS_REFS => Attribute::AxisRefs(cursor.list(|cursor| self.axis_ref(cursor))?),
            code::AXIS_REF_LISTS => Attribute::AxisRefLists(cursor.list(|cursor| {
                let mut list = self.part(cursor, code::AXIS_REFS, "a list of axes")?;
                let axes = list.list(|cursor| self.axis_ref(cursor))?;
                list.finish("a list of axes")?;
                Ok(axes)
            })?),
            code::AXES_MOVES => Attribute::AxesMoves(cursor.list(|cursor| self.axes_move(cursor))?),
            code => return Err(cursor.not_known(at, format!("the sdy attribute of code {code}"))),
        })
    }

    /// The mesh, then the axes per dimension, replicated ones and, since they exist, unreduced ones
    /// and how they are reduced.
    fn sharding(&mut self, cursor: &mut Cursor<'a>, code: u64) -> Read<Sharding> {
        let at = cursor.offset();
        let mesh = match self.attribute(cursor)? {
            Attribute::Symbol(mesh) => mesh,
            Attribute::Mesh(mesh) => self.meshes.add_in_place(*mesh),
            _ => return Err(cursor.malformed(at, "this attribute is neither a mesh nor its name")),
        };
        let dims = cursor.list(|cursor| self.dim_sharding(cursor))?;
        let replicated = cursor.list(|cursor| self.axis_ref(cursor))?;
        let unreduced = match code {
            code::SHARDING_V1 => Vec::new(),
            _ => cursor.list(|cursor| self.axis_ref(cursor))?,
        };
        let reduction_op = match code {
            code::SHARDING_V3 => {
                let case = size(cursor)?;
                let reduction_op = ReductionOp::ALL.get(case).copied();
                reduction_op.ok_or_else(|| cursor.not_known(at, format!("the reduction {case}")))?
            }
            _ => ReductionOp::default(),
        };
        Ok(Sharding { mesh, dims, replicated, unreduced, reduction_op })
    }

    /// Axes, then the dimension they leave and the one they come to.
    fn axes_move(&mut self, cursor: &mut Cursor<'a>) -> Read<AxesMove> {
        let mut part = self.part(cursor, code::AXES_MOVE, "a move of axes")?;
        let axes = part.list(|cursor| self.axis_ref(cursor))?;
        let (from, to) = (size(&mut part)?, size(&mut part)?);
        part.finish("a move of axes")?;
        Ok(AxesMove { axes, from, to })
    }

    /// The encoding, behind its code, of the attribute whose index comes next.
    pub(super) fn part(
        &mut self,
        cursor: &mut Cursor<'a>,
        code: u64,
        what: &str,
    ) -> Read<Cursor<'a>> {
        let at = cursor.offset();
        self.pay(cursor, size_of::<AxisRef>())?;
        let Entry { dialect, mut bytes, .. } = self.entry(cursor)?;
        if dialect == "sdy" && bytes.varint()? == code {
            return Ok(bytes);
        }
        Err(cursor.malformed(at, format!("this attribute is not {what}")))
    }

    fn mesh_axis(&mut self, cursor: &mut Cursor<'a>) -> Read<(String, usize)> {
        let mut axis = self.part(cursor, code::MESH_AXIS, "an axis of a mesh")?;
        let named = (self.string(&mut axis)?, size(&mut axis)?);
        axis.finish("an axis of a mesh")?;
        Ok(named)
    }

    fn dim_sharding(&mut self, cursor: &mut Cursor<'a>) -> Read<DimSharding> {
        let mut dim = self.part(cursor, code::DIM_SHARDING, "the sharding of a dimension")?;
        let axes = dim.list(|cursor| self.axis_ref(cursor))?;
        let is_open = dim.byte()? == 0;
        let at = dim.offset();
        let (priority, is_present) = dim.flagged()?;
        let Ok(priority) = u32::try_from(priority) else {
            return Err(dim.malformed(at, "a priority is too large"));
        };
        let priority = is_present.then_some(priority);
        dim.finish("the sharding of a dimension")?;
        Ok(DimSharding { axes, is_open, priority })
    }

    fn axis_ref(&mut self, cursor: &mut Cursor<'a>) -> Read<AxisRef> {
        let mut axis = self.part(cursor, code::AXIS_REF, "an axis")?;
        let name = self.string(&mut axis)?;
        let sub_axis = match self.optional_entry(&mut axis)? {
            None => None,
            Some(Entry { mut bytes, .. }) => {
                let at = bytes.offset();
                if bytes.varint()? != code::SUB_AXIS {
                    return Err(bytes.malformed(at, "this attribute is not a part of an axis"));
                }
                Some((size(&mut bytes)?, size(&mut bytes)?))
            }
        };
        axis.finish("an axis")?;
        Ok(AxisRef { name, sub_axis })
    }
}

/// A size, encoded with a sign.
fn size(cursor: &mut Cursor<'_>) -> Read<usize> {
    let at = cursor.offset();
    let size = cursor.signed_varint()?;
    usize::try_from(size).map_err(|_| cursor.malformed(at, format!("{size} is not a size")))
}
