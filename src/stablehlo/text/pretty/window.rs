//! Custom forms of operations that contract, reduce and slide windows.

use super::{attributes_and_types, numbers, with_operands};
use crate::ifrt::{DType, Shape};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::{Binary, OpKind};
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};
use crate::stablehlo::{Literal, TensorType, Type, build};

/// `%a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : types`.
pub(super) fn dot_general(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    statement.operands.push(reader.operand()?);
    let mut fields = Vec::new();
    while reader.cursor.eat(",") {
        let at = reader.cursor.offset();
        let word = reader.cursor.word("`contracting_dims`")?;
        reader.cursor.expect("=")?;
        match word {
            "batching_dims" | "contracting_dims" => {
                let kind = word.trim_end_matches("_dims");
                for side in ["lhs", "rhs"] {
                    if side == "rhs" {
                        reader.cursor.expect("x")?;
                    }
                    let dims = Attribute::Integers(numbers(reader)?);
                    fields.push((format!("{side}_{kind}_dimensions"), dims));
                }
            }
            "precision" => precision(reader, &mut statement)?,
            "algorithm" => {
                reader.cursor.expect("<")?;
                let fields = reader.cursor.attribute_entries(">", reader.aliases)?;
                let fields = fields.into_iter().map(|entry| (entry.name, entry.value)).collect();
                let name = "stablehlo.dot_algorithm".to_owned();
                statement.set("algorithm", Attribute::Fields { name, fields });
            }
            _ => return reader.cursor.not_known(at, format!("`{word}` of stablehlo.dot_general")),
        }
    }
    let name = "stablehlo.dot".to_owned();
    statement.set("dot_dimension_numbers", Attribute::Fields { name, fields });
    attributes_and_types(reader, statement)
}

/// `%a, %b, precision = [DEFAULT, DEFAULT] : types`.
pub(super) fn dot(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    statement.operands.push(reader.operand()?);
    if reader.cursor.eat(",") {
        reader.cursor.expect_word("precision")?;
        reader.cursor.expect("=")?;
        precision(reader, &mut statement)?;
    }
    attributes_and_types(reader, statement)
}

/// `[DEFAULT, DEFAULT]`.
fn precision(reader: &mut BodyReader<'_, '_>, statement: &mut Statement) -> Parsed<()> {
    reader.cursor.expect("[")?;
    let cases = reader.cursor.list("]", |cursor| {
        let case = cursor.word("a precision")?.to_owned();
        Ok(Attribute::Case { family: "precision".to_owned(), case })
    })?;
    statement.set("precision_config", Attribute::Array(cases));
    Ok(())
}

/// `(%a, %b) dim_numbers = …, window = {stride = […], …} {attributes} : types`.
pub(super) fn convolution(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(reader.operands_in_parentheses()?);
    reader.cursor.expect_word("dim_numbers")?;
    reader.cursor.expect("=")?;
    let dimensions = reader.cursor.conv_dimensions()?;
    statement.set("dimension_numbers", Attribute::ConvDimensions(Box::new(dimensions)));
    reader.cursor.expect(",")?;
    reader.cursor.expect_word("window")?;
    reader.cursor.expect("=")?;
    reader.cursor.expect("{")?;
    if !reader.cursor.eat("}") {
        loop {
            window_entry(reader, &mut statement)?;
            if !reader.cursor.eat(",") {
                break;
            }
        }
        reader.cursor.expect("}")?;
    }
    attributes_and_types(reader, statement)
}

