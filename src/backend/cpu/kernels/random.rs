//! `rng_bit_generator` and `rng`: counters encrypted by Threefry-2x32 or Philox-4x32.
//!
//! Both ciphers are those of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
//! 1, 2, 3" (SC 2011). How a state becomes keys and counters, and in which order words become
//! elements, is as XLA has it, bit for bit: the first word of the state is the key and stays, the
//! rest is the counter of the next block.

#![allow(clippy::cast_possible_truncation, reason = "these casts take words and numbers apart")]

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::convert::Convert;
use super::element::{Float, Integer, with_float, with_integer};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;
use crate::stablehlo::op::{RngAlgorithm, RngDistribution};

/// The generator of an array of bits.
#[derive(Debug)]
pub(crate) struct BitGenerator {
    generate: fn(&Self, &mut [u64], &mut [u8]),
    dims: Vec<usize>,
    /// The bits that an element of one byte has.
    used: u8,
}

impl BitGenerator {
    /// The generator of arrays of `dims`, if the element type is an integer or a float, whose bits
    /// are then any, and the algorithm takes a state of `state_words` words.
    pub(crate) fn new(
        algorithm: RngAlgorithm,
        state_words: usize,
        dtype: DType,
        dims: &[usize],
    ) -> Option<Self> {
        if !dtype.is_integer() && !dtype.is_float() {
            return None;
        }
        let used = u8::MAX >> 8_usize.saturating_sub(dtype.bit_width());
        let width = dtype.size_bytes();
        let generate: fn(&Self, &mut [u64], &mut [u8]) = match (algorithm, state_words, width) {
            (RngAlgorithm::ThreeFry, 2, 1) => threefry_words::<u8>,
            (RngAlgorithm::ThreeFry, 2, 2) => threefry_words::<u16>,
            (RngAlgorithm::ThreeFry, 2, 4) => threefry_words::<u32>,
            (RngAlgorithm::ThreeFry, 2, 8) => threefry_pairs,
            // What XLA:CPU takes by default.
            (RngAlgorithm::Philox | RngAlgorithm::Default, 2 | 3, _) => match width {
                1 => |_, state, out| philox::<u8, 4>(state, out, |words| words.map(|x| x as u8)),
                2 => |_, state, out| philox::<u16, 4>(state, out, |words| words.map(|x| x as u16)),
                4 => |_, state, out| philox::<u32, 4>(state, out, |words| words),
                _ => |_, state, out| {
                    philox::<u64, 2>(state, out, |[a, b, c, d]| [join([a, b]), join([c, d])]);
                },
            },
            _ => return None,
        };
        Some(Self { generate, dims: dims.to_vec(), used })
    }
}

impl Kernel for BitGenerator {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([state], [next, bits]) = (inputs, outputs) {
            next.copy_from_slice(state.bytes());
            (self.generate)(self, cast_slice_mut(next), bits);
            if self.used != u8::MAX {
                bits.iter_mut().for_each(|byte| *byte &= self.used);
            }
        }
    }
}

/// `rng`: numbers from a stream of this operation's own, the same at every launch; those of later
/// turns of a loop come after those of earlier ones. A program that wants others passes a key to
/// `rng_bit_generator`.
#[derive(Debug)]
pub(crate) struct Rng {
    distribution: RngDistribution,
    /// Which of the program's streams this is.
    stream: u64,
    fill: fn(&Self, u64, &[u8], &[u8], &mut [u8]),
}

impl Rng {
    /// The generator of numbers of an element type, if it has one.
    pub(crate) fn new(distribution: RngDistribution, dtype: DType, stream: u64) -> Option<Self> {
        let fill: fn(&Self, u64, &[u8], &[u8], &mut [u8]) = match (distribution, dtype) {
            (RngDistribution::Uniform, DType::Bool) => Self::fill_booleans,
            (RngDistribution::Uniform, dtype) => with_integer!(
                dtype,
                T => Self::fill_integers::<T>,
                _ => with_float!(dtype, T => Self::fill_floats::<T>, _ => return None)
            ),
            (RngDistribution::Normal, dtype) => {
                with_float!(dtype, T => Self::fill_floats::<T>, _ => return None)
            }
        };
        Some(Self { distribution, stream, fill })
    }

