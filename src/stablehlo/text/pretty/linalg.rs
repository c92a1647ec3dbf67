//! Custom forms of linear algebra, Fourier transforms and random numbers.

use super::shape::operands_before_word;
use super::{attributes_and_types, named_numbers, with_operands};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::text::cursor::Parsed;
use crate::stablehlo::text::operation::{BodyReader, Statement};

/// `%a, type = FFT, length = [8] : types`.
pub(super) fn fft(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    statement.set("fft_type", named_case(reader, "type", "fft_type")?);
    reader.cursor.expect(",")?;
    statement.set("fft_length", Attribute::Integers(named_numbers(reader, "length")?));
    attributes_and_types(reader, statement)
}

/// `%a, lower = true : type`.
pub(super) fn cholesky(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    if reader.cursor.eat(",") {
        reader.cursor.expect_word("lower")?;
        reader.cursor.expect("=")?;
        let at = reader.cursor.offset();
        let lower = match reader.cursor.word("`true` or `false`")? {
            "true" => true,
            "false" => false,
            _ => return reader.cursor.error_at(at, "expected `true` or `false`"),
        };
        statement.set("lower", Attribute::Bool(lower));
    }
    attributes_and_types(reader, statement)
}

/// `%state, algorithm = DEFAULT : types`.
pub(super) fn rng_bit_generator(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = with_operands(vec![reader.operand()?]);
    reader.cursor.expect(",")?;
    statement.set("rng_algorithm", named_case(reader, "algorithm", "rng_algorithm")?);
    attributes_and_types(reader, statement)
}

/// `%a, %b, %shape, distribution = UNIFORM : types`.
pub(super) fn rng(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    operands_before_word(reader, &mut statement)?;
    statement.set("rng_distribution", named_case(reader, "distribution", "rng_distribution")?);
    attributes_and_types(reader, statement)
}

/// `%a, %b, config = "ab,bc->ac" : types`, or one operand.
pub(super) fn einsum(reader: &mut BodyReader<'_, '_>) -> Parsed<Statement> {
    let mut statement = Statement::default();
    operands_before_word(reader, &mut statement)?;
    reader.cursor.expect_word("config")?;
    reader.cursor.expect("=")?;
    statement.set("einsum_config", Attribute::String(reader.cursor.string()?));
    attributes_and_types(reader, statement)
}

/// `name = CASE`, a case of the enumeration `family`.
fn named_case(reader: &mut BodyReader<'_, '_>, name: &str, family: &str) -> Parsed<Attribute> {
    reader.cursor.expect_word(name)?;
    reader.cursor.expect("=")?;
    let case = reader.cursor.word("a case")?.to_owned();
    Ok(Attribute::Case { family: family.to_owned(), case })
}