fn window_entry(reader: &mut BodyReader<'_, '_>, statement: &mut Statement) -> Parsed<()> {
    let at = reader.cursor.offset();
    let word = reader.cursor.word("`stride`, `pad`, `lhs_dilate`, `rhs_dilate` or `reverse`")?;
    reader.cursor.expect("=")?;
    match word {
        "stride" => statement.set("window_strides", Attribute::Integers(numbers(reader)?)),
        "lhs_dilate" => statement.set("lhs_dilation", Attribute::Integers(numbers(reader)?)),
        "rhs_dilate" => statement.set("rhs_dilation", Attribute::Integers(numbers(reader)?)),
        "reverse" => {
            reader.cursor.expect("[")?;
            let reversed = reader.cursor.list("]", |cursor| match cursor.peek_word() {
                "true" => cursor.word("true").map(|_| 1),
                "false" => cursor.word("false").map(|_| 0),
                _ => cursor.number("`true` or `false`"),
            })?;
            statement.set("window_reversal", Attribute::Integers(reversed));
        }
        "pad" => {
            reader.cursor.expect("[")?;
            let rows = reader.cursor.list("]", |cursor| {
                cursor.expect("[")?;
                let low: i64 = cursor.number("padding")?;
                cursor.expect(",")?;
                let high: i64 = cursor.number("padding")?;
                cursor.expect("]")?;
                Ok([low, high])
            })?;
            let bytes: Vec<u8> = rows.iter().flatten().flat_map(|n| n.to_le_bytes()).collect();
            let literal = Shape::new([rows.len(), 2])
                .ok()
                .and_then(|shape| Literal::dense(TensorType::new(DType::S64, shape), bytes));
            let Some(literal) = literal else {
                return reader.cursor.error_at(at, "this padding is too large");
            };
            statement.set("padding", Attribute::Elements(literal));
        }
        _ => return reader.cursor.not_known(at, format!("`{word}` of a window")),
    }
    Ok(())
}

/// `(%a init: %i), (%b init: %j) applies stablehlo.add across dimensions = [0] : types`, or
/// without `applies` and with `reducer(%x: T, %y: T) (…) {…}` behind.
pub(super) fn reduce(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    let mut inits = Vec::new();
    loop {
        reader.cursor.expect("(")?;
        statement.operands.push(reader.operand()?);
        reader.cursor.expect_word("init")?;
        reader.cursor.expect(":")?;
        inits.push(reader.operand()?);
        reader.cursor.expect(")")?;
        if !reader.cursor.eat(",") {
            break;
        }
    }
    let count = inits.len();
    statement.operands.append(&mut inits);
    let applied = if reader.cursor.eat_word("applies") {
        let at = reader.cursor.offset();
        Some((at, reader.cursor.word("an operation")?))
    } else {
        None
    };
    reader.cursor.expect_word("across")?;
    reader.cursor.expect_word("dimensions")?;
    reader.cursor.expect("=")?;
    statement.set("dimensions", Attribute::Integers(numbers(reader)?));
    let mut statement = attributes_and_types(reader, statement)?;
    match applied {
        Some((at, name)) => apply(reader, &mut statement, name, at)?,
        None => reducer(reader, &mut statement, count)?,
    }
    Ok(statement)
}

/// The region that `applies` stands for: one operation on two scalars, and a return.
fn apply(
    reader: &mut BodyReader<'_, '_>,
    statement: &mut Statement,
    name: &str,
    at: usize,
) -> Parsed<()> {
    let binary = name.strip_prefix("stablehlo.").and_then(Binary::from_name);
    let kind = match binary {
        Some(binary) => OpKind::Binary(binary),
        None if build::is_known(name) => {
            return reader.cursor.error_at(at, format!("a reduction cannot apply {name}"));
        }
        None => return reader.cursor.not_known(at, name),
    };
    let input = statement.operands.first().map(|&input| reader.function.ty(input));
    let Some(element) = input.and_then(Type::element) else {
        return reader.cursor.error_at(at, "a reduction needs an input that is a tensor");
    };
    let location = reader.cursor.location(at);
    statement.regions.push(reader.function.push_reducer(kind, element, location));
    Ok(())
}

/// `reducer(%x0: T, %y0: T) (%x1: U, %y1: U) {…}`. The block takes x0, x1, … y0, y1, ….
fn reducer(reader: &mut BodyReader<'_, '_>, statement: &mut Statement, count: usize) -> Parsed<()> {
    reader.cursor.expect_word("reducer")?;
    let (region, block) = reader.function.push_region();
    reader.scoped(|reader| {
        let mut accumulated = Vec::with_capacity(count);
        let mut incoming = Vec::with_capacity(count);
        for _ in 0..count {
            reader.cursor.expect("(")?;
            accumulated.push(reader.named_type()?);
            reader.cursor.expect(",")?;
            incoming.push(reader.named_type()?);
            reader.cursor.expect(")")?;
        }
        for argument in accumulated.into_iter().chain(incoming) {
            reader.define_argument(block, argument)?;
        }
        reader.cursor.expect("{")?;
        reader.operations(block)
    })?;
    statement.regions.push(region);
    Ok(())
}
