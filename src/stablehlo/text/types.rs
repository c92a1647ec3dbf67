//! Types: `tensor<4x8xf32>`, `!stablehlo.token`, `tuple<…>`, `(types) -> types`.

use std::collections::HashMap;
use std::sync::Arc;

use super::attributes::{float_text, free_bytes};
use super::cursor::{Cursor, Parsed, leading};
use crate::ifrt::{DType, Shape};
use crate::stablehlo::{
    DynamicTensorType, Quantization, QuantizationParameters, QuantizedTensorType, TensorType, Type,
};

/// The most dimensions a tensor may have; bounds what is quadratic in them.
const MAX_RANK: usize = 64;

/// The types of a text that have been read.
#[derive(Default)]
pub(super) struct Types<'a> {
    /// Tensor types by their text, so that the many values of one type share it.
    tensors: HashMap<&'a str, Type>,
    /// What `!name = type` has defined. As with aliases of attributes, uses are paid for.
    aliases: HashMap<&'a str, TypeAlias>,
    /// Bytes of text that uses of aliases may still stand for.
    budget: usize,
}

/// What a type alias stands for, and the length of its text.
struct TypeAlias {
    value: AliasedType,
    text_bytes: usize,
}

#[derive(Clone)]
enum AliasedType {
    Type(Type),
    Element(DType),
    Quantized(Arc<Quantization>),
}

impl<'a> Cursor<'a> {
    /// Reads `!name = type`.
    pub(super) fn define_type(&mut self) -> Parsed<()> {
        let start = self.offset();
        let name = self.sigil_name('!', "an alias")?;
        self.expect("=")?;
        if self.types.aliases.is_empty() {
            self.types.budget = free_bytes(self.raw().len());
        }
        let budget = self.types.budget;
        let value = if self.at_quantization() {
            AliasedType::Quantized(self.quantization()?)
        } else if self.at_type_alias() {
            self.type_alias()?
        } else if self.at_type() {
            AliasedType::Type(self.ty()?)
        } else {
            AliasedType::Element(self.dtype()?)
        };
        let text_bytes = self.offset() - start + (budget - self.types.budget);
        if self.types.aliases.insert(name, TypeAlias { value, text_bytes }).is_some() {
            return self.error_at(start, format!("!{name} is defined twice"));
        }
        Ok(())
    }

    /// Whether `!name` comes next, which is no type of a dialect.
    fn at_type_alias(&mut self) -> bool {
        let name = self.rest().strip_prefix('!').unwrap_or("");
        let name = leading(name, |byte| byte.is_ascii_alphanumeric() || b"_$.".contains(&byte));
        !name.is_empty() && !name.contains('.')
    }

    pub(super) fn at_quantization(&mut self) -> bool {
        self.rest().starts_with("!quant.")
    }

    /// What `!name`, which comes next, stands for.
    fn type_alias(&mut self) -> Parsed<AliasedType> {
        let start = self.offset();
        let name = self.sigil_name('!', "an alias")?;
        let Some(alias) = self.types.aliases.get(name) else {
            return self.error_at(start, format!("!{name} is not defined before its use"));
        };
        let Some(left) = self.types.budget.checked_sub(alias.text_bytes) else {
            return self.error_at(start, "aliases stand for much more text than there is");
        };
        self.types.budget = left;
        Ok(alias.value.clone())
    }
}

impl<'a> Cursor<'a> {
    /// Whether a type comes next, as far as the first word tells.
    pub(super) fn at_type(&mut self) -> bool {
        matches!(self.peek(), Some(b'!')) || matches!(self.peek_word(), "tensor" | "tuple")
    }

