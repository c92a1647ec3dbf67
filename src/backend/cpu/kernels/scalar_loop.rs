//! `while` whose state and every value on the way are scalars: a loop over registers, where one
//! over steps would spend its time on choosing kernels.

use super::scalar::{Register, Registers, ScalarKernel, at, load, store};
use crate::backend::cpu::step::{Input, Kernel, Scratch};

/// One operation on registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    /// The function.
    pub(crate) kernel: ScalarKernel,
    /// As many operands as it takes, then anything, and last the register written.
    pub(crate) operands: [Register; 4],
}

/// A loop. Its inputs are what is read from outside, the state first; its outputs are the state.
#[derive(Debug)]
pub(crate) struct ScalarLoop {
    /// Constants where they are; the rest is written before it is read.
    pub(crate) registers: Registers,
    /// Per input, where it goes.
    pub(crate) inputs: Vec<Register>,
    /// Per part of the state, where it is and its size in bytes.
    pub(crate) state: Vec<(Register, usize)>,
    /// Computes whether to go on.
    pub(crate) condition: Vec<Instruction>,
    /// Where that is.
    pub(crate) goes_on: Register,
    /// Computes the next state.
    pub(crate) body: Vec<Instruction>,
    /// Moves to a register from another, one after the other, that make the next state current.
    pub(crate) moves: Vec<(Register, Register)>,
}

impl Kernel for ScalarLoop {
    fn is_bounded(&self) -> bool {
        false
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let mut registers = self.registers;
        for (input, &register) in inputs.iter().zip(&self.inputs) {
            registers[at(register)] = load(input.bytes());
        }
        loop {
            run(&self.condition, &mut registers);
            if registers[at(self.goes_on)] == 0 {
                break;
            }
            run(&self.body, &mut registers);
            for &(to, from) in &self.moves {
                registers[at(to)] = registers[at(from)];
            }
        }
        for (out, &(register, _)) in outputs.iter_mut().zip(&self.state) {
            store(registers[at(register)], out);
        }
    }
}

#[inline(always)]
fn run(instructions: &[Instruction], registers: &mut Registers) {
    for &Instruction { kernel, operands } in instructions {
        kernel(registers, operands);
    }
}
