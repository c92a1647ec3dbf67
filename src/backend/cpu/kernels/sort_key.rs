//! Sorting by keys: numbers whose order is the comparator's.
//!
//! A key becomes an unsigned integer with its position below it, so that it is plain integers that
//! are sorted, all different, and equal keys keep their order. Of several keys the last is sorted
//! by first.

use rayon::slice::ParallelSliceMut;

use super::convert::Convert;
use super::element::{Float, with_float, with_integer};
use super::elementwise::{UnaryKernel, map};
use crate::backend::cpu::scalar_body::{Evaluator, ScalarBody};
use crate::backend::cpu::tile::TILE;
use crate::ifrt::DType;
use crate::stablehlo::op::{CompareType, Direction};

/// Lines from this length on are sorted by several threads.
const PARALLEL: usize = 1 << 15;

/// One thing that elements are compared by.
#[derive(Debug)]
pub(crate) struct SortKey {
    /// Makes the key of an element, which it takes as the left and as the right one.
    body: ScalarBody,
    /// Makes an integer of a key: for those of up to four bytes, one of 32 bits.
    ordered: UnaryKernel,
    /// Whether greater keys come first.
    descends: bool,
    /// Whether keys have up to four bytes.
    is_short: bool,
    /// Whether a key may be a NaN that has no place in the order.
    may_be_unordered: bool,
}

/// The integer of a key that has no place in the order.
const UNORDERED: u64 = u64::MAX;

impl SortKey {
    /// The key that `body` makes, of type `dtype`, as `direction` and `compare_type` compare it;
    /// none if that is no strict order.
    pub(crate) fn new(
        body: ScalarBody,
        dtype: DType,
        direction: Direction,
        compare_type: Option<CompareType>,
    ) -> Option<Self> {
        let descends = match direction {
            Direction::Lt => false,
            Direction::Gt => true,
            Direction::Eq | Direction::Ne | Direction::Ge | Direction::Le => return None,
        };
        let total = compare_type == Some(CompareType::TotalOrder);
        let ordered: UnaryKernel = with_integer!(
            dtype,
            T => if dtype.is_signed_integer() {
                |keys, out| {
                    map(keys, out, |x: T| from_zero::<T>(<T as Convert<i64>>::convert(x)));
                }
            } else {
                |keys, out| map(keys, out, <T as Convert<u64>>::convert)
            },
            _ => with_float!(
                dtype,
                T => if total {
                    |keys, out| map(keys, out, |x: T| from_zero::<T>(x.total_order()))
                } else {
                    |keys, out| map(keys, out, partial_order::<T>)
                },
                _ => return None
            )
        );
        let is_short = dtype.size_bytes() <= 4;
        Some(Self {
            body,
            ordered,
            descends,
            is_short,
            may_be_unordered: dtype.is_float() && !total,
        })
    }

    /// An evaluator of the key for the elements of a line.
    pub(super) fn evaluator(&self) -> KeyEvaluator<'_> {
        KeyEvaluator { key: self, body: self.body.evaluator(TILE), keys: Vec::new() }
    }
}

/// A signed number moved so that the least one of `T` is zero, give or take bytes that no `T`
/// has.
fn from_zero<T>(x: i64) -> u64 {
    if size_of::<T>() <= 4 {
        x.wrapping_add(1 << 31).cast_unsigned()
    } else {
        x.cast_unsigned() ^ 1 << 63
    }
}

/// Zeros of either sign are equal, and a NaN has no place.
fn partial_order<T: Float>(x: T) -> u64 {
    if x.partial_cmp(&x).is_none() {
        UNORDERED
    } else if x == T::default() {
        from_zero::<T>(T::default().total_order())
    } else {
        from_zero::<T>(x.total_order())
    }
}

/// Makes the integers of a key, line by line.
pub(super) struct KeyEvaluator<'k> {
    key: &'k SortKey,
    body: Evaluator<'k>,
    keys: Vec<u64>,
}

impl KeyEvaluator<'_> {
    /// Makes the integers of the elements of a line; whether all have a place in the order.
    fn evaluate(&mut self, lines: &[&[u8]], widths: &[usize], len: usize) -> bool {
        self.keys.resize(len, 0);
        let mut arguments: Vec<&[u8]> = Vec::with_capacity(2 * lines.len());
        for (tile, keys) in self.keys.chunks_mut(TILE).enumerate() {
            arguments.clear();
            for (line, width) in lines.iter().zip(widths) {
                let elements = &line[tile * TILE * width..][..keys.len() * width];
                arguments.extend([elements, elements]);
            }
            self.body.run(&arguments, keys.len());
            let made = self.body.output(0, keys.len());
            (self.key.ordered)(made, bytemuck::cast_slice_mut(keys));
            if self.key.may_be_unordered && keys.contains(&UNORDERED) {
                return false;
            }
            if self.key.descends {
                let all = if self.key.is_short { u64::from(u32::MAX) } else { u64::MAX };
                keys.iter_mut().for_each(|key| *key = all - *key);
            }
        }
        true
    }
}

