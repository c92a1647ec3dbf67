//! Custom forms of the operations of `sdy`.

use super::{attributes_and_types, with_operands};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::PropagationDirection;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};

/// `%a <@mesh, […]> : type`.
pub(super) fn constraint(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    statement.set("sharding", Attribute::Sharding(reader.cursor.bracketed_sharding()?));
    attributes_and_types(reader, statement)
}

/// `%a group_id=3 : type`, the type of the operand.
pub(super) fn group(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    named(reader, "group_id")?;
    statement.set("group_id", Attribute::Integer(reader.cursor.integer()?, None));
    let mut statement = attributes_and_types(reader, statement)?;
    statement.result_types = Vec::new();
    Ok(statement)
}

/// `%a allowed_direction=FORWARD : type`.
pub(super) fn barrier(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    named(reader, "allowed_direction")?;
    let at = reader.cursor.offset();
    let word = reader.cursor.word("a direction such as `FORWARD`")?;
    let Some(direction) = PropagationDirection::from_name(word) else {
        return reader.cursor.error_at(at, format!("{word} is no direction such as `FORWARD`"));
    };
    // The attribute is the number of the case.
    statement.set("allowed_direction", Attribute::Integer(direction as i128, None));
    attributes_and_types(reader, statement)
}

/// `%a sharding=<@mesh, […]> : type`, with or without the sharding.
pub(super) fn data_flow_edge(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    if reader.cursor.peek_word() == "sharding" {
        named(reader, "sharding")?;
        statement.set("sharding", Attribute::Sharding(reader.cursor.bracketed_sharding()?));
    }
    attributes_and_types(reader, statement)
}

/// `(%a) in_shardings=[…] out_shardings=[…] manual_axes={…} (%x: T) {…} : types`.
pub(super) fn manual_computation(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(reader.operands_in_parentheses()?);
    for name in ["in_shardings", "out_shardings"] {
        named(reader, name)?;
        statement.set(name, Attribute::Shardings(reader.cursor.sharding_list()?));
    }
    named(reader, "manual_axes")?;
    statement.set("manual_axes", Attribute::Axes(reader.cursor.axis_names()?));
    body(reader, &mut statement)?;
    attributes_and_types(reader, statement)
}

/// `<"name">(%a) in_shardings=[…] out_shardings=[…] (%x: T) {…} : types`.
pub(super) fn named_computation(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    reader.cursor.expect("<")?;
    let name = reader.cursor.string()?;
    reader.cursor.expect(">")?;
    let mut statement = with_operands(reader.operands_in_parentheses()?);
    statement.set("name", Attribute::String(name));
    for name in ["in_shardings", "out_shardings"] {
        if reader.cursor.peek_word() == name {
            named(reader, name)?;
            statement.set(name, Attribute::Shardings(reader.cursor.sharding_list()?));
        }
    }
    body(reader, &mut statement)?;
    attributes_and_types(reader, statement)
}

/// `[{"x"}, {}] %a out_sharding=<@mesh, […]> : type` of the collective called `op`; those that
/// reduce may say how before the axes.
pub(super) fn collective(reader: &mut BodyReader<'_, '_>, op: &str) -> Parsed<Statement> {
    let mut statement = Statement::default();
    if let Some(reduction_op) = reader.cursor.reduction_op()? {
        // The attribute is the number of the case.
        statement.set("reduction_op", Attribute::Integer(reduction_op as i128, None));
    }
    match op {
        "all_reduce" => {
            statement.set("reduction_axes", Attribute::AxisRefs(reader.cursor.axis_refs()?));
        }
        "replicated_to_unreduced" => {
            statement.set("axes", Attribute::AxisRefs(reader.cursor.axis_refs()?));
        }
        "all_to_all" => {
            statement.set("params", Attribute::AxesMoves(reader.cursor.axes_moves()?));
        }
        "collective_permute" => {}
        _ => {
            let name = match op {
                "all_gather" => "gathering_axes",
                "all_slice" => "slicing_axes",
                "reduce_scatter" => "reduce_scatter_axes",
                _ => "axes",
            };
            statement.set(name, Attribute::AxisRefLists(reader.cursor.axis_ref_lists()?));
        }
    }
    statement.operands.push(reader.operand()?);
    named(reader, "out_sharding")?;
    statement.set("out_sharding", Attribute::Sharding(reader.cursor.bracketed_sharding()?));
    attributes_and_types(reader, statement)
}

/// `name=`.
fn named(reader: &mut BodyReader<'_, '_>, name: &str) -> Parsed<()> {
    reader.cursor.expect_word(name)?;
    reader.cursor.expect("=")
}

/// `(%x: T) {…}`.
fn body(reader: &mut BodyReader<'_, '_>, statement: &mut Statement) -> Parsed<()> {
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
    Ok(())
}
