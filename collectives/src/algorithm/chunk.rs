//! Cutting an operand into one chunk per member.

use std::ops::Range;

use super::Pieces;
use crate::element::ElementType;

/// The chunks of an operand: whole elements, near equal, the longer ones first.
///
/// With P = 4 and 10 elements: 3, 3, 2, 2. With 2 elements: 1, 1, 0, 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunks {
    element_bytes: usize,
    /// Elements of the shorter chunks.
    short: usize,
    /// How many chunks have one element more.
    longer: usize,
}

impl Chunks {
    /// Cuts `length_bytes` of `element`s into `count` chunks.
    pub(super) fn new(element: ElementType, length_bytes: usize, count: usize) -> Self {
        let element_bytes = element.size_bytes();
        let elements = length_bytes / element_bytes;
        Self { element_bytes, short: elements / count, longer: elements % count }
    }

    /// The bytes of chunk `index`.
    pub(super) fn range(&self, index: usize) -> Range<usize> {
        self.start(index)..self.start(index + 1)
    }

    /// Cuts `bytes` at the chunks' ends.
    pub(super) fn split<'a>(&self, mut bytes: &'a mut [u8], count: usize) -> Pieces<'a> {
        let mut chunks = Pieces::with_capacity(count);
        for index in 0..count {
            let (chunk, rest) = bytes.split_at_mut(self.range(index).len());
            chunks.push(chunk);
            bytes = rest;
        }
        chunks
    }

    fn start(&self, index: usize) -> usize {
        (index * self.short + index.min(self.longer)) * self.element_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_operand_in_order_and_differ_by_at_most_one_element() {
        for count in 1..=5 {
            for elements in 0..=23 {
                let chunks = Chunks::new(ElementType::F32, elements * 4, count);
                let ranges: Vec<_> = (0..count).map(|index| chunks.range(index)).collect();
                assert_eq!(ranges[0].start, 0);
                assert_eq!(ranges[count - 1].end, elements * 4);
                assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
                let lengths = ranges.iter().map(|range| range.len() / 4);
                let (least, most) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
                assert!(most - least <= 1, "{elements} elements in {count}: {ranges:?}");
                let mut bytes = vec![0; elements * 4];
                let split: Vec<_> =
                    chunks.split(&mut bytes, count).iter().map(|c| c.len()).collect();
                assert_eq!(split, ranges.iter().map(ExactSizeIterator::len).collect::<Vec<_>>());
            }
        }
    }
}
