//! The attributes and types of a file, decoded when first used.
//!
//! They refer to each other by index, so a few bytes can stand for a huge or an endless value:
//! nesting has a bound, and what uses stand for is paid from a budget (invariant I5).

use super::container::{Container, Entry};
use super::cursor::{Cursor, Read};
use super::resources::Resource;
use super::types::MlirType;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::build::module::Meshes;
use crate::stablehlo::{Location, Type};

/// How deep attributes, types and regions may nest; bounds the reader's use of the stack.
pub(super) const MAX_DEPTH: usize = 128;

/// Decodes and keeps attributes and types.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    container: &'a Container<'a>,
    attributes: Vec<Option<Attribute>>,
    types: Vec<Option<MlirType>>,
    depth: usize,
    /// Bytes of memory that uses may still stand for.
    budget: usize,
    /// The meshes read so far.
    pub(super) meshes: Meshes,
}

impl<'a> Pool<'a> {
    /// A pool for a file of `file_bytes`.
    pub(super) fn new(container: &'a Container<'a>, file_bytes: usize) -> Self {
        /// What even a small file may stand for.
        const FREE: usize = 4 << 20;
        /// What each byte of a file may stand for.
        const PER_BYTE: usize = 64;
        Self {
            container,
            attributes: vec![None; container.attributes.len()],
            types: vec![None; container.types.len()],
            depth: 0,
            budget: FREE.saturating_add(file_bytes.saturating_mul(PER_BYTE)),
            meshes: Meshes::default(),
        }
    }

    /// Pays for `bytes` of memory.
    pub(super) fn pay(&mut self, at: &Cursor<'_>, bytes: usize) -> Read<()> {
        let Some(left) = self.budget.checked_sub(bytes) else {
            let message = "attributes stand for much more than the file has";
            return Err(at.malformed(at.offset(), message));
        };
        self.budget = left;
        Ok(())
    }

    /// Runs `read` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        at: &Cursor<'_>,
        read: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<T> {
        if self.depth == MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(at.malformed(at.offset(), message));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The string that comes next.
    pub(super) fn string(&mut self, cursor: &mut Cursor<'a>) -> Read<String> {
        let at = cursor.offset();
        let index = cursor.index(self.container.strings.len(), "string")?;
        let bytes = self.container.strings.get(index).copied().unwrap_or_default();
        self.pay(cursor, bytes.len())?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(cursor.not_known(at, "a string that is not UTF-8")),
        }
    }

