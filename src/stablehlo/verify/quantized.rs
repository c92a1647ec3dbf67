//! `uniform_quantize` and `uniform_dequantize`.

use super::check::Check;
use super::{Checked, shown};
use crate::stablehlo::Type;

/// `uniform_quantize`: of floats, or of numbers that are quantized in another way.
pub(super) fn quantize(check: &Check<'_>) -> Checked {
    check.counts(1, 1, 0)?;
    let (operand, result) = (check.operand_types(), check.result_types());
    let [Type::Quantized(to)] = result.as_slice() else {
        let found = shown(&result);
        return Err(check.error("O1", format!("the result must be quantized, found {found}")));
    };
    let (shape, dtype) = match operand.as_slice() {
        [Type::Tensor(from)] if from.dtype.is_float() => (&from.shape, from.dtype),
        [Type::Quantized(from)] => (from.shape(), from.quantization().expressed()),
        _ => {
            let found = shown(&operand);
            let message = format!("the operand must be quantized or of floats, found {found}");
            return Err(check.error("I1", message));
        }
    };
    check.equal("shape of the result", shape, to.shape(), "C1")?;
    check.equal("expressed type of the result", &dtype, &to.quantization().expressed(), "C2")
}

/// `uniform_dequantize`.
pub(super) fn dequantize(check: &Check<'_>) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand_types();
    let [Type::Quantized(from)] = operand.as_slice() else {
        let found = shown(&operand);
        return Err(check.error("I1", format!("the operand must be quantized, found {found}")));
    };
    check.result_shape(from.shape().dims(), "C1")?;
    check.result_dtype(from.quantization().expressed(), "C2")
}
