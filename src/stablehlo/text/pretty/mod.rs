//! The custom forms of operations, one family a file.
//!
//! A custom form is shorthand: it is read into the same attributes as the generic form has.

mod chlo;
mod control;
mod elementwise;
mod expectation;
mod linalg;
mod shape;
mod sharding;
mod transfer;
mod window;

use super::cursor::Parsed;
use super::operation::{BodyReader, Statement};
use crate::stablehlo::op::{Binary, Unary};
use crate::stablehlo::{Type, Value};

/// Reads the custom form of the operation called `name`, after its name, which stands at `start`.
pub(super) fn read(reader: &mut BodyReader<'_, '_>, name: &str, start: usize) -> Parsed<Statement> {
    let (dialect, op) = name.split_once('.').unwrap_or(("", name));
    match (dialect, op) {
        (_, "return") => control::return_(reader),
        ("func", "call") => control::call(reader),
        ("stablehlo", "while") => control::while_(reader),
        ("stablehlo", "optimization_barrier") => control::optimization_barrier(reader),
        ("stablehlo", "custom_call") => control::custom_call(reader),
        ("stablehlo", "composite") => control::composite(reader),
        ("stablehlo", "after_all" | "create_token") => transfer::token(reader),
        ("stablehlo", "tuple") => transfer::tuple(reader),
        ("stablehlo", "get_tuple_element") => transfer::get_tuple_element(reader),
        ("stablehlo", "get_dimension_size") => shape::dimension(reader, "dimension"),
        ("stablehlo", "set_dimension_size") => shape::set_dimension_size(reader),
        ("stablehlo", "broadcast") => shape::broadcast(reader),
        ("stablehlo", "dot") => window::dot(reader),
        ("stablehlo", "einsum" | "unary_einsum") => linalg::einsum(reader),
        ("stablehlo", "rng") => linalg::rng(reader),
        ("stablehlo", "fft") => linalg::fft(reader),
        ("stablehlo", "cholesky") => linalg::cholesky(reader),
        ("stablehlo", "rng_bit_generator") => linalg::rng_bit_generator(reader),
        ("stablehlo" | "sdy", "constant") => elementwise::constant(reader),
        ("stablehlo", "compare") => elementwise::compare(reader),
        ("stablehlo", "select") => elementwise::select(reader),
        ("stablehlo", "complex") => elementwise::complex(reader),
        ("stablehlo", "reduce_precision") => elementwise::reduce_precision(reader),
        (
            "stablehlo",
            "clamp"
            | "convert"
            | "bitcast_convert"
            | "reshape"
            | "dynamic_update_slice"
            | "dynamic_pad"
            | "dynamic_reshape"
            | "real_dynamic_slice"
            | "uniform_quantize"
            | "uniform_dequantize",
        ) => elementwise::plain(reader),
        ("stablehlo", "iota") => shape::iota(reader),
        ("stablehlo", "dynamic_iota") => shape::dimension(reader, "iota_dimension"),
        ("stablehlo", "dynamic_broadcast_in_dim") => shape::dynamic_broadcast_in_dim(reader),
        ("stablehlo", "broadcast_in_dim") => shape::dims(reader, "broadcast_dimensions"),
        ("stablehlo", "transpose") => shape::dims(reader, "permutation"),
        ("stablehlo", "reverse") => shape::dims(reader, "dimensions"),
        ("stablehlo", "slice") => shape::slice(reader),
        ("stablehlo", "concatenate") => shape::concatenate(reader),
        ("stablehlo", "pad") => shape::pad(reader),
        ("stablehlo", "dynamic_slice") => shape::dynamic_slice(reader),
        ("stablehlo", "dot_general") => window::dot_general(reader),
        ("stablehlo", "convolution") => window::convolution(reader),
        ("stablehlo", "reduce") => window::reduce(reader),
        ("stablehlo", "partition_id" | "replica_id") => {
            attributes_and_types(reader, Statement::default())
        }
        ("sdy", "manual_computation") => sharding::manual_computation(reader),
        ("sdy", "sharding_constraint" | "reshard") => sharding::constraint(reader),
        ("sdy", "sharding_group") => sharding::group(reader),
        ("sdy", "propagation_barrier") => sharding::barrier(reader),
        ("sdy", "data_flow_edge") => sharding::data_flow_edge(reader),
        ("sdy", "named_computation") => sharding::named_computation(reader),
        ("sdy", _) => sharding::collective(reader, op),
        ("chlo", _) => chlo::read(reader, op),
        ("check", _) => expectation::read(reader, op),
        ("interpreter", "print" | "probe") => expectation::interpreter(reader),
        ("stablehlo", _) if Unary::from_name(op).is_some() || Binary::from_name(op).is_some() => {
            elementwise::plain(reader)
        }
        _ => reader
            .cursor
            .error_at(start, format!("{name} has a generic form only: write \"{name}\"(…)")),
    }
}

/// `{attributes}` if any, then `:` and either `(types) -> types` or one type that all operands
/// and the one result have.
fn attributes_and_types(
    reader: &mut BodyReader<'_, '_>,
    mut statement: Statement,
) -> Parsed<Statement> {
    statement.attributes.extend(reader.cursor.optional_dictionary(reader.aliases)?);
    reader.cursor.expect(":")?;
    if reader.cursor.peek() == Some(b'(') {
        let (operands, results) = reader.cursor.function_type()?;
        statement.operand_types = Some(operands);
        statement.result_types = results;
    } else {
        let at = reader.cursor.offset();
        let ty = reader.cursor.ty()?;
        if statement.operands.len() > 1 && matches!(ty, Type::Tuple(_) | Type::Future(_)) {
            // A long type for each of many operands would take much more memory than its text.
            return reader.cursor.error_at(at, "expected the types of all operands, `(…) -> …`");
        }
        statement.operand_types = Some(vec![ty.clone(); statement.operands.len()]);
        statement.result_types = vec![ty];
    }
    Ok(statement)
}

/// A statement with these operands.
fn with_operands(operands: Vec<Value>) -> Statement {
    Statement { operands, ..Statement::default() }
}

/// `type, type, …`, at least one.
fn types(reader: &mut BodyReader<'_, '_>) -> Parsed<Vec<Type>> {
    let mut types = vec![reader.cursor.ty()?];
    while reader.cursor.eat(",") {
        types.push(reader.cursor.ty()?);
    }
    Ok(types)
}

/// `[1, 2]`.
fn numbers(reader: &mut BodyReader<'_, '_>) -> Parsed<Vec<i64>> {
    reader.cursor.expect("[")?;
    reader.cursor.list("]", |cursor| cursor.number("a dimension"))
}

/// `name = [1, 2]`.
fn named_numbers(reader: &mut BodyReader<'_, '_>, name: &str) -> Parsed<Vec<i64>> {
    reader.cursor.expect_word(name)?;
    reader.cursor.expect("=")?;
    numbers(reader)
}
