//! The `sdy` attributes: meshes, shardings and axes.

use super::cursor::{Cursor, Parsed};
use crate::stablehlo::Mesh;
use crate::stablehlo::op::{AxisRef, DimSharding, Sharding};

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

    /// `<@mesh, [{"x"}, {}], replicated={"y"}>`.
    pub(super) fn bracketed_sharding(&mut self) -> Parsed<Sharding> {
        self.expect("<")?;
        if self.peek_word() == "mesh" {
            let at = self.offset();
            return self.not_known(at, "a sharding with the mesh written inside");
        }
        let mesh = self.symbol()?;
        self.expect(",")?;
        self.expect("[")?;
        let dims = self.list("]", Self::dim_sharding)?;
        let mut replicated = Vec::new();
        while self.eat(",") {
            let at = self.offset();
            match self.word("`replicated`")? {
                "replicated" => {
                    self.expect("=")?;
                    self.expect("{")?;
                    replicated = self.list("}", Self::axis_ref)?;
                }
                other => return self.not_known(at, format!("`{other}` of a sharding")),
            }
        }
        self.expect(">")?;
        Ok(Sharding { mesh, dims, replicated })
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
