//! Work shared by the threads of the pool, divided the same way however many they are.
//!
//! What the threads call, they call through a reference: kernels are compiled for each type of
//! element, and each with a scheduler inlined would make the scheduler most of the program.

use bytemuck::{Pod, cast_slice_mut};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

/// Calls `part` with every chunk of `items` and its position among them; all chunks but the last
/// are `len` long.
///
/// # Panics
/// When `len` is zero.
pub(crate) fn for_each_chunk<T: Pod>(
    items: &mut [T],
    len: usize,
    part: impl Fn(usize, &mut [T]) + Sync,
) {
    let part = |position: usize, chunk: &mut [u8]| part(position, cast_slice_mut(chunk));
    for_each_chunk_of_bytes(cast_slice_mut(items), len * size_of::<T>(), &part);
}

fn for_each_chunk_of_bytes(bytes: &mut [u8], len: usize, part: &(dyn Fn(usize, &mut [u8]) + Sync)) {
    bytes.par_chunks_mut(len).enumerate().for_each(|(position, chunk)| part(position, chunk));
}

/// Calls both, perhaps at once.
pub(crate) fn join(first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) {
    rayon::join(first, second);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_know_their_position_and_the_last_may_be_short() {
        for len in [0_usize, 1, 3, 4, 5, 8, 1000] {
            let mut items = vec![0_u32; len];
            for_each_chunk(&mut items, 4, |position, chunk| {
                assert!(chunk.len() == 4 || (position + 1) * 4 > len);
                for (i, item) in (0..).zip(chunk) {
                    *item = 10 * u32::try_from(position).unwrap() + i;
                }
            });
            let expected = (0..u32::try_from(len).unwrap()).map(|i| 10 * (i / 4) + i % 4);
            assert!(items.into_iter().eq(expected), "{len}");
        }
    }

    #[test]
    fn both_are_called() {
        let (mut a, mut b) = (1, 2);
        join(&mut || a += 10, &mut || b += 20);
        assert_eq!((a, b), (11, 22));
    }
}