    /// A type.
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        let start = self.offset();
        if self.at_type_alias() {
            return match self.type_alias()? {
                AliasedType::Type(ty) => Ok(ty),
                _ => self.error_at(start, "this alias stands for the type of an element"),
            };
        }
        if self.eat("!") {
            let name = self.word("the name of a type")?;
            return match name {
                "stablehlo.token" => Ok(Type::Token),
                "stablehlo.future" => self.types_in_brackets().map(Type::Future),
                _ => self.not_known(start, format!("the type !{name}")),
            };
        }
        match self.peek_word() {
            "tensor" => self.tensor(),
            "tuple" => {
                self.expect_word("tuple")?;
                self.types_in_brackets().map(Type::Tuple)
            }
            "memref" | "vector" | "index" | "none" => {
                let word = self.word("a type")?;
                self.not_known(start, format!("the type {word}"))
            }
            _ => self.unexpected("a type"),
        }
    }

    /// `<type, type>`.
    fn types_in_brackets(&mut self) -> Parsed<Vec<Type>> {
        self.expect("<")?;
        self.enter()?;
        let types = self.list(">", Self::ty)?;
        self.leave();
        Ok(types)
    }

    /// `tensor<4x8xf32>`, of plain elements.
    pub(super) fn tensor_type(&mut self) -> Parsed<TensorType> {
        let start = self.offset();
        match self.tensor()? {
            Type::Tensor(ty) => Ok(ty),
            other => self.not_known(start, format!("a constant of type {other}")),
        }
    }

    /// `tensor<4x8xf32>`, `tensor<4x?xf32>` or `tensor<4x8x!quant.uniform<…>>`.
    fn tensor(&mut self) -> Parsed<Type> {
        let rest = self.rest();
        let Some(end) = rest.bytes().position(|byte| byte == b'>') else {
            return self.new_tensor();
        };
        // Types that contain others are longer than up to here, and are rare.
        let text = &rest[..=end];
        if let Some(ty) = self.types.tensors.get(text) {
            let ty = ty.clone();
            self.advance(text.len());
            return Ok(ty);
        }
        let start = self.offset();
        let ty = self.new_tensor()?;
        if self.position() == start + text.len() {
            self.types.tensors.insert(text, ty.clone());
        }
        Ok(ty)
    }

    fn new_tensor(&mut self) -> Parsed<Type> {
        let start = self.offset();
        self.expect_word("tensor")?;
        self.expect("<")?;
        let dims = self.dimensions(start)?;
        let Some(sizes) = dims.iter().copied().collect::<Option<Vec<usize>>>() else {
            return self.dynamic_tensor(dims);
        };
        let shape = Shape::new(sizes).or_else(|error| self.error_at(start, error.to_string()))?;
        if let Some(quantization) = self.quantized_element()? {
            self.close_tensor()?;
            return match QuantizedTensorType::new(quantization, shape) {
                Ok(ty) => Ok(Type::Quantized(ty)),
                Err(message) => self.error_at(start, message),
            };
        }
        let dtype = self.dtype()?;
        self.close_tensor()?;
        Ok(Type::Tensor(TensorType::new(dtype, shape)))
    }

    fn close_tensor(&mut self) -> Parsed<()> {
        if self.peek() == Some(b',') {
            let at = self.offset();
            return self.not_known(at, "the encoding of a tensor type");
        }
        self.expect(">")
    }

    /// The rest of `tensor<4x?xf32, #stablehlo.bounds<?, 8>>` after its dimensions.
    fn dynamic_tensor(&mut self, dims: Vec<Option<usize>>) -> Parsed<Type> {
        let at = self.offset();
        if self.quantized_element()?.is_some() {
            return self.not_known(at, "a quantized tensor type that is not static");
        }
        let dtype = self.dtype()?;
        let mut bounds = Vec::new();
        if self.eat(",") {
            let at = self.offset();
            let close = match self.sigil_name('#', "the bounds of a tensor")? {
                "stablehlo.bounds" => {
                    self.expect("<")?;
                    ">"
                }
                "stablehlo.type_extensions" => {
                    self.expect("<")?;
                    self.expect_word("bounds")?;
                    self.expect("=")?;
                    self.expect("[")?;
                    "]"
                }
                _ => return self.not_known(at, "the encoding of a tensor type"),
            };
            bounds = self.list(close, |cursor| {
                if cursor.eat("?") { Ok(None) } else { cursor.number("a bound").map(Some) }
            })?;
            if close == "]" {
                self.expect(">")?;
            }
            if bounds.is_empty() || !DynamicTensorType::are_bounds(&dims, &bounds) {
                return self.error_at(at, "only dynamic dimensions have bounds, each one or `?`");
            }
        }
        self.expect(">")?;
        let (dims, bounds) = (dims.into(), bounds.into());
        Ok(Type::Dynamic(DynamicTensorType { dtype, dims, bounds }))
    }

    /// `4x?x` of the tensor type at `start`.
    fn dimensions(&mut self, start: usize) -> Parsed<Vec<Option<usize>>> {
        let mut dims = Vec::new();
        loop {
            let at = self.offset();
            let rest = self.raw();
            if rest.starts_with('*') {
                return self.not_known(at, "a tensor type without a rank");
            }
            let digits = leading(rest, |byte| byte.is_ascii_digit());
            if rest.starts_with('?') {
                self.advance(1);
                dims.push(None);
            } else if digits.is_empty() {
                return Ok(dims);
            } else {
                let Ok(dim) = digits.parse::<usize>() else {
                    return self.error_at(at, format!("the dimension {digits} is too large"));
                };
                self.advance(digits.len());
                dims.push(Some(dim));
            }
            self.expect("x")?;
            if dims.len() > MAX_RANK {
                let message = format!("a tensor of more than {MAX_RANK} dimensions");
                return self.not_known(start, message);
            }
        }
    }

    /// A quantized element type, or an alias of one, if it comes next.
    fn quantized_element(&mut self) -> Parsed<Option<Arc<Quantization>>> {
        let start = self.offset();
        if self.at_type_alias() {
            if let AliasedType::Quantized(quantization) = self.type_alias()? {
                return Ok(Some(quantization));
            }
            self.seek(start);
            return Ok(None);
        }
        if self.peek() == Some(b'!') { self.quantization().map(Some) } else { Ok(None) }
    }

    /// `!quant.uniform<i8<-128:127>:f32:1, {0.5:3, 0.25}>`.
    pub(super) fn quantization(&mut self) -> Parsed<Arc<Quantization>> {
        let start = self.offset();
        self.expect("!")?;
        let name = self.word("the name of a type")?;
        if name != "quant.uniform" {
            return self.not_known(start, format!("the element type !{name}"));
        }
        self.expect("<")?;
        let storage = self.storage_type()?;
        let mut range = None;
        if self.eat("<") {
            let least = self.number("the least number stored")?;
            self.expect(":")?;
            range = Some((least, self.number("the greatest number stored")?));
            self.expect(">")?;
        }
        self.expect(":")?;
        let expressed = self.dtype()?;
        let dimension = if self.eat(":") { Some(self.number("a dimension")?) } else { None };
        self.expect(",")?;
        let parameters = if self.eat("{") {
            self.list("}", Self::quantization_parameters)?
        } else {
            vec![self.quantization_parameters()?]
        };
        self.expect(">")?;
        Quantization::new(storage, range, expressed, dimension, parameters)
            .map(Arc::new)
            .or_else(|message| self.error_at(start, message))
    }

    /// `i8` or `u8`: unlike elsewhere, unsigned types have no `i`.
    fn storage_type(&mut self) -> Parsed<DType> {
        let start = self.offset();
        let word = self.word("the type of what is stored")?;
        let unsigned = word.strip_prefix('u').map(|bits| format!("ui{bits}"));
        match DType::from_name(unsigned.as_deref().unwrap_or(word)) {
            Some(dtype) => Ok(dtype),
            None => self.not_known(start, format!("the storage type {word}")),
        }
    }

    /// `0.5` or `0.5:3`.
    fn quantization_parameters(&mut self) -> Parsed<QuantizationParameters> {
        let start = self.offset();
        let text = float_text(self.raw());
        let Ok(scale) = text.parse() else { return self.unexpected("a scale such as `0.5`") };
        self.advance(text.len());
        let zero_point = if self.eat(":") { self.number("a zero point")? } else { 0 };
        if self.peek() == Some(b'{') {
            return self.not_known(start, "quantization by blocks");
        }
        Ok(QuantizationParameters::new(scale, zero_point))
    }

    /// An element type.
    pub(super) fn dtype(&mut self) -> Parsed<DType> {
        let start = self.offset();
        if self.at_type_alias() {
            return match self.type_alias()? {
                AliasedType::Element(dtype) => Ok(dtype),
                _ => self.error_at(start, "this alias stands for no element type"),
            };
        }
        let word = self.word("an element type")?;
        if word == "complex" {
            self.expect("<")?;
            let part = self.dtype()?;
            self.expect(">")?;
            return match part {
                DType::F32 => Ok(DType::C64),
                DType::F64 => Ok(DType::C128),
                other => self.error_at(start, format!("there is no complex type of {other}")),
            };
        }
        match DType::from_name(word) {
            Some(dtype) => Ok(dtype),
            None => self.not_known(start, format!("the element type {word}")),
        }
    }

    /// One type, or several in parentheses.
    pub(super) fn type_or_list(&mut self) -> Parsed<Vec<Type>> {
        if self.eat("(") { self.list(")", Self::ty) } else { Ok(vec![self.ty()?]) }
    }

    /// `(operand types) -> result types`.
    pub(super) fn function_type(&mut self) -> Parsed<(Vec<Type>, Vec<Type>)> {
        self.expect("(")?;
        let operands = self.list(")", Self::ty)?;
        self.expect("->")?;
        Ok((operands, self.type_or_list()?))
    }
}
