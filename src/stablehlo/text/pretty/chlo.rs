//! Custom forms of the `chlo` dialect.

use super::{attributes_and_types, types, with_operands};
use crate::ifrt::DType;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};

/// The operation called `op`: `%a, %b : types -> type` or with the types in parentheses.
pub(super) fn read(reader: &mut BodyReader<'_, '_>, op: &str) -> Parsed<Statement> {
    if op == "constant" {
        return super::elementwise::constant(reader);
    }
    if op == "top_k" {
        return top_k(reader);
    }
    let mut statement = with_operands(reader.operands()?);
    statement.attributes = reader.cursor.optional_dictionary(reader.aliases)?;
    if reader.cursor.peek() == Some(b':') {
        reader.cursor.expect(":")?;
        if reader.cursor.peek() == Some(b'(') {
            let (operands, results) = reader.cursor.function_type()?;
            statement.operand_types = Some(operands);
            statement.result_types = results;
            return Ok(statement);
        }
        let operands = types(reader)?;
        statement.result_types = if reader.cursor.eat("->") {
            vec![reader.cursor.ty()?]
        } else {
            operands.first().cloned().into_iter().collect()
        };
        statement.operand_types = Some(operands);
        return Ok(statement);
    }
    attributes_and_types(reader, statement)
}

/// `(%a, k = 3) : type -> (type, type)`.
fn top_k(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    reader.cursor.expect("(")?;
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    reader.cursor.expect_word("k")?;
    reader.cursor.expect("=")?;
    statement.set("k", Attribute::Integer(reader.cursor.integer()?, Some(DType::S64)));
    if reader.cursor.eat(",") {
        reader.cursor.expect_word("is_stable")?;
        reader.cursor.expect("=")?;
        let is_stable = reader.cursor.eat_word("true");
        if !is_stable {
            reader.cursor.expect_word("false")?;
        }
        statement.set("is_stable", Attribute::Bool(is_stable));
    }
    reader.cursor.expect(")")?;
    statement.attributes.extend(reader.cursor.optional_dictionary(reader.aliases)?);
    reader.cursor.expect(":")?;
    statement.operand_types = Some(reader.cursor.type_or_list()?);
    reader.cursor.expect("->")?;
    statement.result_types = reader.cursor.type_or_list()?;
    Ok(statement)
}
