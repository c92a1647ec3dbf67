//! Custom calls, by their targets. What a target means is not in the program's text, so the
//! verifier knows nothing of it: types are checked here.

use super::Lowering;
use super::data::{operand, region};
use crate::backend::Transfer;
use crate::backend::cpu::kernels::sort::Sort;
use crate::backend::cpu::view::View;
use crate::ifrt::Result;
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
            "ApproxTopK" => self.top_k(op, attributes),
            // Something is to be computed that nobody uses: it has been.
            "dce_sink" if op.results.is_empty() => {
                self.consume(&op.operands);
                Ok(())
            }
            "lockstep.host_callback" => {
                let number = match option(attributes, "callback") {
                    Some(&Attribute::Integer(number, _)) => u64::try_from(number).ok(),
                    _ => None,
                };
                let number = number
                    .ok_or_else(|| self.unimplemented_because(op, "without the number `callback`"));
                self.transfer(op, Transfer::Callback(number?))
            }
            "ProductOfElementaryHouseholderReflectors" => self.reflector_product(op),
            _ if target == "Qr" || target.starts_with("lockstep.") => {
                self.factorization(op, target, attributes)
            }
            _ => Err(self.unimplemented(op)),
        }
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

/// An entry of the dictionary that configures a call.
pub(super) fn option<'a>(
    attributes: &'a [(String, Attribute)],
    name: &str,
) -> Option<&'a Attribute> {
    let names = ["backend_config", "mhlo.backend_config"];
    let config = attributes.iter().find(|(name, _)| names.contains(&name.as_str()));
    let Some((_, Attribute::Dictionary(entries))) = config else { return None };
    entries.iter().find(|(entry, _)| entry == name).map(|(_, value)| value)
}
