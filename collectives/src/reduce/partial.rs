//! Folds that members pass on before they are complete.
//!
//! A partial fold is carried in the type in which the fold accumulates, so that floats of 8 and 16
//! bits are rounded once, when all operands are in it (I4). A mean is a sum until then.

use bytemuck::{NoUninit, Pod};
use half::{bf16, f16};

use super::complex::Complex;
use super::minifloat::{F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ};
use super::number::{Arithmetic, Divide};
use super::{Source, TILE_ELEMENTS, fold};
use crate::element::{ElementType, Operator, Reduction};

/// How operands of one type are folded one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partial {
    element: ElementType,
    reduction: Reduction,
    /// The type of partial folds.
    carrier: ElementType,
}

/// Evaluates to `$body` with `$T` as the Rust type of a float that is narrower than its carrier.
macro_rules! with_narrow_float {
    ($element:expr, $T:ident => $body:expr) => {
        match $element {
            ElementType::F16 => {
                type $T = f16;
                Some($body)
            }
            ElementType::BF16 => {
                type $T = bf16;
                Some($body)
            }
            ElementType::F8E3M4 => {
                type $T = F8E3M4;
                Some($body)
            }
            ElementType::F8E4M3 => {
                type $T = F8E4M3;
                Some($body)
            }
            ElementType::F8E4M3FN => {
                type $T = F8E4M3FN;
                Some($body)
            }
            ElementType::F8E4M3B11FNUZ => {
                type $T = F8E4M3B11FNUZ;
                Some($body)
            }
            ElementType::F8E4M3FNUZ => {
                type $T = F8E4M3FNUZ;
                Some($body)
            }
            ElementType::F8E5M2 => {
                type $T = F8E5M2;
                Some($body)
            }
            ElementType::F8E5M2FNUZ => {
                type $T = F8E5M2FNUZ;
                Some($body)
            }
            _ => None,
        }
    };
}

impl Partial {
    /// Folds of `element`s by `operator`; `None` for a function, which need not be associative.
    pub(crate) fn new(element: ElementType, operator: &Operator<'_>) -> Option<Self> {
        let Operator::Named(reduction) = *operator else { return None };
        let accumulates =
            matches!(reduction, Reduction::Sum | Reduction::Product | Reduction::Mean);
        let is_narrow = with_narrow_float!(element, T => size_of::<T>()).is_some();
        let carrier = if accumulates && is_narrow { ElementType::F32 } else { element };
        Some(Self { element, reduction, carrier })
    }

    /// Bytes of the partial fold of operands of `operand_bytes`.
    pub(crate) fn carried_bytes(&self, operand_bytes: usize) -> usize {
        operand_bytes / self.element.size_bytes() * self.carrier.size_bytes()
    }

    /// Bytes of the operands whose partial fold has `carried_bytes`.
    pub(crate) fn operand_bytes(&self, carried_bytes: usize) -> usize {
        carried_bytes / self.carrier.size_bytes() * self.element.size_bytes()
    }

    /// The fold of one operand.
    pub(crate) fn begin(&self, operand: &[u8]) -> Vec<u8> {
        let mut folded = vec![0; self.carried_bytes(operand.len())];
        self.widen(operand, &mut folded);
        folded
    }

    /// Folds `operands`, the first to the last, into `folded`.
    pub(crate) fn gather(&self, operands: &[&[u8]], folded: &mut [u8]) {
        if self.carrier == self.element {
            let inputs: Vec<Source<'_>> = operands.iter().copied().map(Some).collect();
            return self.join(&inputs, folded);
        }
        let Some((first, others)) = operands.split_first() else { return };
        self.widen(first, folded);
        for operand in others {
            self.append(None, operand, folded);
        }
    }

    /// Makes `folded` the fold of `earlier`, or of what it holds, and then of `operand`.
    pub(crate) fn append(&self, earlier: Source<'_>, operand: &[u8], folded: &mut [u8]) {
        if self.carrier == self.element {
            return self.join(&[earlier, Some(operand)], folded);
        }
        let mut scratch = [0_f32; TILE_ELEMENTS];
        let scratch = bytemuck::cast_slice_mut(&mut scratch);
        let tile_bytes = scratch.len();
        let operands = operand.chunks(self.operand_bytes(tile_bytes));
        for (index, (folded, operand)) in folded.chunks_mut(tile_bytes).zip(operands).enumerate() {
            let start = index * tile_bytes;
            let wide = &mut scratch[..folded.len()];
            self.widen(operand, wide);
            let earlier = earlier.map(|earlier| &earlier[start..start + wide.len()]);
            self.join(&[earlier, Some(wide)], folded);
        }
    }

