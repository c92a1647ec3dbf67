//! What every rank puts in, and what must come out: elements as functions of rank and index.
//!
//! Values are drawn from a seed, so every rank knows all inputs. Those that are only moved take
//! any bits. Those that are reduced are chosen so that the result is exact in whatever order they
//! are folded, and differ from rank to rank and from element to element as far as their type lets
//! them.

use half::{bf16, f16};
use lockstep_collectives::{CollectiveKind, ElementType, Reduction};

use crate::collective::{Extent, Terms, weight};

/// The types of which a fold is known here; the others are moved.
pub(crate) const FOLDED: [ElementType; 13] = [
    ElementType::Bool,
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
    ElementType::F16,
    ElementType::BF16,
    ElementType::F32,
    ElementType::F64,
];

/// The inputs of all ranks at one size.
pub(crate) struct Values {
    terms: Terms,
    extent: Extent,
    /// Where each rank's values begin.
    seeds: Vec<u64>,
}

/// The value of an element, wide enough to fold it.
///
/// Folding integers of all widths in 128 bits changes nothing: only the low bits of a sum or
/// product are kept, which the high ones do not reach.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    Single(f32),
    Double(f64),
}

impl Values {
    pub(crate) fn new(terms: Terms, extent: Extent) -> Self {
        let seed = mix(extent.size_bytes as u64);
        let seeds =
            (0..extent.ranks as u64).map(|rank| mix(seed.wrapping_add(mix(rank)))).collect();
        Self { terms, extent, seeds }
    }

    /// Writes what `rank` puts in.
    pub(crate) fn write_input(&self, rank: usize, input: &mut [u8]) {
        let slots = input.chunks_exact_mut(self.terms.element.size_bytes());
        for (index, slot) in slots.enumerate() {
            store(self.input(rank, index), slot);
        }
    }

    /// Writes what `rank` must get.
    pub(crate) fn write_expected(&self, rank: usize, output: &mut [u8]) {
        let slots = output.chunks_exact_mut(self.terms.element.size_bytes());
        for (index, slot) in slots.enumerate() {
            store(self.expected(rank, index), slot);
        }
    }

    /// The element at `index` of what `rank` must get, in the low bits.
    fn expected(&self, rank: usize, index: usize) -> u128 {
        let Extent { count, ranks, .. } = self.extent;
        let root = self.terms.root as usize;
        match self.terms.collective {
            CollectiveKind::AllReduce | CollectiveKind::Reduce => self.fold(index),
            CollectiveKind::ReduceScatter => self.fold(rank * count + index),
            CollectiveKind::AllGather | CollectiveKind::Gather => {
                self.input(index / count, index % count)
            }
            CollectiveKind::AllToAll => self.input(index / count, rank * count + index % count),
            CollectiveKind::AllToAllV => {
                let weight = |from, to| count * weight(from, to, ranks);
                let (mut from, mut index) = (0, index);
                while index >= weight(from, rank) {
                    index -= weight(from, rank);
                    from += 1;
                }
                let start: usize = (0..rank).map(|to| weight(from, to)).sum();
                self.input(from, start + index)
            }
            CollectiveKind::Broadcast => self.input(root, index),
            CollectiveKind::Scatter => self.input(root, rank * count + index),
            CollectiveKind::CollectivePermute => self.input((rank + ranks - 1) % ranks, index),
            CollectiveKind::Send | CollectiveKind::SendRecv => self.input(rank ^ 1, index),
            CollectiveKind::Barrier => 0,
        }
    }

    /// All ranks' elements at `index` folded, the first to the last.
    fn fold(&self, index: usize) -> u128 {
        let Terms { element, reduction, .. } = self.terms;
        let numbers = (0..self.seeds.len()).map(|rank| decode(element, self.input(rank, index)));
        let folded = numbers.reduce(|a, b| match element {
            ElementType::Bool => combine(boolean(reduction), a, b),
            _ => combine(reduction, a, b),
        });
        let folded = match reduction {
            Reduction::Mean => folded.map(|sum| divide(sum, self.seeds.len())),
            _ => folded,
        };
        folded.map_or(0, |number| encode(element, number))
    }

