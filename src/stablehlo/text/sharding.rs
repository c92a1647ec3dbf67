//! The `sdy` attributes: meshes, shardings and axes.

use super::cursor::{Cursor, Parsed};
use crate::stablehlo::Mesh;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::{AxesMove, AxisRef, DimSharding, ReductionOp, Sharding};

impl Cursor<'_> {
    /// `<["x"=2, "y"=2], device_ids=[…]>` of the mesh called `name`.
    pub(super) fn mesh(&mut self, name: String) -> Parsed<Mesh> {
        self.expect("<")?;
        self.expect("[")?;
        let axes = self.list("]", |cursor| {
            let axis = cursor.string()?;
            cursor.expect("=")?;
            Ok((axis, cursor.number("the size of an axis")?))
        })?;
        let mut device_ids = None;
        if self.eat(",") {
            self.expect_word("device_ids")?;
            self.expect("=")?;
            self.expect("[")?;
            device_ids = Some(self.list("]", |cursor| cursor.number("a device id"))?);
        }
        self.expect(">")?;
        Ok(Mesh { name, axes, device_ids })
    }

    /// `<@mesh, [{"x"}, {}], replicated={"y"}>`, or with `mesh<["x"=2, "y"=2]>` instead of `@mesh`.
    pub(super) fn bracketed_sharding(&mut self) -> Parsed<Sharding> {
        self.expect("<")?;
        let mesh = if self.eat_word("mesh") { self.mesh_in_place()? } else { self.symbol()? };
        self.expect(",")?;
        self.expect("[")?;
        let dims = self.list("]", Self::dim_sharding)?;
        let (mut replicated, mut unreduced) = (Vec::new(), Vec::new());
        let mut reduction_op = ReductionOp::default();
        while self.eat(",") {
            let at = self.offset();
            let word = self.word("`replicated` or `unreduced`")?;
            self.expect("=")?;
            let axes = match word {
                "replicated" => &mut replicated,
                "unreduced" => {
                    reduction_op = self.reduction_op()?.unwrap_or_default();
                    &mut unreduced
                }
                other => return self.not_known(at, format!("`{other}` of a sharding")),
            };
            if !axes.is_empty() {
                return self.error_at(at, format!("`{word}` occurs twice"));
            }
            *axes = self.axis_refs()?;
        }
        self.expect(">")?;
        Ok(Sharding { mesh, dims, replicated, unreduced, reduction_op })
    }

    /// `sum`, `max` or `min`, if one comes next.
    pub(super) fn reduction_op(&mut self) -> Parsed<Option<ReductionOp>> {
        let reduction_op = ReductionOp::from_name(self.peek_word());
        if reduction_op.is_some() {
            self.word("a reduction")?;
        }
        Ok(reduction_op)
    }

    /// The name of the mesh that is written here.
    fn mesh_in_place(&mut self) -> Parsed<String> {
        let mesh = self.mesh(String::new())?;
        Ok(self.meshes.add_in_place(mesh))
    }

    /// `<manual_axes{…}>`, `<axis_ref_list{…}>` and the like, after `#sdy`.
    pub(super) fn sdy_list(&mut self) -> Parsed<Attribute> {
        self.expect("<")?;
        let at = self.offset();
        let attribute = match self.word("an attribute of sdy")? {
            "manual_axes" => Attribute::Axes(self.axis_names()?),
            "axis_ref_list" => Attribute::AxisRefs(self.axis_refs()?),
            "list_of_axis_ref_lists" => Attribute::AxisRefLists(self.axis_ref_lists()?),
            "all_to_all_param_list" => Attribute::AxesMoves(self.axes_moves()?),
            other => return self.not_known(at, format!("the attribute {other} of sdy")),
        };
        self.expect(">")?;
        Ok(attribute)
    }

    /// `{"x", "y":(1)2}`.
    pub(super) fn axis_refs(&mut self) -> Parsed<Vec<AxisRef>> {
        self.expect("{")?;
        self.list("}", Self::axis_ref)
    }

    /// `[{"x"}, {}]`.
    pub(super) fn axis_ref_lists(&mut self) -> Parsed<Vec<Vec<AxisRef>>> {
        self.expect("[")?;
        self.list("]", Self::axis_refs)
    }

    /// `[{"x"}: 0->2]`.
    pub(super) fn axes_moves(&mut self) -> Parsed<Vec<AxesMove>> {
        self.expect("[")?;
        self.list("]", |cursor| {
            let axes = cursor.axis_refs()?;
            cursor.expect(":")?;
            let from = cursor.number("a dimension")?;
            cursor.expect("->")?;
            Ok(AxesMove { axes, from, to: cursor.number("a dimension")? })
        })
    }

    /// `[<@mesh, …>, <@mesh, …>]`.
    pub(super) fn sharding_list(&mut self) -> Parsed<Vec<Sharding>> {
        self.expect("[")?;
        self.list("]", Self::bracketed_sharding)
    }

    /// `{"x", "y"}`.
    pub(super) fn axis_names(&mut self) -> Parsed<Vec<String>> {
        self.expect("{")?;
        self.list("}", Self::string)
    }

    /// `{"x", ?}p1`.
    fn dim_sharding(&mut self) -> Parsed<DimSharding> {
        self.expect("{")?;
        let mut axes = Vec::new();
        let mut is_open = false;
        if !self.eat("}") {
            loop {
                if self.eat("?") {
                    is_open = true;
                    break;
                }
                axes.push(self.axis_ref()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("}")?;
        }
        let mut priority = None;
        if self.raw().starts_with('p') {
            self.advance(1);
            priority = Some(self.number("a priority")?);
        }
        Ok(DimSharding { axes, is_open, priority })
    }

    /// `"x"` or `"x":(2)4`.
    fn axis_ref(&mut self) -> Parsed<AxisRef> {
        let name = self.string()?;
        let mut sub_axis = None;
        if self.eat(":") {
            self.expect("(")?;
            let pre_size = self.number("the size before a sub-axis")?;
            self.expect(")")?;
            sub_axis = Some((pre_size, self.number("the size of a sub-axis")?));
        }
        Ok(AxisRef { name, sub_axis })
    }
}
