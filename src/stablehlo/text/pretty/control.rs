//! Custom forms of calls, loops and returns.

use super::{attributes_and_types, types, with_operands};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, NamedType, Statement};

/// `%a, %b : types`, or nothing.
pub(super) fn return_(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement {
        attributes: reader.cursor.optional_dictionary(reader.aliases)?,
        ..Statement::default()
    };
    if reader.cursor.peek() == Some(b'%') {
        statement.operands = reader.operands()?;
        reader.cursor.expect(":")?;
        statement.operand_types = Some(types(reader)?);
    }
    Ok(statement)
}

/// `@callee(%a) : types`.
pub(super) fn call(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let callee = reader.cursor.symbol()?;
    let mut statement = with_operands(reader.operands_in_parentheses()?);
    statement.set("callee", Attribute::Symbol(callee));
    attributes_and_types(reader, statement)
}

/// `@target(%a) {attributes} : types`.
pub(super) fn custom_call(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let target = reader.cursor.symbol()?;
    let mut statement = with_operands(reader.operands_in_parentheses()?);
    statement.set("call_target_name", Attribute::String(target));
    attributes_and_types(reader, statement)
}

/// `"my.op" %a ({…}) {attributes} : types`.
pub(super) fn composite(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let name = reader.cursor.string()?;
    let operands = if reader.cursor.peek() == Some(b'%') { reader.operands()? } else { Vec::new() };
    let mut statement = with_operands(operands);
    statement.set("name", Attribute::String(name));
    statement.regions = reader.optional_regions()?;
    attributes_and_types(reader, statement)
}

/// `%a, %b : types`.
pub(super) fn optimization_barrier(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    if reader.cursor.eat("(") {
        reader.cursor.expect(")")?;
    } else {
        statement.operands = reader.operands()?;
    }
    statement.attributes = reader.cursor.optional_dictionary(reader.aliases)?;
    if !statement.operands.is_empty() {
        reader.cursor.expect(":")?;
        let types = types(reader)?;
        statement.operand_types = Some(types.clone());
        statement.result_types = types;
    }
    Ok(statement)
}

/// `(%iter = %init, …) : types attributes {…} cond {…} do {…}`.
pub(super) fn while_(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    let mut names = Vec::new();
    reader.cursor.expect("(")?;
    if !reader.cursor.eat(")") {
        loop {
            let at = reader.cursor.offset();
            names.push((reader.cursor.sigil_name('%', "a value of the loop")?, at));
            reader.cursor.expect("=")?;
            statement.operands.push(reader.operand()?);
            if reader.cursor.eat(")") {
                break;
            }
            reader.cursor.expect(",")?;
        }
        reader.cursor.expect(":")?;
        let types = types(reader)?;
        statement.operand_types = Some(types.clone());
        statement.result_types = types;
    }
    if statement.result_types.len() != names.len() {
        return reader.cursor.error(format!("{} values need as many types", names.len()));
    }
    if reader.cursor.eat_word("attributes") {
        statement.attributes = reader.cursor.dictionary(reader.aliases)?;
    }
    for word in ["cond", "do"] {
        reader.cursor.expect_word(word)?;
        let (region, block) = reader.function.push_region();
        reader.scoped(|reader| {
            for (&(name, start), ty) in names.iter().zip(&statement.result_types) {
                reader.define_argument(block, NamedType { name, start, ty: ty.clone() })?;
            }
            reader.cursor.expect("{")?;
            reader.operations(block)
        })?;
        statement.regions.push(region);
    }
    Ok(statement)
}