    /// The words of a block, of which each makes as many elements as it has words.
    fn block(&self, first: u64, index: usize) -> [u32; 4] {
        let [low, high] = [first.wrapping_add(index as u64), self.stream].map(split);
        philox_block([0; 2], [low[0], low[1], high[0], high[1]])
    }

    /// Either of both.
    fn fill_booleans(&self, first: u64, a: &[u8], b: &[u8], out: &mut [u8]) {
        for (index, out) in out.iter_mut().enumerate() {
            let [word, ..] = self.block(first, index);
            *out = if word & 1 == 0 { a[0] } else { b[0] };
        }
    }

    /// From `a` on and below `b`; `a` when nothing is.
    fn fill_integers<T: Integer + Convert<i64>>(
        &self,
        first: u64,
        a: &[u8],
        b: &[u8],
        out: &mut [u8],
    ) where
        i64: Convert<T>,
    {
        let (&[a], &[b]) = (cast_slice::<_, T>(a), cast_slice::<_, T>(b)) else { return };
        let a: i64 = a.convert();
        let b: i64 = b.convert();
        // Unsigned numbers of 64 bits have passed through signed ones: the distance is right.
        let count = b.wrapping_sub(a).cast_unsigned();
        for (index, out) in cast_slice_mut::<_, T>(out).iter_mut().enumerate() {
            let [low, high, ..] = self.block(first, index);
            let share = (u128::from(join([low, high])) * u128::from(count)) >> 64;
            *out = a.wrapping_add((share as u64).cast_signed()).convert();
        }
    }

    /// From `a` on and below `b`, or about `a` with a standard deviation of `b`.
    fn fill_floats<T: Float + Convert<f64>>(&self, first: u64, a: &[u8], b: &[u8], out: &mut [u8])
    where
        f64: Convert<T>,
    {
        let (&[start], &[end]) = (cast_slice::<_, T>(a), cast_slice::<_, T>(b)) else { return };
        let (a, b): (f64, f64) = (start.convert(), end.convert());
        for (index, out) in cast_slice_mut::<_, T>(out).iter_mut().enumerate() {
            let [w, x, y, z] = self.block(first, index);
            let [u, v] = [[w, x], [y, z]].map(|words| (join(words) >> 11) as f64 / 2_f64.powi(53));
            *out = match self.distribution {
                RngDistribution::Uniform => {
                    let value: T = (a + (b - a) * u).convert();
                    // Rounding may reach what is not to be reached.
                    if value >= end { start } else { value }
                }
                // The transform of Box and Muller.
                RngDistribution::Normal => {
                    let radius = (-2.0 * (1.0 - u).ln()).sqrt();
                    (a + b * radius * (std::f64::consts::TAU * v).cos()).convert()
                }
            };
        }
    }
}

impl Kernel for Rng {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], scratch: &mut Scratch) {
        if let ([a, b, ..], [out]) = (inputs, outputs) {
            let first = scratch.random_numbers;
            scratch.random_numbers = first.wrapping_add(out.len() as u64);
            (self.fill)(self, first, a.bytes(), b.bytes(), out);
        }
    }
}