/// Finds the order of a line's elements by its keys, the first before the others. `false` when
/// they do not say: there are no keys, or some have no place.
pub(super) fn arrange(
    keys: &mut [KeyEvaluator<'_>],
    lines: &[&[u8]],
    widths: &[usize],
    len: usize,
    order: &mut Vec<usize>,
) -> bool {
    if keys.is_empty() || u32::try_from(len).is_err() {
        return false;
    }
    order.clear();
    order.extend(0..len);
    for evaluator in keys.iter_mut().rev() {
        if !evaluator.evaluate(lines, widths, len) {
            return false;
        }
        let keys = &evaluator.keys;
        if evaluator.key.is_short {
            by_integers(order, |at, position| keys[at] << 32 | position);
        } else {
            by_integers(order, |at, position| u128::from(keys[at]) << 32 | u128::from(position));
        }
    }
    true
}

/// Sorts `order` by the integer of each element, in whose low 32 bits is its position.
fn by_integers<K: Copy + Ord + Send + LowBits>(
    order: &mut Vec<usize>,
    integer: impl Fn(usize, u64) -> K,
) {
    let mut integers: Vec<K> =
        order.iter().zip(0..).map(|(&at, position)| integer(at, position)).collect();
    if integers.len() < PARALLEL {
        integers.sort_unstable();
    } else {
        integers.par_sort_unstable();
    }
    *order = integers.into_iter().map(|integer| order[integer.low_bits()]).collect();
}

/// Integers that hold a position.
trait LowBits {
    /// The low 32 bits.
    fn low_bits(self) -> usize;
}

impl LowBits for u64 {
    fn low_bits(self) -> usize {
        (self & 0xffff_ffff) as usize
    }
}

impl LowBits for u128 {
    fn low_bits(self) -> usize {
        (self & 0xffff_ffff) as usize
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is small")]
mod tests {
    use bytemuck::cast_slice;

    use super::*;
    use crate::backend::cpu::tile::Builder;

    /// The key of one operand, itself.
    fn key<T>(dtype: DType, direction: Direction, order: CompareType) -> Option<SortKey> {
        let mut builder = Builder::default();
        let node = builder.input(size_of::<T>());
        builder.input(size_of::<T>());
        let body = ScalarBody::new(2, builder, Vec::new(), &[node]).unwrap();
        SortKey::new(body, dtype, direction, Some(order))
    }

    fn arranged<T: bytemuck::Pod>(key: &SortKey, line: &[T]) -> Option<Vec<usize>> {
        let mut order = Vec::new();
        let (lines, widths) = ([cast_slice(line)], [size_of::<T>()]);
        let found = arrange(&mut [key.evaluator()], &lines, &widths, line.len(), &mut order);
        found.then_some(order)
    }

    #[test]
    fn integers_of_every_size_sort_both_ways_and_keep_equals_in_order() {
        let signed = [3_i8, -128, 127, 0, -1, 3, 0];
        let key8 = key::<i8>(DType::S8, Direction::Lt, CompareType::Signed).unwrap();
        assert_eq!(arranged(&key8, &signed).unwrap(), [1, 4, 3, 6, 0, 5, 2]);
        let wide = signed.map(|x| i64::from(x) << 40);
        let key64 = key::<i64>(DType::S64, Direction::Gt, CompareType::Signed).unwrap();
        assert_eq!(arranged(&key64, &wide).unwrap(), [2, 0, 5, 3, 6, 4, 1]);
        let unsigned = [u64::MAX, 0, 1 << 63, 5];
        let key64 = key::<u64>(DType::U64, Direction::Lt, CompareType::Unsigned).unwrap();
        assert_eq!(arranged(&key64, &unsigned).unwrap(), [1, 3, 2, 0]);
        let key32 = key::<u32>(DType::U32, Direction::Gt, CompareType::Unsigned).unwrap();
        assert_eq!(arranged(&key32, &[7, u32::MAX, 0]).unwrap(), [1, 0, 2]);
    }

    #[test]
    fn floats_sort_by_either_order() {
        let line = [0.0_f32, f32::NAN, -0.0, f32::NEG_INFINITY, -f32::NAN, 1.5];
        let total = key::<f32>(DType::F32, Direction::Lt, CompareType::TotalOrder).unwrap();
        assert_eq!(arranged(&total, &line).unwrap(), [4, 3, 2, 0, 5, 1]);
        let partial = key::<f32>(DType::F32, Direction::Lt, CompareType::Float).unwrap();
        assert_eq!(arranged(&partial, &line), None, "a NaN has no place");
        assert_eq!(arranged(&partial, &[0.0_f32, -0.0, 1.0, -0.0]).unwrap(), [0, 1, 3, 2]);
        let wide = line.map(f64::from);
        let total = key::<f64>(DType::F64, Direction::Gt, CompareType::TotalOrder).unwrap();
        assert_eq!(arranged(&total, &wide).unwrap(), [1, 5, 0, 2, 3, 4]);
    }

    #[test]
    fn long_lines_are_sorted_as_short_ones_are() {
        let key = key::<u16>(DType::U16, Direction::Lt, CompareType::Unsigned).unwrap();
        for n in [0, 1, TILE, TILE + 1, PARALLEL - 1, PARALLEL, PARALLEL + 1] {
            let line: Vec<u16> = (0..n).map(|i| (i * 7919 % 1009) as u16).collect();
            let mut expected: Vec<usize> = (0..n).collect();
            expected.sort_by_key(|&i| line[i]);
            assert_eq!(arranged(&key, &line).unwrap(), expected, "{n}");
        }
    }

    #[test]
    fn what_takes_equals_for_ordered_is_no_key() {
        for direction in [Direction::Le, Direction::Ge, Direction::Eq, Direction::Ne] {
            assert!(key::<i32>(DType::S32, direction, CompareType::Signed).is_none());
        }
        assert!(key::<u8>(DType::S4, Direction::Lt, CompareType::Signed).is_none());
    }
}
