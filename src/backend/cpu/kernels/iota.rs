//! `iota`: a line of numbers.

use crate::backend::cpu::step::{Input, Kernel, Scratch};

/// Writes 0, 1, 2, ….
#[derive(Debug)]
pub(crate) struct Count {
    count: fn(usize, &mut [u8]),
}

impl Count {
    /// A line written by `count`, which takes the first number.
    pub(crate) fn new(count: fn(usize, &mut [u8])) -> Self {
        Self { count }
    }
}

impl Kernel for Count {
    fn run(&self, _: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        for out in outputs {
            (self.count)(0, out);
        }
    }
}