    /// The element at `index` of what `rank` puts in, in the low bits.
    fn input(&self, rank: usize, index: usize) -> u128 {
        let Some(seed) = self.seeds.get(rank) else { return 0 };
        let random = mix(seed.wrapping_add(index as u64));
        let element = self.terms.element;
        if element == ElementType::Bool {
            return (random & 1).into();
        }
        let Some(reduction) = self.terms.reduction() else {
            return u128::from(mix(random)) << 64 | u128::from(random);
        };
        let Some(significand_bits) = significand_bits(element) else {
            // An even factor would soon leave nothing of a product.
            return (random | u64::from(reduction == Reduction::Product)).into();
        };
        match reduction {
            // Integers so small that the sum over all ranks has room.
            Reduction::Sum | Reduction::Mean => {
                let ranks = self.seeds.len() as u64;
                let choices = ((1 << significand_bits) / ranks).max(2);
                float(element, (random % choices) as f64)
            }
            // Powers of two; ranks that double take turns with ranks that halve.
            Reduction::Product => {
                let halves = (rank + index).is_multiple_of(2);
                let magnitude = if halves { 0.5 } else { 2.0 };
                float(element, if random & 1 == 0 { magnitude } else { -magnitude })
            }
            _ => {
                let steps = random % (1 << significand_bits);
                let magnitude = 1.0 + steps as f64 / (1_u64 << significand_bits) as f64;
                float(element, if random >> 63 == 0 { magnitude } else { -magnitude })
            }
        }
    }
}

/// Bits of a float's significand, the hidden one included; `None` for integers.
fn significand_bits(element: ElementType) -> Option<u32> {
    match element {
        ElementType::BF16 => Some(8),
        ElementType::F16 => Some(11),
        ElementType::F32 => Some(f32::MANTISSA_DIGITS),
        ElementType::F64 => Some(f64::MANTISSA_DIGITS),
        _ => None,
    }
}

/// The bits of `value` as a float of this type.
fn float(element: ElementType, value: f64) -> u128 {
    match element {
        ElementType::F64 => encode(element, Number::Double(value)),
        #[expect(clippy::cast_possible_truncation, reason = "at worst it rounds")]
        _ => encode(element, Number::Single(value as f32)),
    }
}

fn combine(reduction: Reduction, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => Number::Integer(match reduction {
            Reduction::Sum => a.wrapping_add(b),
            Reduction::Product => a.wrapping_mul(b),
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
            Reduction::And => a & b,
            Reduction::Or => a | b,
            Reduction::Xor => a ^ b,
            Reduction::Mean => 0,
        }),
        (Number::Single(a), Number::Single(b)) => Number::Single(match reduction {
            Reduction::Sum | Reduction::Mean => a + b,
            Reduction::Product => a * b,
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
            Reduction::And | Reduction::Or | Reduction::Xor => f32::NAN,
        }),
        (Number::Double(a), Number::Double(b)) => Number::Double(match reduction {
            Reduction::Sum | Reduction::Mean => a + b,
            Reduction::Product => a * b,
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
            Reduction::And | Reduction::Or | Reduction::Xor => f64::NAN,
        }),
        // All elements of an operand are of one type.
        (a, _) => a,
    }
}

/// The mean of `count` numbers of the given sum, in the type in which they are added.
fn divide(sum: Number, count: usize) -> Number {
    match sum {
        Number::Integer(sum) => Number::Integer(sum),
        Number::Single(sum) => Number::Single(sum / count as f32),
        Number::Double(sum) => Number::Double(sum / count as f64),
    }
}

