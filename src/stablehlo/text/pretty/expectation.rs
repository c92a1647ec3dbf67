//! Custom forms of the `check` and the `interpreter` dialect.

use super::with_operands;
use crate::ifrt::DType;
use crate::stablehlo::Type;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};

/// `%a : type` or `%a, probe_id = "name" : type`.
pub(super) fn interpreter(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    let is_probe = reader.cursor.eat(",");
    if is_probe {
        reader.cursor.expect_word("probe_id")?;
        reader.cursor.expect("=")?;
        statement.set("probe_id", Attribute::String(reader.cursor.string()?));
    }
    statement.attributes.extend(reader.cursor.optional_dictionary(reader.aliases)?);
    reader.cursor.expect(":")?;
    let types = vec![reader.cursor.ty()?];
    if is_probe {
        statement.result_types.clone_from(&types);
    }
    statement.operand_types = Some(types);
    Ok(statement)
}

/// The operation called `op`.
pub(super) fn read(reader: &mut BodyReader<'_, '_>, op: &str) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    let is_constant = op.ends_with("_const");
    if op == "expect_serialized_eq" {
        reader.cursor.expect_word("probe_id")?;
        reader.cursor.expect("=")?;
        statement.set("probe_id", Attribute::String(reader.cursor.string()?));
        if reader.cursor.eat(",") {
            reader.cursor.expect_word("iter")?;
            reader.cursor.expect("=")?;
            let iteration = Attribute::Integer(reader.cursor.integer()?, Some(DType::U32));
            statement.set("iteration", iteration);
        }
        statement.attributes.extend(reader.cursor.optional_dictionary(reader.aliases)?);
        reader.cursor.expect(":")?;
        statement.operand_types = Some(vec![reader.cursor.ty()?]);
        return Ok(statement);
    }
    let mut types = Vec::new();
    if is_constant {
        let literal = super::elementwise::literal(reader)?;
        types.push(Type::Tensor(literal.ty().clone()));
        statement.set("value", Attribute::Elements(literal));
    } else {
        statement.operands.push(reader.operand()?);
    }
    while reader.cursor.eat(",") {
        let at = reader.cursor.offset();
        let name = reader.cursor.word("`tolerance`")?;
        reader.cursor.expect("=")?;
        let value = match name {
            "tolerance" => Attribute::Float(reader.cursor.bare_float()?, Some(DType::F64)),
            "max_ulp_difference" | "min_ulp_difference" => {
                Attribute::Integer(reader.cursor.integer()?, Some(DType::U64))
            }
            _ => return reader.cursor.not_known(at, format!("`{name}` of check.{op}")),
        };
        statement.set(name, value);
    }
    statement.attributes.extend(reader.cursor.optional_dictionary(reader.aliases)?);
    if !is_constant {
        // `expect_close` has its attributes, if any, behind the colon.
        reader.cursor.expect(":")?;
        statement.attributes.extend(reader.cursor.optional_dictionary(reader.aliases)?);
        types = super::types(reader)?;
        if types.len() == 1 {
            types.push(types[0].clone());
        }
    }
    statement.operand_types = Some(types);
    Ok(statement)
}
