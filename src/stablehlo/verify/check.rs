//! What every check of an operation uses: its operands, results and regions, and failing.

use std::collections::HashMap;
use std::fmt::Display;

use super::{Checked, VerifyError, shown};
use crate::ifrt::{DType, Shape};
use crate::stablehlo::{Function, Module, OpData, TensorType, Type, Value};

/// One operation under inspection. Its indices are valid and its operands are defined.
pub(super) struct Check<'a> {
    pub(super) module: &'a Module,
    pub(super) functions: &'a HashMap<&'a str, &'a Function>,
    pub(super) function: &'a Function,
    pub(super) data: &'a OpData,
}

impl<'a> Check<'a> {
    /// Whether what is known of the operation is too little to say more than that its place is
    /// right: some of its types are not static, or are of quantized numbers. It is verified when
    /// `transform::simplify` has made another operation of it that has neither.
    pub(super) fn is_deferred(&self) -> bool {
        let values = self.data.operands.iter().chain(&self.data.results);
        values
            .into_iter()
            .any(|&value| matches!(self.function.ty(value), Type::Dynamic(_) | Type::Quantized(_)))
    }

    /// The error that the operation violates a constraint.
    pub(super) fn error(
        &self,
        constraint: &'static str,
        message: impl Into<String>,
    ) -> VerifyError {
        VerifyError {
            message: message.into(),
            subject: self.data.kind.to_string(),
            function: self.function.name.clone(),
            location: self.data.location,
            constraint: (!constraint.is_empty()).then_some(constraint),
        }
    }

    /// Fails with `message` unless `holds`; an empty constraint is one without a number.
    pub(super) fn require(
        &self,
        holds: bool,
        constraint: &'static str,
        message: impl FnOnce() -> String,
    ) -> Checked {
        if holds { Ok(()) } else { Err(self.error(constraint, message())) }
    }

    /// Fails unless the two are equal.
    pub(super) fn equal<T: PartialEq + Display>(
        &self,
        what: &str,
        expected: &T,
        found: &T,
        constraint: &'static str,
    ) -> Checked {
        self.require(expected == found, constraint, || {
            format!("{what}: expected {expected}, found {found}")
        })
    }

    /// The operation must have this many operands, results and regions.
    pub(super) fn counts(&self, operands: usize, results: usize, regions: usize) -> Checked {
        let data = self.data;
        for (what, expected, found) in [
            ("operands", operands, data.operands.len()),
            ("results", results, data.results.len()),
            ("regions", regions, data.regions.len()),
        ] {
            self.require(expected == found, "", || {
                format!("expected {expected} {what}, found {found}")
            })?;
        }
        Ok(())
    }

    /// The types of the operands.
    pub(super) fn operand_types(&self) -> Vec<Type> {
        self.types(&self.data.operands)
    }

    /// The types of the results.
    pub(super) fn result_types(&self) -> Vec<Type> {
        self.types(&self.data.results)
    }