    /// Folds partial folds, the first to the last, into `folded`.
    pub(crate) fn join(&self, inputs: &[Source<'_>], folded: &mut [u8]) {
        let reduction = match self.reduction {
            Reduction::Mean => Reduction::Sum,
            other => other,
        };
        fold(self.carrier, &reduction.into(), inputs, folded);
    }

    /// Writes the result, given the fold of all `count` operands.
    pub(crate) fn finish(&self, mut folded: Vec<u8>, count: usize, output: &mut [u8]) {
        if self.reduction == Reduction::Mean {
            match self.carrier {
                ElementType::F32 => divide::<f32>(&mut folded, count),
                ElementType::F64 => divide::<f64>(&mut folded, count),
                ElementType::C64 => divide::<Complex<f32>>(&mut folded, count),
                ElementType::C128 => divide::<Complex<f64>>(&mut folded, count),
                // As `ElementType::supports` says, which is checked before a collective starts.
                _ => {}
            }
        }
        if self.carrier == self.element {
            output.copy_from_slice(&folded);
        } else {
            with_narrow_float!(self.element, T => convert(&folded, output, <T as Arithmetic>::round));
        }
    }

    /// Writes `operand` as its carrier has it.
    fn widen(&self, operand: &[u8], folded: &mut [u8]) {
        if self.carrier == self.element {
            folded.copy_from_slice(operand);
        } else {
            with_narrow_float!(self.element, T => convert(operand, folded, <T as Arithmetic>::widen));
        }
    }
}

/// Writes what `of` makes of each element, wherever they are aligned.
fn convert<A: Pod, B: NoUninit>(from: &[u8], to: &mut [u8], of: impl Fn(A) -> B) {
    for (from, to) in from.chunks_exact(size_of::<A>()).zip(to.chunks_exact_mut(size_of::<B>())) {
        to.copy_from_slice(bytemuck::bytes_of(&of(bytemuck::pod_read_unaligned(from))));
    }
}

fn divide<T: Divide<Accumulator = T>>(sums: &mut [u8], count: usize) {
    for sum in sums.chunks_exact_mut(size_of::<T>()) {
        let mean = T::divide(bytemuck::pod_read_unaligned(sum), count);
        sum.copy_from_slice(bytemuck::bytes_of(&mean));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| f16::from_f32(*value).to_ne_bytes()).collect()
    }

    /// However a fold is cut, what fits into the accumulator without rounding has the bits of the
    /// fold in one go; at more elements than a tile has.
    #[test]
    fn a_fold_in_parts_is_the_fold_in_one_go() {
        for element in ElementType::ARITHMETIC {
            for reduction in Reduction::ALL.into_iter().filter(|r| element.supports(*r)) {
                let operator = reduction.into();
                let partial = Partial::new(element, &operator).unwrap();
                // Codes of small magnitude, so that sums and products of three are exact.
                let one: u8 = if element.size_bytes() == 1 { 0x30 } else { 0x3c };
                let operand = |shift: usize| -> Vec<u8> {
                    let width = element.size_bytes();
                    let value = |index: usize| match (index + shift) % 3 {
                        0 => 0,
                        1 => one,
                        _ => one + 4,
                    };
                    (0..700 * width)
                        .map(|at| if at % width == width - 1 { value(at / width) } else { 0 })
                        .collect()
                };
                let operands = [operand(0), operand(1), operand(2)];
                let mut expected = vec![0; operands[0].len()];
                let inputs = operands.each_ref().map(|o| Some(&o[..]));
                fold(element, &operator, &inputs, &mut expected);

                let mut appended = vec![0; partial.carried_bytes(expected.len())];
                let first = partial.begin(&operands[0]);
                partial.append(Some(&first), &operands[1], &mut appended);
                partial.append(None, &operands[2], &mut appended);
                let mut output = vec![0xa5; expected.len()];
                partial.finish(appended.clone(), 3, &mut output);
                assert_eq!(output, expected, "{reduction} of {element}, one by one");

                let mut gathered = vec![0; appended.len()];
                partial.gather(&operands.each_ref().map(Vec::as_slice), &mut gathered);
                assert_eq!(gathered, appended, "{reduction} of {element} at once");
            }
        }
    }

    #[test]
    fn halves_round_once() {
        let partial = Partial::new(ElementType::F16, &Reduction::Sum.into()).unwrap();
        assert_eq!((partial.carried_bytes(6), partial.operand_bytes(12)), (12, 6));
        // In f16 the first partial sum would be infinite.
        let mut folded = partial.begin(&halves(&[60_000.0]));
        partial.append(None, &halves(&[60_000.0]), &mut folded);
        partial.append(None, &halves(&[-60_000.0]), &mut folded);
        let mut output = [0; 2];
        partial.finish(folded, 3, &mut output);
        assert_eq!(output, halves(&[60_000.0])[..]);
    }

    #[test]
    fn a_mean_is_divided_at_the_end() {
        let partial = Partial::new(ElementType::F32, &Reduction::Mean.into()).unwrap();
        let bytes = |value: f32| value.to_ne_bytes();
        let mut folded = partial.begin(&bytes(1.0));
        partial.append(None, &bytes(4.0), &mut folded);
        assert_eq!(folded, bytes(5.0));
        let mut output = [0; 4];
        partial.finish(folded, 2, &mut output);
        assert_eq!(output, bytes(2.5));
    }
}
