//! Custom forms of operations on tokens and tuples.

use super::{attributes_and_types, with_operands};
use crate::stablehlo::Type;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};

/// `%a, %b : token`, with any number of operands.
pub(super) fn token(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let statement = operands(reader)?;
    attributes_and_types(reader, statement)
}

/// `%a, %b : tuple type` or with all types.
pub(super) fn tuple(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = operands(reader)?;
    statement.attributes = reader.cursor.optional_dictionary(reader.aliases)?;
    reader.cursor.expect(":")?;
    if reader.cursor.peek() == Some(b'(') {
        let (operands, results) = reader.cursor.function_type()?;
        statement.operand_types = Some(operands);
        statement.result_types = results;
        return Ok(statement);
    }
    let at = reader.cursor.offset();
    let Type::Tuple(elements) = reader.cursor.ty()? else {
        return reader.cursor.error_at(at, "expected the type of a tuple");
    };
    statement.operand_types = Some(elements.clone());
    statement.result_types = vec![Type::Tuple(elements)];
    Ok(statement)
}

/// `%a[0] : types`.
pub(super) fn get_tuple_element(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect("[")?;
    statement.set("index", Attribute::Integer(reader.cursor.integer()?, None));
    reader.cursor.expect("]")?;
    attributes_and_types(reader, statement)
}

fn operands(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    if reader.cursor.peek() == Some(b'%') {
        Ok(with_operands(reader.operands()?))
    } else {
        Ok(Statement::default())
    }
}
