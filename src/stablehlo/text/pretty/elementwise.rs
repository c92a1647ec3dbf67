//! Custom forms of operations that work element by element.

use super::{attributes_and_types, with_operands};
use crate::ifrt::DType;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};
use crate::stablehlo::{Literal, TensorType, Type};

/// `%a, %b : type` or `%a, %b : (types) -> type`.
pub(super) fn plain(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let statement = with_operands(reader.operands()?);
    attributes_and_types(reader, statement)
}

/// `dense<…> : type`; or as in the generic form, `() <{value = …}> : () -> type`.
pub(super) fn constant(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    if reader.cursor.peek() == Some(b'(') {
        return reader.generic();
    }
    let mut statement = Statement {
        attributes: reader.cursor.optional_dictionary(reader.aliases)?,
        ..Statement::default()
    };
    let literal = literal(reader)?;
    statement.result_types = vec![Type::Tensor(literal.ty().clone())];
    statement.set("value", Attribute::Elements(literal));
    Ok(statement)
}

/// A constant: `dense<…>`, a resource, or an alias of one.
pub(super) fn literal(reader: &mut BodyReader<'_, '_>) -> Parsed<Literal> {
    if reader.cursor.peek_word() == "dense" {
        return reader.cursor.dense_literal();
    }
    let at = reader.cursor.offset();
    match reader.cursor.attribute(reader.aliases)?.resolved() {
        Attribute::Elements(literal) => Ok(literal.clone()),
        _ => reader.cursor.error_at(at, "expected `dense<…>`"),
    }
}

/// `LT, %a, %b, SIGNED : (types) -> type`.
pub(super) fn compare(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let direction = reader.cursor.word("a direction such as `LT`")?.to_owned();
    let mut statement = Statement::default();
    reader.cursor.expect(",")?;
    statement.operands.push(reader.operand()?);
    reader.cursor.expect(",")?;
    statement.operands.push(reader.operand()?);
    let case = |family: &str, case: String| Attribute::Case { family: family.to_owned(), case };
    statement.set("comparison_direction", case("comparison_direction", direction));
    if reader.cursor.eat(",") {
        let kind = reader.cursor.word("a type of comparison such as `SIGNED`")?.to_owned();
        statement.set("compare_type", case("comparison_type", kind));
    }
    attributes_and_types(reader, statement)
}

/// `%p, %a, %b : predicate type, type` or with all types.
pub(super) fn select(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(reader.operands()?);
    statement.attributes = reader.cursor.optional_dictionary(reader.aliases)?;
    reader.cursor.expect(":")?;
    if reader.cursor.peek() == Some(b'(') {
        let (operands, results) = reader.cursor.function_type()?;
        statement.operand_types = Some(operands);
        statement.result_types = results;
        return Ok(statement);
    }
    let predicate = reader.cursor.ty()?;
    reader.cursor.expect(",")?;
    let ty = reader.cursor.ty()?;
    statement.operand_types = Some(vec![predicate, ty.clone(), ty.clone()]);
    statement.result_types = vec![ty];
    Ok(statement)
}

/// `%re, %im : complex type` or with all types.
pub(super) fn complex(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let statement = with_operands(reader.operands()?);
    let mut statement = attributes_and_types(reader, statement)?;
    let part = |ty: &Type| match ty {
        Type::Tensor(TensorType { dtype, shape }) => {
            let dtype = match dtype {
                DType::C64 => DType::F32,
                DType::C128 => DType::F64,
                other => *other,
            };
            Type::Tensor(TensorType { dtype, shape: shape.clone() })
        }
        other => other.clone(),
    };
    // The short form names the result; the parts have its real type.
    if let Some(types) = &mut statement.operand_types {
        for ty in types {
            *ty = part(ty);
        }
    }
    Ok(statement)
}

/// `%a, format = e5m10 : type`.
pub(super) fn reduce_precision(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    reader.cursor.expect_word("format")?;
    reader.cursor.expect("=")?;
    let at = reader.cursor.offset();
    let format = reader.cursor.word("a format such as `e5m10`")?;
    let bits = format.strip_prefix('e').and_then(|format| format.split_once('m'));
    let bits = bits.and_then(|(exponent, mantissa)| {
        Some((exponent.parse::<u32>().ok()?, mantissa.parse::<u32>().ok()?))
    });
    let Some((exponent, mantissa)) = bits else {
        return reader.cursor.error_at(at, format!("`{format}` is no format such as `e5m10`"));
    };
    statement.set("exponent_bits", Attribute::Integer(exponent.into(), None));
    statement.set("mantissa_bits", Attribute::Integer(mantissa.into(), None));
    attributes_and_types(reader, statement)
}
