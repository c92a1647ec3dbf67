//! Attribute values and dictionaries.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use super::cursor::{Cursor, Parsed, leading};
use super::resources::Resources;
use crate::ifrt::DType;
use crate::stablehlo::Literal;
use crate::stablehlo::attribute::{Attribute, ConvDimensions, ConvOperand, NamedAttribute};
use crate::stablehlo::op::PrecisionType;

/// Attribute aliases (`#name = value`) defined so far, and the resources of the file.
///
/// A use stands for text that is written once, so uses are paid for from a budget: short text
/// never stands for much more than its own length (invariant I5).
pub(super) struct Aliases<'a> {
    values: HashMap<&'a str, Alias>,
    pub(super) resources: Resources<'a>,
    /// Bytes of text that uses may still stand for.
    budget: Cell<usize>,
}

/// Bytes of text that the uses of aliases may stand for in a text of `text_bytes`.
pub(super) fn free_bytes(text_bytes: usize) -> usize {
    text_bytes.saturating_mul(16).saturating_add(1 << 16)
}

/// The value of an alias, the length of the text it stands for, and how deep it nests.
struct Alias {
    value: Arc<Attribute>,
    text_bytes: usize,
    levels: usize,
}

impl<'a> Aliases<'a> {
    /// No aliases yet, for a text of `text_bytes` with these resources.
    pub(super) fn new(text_bytes: usize, resources: Resources<'a>) -> Self {
        Self { values: HashMap::new(), resources, budget: Cell::new(free_bytes(text_bytes)) }
    }

    /// Reads `#name = value`; the definitions of locations are skipped.
    pub(super) fn define(&mut self, cursor: &mut Cursor<'a>) -> Parsed<()> {
        let start = cursor.offset();
        let name = cursor.sigil_name('#', "an alias")?;
        cursor.expect("=")?;
        if cursor.peek_word() == "loc" {
            return cursor.skip_location();
        }
        let budget = self.budget.get();
        let (value, levels) = cursor.measured(|cursor| cursor.attribute(self))?;
        // Aliases that the value uses count with what they stand for.
        let text_bytes = cursor.offset() - start + (budget - self.budget.get());
        let alias = Alias { value: Arc::new(value), text_bytes, levels };
        if self.values.insert(name, alias).is_some() {
            return cursor.error_at(start, format!("#{name} is defined twice"));
        }
        Ok(())
    }

    /// Takes what stands for `text_bytes` of text at `start` from the budget.
    pub(super) fn pay(&self, text_bytes: usize, start: usize, cursor: &Cursor<'_>) -> Parsed<()> {
        let Some(left) = self.budget.get().checked_sub(text_bytes) else {
            return cursor.error_at(start, "aliases stand for much more text than there is");
        };
        self.budget.set(left);
        Ok(())
    }

    /// What `#name`, which stands at `start`, stands for.
    fn value(&self, name: &str, start: usize, cursor: &mut Cursor<'_>) -> Parsed<Attribute> {
        let Some(alias) = self.values.get(name) else {
            return cursor.error_at(start, format!("#{name} is not defined before its use"));
        };
        self.pay(alias.text_bytes, start, cursor)?;
        cursor.reach(alias.levels + 1)?;
        Ok(Attribute::Shared(Arc::clone(&alias.value)))
    }
}

impl<'a> Cursor<'a> {
    /// Skips `loc(…)`, which says where an operation came from before it was printed.
    pub(super) fn skip_location(&mut self) -> Parsed<()> {
        self.expect_word("loc")?;
        if self.peek() != Some(b'(') {
            return self.unexpected("`(`");
        }
        self.skip_balanced()
    }

    /// Skips `loc(…)` if it comes next.
    pub(super) fn skip_trailing_location(&mut self) -> Parsed<()> {
        if self.peek_word() == "loc" { self.skip_location() } else { Ok(()) }
    }