/// The low and the high half.
fn split(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Elements that are the low bits of a word.
trait FromWord: Pod {
    fn from_word(word: u32) -> Self;
}

impl FromWord for u8 {
    fn from_word(word: u32) -> Self {
        word as Self
    }
}

impl FromWord for u16 {
    fn from_word(word: u32) -> Self {
        word as Self
    }
}

impl FromWord for u32 {
    fn from_word(word: u32) -> Self {
        word
    }
}

/// Fills elements of at most one word. The array is cut in two along one dimension, its even
/// places and its odd ones; a block makes one element of each.
fn threefry_words<T: FromWord>(generator: &BitGenerator, state: &mut [u64], out: &mut [u8]) {
    let [key, counter] = state else { return };
    let out: &mut [T] = cast_slice_mut(out);
    // The first even dimension, else the first of the longest.
    let dims = if generator.dims.is_empty() { &[1] } else { generator.dims.as_slice() };
    let longest = |best: usize, i: usize| if dims[i] > dims[best] { i } else { best };
    let axis = dims
        .iter()
        .position(|dim| dim % 2 == 0)
        .unwrap_or_else(|| (0..dims.len()).fold(0, longest));
    let (size, inner) = (dims[axis], dims[axis + 1..].iter().product::<usize>());
    let outer: usize = dims[..axis].iter().product();
    let half = size.div_ceil(2);
    for block in 0..outer * half * inner {
        let words = threefry(split(*key), split(counter.wrapping_add(block as u64)));
        let (line, rest) = (block / inner / half, block % inner);
        let even = 2 * (block / inner % half);
        for (place, word) in (even..size.min(even + 2)).zip(words) {
            out[(line * size + place) * inner + rest] = T::from_word(word);
        }
    }
    *counter = counter.wrapping_add((outer * half * inner) as u64);
}

/// Fills elements of two words: one block each.
fn threefry_pairs(_: &BitGenerator, state: &mut [u64], out: &mut [u8]) {
    let [key, counter] = state else { return };
    for out in cast_slice_mut::<_, u64>(out) {
        *out = join(threefry(split(*key), split(*counter)));
        *counter = counter.wrapping_add(1);
    }
}

/// Threefry-2x32 of 20 rounds.
fn threefry(key: [u32; 2], block: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], 0x1bd1_1bda ^ key[0] ^ key[1]];
    let [mut x, mut y] = [block[0].wrapping_add(keys[0]), block[1].wrapping_add(keys[1])];
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x = x.wrapping_add(y);
            y = y.rotate_left(rotation) ^ x;
        }
        let injection = group + 1;
        x = x.wrapping_add(keys[injection % 3]);
        y = y.wrapping_add(keys[(injection + 1) % 3]).wrapping_add(injection as u32);
    }
    [x, y]
}

/// Fills elements `N` a block. The counter is of 128 bits: its low half comes before its high
/// half, or, in a state of two words, its high half is the key and not counted on.
fn philox<T: Pod, const N: usize>(
    state: &mut [u64],
    out: &mut [u8],
    elements: impl Fn([u32; 4]) -> [T; N],
) {
    let (key, low, high) = match *state {
        [key, low] => (key, low, key),
        [key, low, high] => (key, low, high),
        _ => return,
    };
    let mut counter = u128::from(high) << 64 | u128::from(low);
    for out in cast_slice_mut::<_, T>(out).chunks_mut(N) {
        let [low, high] = [counter as u64, (counter >> 64) as u64].map(split);
        let words = philox_block(split(key), [low[0], low[1], high[0], high[1]]);
        out.copy_from_slice(&elements(words)[..out.len()]);
        counter = counter.wrapping_add(1);
    }
    for (word, part) in state[1..].iter_mut().zip([counter as u64, (counter >> 64) as u64]) {
        *word = part;
    }
}

