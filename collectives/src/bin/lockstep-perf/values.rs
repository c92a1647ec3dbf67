//! What every rank puts in, and what must come out: elements as functions of rank and index.
//!
//! Values are drawn from a seed, so every rank knows all inputs. Those that are only moved take
//! any bits. Those that are reduced are chosen so that the result is exact in whatever order they
//! are folded, and differ from rank to rank and from element to element as far as their type lets
//! them. They repeat after [`PERIOD`] elements, so that operands of any size are written and
//! compared as fast as memory is.

use std::ops::Range;

use lockstep_collectives::{CollectiveKind, ElementType, Reduction};

use crate::collective::{Buffered, Extent, Placement, Terms, weight};
use crate::number;

/// After how many elements values repeat: a prime, so that what lies at a wrong place, a piece, a
/// segment or a power of two away, is wrong.
const PERIOD: usize = 65_521;

/// The inputs of all ranks at one size.
pub(crate) struct Values {
    terms: Terms,
    extent: Extent,
    /// Where each rank's values begin.
    seeds: Vec<u64>,
}

/// A run of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    content: Content,
    /// The index of the first of them.
    start: usize,
    count: usize,
}

/// Whose elements they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// What this rank puts in.
    Input(usize),
    /// The fold of what all ranks put in.
    Fold,
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
        let count = input.len() / self.terms.element.size_bytes();
        let pattern = self.pattern(Span { content: Content::Input(rank), start: 0, count });
        for period in input.chunks_mut(pattern.len()) {
            period.copy_from_slice(&pattern[..period.len()]);
        }
    }

    /// Makes every byte of `rank`'s output what it must not be, so that one that is not written is
    /// wrong.
    pub(crate) fn poison(&self, rank: usize, placement: Placement, output: &mut [u8]) {
        for (span, range) in self.expected(rank, placement) {
            let pattern: Vec<u8> = self.pattern(span).iter().map(|byte| !byte).collect();
            for period in output[range].chunks_mut(pattern.len()) {
                period.copy_from_slice(&pattern[..period.len()]);
            }
        }
    }

    /// How many elements of `rank`'s output are not as they must be, bit for bit.
    pub(crate) fn differences(&self, rank: usize, placement: Placement, output: &[u8]) -> usize {
        let size = self.terms.element.size_bytes();
        let mut count = 0;
        for (span, range) in self.expected(rank, placement) {
            let pattern = self.pattern(span);
            for period in output[range].chunks(pattern.len()) {
                let expected = &pattern[..period.len()];
                if period != expected {
                    let pairs = period.chunks(size).zip(expected.chunks(size));
                    count += pairs.filter(|(found, expected)| found != expected).count();
                }
            }
        }
        count
    }

    /// What `rank`'s output must be, with the bytes where it lies: all of it, in order.
    fn expected(&self, rank: usize, placement: Placement) -> Vec<(Span, Range<usize>)> {
        let result = self.result(rank);
        let spans = match placement {
            Placement::OutOfPlace => result,
            Placement::InPlace => {
                let Buffered { length, input, result: place } =
                    self.terms.buffered(self.extent, rank);
                // Where there is no result the operand stays.
                let operand = |range: Range<usize>| {
                    let start = range.start.saturating_sub(input.start);
                    Span { content: Content::Input(rank), start, count: range.len() }
                };
                let before = operand(0..place.start);
                let after = operand(place.end..length);
                [before].into_iter().chain(result).chain([after]).collect()
            }
        };
        let size = self.terms.element.size_bytes();
        let mut end = 0;
        let spans = spans.into_iter().filter(|span| span.count > 0).map(|span| {
            let start = end;
            end += span.count * size;
            (span, start..end)
        });
        spans.collect()
    }

    /// What `rank` must get, in order.
    fn result(&self, rank: usize) -> Vec<Span> {
        let Extent { count, ranks, .. } = self.extent;
        let root = self.terms.root as usize;
        let span = |content, start| Span { content, start, count };
        let input = |from, start| span(Content::Input(from), start);
        let everyone = 0..ranks;
        match self.terms.collective {
            // A collective in which nothing comes to this rank.
            _ if self.terms.output_count(self.extent, rank) == 0 => Vec::new(),
            CollectiveKind::AllReduce | CollectiveKind::Reduce => vec![span(Content::Fold, 0)],
            CollectiveKind::ReduceScatter => vec![span(Content::Fold, rank * count)],
            CollectiveKind::AllGather | CollectiveKind::Gather => {
                everyone.map(|from| input(from, 0)).collect()
            }
            CollectiveKind::AllToAll => everyone.map(|from| input(from, rank * count)).collect(),
            CollectiveKind::AllToAllV => {
                let weight = |from, to| count * weight(from, to, ranks);
                let piece = |from| Span {
                    content: Content::Input(from),
                    start: (0..rank).map(|to| weight(from, to)).sum(),
                    count: weight(from, rank),
                };
                everyone.map(piece).collect()
            }
            CollectiveKind::Broadcast => vec![input(root, 0)],
            CollectiveKind::Scatter => vec![input(root, rank * count)],
            CollectiveKind::CollectivePermute => vec![input((rank + ranks - 1) % ranks, 0)],
            CollectiveKind::Send | CollectiveKind::SendRecv => vec![input(rank ^ 1, 0)],
            CollectiveKind::Barrier => Vec::new(),
        }
    }

    /// The bytes of `span` up to where they repeat; at least one.
    fn pattern(&self, span: Span) -> Vec<u8> {
        let size = self.terms.element.size_bytes();
        let mut pattern = vec![0; span.count.clamp(1, PERIOD) * size];
        for (index, slot) in pattern.chunks_exact_mut(size).enumerate() {
            store(self.element(span.content, span.start + index), slot);
        }
        pattern
    }

    /// One element, in the low bits.
    fn element(&self, content: Content, index: usize) -> u128 {
        let index = index % PERIOD;
        match content {
            Content::Input(rank) => self.input(rank, index),
            Content::Fold => {
                let Terms { element, reduction, .. } = self.terms;
                let inputs = (0..self.seeds.len()).map(|rank| self.input(rank, index));
                number::fold(element, reduction, inputs)
            }
        }
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
        let Some(bits) = number::integer_bits(element) else {
            // An even factor would soon leave nothing of a product.
            return (random | u64::from(reduction == Reduction::Product)).into();
        };
        match reduction {
            // Integers so small that the sum over all ranks has room.
            Reduction::Sum | Reduction::Mean => {
                let choices = ((1 << bits) / self.seeds.len() as u64).max(2);
                let parts = [random % choices, mix(random) % choices];
                number::complex(element, parts.map(|part| part as f64))
            }
            // Powers of two; ranks that double take turns with ranks that halve.
            Reduction::Product => {
                let halves = (rank + index).is_multiple_of(2);
                let magnitude = if halves { 0.5 } else { 2.0 };
                let factor = if random & 1 == 0 { magnitude } else { -magnitude };
                // One factor with two parts, so that none of the product is a zero, whose sign
                // the order would tell.
                let imaginary = if rank == 0 { factor / 2.0 } else { 0.0 };
                number::complex(element, [factor, imaginary])
            }
            _ => {
                let steps = random % (1 << bits);
                let magnitude = 1.0 + steps as f64 / (1_u64 << bits) as f64;
                number::real(element, if random >> 63 == 0 { magnitude } else { -magnitude })
            }
        }
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
    use crate::collective::COLLECTIVES;
    use crate::number::{combine, decode, encode};

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
        for element in ElementType::ARITHMETIC {
            for reduction in Reduction::ALL {
                if !element.supports(reduction) || reduction == Reduction::Mean {
                    continue;
                }
                let values = values(element, reduction, 5);
                for index in 0..100 {
                    let one = |rank| decode(element, values.input(rank, index));
                    let pair = |a, b| combine(element, reduction, a, b);
                    let tree = pair(pair(one(4), one(2)), pair(one(0), pair(one(3), one(1))));
                    let tree = encode(element, tree);
                    let serial = values.element(Content::Fold, index);
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
    fn pieces_go_where_the_collective_puts_them() {
        let element = ElementType::U64;
        let of = |collective| {
            let terms = Terms { collective, element, reduction: Reduction::Xor, root: 2 };
            Values::new(terms, terms.extent(3 * 8 * 6, 3))
        };
        // The element at `index` of what `rank` gets.
        let expected = |collective, rank, mut index| {
            let values = of(collective);
            let spans = values.result(rank).into_iter();
            let span = spans.skip_while(|span| {
                let beyond = index >= span.count;
                index -= if beyond { span.count } else { 0 };
                beyond
            });
            let span = { span }.next().unwrap();
            (span.content, span.start + index)
        };
        let input = |rank, index| (Content::Input(rank), index);
        assert_eq!(expected(CollectiveKind::AllGather, 0, 7), input(1, 1));
        assert_eq!(expected(CollectiveKind::ReduceScatter, 1, 2), (Content::Fold, 8));
        assert_eq!(expected(CollectiveKind::AllToAll, 2, 7), input(1, 13));
        // Of rank 1 they send 2, 3 and 1 pieces: to rank 2 the last, behind 5 pieces of 3.
        assert_eq!(expected(CollectiveKind::AllToAllV, 2, 10), input(1, 16));
        assert_eq!(expected(CollectiveKind::Broadcast, 0, 7), input(2, 7));
        assert_eq!(expected(CollectiveKind::Scatter, 1, 2), input(2, 8));
        assert_eq!(expected(CollectiveKind::SendRecv, 1, 7), input(0, 7));
        assert_eq!(expected(CollectiveKind::CollectivePermute, 0, 7), input(2, 7));
        let folded = of(CollectiveKind::ReduceScatter);
        let column = [0, 1, 2].map(|rank| folded.input(rank, 8));
        assert_eq!(folded.element(Content::Fold, 8), column[0] ^ column[1] ^ column[2]);
    }

    #[test]
    fn what_is_expected_covers_the_output_of_every_collective() {
        for collective in COLLECTIVES {
            let element = ElementType::U16;
            let terms = Terms { collective, element, reduction: Reduction::Sum, root: 1 };
            let extent = terms.extent(3 * 2 * 6, 3);
            let values = Values::new(terms, extent);
            for rank in 0..3 {
                for placement in Placement::BOTH.into_iter().filter(|p| terms.has(*p)) {
                    let elements = match placement {
                        Placement::OutOfPlace => terms.output_count(extent, rank),
                        Placement::InPlace => terms.buffered(extent, rank).length,
                    };
                    let end = values.expected(rank, placement).last().map_or(0, |(_, r)| r.end);
                    assert_eq!(end, 2 * elements, "{collective} of {rank}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_written_is_wrong_and_counted_by_element() {
        // More than two periods, of which the last is not whole.
        let count = 2 * PERIOD + 100;
        let (collective, element) = (CollectiveKind::AllReduce, ElementType::U16);
        let terms = Terms { collective, element, reduction: Reduction::Sum, root: 0 };
        let values = Values::new(terms, terms.extent(2 * count, 3));
        let placement = Placement::InPlace;
        let mut output = vec![0; 2 * count];
        values.poison(1, placement, &mut output);
        assert_eq!(values.differences(1, placement, &output), count);
        for (index, slot) in output.chunks_exact_mut(2).enumerate() {
            store(values.element(Content::Fold, index), slot);
        }
        assert_eq!(values.differences(1, placement, &output), 0);
        output[2 * count - 1] ^= 1;
        output[2 * PERIOD] ^= 0x80;
        assert_eq!(values.differences(1, placement, &output), 2);
        // What lies one element too far is wrong nearly everywhere.
        output.rotate_right(2);
        assert!(values.differences(1, placement, &output) > count * 99 / 100);
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
