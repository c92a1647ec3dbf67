//! The custom calls that JAX makes on every platform, and ours for what it has no other way to
//! say. What a target means is not in the program's text, so the verifier knows nothing of it:
//! types are checked here.
//!
//! Ours take a stack of matrices `a` of `[.., m, n]`:
//!
//! | target | results |
//! |---|---|
//! | `lockstep.eigh`, `lower` in its configuration | eigenvalues ascending `[.., n]`, real, and vectors in columns `[.., n, n]` |
//! | `lockstep.svd` | values descending `[.., k]`, real, left vectors `[.., m, k]`, right ones conjugated `[.., k, n]`, where `k` is the lesser of `m` and `n`; or all vectors, `[.., m, m]` and `[.., n, n]` |

use super::Lowering;
use super::data::{operand, region};
use crate::backend::cpu::kernels::linalg::{Eigh, Qr, ReflectorProduct, Svd};
use crate::backend::cpu::kernels::sort::Sort;
use crate::backend::cpu::view::View;
use crate::ifrt::{DType, Result};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::{OpData, Value};

impl Lowering<'_> {
    /// Lowers a custom call by its target.
    pub(super) fn custom_call(
        &mut self,
        op: &OpData,
        target: &str,
        attributes: &[(String, Attribute)],
    ) -> Result<()> {
        match target {
            "Qr" => self.qr(op),
            "ProductOfElementaryHouseholderReflectors" => self.reflector_product(op),
            "ApproxTopK" => self.top_k(op, attributes),
            "lockstep.eigh" => self.eigh(op, attributes),
            "lockstep.svd" => self.svd(op),
            _ => Err(self.unimplemented(op)),
        }
    }

    /// `Qr`: a stack of matrices into its packed factors and as many `tau`s as it has rows or
    /// columns, whichever are fewer.
    fn qr(&mut self, op: &OpData) -> Result<()> {
        let refuse = || self.unimplemented_because(op, "with these types");
        let ([a], [packed, taus]) = (op.operands.as_slice(), op.results.as_slice()) else {
            return Err(refuse());
        };
        let (a, packed, taus) = (self.tensor(*a)?, self.tensor(*packed)?, self.tensor(*taus)?);
        let [batch @ .., rows, columns] = a.shape.dims() else { return Err(refuse()) };
        let expected = [batch, &[*rows.min(columns)]].concat();
        if packed != a || taus.dtype != a.dtype || taus.shape.dims() != expected {
            return Err(refuse());
        }
        let kernel = Qr::new(a.dtype, [*rows, *columns]).ok_or_else(refuse)?;
        self.kernel(op, kernel)
    }

    /// The orthogonal matrices that packed factors and `tau`s stand for.
    fn reflector_product(&mut self, op: &OpData) -> Result<()> {
        let refuse = || self.unimplemented_because(op, "with these types");
        let ([a, taus], [q]) = (op.operands.as_slice(), op.results.as_slice()) else {
            return Err(refuse());
        };
        let (a, taus, q) = (self.tensor(*a)?, self.tensor(*taus)?, self.tensor(*q)?);
        let ([batch @ .., rows, columns], [taus_batch @ .., reflectors]) =
            (a.shape.dims(), taus.shape.dims())
        else {
            return Err(refuse());
        };
        if q != a || taus.dtype != a.dtype || batch != taus_batch {
            return Err(refuse());
        }
        let kernel =
            ReflectorProduct::new(a.dtype, [*rows, *columns], *reflectors).ok_or_else(refuse)?;
        self.kernel(op, kernel)
    }

    fn eigh(&mut self, op: &OpData, attributes: &[(String, Attribute)]) -> Result<()> {
        let refuse = || self.unimplemented_because(op, "with these types");
        let ([a], [w, v]) = (op.operands.as_slice(), op.results.as_slice()) else {
            return Err(refuse());
        };
        let (a, w, v) = (self.tensor(*a)?, self.tensor(*w)?, self.tensor(*v)?);
        let [batch @ .., rows, columns] = a.shape.dims() else { return Err(refuse()) };
        let values = [batch, &[*columns]].concat();
        if rows != columns || v != a || w.dtype != real(a.dtype) || w.shape.dims() != values {
            return Err(refuse());
        }
        let Some(&Attribute::Bool(lower)) = option(attributes, "lower") else {
            return Err(self.unimplemented_because(op, "without `lower`"));
        };
        let kernel = Eigh::new(a.dtype, *rows, lower).ok_or_else(refuse)?;
        self.kernel(op, kernel)
    }

    fn svd(&mut self, op: &OpData) -> Result<()> {
        let refuse = || self.unimplemented_because(op, "with these types");
        let ([a], [s, u, vh]) = (op.operands.as_slice(), op.results.as_slice()) else {
            return Err(refuse());
        };
        let (a, s) = (self.tensor(*a)?, self.tensor(*s)?);
        let (u, vh) = (self.tensor(*u)?, self.tensor(*vh)?);
        let [batch @ .., rows, columns] = a.shape.dims() else { return Err(refuse()) };
        let least = *rows.min(columns);
        let with = |dims: &[usize]| [batch, dims].concat();
        let of_size = |left: usize, right: usize| {
            u.shape.dims() == with(&[*rows, left]) && vh.shape.dims() == with(&[right, *columns])
        };
        let full = of_size(*rows, *columns);
        let fits = (full || of_size(least, least))
            && s.shape.dims() == with(&[least])
            && s.dtype == real(a.dtype)
            && u.dtype == a.dtype
            && vh.dtype == a.dtype
            // Without values there is nothing that all vectors could be told from.
            && (least > 0 || !full);
        let kernel = fits.then(|| Svd::new(a.dtype, [*rows, *columns], full)).flatten();
        self.kernel(op, kernel.ok_or_else(refuse)?)
    }

    /// `ApproxTopK`: inputs, then an initial value each, which an exact answer has no use for. The
    /// comparator, which the call names, is the region that inlining made of it.
    fn top_k(&mut self, op: &OpData, attributes: &[(String, Attribute)]) -> Result<()> {
        let refuse = |what| self.unimplemented_because(op, what);
        let count = op.results.len();
        let first = self.tensor(operand(op, 0)?)?;
        let dims = first.shape.dims();
        let integer = |name| match option(attributes, name) {
            Some(&Attribute::Integer(value, _)) => usize::try_from(value).ok(),
            _ => None,
        };
        let (Some(k), Some(dimension)) = (integer("top_k"), integer("reduction_dim")) else {
            return Err(refuse("without `top_k` and `reduction_dim`"));
        };
        if option(attributes, "aggregate_to_topk") != Some(&Attribute::Bool(true)) {
            return Err(refuse("without `aggregate_to_topk`"));
        }
        let mut kept = dims.to_vec();
        match kept.get_mut(dimension) {
            Some(size) if k <= *size => *size = k,
            _ => return Err(refuse("with these sizes")),
        }
        let inputs = op.operands.get(..count).unwrap_or_default();
        let fits = |(&input, &result): (&Value, &Value)| -> Result<bool> {
            let (input, result) = (self.tensor(input)?, self.tensor(result)?);
            Ok(input.shape.dims() == dims
                && result.shape.dims() == kept
                && result.dtype == input.dtype)
        };
        let some_differ =
            inputs.iter().zip(&op.results).map(fits).collect::<Result<Vec<_>>>()?.contains(&false);
        if some_differ || op.operands.len() != 2 * count {
            return Err(refuse("with these types"));
        }
        let comparator = region(op)?;
        let block = self.function.regions[comparator].block;
        let parameters = self.tensors(&self.function.blocks[block].arguments)?;
        let pairs = inputs.iter().flat_map(|&input| [input, input]);
        let expected =
            pairs.map(|input| Ok(self.tensor(input)?.dtype)).collect::<Result<Vec<_>>>()?;
        if !parameters.iter().map(|ty| ty.dtype).eq(expected) {
            return Err(refuse("with this comparator"));
        }
        let keys = self.sort_keys(op, comparator)?;
        let comparator = self.scalar_body(op, comparator)?;
        let kernel = Sort::new(comparator, keys, self.widths(inputs)?, dims, dimension);
        let sources = inputs.iter().map(|&input| self.dense(input)).collect::<Result<Vec<_>>>()?;
        self.consume(&op.operands);
        let mut sorted = Vec::with_capacity(count);
        for (&input, &result) in inputs.iter().zip(&op.results) {
            let slot = self.new_slot(self.tensor(input)?.size_bytes());
            let (start, steps) = (vec![0; dims.len()], vec![1; dims.len()]);
            self.define(result, slot, View::dense(dims).slice(&start, &kept, &steps));
            sorted.push(slot);
        }
        self.emit(kernel, sources, sorted);
        Ok(())
    }
}

/// The type of the absolute value of an element.
fn real(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    }
}

/// An entry of the dictionary that configures a call.
fn option<'a>(attributes: &'a [(String, Attribute)], name: &str) -> Option<&'a Attribute> {
    let names = ["backend_config", "mhlo.backend_config"];
    let config = attributes.iter().find(|(name, _)| names.contains(&name.as_str()));
    let Some((_, Attribute::Dictionary(entries))) = config else { return None };
    entries.iter().find(|(entry, _)| entry == name).map(|(_, value)| value)
}