/// Philox-4x32 of 10 rounds.
fn philox_block(mut key: [u32; 2], mut block: [u32; 4]) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
    const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
    for _ in 0..10 {
        let [a, b, c, d] = block;
        let [low0, high0] = split(u64::from(a) * MULTIPLIERS[0]);
        let [low1, high1] = split(u64::from(c) * MULTIPLIERS[1]);
        block = [high1 ^ b ^ key[0], low1, high0 ^ d ^ key[1], low0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T: Pod + Default>(
        algorithm: RngAlgorithm,
        state: &[u64],
        dtype: DType,
        dims: &[usize],
    ) -> (Vec<u64>, Vec<T>) {
        let mut next = vec![0; state.len()];
        let mut bits = vec![T::default(); dims.iter().product()];
        BitGenerator::new(algorithm, state.len(), dtype, dims).unwrap().run(
            &[Input::Bytes(cast_slice(state))],
            &mut [cast_slice_mut(&mut next), cast_slice_mut(&mut bits)],
            &mut Scratch::default(),
        );
        (next, bits)
    }

    /// The known answers that come with the ciphers' reference implementation, Random123.
    #[test]
    fn the_ciphers_give_their_known_answers() {
        assert_eq!(threefry([0; 2], [0; 2]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry([!0; 2], [!0; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(
            threefry([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]),
            [0xc492_3a9c, 0x483d_f7a0]
        );
        assert_eq!(
            philox_block([0; 2], [0; 4]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox_block([!0; 2], [!0; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox_block(
                [0xa409_3822, 0x299f_31d0],
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn philox_deals_words_in_order_and_counts_blocks() {
        let key = 0x0123_4567_89ab_cdef;
        let block = |low: u64, high: u64| {
            let [a, b] = [low, high].map(split);
            philox_block(split(key), [a[0], a[1], b[0], b[1]])
        };
        let expected = [block(7, 9), block(8, 9)].concat();
        for n in [0, 1, 3, 4, 5, 8] {
            let (next, bits) = run::<u32>(RngAlgorithm::Philox, &[key, 7, 9], DType::U32, &[n]);
            assert_eq!(bits, expected[..n], "{n}");
            assert_eq!(next, [key, 7 + n.div_ceil(4) as u64, 9], "{n}");
            let bytes = run::<u8>(RngAlgorithm::Philox, &[key, 7, 9], DType::S8, &[n]).1;
            assert_eq!(bytes, expected[..n].iter().map(|&x| x as u8).collect::<Vec<_>>());
        }
        let (next, bits) = run::<u64>(RngAlgorithm::Philox, &[key, 7, 9], DType::U64, &[3]);
        assert_eq!(bits, [0, 2, 4].map(|i| join([expected[i], expected[i + 1]])));
        assert_eq!(next, [key, 9, 9]);
    }

    #[test]
    fn the_counter_of_philox_carries_and_a_short_state_forgets_the_carry() {
        let (next, long) = run::<u32>(RngAlgorithm::Philox, &[5, u64::MAX, 5], DType::S32, &[2, 4]);
        assert_eq!(next, [5, 1, 6]);
        assert_eq!(long[4..], philox_block([5, 0], [0, 0, 6, 0]));
        let (next, short) = run::<u32>(RngAlgorithm::Default, &[5, u64::MAX], DType::S32, &[2, 4]);
        assert_eq!(next, [5, 1]);
        assert_eq!(short, long);
    }

    #[test]
    fn threefry_deals_the_words_of_a_block_to_neighbours_along_one_dimension() {
        let state = [0x1234_5678_9abc_def0, u64::MAX];
        let block = |i: u64| threefry(split(state[0]), split(state[1].wrapping_add(i)));
        // The first even dimension is split: blocks run over [3, 1, 2].
        let (next, bits) = run::<u32>(RngAlgorithm::ThreeFry, &state, DType::U32, &[3, 2, 2]);
        assert_eq!(next, [state[0], 5]);
        for (i, &bits) in bits.iter().enumerate() {
            let (line, place, rest) = (i / 4, i / 2 % 2, i % 2);
            assert_eq!(bits, block((line * 2 + rest) as u64)[place], "{i}");
        }
        // Without one the longest: blocks run over [1, 3], and the last makes one element.
        let (next, bits) = run::<u16>(RngAlgorithm::ThreeFry, &state, DType::U16, &[1, 5]);
        assert_eq!(next, [state[0], 2]);
        for (i, &bits) in bits.iter().enumerate() {
            assert_eq!(bits, block(i as u64 / 2)[i % 2] as u16, "{i}");
        }
        let (next, bits) = run::<u32>(RngAlgorithm::ThreeFry, &state, DType::S32, &[]);
        assert_eq!((next, bits), (vec![state[0], 0], vec![block(0)[0]]));
        let (next, bits) = run::<u64>(RngAlgorithm::ThreeFry, &state, DType::U64, &[3]);
        assert_eq!(next, [state[0], 2]);
        assert_eq!(bits, [0, 1, 2].map(|i| join(block(i))));
    }

    #[test]
    fn narrow_elements_are_the_low_bits_of_bytes() {
        let (_, bytes) = run::<u8>(RngAlgorithm::Philox, &[3, 5], DType::U8, &[40]);
        for (dtype, used) in [(DType::U4, 15), (DType::S2, 3), (DType::F6E2M3FN, 63)] {
            let (_, bits) = run::<u8>(RngAlgorithm::Philox, &[3, 5], dtype, &[40]);
            assert_eq!(bits, bytes.iter().map(|byte| byte & used).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_has_no_defined_bits_is_declined() {
        let new = |algorithm, words, dtype| BitGenerator::new(algorithm, words, dtype, &[4]);
        assert!(new(RngAlgorithm::Philox, 3, DType::Bool).is_none());
        assert!(new(RngAlgorithm::Philox, 3, DType::C64).is_none());
        assert!(new(RngAlgorithm::Default, 4, DType::U32).is_none());
        assert!(new(RngAlgorithm::ThreeFry, 3, DType::U32).is_none());
    }

    fn drawn<T: Pod + Default>(
        distribution: RngDistribution,
        dtype: DType,
        [a, b]: [T; 2],
        scratch: &mut Scratch,
    ) -> Vec<T> {
        let mut out = vec![T::default(); 4000];
        Rng::new(distribution, dtype, 5).unwrap().run(
            &[Input::Bytes(cast_slice(&[a])), Input::Bytes(cast_slice(&[b]))],
            &mut [cast_slice_mut(&mut out)],
            scratch,
        );
        out
    }

    #[test]
    fn uniform_numbers_lie_between_their_bounds_everywhere() {
        use RngDistribution::Uniform;
        let mut scratch = Scratch::default();
        let numbers = drawn(Uniform, DType::F32, [-2.0_f32, 6.0], &mut scratch);
        assert!(numbers.iter().all(|x| (-2.0..6.0).contains(x)));
        let mean = numbers.iter().map(|&x| f64::from(x)).sum::<f64>() / 4000.0;
        assert!((mean - 2.0).abs() < 0.15, "{mean}");
        let numbers = drawn(Uniform, DType::S8, [-3_i8, 2], &mut scratch);
        for value in -3..2 {
            let count = numbers.iter().filter(|&&x| x == value).count();
            assert!((650..950).contains(&count), "{count} are {value}");
        }
        let numbers = drawn(Uniform, DType::U64, [u64::MAX - 2, u64::MAX], &mut scratch);
        assert!(numbers.iter().all(|&x| x == u64::MAX - 2 || x == u64::MAX - 1));
        assert!(numbers.contains(&(u64::MAX - 1)) && numbers.contains(&(u64::MAX - 2)));
        assert_eq!(drawn(Uniform, DType::S32, [7, 7], &mut scratch), [7; 4000]);
        let booleans = drawn(Uniform, DType::Bool, [0_u8, 1], &mut scratch);
        assert!((1800..2200).contains(&booleans.iter().filter(|&&x| x == 1).count()));
    }

    #[test]
    fn normal_numbers_have_their_mean_and_deviation() {
        let mut scratch = Scratch::default();
        let numbers = drawn(RngDistribution::Normal, DType::F64, [3.0, 2.0], &mut scratch);
        let mean = numbers.iter().sum::<f64>() / 4000.0;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!((mean - 3.0).abs() < 0.15 && (variance - 4.0).abs() < 0.4, "{mean} {variance}");
        let next = drawn(RngDistribution::Normal, DType::F64, [3.0, 2.0], &mut scratch);
        assert!(numbers.iter().zip(&next).all(|(x, y)| x != y), "a loop draws new numbers");
        let again = drawn(RngDistribution::Normal, DType::F64, [3.0, 2.0], &mut Scratch::default());
        assert_eq!(numbers, again, "a launch draws the same ones");
        assert!(Rng::new(RngDistribution::Normal, DType::S32, 0).is_none());
    }
}