    /// The types of these values.
    pub(super) fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&value| self.function.ty(value).clone()).collect()
    }

    /// The type of operand `i`, which must be there and be a tensor.
    pub(super) fn operand(&self, i: usize) -> Checked<&'a TensorType> {
        self.tensor(self.data.operands.get(i), "operand", i)
    }

    /// The type of result `i`, which must be there and be a tensor.
    pub(super) fn result(&self, i: usize) -> Checked<&'a TensorType> {
        self.tensor(self.data.results.get(i), "result", i)
    }

    fn tensor(&self, value: Option<&Value>, what: &str, i: usize) -> Checked<&'a TensorType> {
        let Some(&value) = value else {
            return Err(self.error("", format!("there is no {what} {i}")));
        };
        match self.function.ty(value) {
            Type::Tensor(ty) => Ok(ty),
            ty @ (Type::Quantized(_) | Type::Dynamic(_)) => {
                Err(self.error("", format!("{what} {i}: {ty} is not known yet at this operation")))
            }
            ty => Err(self.error("", format!("{what} {i} must be a tensor, found {ty}"))),
        }
    }

    /// The types of operands `range`, which must be tensors.
    pub(super) fn operands(&self, range: std::ops::Range<usize>) -> Checked<Vec<&'a TensorType>> {
        range.map(|i| self.operand(i)).collect()
    }

    /// The only result must have this shape.
    pub(super) fn result_shape(&self, expected: &[usize], constraint: &'static str) -> Checked {
        let found = &self.result(0)?.shape;
        self.require(found.dims() == expected, constraint, || {
            format!("the result has the shape {found}, expected {expected:?}")
        })
    }

    /// The only result must have this element type.
    pub(super) fn result_dtype(&self, expected: DType, constraint: &'static str) -> Checked {
        self.equal("element type of the result", &expected, &self.result(0)?.dtype, constraint)
    }

    /// Every dimension must be less than `rank`.
    pub(super) fn in_range(
        &self,
        what: &str,
        dims: &[usize],
        rank: usize,
        constraint: &'static str,
    ) -> Checked {
        self.require(dims.iter().all(|&dim| dim < rank), constraint, || {
            format!("{what} = {dims:?} must be less than {rank}")
        })
    }

    /// No dimension may occur twice.
    pub(super) fn unique(&self, what: &str, dims: &[usize], constraint: &'static str) -> Checked {
        let mut sorted = dims.to_vec();
        sorted.sort_unstable();
        let unique = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        self.require(unique, constraint, || format!("{what} = {dims:?} has an entry twice"))
    }

    /// Dimensions must ascend.
    pub(super) fn sorted(&self, what: &str, dims: &[usize], constraint: &'static str) -> Checked {
        self.require(dims.is_sorted(), constraint, || format!("{what} = {dims:?} must ascend"))
    }

    /// The list must have this many entries.
    pub(super) fn length(
        &self,
        what: &str,
        found: usize,
        expected: usize,
        constraint: &'static str,
    ) -> Checked {
        self.require(found == expected, constraint, || {
            format!("{what} must have {expected} entries, has {found}")
        })
    }

    /// Region `i` must take `arguments` and return `results`.
    pub(super) fn region_type(
        &self,
        i: usize,
        arguments: &[Type],
        results: &[Type],
        constraint: &'static str,
    ) -> Checked {
        let (found_arguments, found_results) = self.region(i)?;
        let fits = found_arguments == arguments && found_results == results;
        self.require(fits, constraint, || {
            format!(
                "region {i} must have the type {} -> {}, has {} -> {}",
                shown(arguments),
                shown(results),
                shown(&found_arguments),
                shown(&found_results)
            )
        })
    }

    /// The types of the arguments of region `i` and of what it returns.
    pub(super) fn region(&self, i: usize) -> Checked<(Vec<Type>, Vec<Type>)> {
        let Some(&region) = self.data.regions.get(i) else {
            return Err(self.error("", format!("there is no region {i}")));
        };
        let block = &self.function.blocks[self.function.regions[region].block];
        let returned = match block.ops.last() {
            Some(&ret) => self.types(&self.function.ops[ret].operands),
            None => Vec::new(),
        };
        Ok((self.types(&block.arguments), returned))
    }

    /// A region that combines `inputs`: `(E0, …, E0, …) -> (E0, …)`, scalars that the inputs'
    /// element types can be promoted to. Answers the element types.
    pub(super) fn combiner(
        &self,
        i: usize,
        inputs: &[DType],
        constraint: &'static str,
    ) -> Checked<Vec<DType>> {
        let (arguments, returned) = self.region(i)?;
        let dtypes: Option<Vec<DType>> = returned.iter().map(scalar_dtype).collect();
        let Some(dtypes) = dtypes else {
            let returned = shown(&returned);
            return Err(self
                .error(constraint, format!("region {i} must return scalars, returns {returned}")));
        };
        self.length("the values returned", dtypes.len(), inputs.len(), constraint)?;
        let expected: Vec<Type> = returned.iter().chain(&returned).cloned().collect();
        self.require(arguments == expected, constraint, || {
            format!("region {i} must take {}, takes {}", shown(&expected), shown(&arguments))
        })?;
        for (&input, &dtype) in inputs.iter().zip(&dtypes) {
            self.require(is_promotable(input, dtype), constraint, || {
                format!("region {i} combines {dtype}, to which {input} cannot be promoted")
            })?;
        }
        Ok(dtypes)
    }
}

/// The element type of a scalar.
pub(super) fn scalar_dtype(ty: &Type) -> Option<DType> {
    match ty {
        Type::Tensor(ty) if ty.shape.rank() == 0 => Some(ty.dtype),
        _ => None,
    }
}

/// A scalar of this type.
pub(super) fn scalar(dtype: DType) -> Type {
    Type::Tensor(TensorType::new(dtype, Shape::scalar()))
}

/// `is_promotable` of the specification: the same kind of number, no narrower.
pub(super) fn is_promotable(from: DType, to: DType) -> bool {
    let same_kind = from == to
        || (from.is_signed_integer() && to.is_signed_integer())
        || (from.is_unsigned_integer() && to.is_unsigned_integer())
        || (from.is_float() && to.is_float())
        || (from.is_complex() && to.is_complex());
    same_kind && from.bit_width() <= to.bit_width()
}
