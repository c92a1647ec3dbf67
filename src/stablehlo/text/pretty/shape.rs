//! Custom forms of operations that make, move and choose elements.

use super::{attributes_and_types, named_numbers, numbers, with_operands};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};

/// `dim = 0 : type`.
pub(super) fn iota(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    statement.set("iota_dimension", dim(reader)?);
    attributes_and_types(reader, statement)
}

/// `%a, %shape, dims = [1, 0] : types`.
pub(super) fn dynamic_broadcast_in_dim(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    operands_before_word(reader, &mut statement)?;
    let dimensions = named_numbers(reader, "dims")?;
    statement.set("broadcast_dimensions", Attribute::Integers(dimensions));
    attributes_and_types(reader, statement)
}

/// `%a, dim = 0 : types`; the number is the attribute `name`.
pub(super) fn dimension(reader: &mut BodyReader<'_, '_>, name: &str) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    statement.set(name, dim(reader)?);
    attributes_and_types(reader, statement)
}

/// `%a, %size, dim = 0 : types`.
pub(super) fn set_dimension_size(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    operands_before_word(reader, &mut statement)?;
    statement.set("dimension", dim(reader)?);
    attributes_and_types(reader, statement)
}

/// `%a, sizes = [1, 2] : types`.
pub(super) fn broadcast(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    let sizes = named_numbers(reader, "sizes")?;
    statement.set("broadcast_sizes", Attribute::Integers(sizes));
    attributes_and_types(reader, statement)
}

fn dim(reader: &mut BodyReader<'_, '_>) -> Parsed<Attribute> {
    reader.cursor.expect_word("dim")?;
    reader.cursor.expect("=")?;
    Ok(Attribute::Integer(reader.cursor.integer()?, None))
}

/// `%a, dims = [1, 0] : types`; the numbers are the attribute `name`.
pub(super) fn dims(reader: &mut BodyReader<'_, '_>, name: &str) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    statement.set(name, Attribute::Integers(named_numbers(reader, "dims")?));
    attributes_and_types(reader, statement)
}

/// `%a [0:4, 2:8:2] : types`.
pub(super) fn slice(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    let (mut start, mut limit, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    reader.cursor.expect("[")?;
    reader.cursor.list("]", |cursor| {
        start.push(cursor.number("a first index")?);
        cursor.expect(":")?;
        limit.push(cursor.number("an end index")?);
        strides.push(if cursor.eat(":") { cursor.number("a stride")? } else { 1 });
        Ok(())
    })?;
    statement.set("start_indices", Attribute::Integers(start));
    statement.set("limit_indices", Attribute::Integers(limit));
    statement.set("strides", Attribute::Integers(strides));
    attributes_and_types(reader, statement)
}

/// `%a, %b, dim = 0 : types`.
pub(super) fn concatenate(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    operands_before_word(reader, &mut statement)?;
    statement.set("dimension", dim(reader)?);
    attributes_and_types(reader, statement)
}

/// `%a, %value, low = […], high = […], interior = […] : types`.
pub(super) fn pad(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    operands_before_word(reader, &mut statement)?;
    statement.set("edge_padding_low", Attribute::Integers(named_numbers(reader, "low")?));
    reader.cursor.expect(",")?;
    statement.set("edge_padding_high", Attribute::Integers(named_numbers(reader, "high")?));
    reader.cursor.expect(",")?;
    statement.set("interior_padding", Attribute::Integers(named_numbers(reader, "interior")?));
    attributes_and_types(reader, statement)
}

/// `%a, %i, %j, sizes = [1, 4] : types`.
pub(super) fn dynamic_slice(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    operands_before_word(reader, &mut statement)?;
    reader.cursor.expect_word("sizes")?;
    reader.cursor.expect("=")?;
    statement.set("slice_sizes", Attribute::Integers(numbers(reader)?));
    attributes_and_types(reader, statement)
}

/// `%a, %b,` up to a word.
pub(super) fn operands_before_word(
    reader: &mut BodyReader<'_, '_>,
    statement: &mut Statement,
) -> Parsed<()> {
    loop {
        statement.operands.push(reader.operand()?);
        reader.cursor.expect(",")?;
        if reader.cursor.peek() != Some(b'%') {
            return Ok(());
        }
    }
}