    fn at_dialect_attribute(&mut self) -> bool {
        let rest = self.rest();
        let name = leading(rest.get(1..).unwrap_or(""), |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
        });
        rest.as_bytes().get(1 + name.len()) == Some(&b'<')
    }

    /// `{name = value, name, …}`; the braces included.
    pub(super) fn dictionary(&mut self, aliases: &Aliases<'a>) -> Parsed<Vec<NamedAttribute>> {
        self.expect("{")?;
        self.attribute_entries("}", aliases)
    }

    /// A dictionary if one comes next, otherwise nothing.
    pub(super) fn optional_dictionary(
        &mut self,
        aliases: &Aliases<'a>,
    ) -> Parsed<Vec<NamedAttribute>> {
        if self.peek() == Some(b'{') { self.dictionary(aliases) } else { Ok(Vec::new()) }
    }

    /// `name = value, …` up to and with `close`.
    pub(super) fn attribute_entries(
        &mut self,
        close: &str,
        aliases: &Aliases<'a>,
    ) -> Parsed<Vec<NamedAttribute>> {
        self.list(close, |cursor| {
            let start = cursor.offset();
            let name = if cursor.peek() == Some(b'"') {
                cursor.string()?
            } else {
                cursor.word("the name of an attribute")?.to_owned()
            };
            let value = if cursor.eat("=") { cursor.attribute(aliases)? } else { Attribute::Unit };
            Ok(NamedAttribute { name, value, location: cursor.location(start) })
        })
    }

    /// The value of an attribute.
    pub(super) fn attribute(&mut self, aliases: &Aliases<'a>) -> Parsed<Attribute> {
        self.enter()?;
        let value = self.attribute_value(aliases)?;
        self.leave();
        Ok(value)
    }

    fn attribute_value(&mut self, aliases: &Aliases<'a>) -> Parsed<Attribute> {
        let start = self.offset();
        match self.peek() {
            Some(b'"') => self.string().map(Attribute::String),
            Some(b'@') => self.symbol_reference(start),
            Some(b'[') => {
                self.expect("[")?;
                self.list("]", |cursor| cursor.attribute(aliases)).map(Attribute::Array)
            }
            Some(b'{') => {
                let entries = self.dictionary(aliases)?;
                Ok(Attribute::Dictionary(unplaced(entries)))
            }
            // Inside a list of attributes of one kind its name is left out.
            Some(b'<') => self.fields("", aliases),
            Some(b'(') if self.at_sub_axis() => self.sub_axis_attribute(),
            Some(b'(') => {
                let (operands, results) = self.function_type()?;
                Ok(Attribute::FunctionType(operands, results))
            }
            Some(b'#') if self.at_dialect_attribute() => self.dialect_attribute(aliases),
            Some(b'#') => {
                let name = self.sigil_name('#', "an alias")?;
                aliases.value(name, start, self)
            }
            Some(b'-' | b'0'..=b'9') => self.number_attribute(),
            _ => match self.peek_word() {
                "true" => self.take_word(Attribute::Bool(true)),
                "false" => self.take_word(Attribute::Bool(false)),
                "unit" => self.take_word(Attribute::Unit),
                "dense" => self.dense_attribute(),
                "dense_resource" => aliases.resources.literal(self).map(Attribute::Elements),
                "array" => self.dense_array(),
                word @ ("sparse" | "affine_map" | "affine_set" | "opaque" | "strided"
                | "distinct") => self.not_known(start, format!("the attribute {word}")),
                "loc" => {
                    self.skip_location()?;
                    Ok(Attribute::location())
                }
                _ if self.at_quantization() => {
                    let quantization = self.quantization()?;
                    Ok(Attribute::Opaque(quantization.to_string()))
                }
                _ if self.at_type() => self.ty().map(Attribute::Type),
                // A bare scalar type, such as the precision of a product.
                word if PrecisionType::from_name(word).is_some()
                    || matches!(word, "index" | "none") =>
                {
                    self.take_word(Attribute::Opaque(word.to_owned()))
                }
                "complex" => {
                    let dtype = self.dtype()?;
                    Ok(Attribute::Opaque(dtype.to_string()))
                }
                _ => self.unexpected("the value of an attribute"),
            },
        }
    }

    fn at_sub_axis(&mut self) -> bool {
        self.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    }

    /// `(2)4`: a part of an axis.
    fn sub_axis_attribute(&mut self) -> Parsed<Attribute> {
        self.expect("(")?;
        let pre_size = Attribute::Integer(self.integer()?, None);
        self.expect(")")?;
        let size = Attribute::Integer(self.integer()?, None);
        let fields = vec![("pre_size".to_owned(), pre_size), ("size".to_owned(), size)];
        Ok(Attribute::Fields { name: "stablehlo.sub_axis_info".to_owned(), fields })
    }

    /// `@name`, or `@outer::@inner`, which nothing here refers to.
    fn symbol_reference(&mut self, start: usize) -> Parsed<Attribute> {
        let symbol = self.symbol()?;
        if !self.raw().starts_with("::") {
            return Ok(Attribute::Symbol(symbol));
        }
        while self.eat("::") {
            self.symbol()?;
        }
        let end = self.offset();
        Ok(Attribute::Opaque(self.text(start, end).trim_end().to_owned()))
    }

    fn take_word(&mut self, value: Attribute) -> Parsed<Attribute> {
        self.word("a word")?;
        Ok(value)
    }

    /// `3`, `3 : i64`, `0.5 : f32`, `0x7F800000 : f32`.
    fn number_attribute(&mut self) -> Parsed<Attribute> {
        let start = self.offset();
        let rest = self.raw();
        let unsigned = rest.strip_prefix('-').unwrap_or(rest);
        let whole = leading(unsigned, |byte| byte.is_ascii_digit());
        if unsigned[whole.len()..].starts_with('.') {
            let text = float_text(rest);
            self.advance(text.len());
            let Ok(value) = text.parse::<f64>() else {
                return self.error_at(start, format!("`{text}` is not a number"));
            };
            let dtype = if self.eat(":") { Some(self.dtype()?) } else { None };
            let Some(dtype) = dtype else { return Ok(Attribute::Float(value, None)) };
            return match crate::stablehlo::number::rounded(value, dtype) {
                Some(value) => Ok(Attribute::Float(value, Some(dtype))),
                None => self.error_at(start, format!("`{text}` is not of type {dtype}")),
            };
        }
        let value = self.integer()?;
        let has_type = self.eat(":");
        if has_type && self.eat_word("index") {
            return Ok(Attribute::Integer(value, None));
        }
        let dtype = if has_type { Some(self.dtype()?) } else { None };
        match dtype {
            Some(dtype) if dtype.is_float() => {
                match crate::stablehlo::number::float_from_bits(value, dtype) {
                    Some(value) => Ok(Attribute::Float(value, Some(dtype))),
                    None => self.error_at(start, format!("{value} is not the bits of a {dtype}")),
                }
            }
            _ => Ok(Attribute::Integer(value, dtype)),
        }
    }

    /// `0.5` or `0.5 : f64`, before which a colon of something else may stand.
    pub(super) fn bare_float(&mut self) -> Parsed<f64> {
        let text = float_text(self.rest());
        let Ok(value) = text.parse::<f64>() else { return self.unexpected("a number") };
        self.advance(text.len());
        let at = self.offset();
        if !(self.eat(":") && self.eat_word("f64")) {
            self.seek(at);
        }
        Ok(value)
    }

    /// `array<i64: 1, 2>`, `array<i1: true>`, `array<f32: 0.5>`, `array<i64>`.
    fn dense_array(&mut self) -> Parsed<Attribute> {
        let start = self.offset();
        self.expect_word("array")?;
        self.expect("<")?;
        let dtype = self.dtype()?;
        let is_empty = self.eat(">");
        if !is_empty {
            self.expect(":")?;
        }
        if dtype == DType::S64 {
            let number = |cursor: &mut Self| cursor.number("an element of an array");
            let items = if is_empty { Vec::new() } else { self.list(">", number)? };
            return Ok(Attribute::Integers(items));
        }
        let mut bytes = Vec::new();
        if !is_empty {
            self.list(">", |cursor| cursor.element(dtype, &mut bytes))?;
        }
        match Literal::list(dtype, bytes) {
            Some(literal) => Ok(Attribute::DenseArray(literal)),
            None => self.error_at(start, "this array is too long"),
        }
    }

    /// `#dialect.name<…>`, `#dialect<name …>`.
    fn dialect_attribute(&mut self, aliases: &Aliases<'a>) -> Parsed<Attribute> {
        let start = self.offset();
        let name = self.sigil_name('#', "an attribute")?;
        match name {
            "stablehlo.conv" => self.conv_attribute(),
            "stablehlo" | "chlo" => {
                self.expect("<")?;
                let family = self.word("an attribute of stablehlo")?;
                if self.peek() == Some(b'<') {
                    return self.fields(&format!("stablehlo.{family}"), aliases).and_then(
                        |value| {
                            self.expect(">")?;
                            Ok(value)
                        },
                    );
                }
                let case = self.word("a case")?;
                self.expect(">")?;
                Ok(Attribute::Case { family: family.to_owned(), case: case.to_owned() })
            }
            "stablehlo.result_accuracy_mode" => {
                self.expect("<")?;
                let case = self.word("a case")?.to_owned();
                self.expect(">")?;
                Ok(Attribute::Case { family: "result_accuracy_mode".to_owned(), case })
            }
            _ if name.starts_with("stablehlo.") => self.fields(name, aliases),
            "sdy.mesh" => self.mesh(String::new()).map(|mesh| Attribute::Mesh(Box::new(mesh))),
            "sdy.sharding" => self.bracketed_sharding().map(Attribute::Sharding),
            "sdy.sharding_per_value" => {
                self.expect("<")?;
                let shardings = self.sharding_list()?;
                self.expect(">")?;
                Ok(Attribute::Shardings(shardings))
            }
            "sdy.op_sharding_rule" => {
                self.sharding_rule().map(|rule| Attribute::ShardingRule(Box::new(rule)))
            }
            "sdy" => self.sdy_list(),
            _ => {
                self.skip_balanced()?;
                let end = self.offset();
                Ok(Attribute::Opaque(self.text(start, end).trim_end().to_owned()))
            }
        }
    }

    /// `<name = value, …>`.
    fn fields(&mut self, name: &str, aliases: &Aliases<'a>) -> Parsed<Attribute> {
        self.expect("<")?;
        let fields = unplaced(self.attribute_entries(">", aliases)?);
        Ok(Attribute::Fields { name: name.to_owned(), fields })
    }

    fn conv_attribute(&mut self) -> Parsed<Attribute> {
        self.expect("<")?;
        if self.peek() != Some(b'[') {
            let at = self.offset();
            return self.not_known(at, "the raw form of #stablehlo.conv");
        }
        let dimensions = self.conv_dimensions()?;
        self.expect(">")?;
        Ok(Attribute::ConvDimensions(Box::new(dimensions)))
    }

    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
    pub(super) fn conv_dimensions(&mut self) -> Parsed<ConvDimensions> {
        let input = self.conv_operand("b", "f")?;
        self.expect("x")?;
        let kernel = self.conv_operand("i", "o")?;
        self.expect("->")?;
        let output = self.conv_operand("b", "f")?;
        Ok(ConvDimensions { input, kernel, output })
    }

    fn conv_operand(&mut self, first: &str, second: &str) -> Parsed<ConvOperand> {
        let start = self.offset();
        self.expect("[")?;
        let mut position = 0;
        let (mut first_at, mut second_at) = (None, None);
        let mut spatial = Vec::new();
        self.list("]", |cursor| {
            let at = cursor.offset();
            let slot = match cursor.peek_word() {
                word if word == first => Some(&mut first_at),
                word if word == second => Some(&mut second_at),
                _ => None,
            };
            match slot {
                Some(slot) => {
                    cursor.word("a dimension")?;
                    if slot.replace(position).is_some() {
                        return cursor.error_at(at, "this dimension is named twice");
                    }
                }
                None => spatial.push((cursor.number::<usize>("a spatial dimension")?, position)),
            }
            position += 1;
            Ok(())
        })?;
        spatial.sort_unstable();
        let dense = spatial.iter().enumerate().all(|(i, &(number, _))| i == number);
        match (first_at, second_at) {
            (Some(first), Some(second)) if dense => Ok(ConvOperand {
                first,
                second,
                spatial: spatial.into_iter().map(|(_, position)| position).collect(),
            }),
            _ => {
                let message = format!("expected `{first}`, `{second}` and 0, 1, … once each");
                self.error_at(start, message)
            }
        }
    }
}

/// The longest prefix that reads as `-1.5e+10`.
pub(super) fn float_text(text: &str) -> &str {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let mut end = usize::from(text.starts_with('-'));
    end += leading(&text[end..], is_digit).len();
    if text[end..].starts_with('.') {
        end += 1;
        end += leading(&text[end..], is_digit).len();
        if text[end..].starts_with(['e', 'E']) {
            let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
            let exponent = leading(&text[end + 1 + sign..], is_digit).len();
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
    }
    &text[..end]
}

fn unplaced(entries: Vec<NamedAttribute>) -> Vec<(String, Attribute)> {
    entries.into_iter().map(|entry| (entry.name, entry.value)).collect()
}