/// What `reduction` is of booleans.
fn boolean(reduction: Reduction) -> Reduction {
    match reduction {
        Reduction::Sum => Reduction::Or,
        Reduction::Product => Reduction::And,
        other => other,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
fn decode(element: ElementType, bits: u128) -> Number {
    match element {
        ElementType::I8 => Number::Integer((bits as i8).into()),
        ElementType::I16 => Number::Integer((bits as i16).into()),
        ElementType::I32 => Number::Integer((bits as i32).into()),
        ElementType::I64 => Number::Integer((bits as i64).into()),
        ElementType::Bool | ElementType::U8 => Number::Integer((bits as u8).into()),
        ElementType::U16 => Number::Integer((bits as u16).into()),
        ElementType::U32 => Number::Integer((bits as u32).into()),
        ElementType::F16 => Number::Single(f16::from_bits(bits as u16).into()),
        ElementType::BF16 => Number::Single(bf16::from_bits(bits as u16).into()),
        ElementType::F32 => Number::Single(f32::from_bits(bits as u32)),
        ElementType::F64 => Number::Double(f64::from_bits(bits as u64)),
        _ => Number::Integer((bits as u64).into()),
    }
}

#[expect(clippy::cast_sign_loss, reason = "the low bits are the element")]
fn encode(element: ElementType, number: Number) -> u128 {
    match number {
        Number::Integer(value) => value as u128,
        Number::Single(value) => match element {
            ElementType::F16 => f16::from_f32(value).to_bits().into(),
            ElementType::BF16 => bf16::from_f32(value).to_bits().into(),
            _ => value.to_bits().into(),
        },
        Number::Double(value) => value.to_bits().into(),
    }
}

/// Puts the low bits of `bits` into `slot`, in the byte order of the machine.
fn store(bits: u128, slot: &mut [u8]) {
    let width = slot.len();
    if cfg!(target_endian = "little") {
        slot.copy_from_slice(&bits.to_le_bytes()[..width]);
    } else {
        slot.copy_from_slice(&bits.to_be_bytes()[16 - width..]);
    }
}

/// The output of splitmix64 at `state`: neighbours have nothing in common.
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn values(element: ElementType, reduction: Reduction, ranks: usize) -> Values {
        let terms = Terms { collective: CollectiveKind::AllReduce, element, reduction, root: 0 };
        Values::new(terms, terms.extent(8000, ranks))
    }

    #[test]
    fn inputs_differ_from_rank_to_rank_and_from_element_to_element() {
        let values = values(ElementType::F64, Reduction::Sum, 4);
        let all = (0..4).flat_map(|rank| (0..1000).map(move |index| (rank, index)));
        let distinct: HashSet<u128> = all.map(|(rank, index)| values.input(rank, index)).collect();
        assert_eq!(distinct.len(), 4000);
    }

    #[test]
    fn folds_are_the_same_in_any_order() {
        for element in FOLDED {
            for reduction in Reduction::ALL {
                if !element.supports(reduction) || reduction == Reduction::Mean {
                    continue;
                }
                let values = values(element, reduction, 5);
                for index in 0..100 {
                    let one = |rank| decode(element, values.input(rank, index));
                    let reduction =
                        if element == ElementType::Bool { boolean(reduction) } else { reduction };
                    let pair = |a, b| combine(reduction, a, b);
                    let tree = pair(pair(one(4), one(2)), pair(one(0), pair(one(3), one(1))));
                    let (tree, serial) = (encode(element, tree), values.fold(index));
                    let mask = u128::MAX >> (128 - 8 * element.size_bytes());
                    assert_eq!(tree & mask, serial & mask, "{element} {reduction} {index}");
                    // Rounding to the type in between changes nothing either.
                    let number = decode(element, serial);
                    assert_eq!(encode(element, number) & mask, serial & mask);
                }
            }
        }
    }

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        let number = |bits| decode(ElementType::I8, bits);
        let of =
            |reduction| encode(ElementType::I8, combine(reduction, number(0x80), number(0x7f)));
        assert_eq!(of(Reduction::Min) & 0xff, 0x80);
        assert_eq!(of(Reduction::Max) & 0xff, 0x7f);
        let sum = combine(Reduction::Sum, number(0x7f), number(0x7f));
        assert_eq!(encode(ElementType::I8, sum) & 0xff, 0xfe);
    }

    #[test]
    fn pieces_go_where_the_collective_puts_them() {
        let element = ElementType::U64;
        let of = |collective| {
            let terms = Terms { collective, element, reduction: Reduction::Xor, root: 2 };
            Values::new(terms, terms.extent(3 * 8 * 6, 3))
        };
        let gather = of(CollectiveKind::AllGather);
        assert_eq!(gather.expected(0, 7), gather.input(1, 1));
        let scatter = of(CollectiveKind::ReduceScatter);
        let column = [0, 1, 2].map(|rank| scatter.input(rank, 8));
        assert_eq!(scatter.expected(1, 2), column[0] ^ column[1] ^ column[2]);
        let transpose = of(CollectiveKind::AllToAll);
        assert_eq!(transpose.expected(2, 7), transpose.input(1, 13));
        // Of rank 1 they send 2, 3 and 1 pieces: to rank 2 the last, behind 5 pieces of 3.
        let uneven = of(CollectiveKind::AllToAllV);
        assert_eq!(uneven.expected(2, 10), uneven.input(1, 16));
        let broadcast = of(CollectiveKind::Broadcast);
        assert_eq!(broadcast.expected(0, 7), broadcast.input(2, 7));
        let pieces = of(CollectiveKind::Scatter);
        assert_eq!(pieces.expected(1, 2), pieces.input(2, 8));
        let pair = of(CollectiveKind::SendRecv);
        assert_eq!(pair.expected(1, 7), pair.input(0, 7));
        let permute = of(CollectiveKind::CollectivePermute);
        assert_eq!(permute.expected(0, 7), permute.input(2, 7));
    }

    #[test]
    fn elements_are_stored_in_their_width() {
        let values = values(ElementType::U16, Reduction::Max, 2);
        let mut input = [0; 6];
        values.write_input(1, &mut input);
        let read: Vec<u16> =
            input.chunks(2).map(|pair| u16::from_ne_bytes(pair.try_into().unwrap())).collect();
        let low = |index| u16::try_from(values.input(1, index) & 0xffff).unwrap();
        assert_eq!(read, [low(0), low(1), low(2)]);
    }
}
