//! Types: `tensor<4x8xf32>`, `!stablehlo.token`, `tuple<…>`, `(types) -> types`.

use super::cursor::{Cursor, Parsed, leading};
use crate::ifrt::{DType, Shape};
use crate::stablehlo::{TensorType, Type};

/// The most dimensions a tensor may have; bounds what is quadratic in them.
const MAX_RANK: usize = 64;

impl Cursor<'_> {
    /// Whether a type comes next, as far as the first word tells.
    pub(super) fn at_type(&mut self) -> bool {
        matches!(self.peek(), Some(b'!')) || matches!(self.peek_word(), "tensor" | "tuple")
    }

    /// A type.
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        let start = self.offset();
        if self.eat("!") {
            let name = self.word("the name of a type")?;
            return match name {
                "stablehlo.token" => Ok(Type::Token),
                _ => self.not_known(start, format!("the type !{name}")),
            };
        }
        match self.peek_word() {
            "tensor" => self.tensor_type().map(Type::Tensor),
            "tuple" => {
                self.expect_word("tuple")?;
                self.expect("<")?;
                self.enter()?;
                let types = self.list(">", Self::ty)?;
                self.leave();
                Ok(Type::Tuple(types))
            }
            "memref" | "vector" | "index" | "none" => {
                let word = self.word("a type")?;
                self.not_known(start, format!("the type {word}"))
            }
            _ => self.unexpected("a type"),
        }
    }

    /// `tensor<4x8xf32>`.
    pub(super) fn tensor_type(&mut self) -> Parsed<TensorType> {
        let start = self.offset();
        self.expect_word("tensor")?;
        self.expect("<")?;
        let mut dims = Vec::new();
        loop {
            let at = self.offset();
            let rest = self.raw();
            if rest.starts_with('?') || rest.starts_with('*') {
                return self.not_known(at, "a tensor type that is not static");
            }
            let digits = leading(rest, |byte| byte.is_ascii_digit());
            if digits.is_empty() {
                break;
            }
            let Ok(dim) = digits.parse::<usize>() else {
                return self.error_at(at, format!("the dimension {digits} is too large"));
            };
            self.advance(digits.len());
            self.expect("x")?;
            dims.push(dim);
            if dims.len() > MAX_RANK {
                let message = format!("a tensor of more than {MAX_RANK} dimensions");
                return self.not_known(start, message);
            }
        }
        let dtype = self.dtype()?;
        if self.peek() == Some(b',') {
            let at = self.offset();
            return self.not_known(at, "the encoding of a tensor type");
        }
        self.expect(">")?;
        match Shape::new(dims) {
            Ok(shape) => Ok(TensorType::new(dtype, shape)),
            Err(error) => self.error_at(start, error.to_string()),
        }
    }

    /// An element type.
    pub(super) fn dtype(&mut self) -> Parsed<DType> {
        let start = self.offset();
        if self.peek() == Some(b'!') {
            return self.not_known(start, "a quantized element type");
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
