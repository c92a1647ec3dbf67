//! Custom forms of `sdy` operations and of those that ask which device this is.

use super::{attributes_and_types, with_operands};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};

/// `: tensor<ui32>`.
pub(super) fn id(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    attributes_and_types(reader, Statement::default())
}

/// `%a <@mesh, […]> : type`.
pub(super) fn sharding_constraint(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    statement.set("sharding", Attribute::Sharding(reader.cursor.bracketed_sharding()?));
    attributes_and_types(reader, statement)
}

/// `(%a) in_shardings=[…] out_shardings=[…] manual_axes={…} (%x: T) {…} : types`.
pub(super) fn manual_computation(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(reader.operands_in_parentheses()?);
    for name in ["in_shardings", "out_shardings"] {
        reader.cursor.expect_word(name)?;
        reader.cursor.expect("=")?;
        statement.set(name, Attribute::Shardings(reader.cursor.sharding_list()?));
    }
    reader.cursor.expect_word("manual_axes")?;
    reader.cursor.expect("=")?;
    statement.set("manual_axes", Attribute::Axes(reader.cursor.axis_names()?));
    let (region, block) = reader.function.push_region();
    reader.scoped(|reader| {
        reader.cursor.expect("(")?;
        if !reader.cursor.eat(")") {
            loop {
                reader.argument(block)?;
                if reader.cursor.eat(")") {
                    break;
                }
                reader.cursor.expect(",")?;
            }
        }
        reader.cursor.expect("{")?;
        reader.operations(block)
    })?;
    statement.regions.push(region);
    attributes_and_types(reader, statement)
}