    /// Where the attribute whose index comes next is encoded.
    pub(super) fn entry(&self, cursor: &mut Cursor<'a>) -> Read<Entry<'a>> {
        let index = cursor.index(self.container.attributes.len(), "attribute")?;
        self.entry_at(cursor, index)
    }

    fn entry_at(&self, cursor: &Cursor<'a>, index: usize) -> Read<Entry<'a>> {
        let entry = self.container.attributes.get(index).copied();
        let entry = entry.ok_or_else(|| {
            cursor.malformed(cursor.offset(), format!("there is no attribute {index}"))
        })?;
        if !entry.is_binary {
            return Err(entry.bytes.not_known(entry.bytes.offset(), "an attribute as text"));
        }
        Ok(entry)
    }

    /// The attribute whose index comes next.
    pub(super) fn attribute(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let index = cursor.index(self.container.attributes.len(), "attribute")?;
        self.attribute_at(cursor, index)
    }

    fn attribute_at(&mut self, cursor: &Cursor<'a>, index: usize) -> Read<Attribute> {
        if let Some(Some(attribute)) = self.attributes.get(index) {
            let weight = weight(attribute);
            self.pay(cursor, weight)?;
            // Paying needs the pool, so the attribute is looked up again.
            if let Some(Some(attribute)) = self.attributes.get(index) {
                return Ok(attribute.clone());
            }
        }
        let Entry { dialect, mut bytes, .. } = self.entry_at(cursor, index)?;
        let start = bytes;
        let attribute = self.nested(&start, |pool| match dialect {
            "builtin" => pool.builtin_attribute(&mut bytes),
            "vhlo" => pool.vhlo_attribute(&mut bytes),
            "sdy" => pool.sdy_attribute(&mut bytes),
            _ => {
                Err(start.not_known(start.offset(), format!("the attribute of dialect {dialect}")))
            }
        })?;
        bytes.finish("an attribute")?;
        if let Some(slot) = self.attributes.get_mut(index) {
            *slot = Some(attribute.clone());
        }
        Ok(attribute)
    }

    /// The attribute whose index comes next, if a flag says so.
    pub(super) fn optional_attribute(
        &mut self,
        cursor: &mut Cursor<'a>,
    ) -> Read<Option<Attribute>> {
        match self.optional_index(cursor)? {
            Some(index) => self.attribute_at(cursor, index).map(Some),
            None => Ok(None),
        }
    }

    /// Where the attribute whose index comes next is encoded, if a flag says so.
    pub(super) fn optional_entry(&self, cursor: &mut Cursor<'a>) -> Read<Option<Entry<'a>>> {
        match self.optional_index(cursor)? {
            Some(index) => self.entry_at(cursor, index).map(Some),
            None => Ok(None),
        }
    }

    fn optional_index(&self, cursor: &mut Cursor<'a>) -> Read<Option<usize>> {
        let at = cursor.offset();
        let (index, is_present) = cursor.flagged()?;
        let count = self.container.attributes.len();
        is_present.then(|| cursor.checked_index(at, index, count, "attribute")).transpose()
    }

    /// The resource whose number comes next.
    pub(super) fn resource_at(&self, cursor: &mut Cursor<'a>) -> Read<Resource<'a>> {
        let at = cursor.offset();
        let index = cursor.index(self.container.resources.len(), "resource")?;
        let resource = self.container.resources.get(index).copied();
        resource.ok_or_else(|| cursor.malformed(at, format!("there is no resource {index}")))
    }

    /// A string attribute.
    pub(super) fn string_attribute(&mut self, cursor: &mut Cursor<'a>) -> Read<String> {
        let at = cursor.offset();
        match self.attribute(cursor)? {
            Attribute::String(text) => Ok(text),
            _ => Err(cursor.malformed(at, "this attribute is not a string")),
        }
    }

    /// The type whose index comes next.
    pub(super) fn mlir_type(&mut self, cursor: &mut Cursor<'a>) -> Read<MlirType> {
        let index = cursor.index(self.container.types.len(), "type")?;
        self.type_at(cursor, index)
    }

    /// The type of number `index`, which is one of the file's.
    pub(super) fn type_at(&mut self, cursor: &Cursor<'a>, index: usize) -> Read<MlirType> {
        if let Some(Some(ty)) = self.types.get(index) {
            let weight = ty.weight();
            self.pay(cursor, weight)?;
            if let Some(Some(ty)) = self.types.get(index) {
                return Ok(ty.clone());
            }
        }
        let at = cursor.offset();
        let entry = self.container.types.get(index).copied();
        let entry =
            entry.ok_or_else(|| cursor.malformed(at, format!("there is no type {index}")))?;
        let Entry { dialect, mut bytes, is_binary } = entry;
        let start = bytes;
        let ty = self.nested(&start, |pool| match (dialect, is_binary) {
            ("builtin", true) => pool.builtin_type(&mut bytes),
            ("vhlo", true) => pool.vhlo_type(&mut bytes),
            _ => Err(start.not_known(start.offset(), format!("a type of dialect {dialect}"))),
        })?;
        bytes.finish("a type")?;
        if let Some(slot) = self.types.get_mut(index) {
            *slot = Some(ty.clone());
        }
        Ok(ty)
    }

    /// The type of a value.
    pub(super) fn value_type(&mut self, cursor: &mut Cursor<'a>) -> Read<Type> {
        let at = cursor.offset();
        let ty = self.mlir_type(cursor)?;
        ty.into_value_type().map_err(|what| cursor.not_known(at, what))
    }

    /// The line and column of the location whose index comes next; unknown when it has none.
    pub(super) fn location(&mut self, cursor: &mut Cursor<'a>) -> Read<Location> {
        let mut entry = self.entry(cursor)?;
        for _ in 0..MAX_DEPTH {
            let bytes = &mut entry.bytes;
            if entry.dialect != "builtin" {
                return Ok(Location::default());
            }
            match bytes.varint()? {
                // Where the callee stands, then where it is called.
                10 => {}
                11 => {
                    self.entry(bytes)?;
                    return Ok(Location { line: saturating(bytes)?, column: saturating(bytes)? });
                }
                // Several, of which the first speaks for all.
                12 | 13 => {
                    if bytes.count()? == 0 {
                        return Ok(Location::default());
                    }
                }
                // A name, then a place.
                14 => {
                    self.entry(bytes)?;
                }
                22 => {
                    self.entry(bytes)?;
                    let numbers = bytes.list(saturating)?;
                    let number = |position: usize| numbers.get(position).copied().unwrap_or(0);
                    return Ok(Location { line: number(0), column: number(1) });
                }
                _ => return Ok(Location::default()),
            }
            entry = self.entry(bytes)?;
        }
        Ok(Location::default())
    }
}

/// A line or column.
fn saturating(cursor: &mut Cursor<'_>) -> Read<u32> {
    Ok(u32::try_from(cursor.varint()?).unwrap_or(u32::MAX))
}

/// About how many bytes a copy of `attribute` takes beyond its own fixed size.
fn weight(attribute: &Attribute) -> usize {
    use std::mem::size_of;
    let many = |items: usize, each: usize| items.saturating_mul(each);
    match attribute {
        Attribute::String(text) | Attribute::Symbol(text) | Attribute::Opaque(text) => text.len(),
        Attribute::Array(items) => items
            .iter()
            .map(|item| weight(item).saturating_add(size_of::<Attribute>()))
            .fold(0, usize::saturating_add),
        Attribute::Dictionary(fields) | Attribute::Fields { fields, .. } => fields
            .iter()
            .map(|(name, value)| {
                weight(value).saturating_add(name.len() + size_of::<(String, Attribute)>())
            })
            .fold(0, usize::saturating_add),
        Attribute::AxisRefs(axes) => super::sdy::axes_weight(axes),
        Attribute::AxisRefLists(lists) => {
            let axes = super::sdy::axes_weight(lists.iter().flatten());
            axes + many(lists.len(), size_of::<Vec<u8>>())
        }
        Attribute::AxesMoves(moves) => {
            let axes = super::sdy::axes_weight(moves.iter().flat_map(|axes| &axes.axes));
            axes + many(moves.len(), size_of::<crate::stablehlo::op::AxesMove>())
        }
        Attribute::Integers(numbers) | Attribute::Layout(numbers) => {
            many(numbers.len(), size_of::<i64>())
        }
        Attribute::Axes(axes) => axes.iter().map(|axis| axis.len() + size_of::<String>()).sum(),
        Attribute::Sharding(sharding) => super::sdy::weight(sharding),
        Attribute::Shardings(shardings) => shardings.iter().map(super::sdy::weight).sum(),
        Attribute::ShardingRule(rule) => super::sharding_rule::weight(rule),
        Attribute::FunctionType(operands, results) => {
            operands.iter().chain(results).map(super::types::weight).sum()
        }
        Attribute::Type(ty) => super::types::weight(ty),
        _ => size_of::<Attribute>(),
    }
}
