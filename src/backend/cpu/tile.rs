//! Straight-line programs over tiles: the inside of a fused loop and of a reduction's body.
//!
//! An instruction applies one kernel to a whole tile held in a register, so that choosing the
//! kernel is paid once per tile and never per element. Inputs are read where they lie.

use super::kernels::convert::RoundingKernel;
use super::kernels::elementwise::{self, BinaryKernel, TernaryKernel, UnaryKernel};

/// How many elements a tile has: a few registers of the widest type fit the L1 cache.
pub(crate) const TILE: usize = 1024;

/// How many inputs a tile program may have, so that an array of them lives on the stack.
pub(crate) const MAX_INPUTS: usize = 64;

/// Where an operand of an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// The program's input of this index.
    Input(usize),
    /// A register.
    Register(usize),
}

/// The loop an instruction runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TileKernel {
    /// Of one operand.
    Unary(UnaryKernel),
    /// Of two.
    Binary(BinaryKernel),
    /// Of three.
    Ternary(TernaryKernel),
    /// Of one, with the format to round to.
    Rounding {
        /// The loop.
        kernel: RoundingKernel,
        /// Exponent bits kept.
        exponent_bits: u32,
        /// Mantissa bits kept.
        mantissa_bits: u32,
    },
}

/// One kernel applied to a tile.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    /// The loop.
    pub(crate) kernel: TileKernel,
    /// As many operands as the kernel takes, then anything.
    pub(crate) operands: [Operand; 3],
    /// The register written, none of the operands.
    pub(crate) to: usize,
    /// Bytes per element of the result.
    pub(crate) width: usize,
}

/// A value of a program under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(pub(crate) usize);

/// What computes a node.
#[derive(Clone, Debug)]
enum Definition {
    Input(usize),
    Apply { kernel: TileKernel, operands: [Node; 3] },
}

/// Builds a [`TileProgram`] in static single assignment form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Builder {
    nodes: Vec<(Definition, usize)>,
    num_inputs: usize,
}

impl Builder {
    /// The next input, of `width` bytes per element.
    pub(crate) fn input(&mut self, width: usize) -> Node {
        self.num_inputs += 1;
        self.push(Definition::Input(self.num_inputs - 1), width)
    }

    /// A kernel's result, of `width` bytes per element.
    pub(crate) fn apply(&mut self, kernel: TileKernel, operands: &[Node], width: usize) -> Node {
        let mut padded = [operands.first().copied().unwrap_or(Node(0)); 3];
        for (slot, &operand) in padded.iter_mut().zip(operands) {
            *slot = operand;
        }
        self.push(Definition::Apply { kernel, operands: padded }, width)
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many inputs there are.
    pub(crate) fn num_inputs(&self) -> usize {
        self.num_inputs
    }

    /// Bytes per element of a node.
    pub(crate) fn width(&self, node: Node) -> usize {
        self.nodes[node.0].1
    }

    /// Appends another builder's nodes and inputs; its node `n` becomes `n + offset`, which is
    /// returned.
    pub(crate) fn append(&mut self, other: &Self) -> usize {
        let offset = self.nodes.len();
        for (definition, width) in &other.nodes {
            let moved = match definition {
                Definition::Input(index) => Definition::Input(index + self.num_inputs),
                Definition::Apply { kernel, operands } => Definition::Apply {
                    kernel: *kernel,
                    operands: operands.map(|Node(node)| Node(node + offset)),
                },
            };
            self.nodes.push((moved, *width));
        }
        self.num_inputs += other.num_inputs;
        offset
    }

    fn push(&mut self, definition: Definition, width: usize) -> Node {
        self.nodes.push((definition, width));
        Node(self.nodes.len() - 1)
    }

    /// The program that computes `outputs`, with as few registers as their order allows.
    pub(crate) fn finish(mut self, outputs: &[Node]) -> TileProgram {
        const NEVER: usize = usize::MAX;
        // Outputs are read from registers, so an input that is one passes through a copy.
        let outputs: Vec<Node> = outputs.iter().map(|&output| self.in_register(output)).collect();
        // From the end: a node is computed if an output or a computed one uses it.
        let mut last_use = vec![None; self.nodes.len()];
        for output in &outputs {
            last_use[output.0] = Some(NEVER);
        }
        for (position, (definition, _)) in self.nodes.iter().enumerate().rev() {
            if let (Definition::Apply { operands, .. }, Some(_)) = (definition, last_use[position])
            {
                for operand in operands {
                    last_use[operand.0].get_or_insert(position);
                }
            }
        }
        let mut places: Vec<Operand> = Vec::with_capacity(self.nodes.len());
        let mut free: Vec<usize> = Vec::new();
        let mut num_registers = 0;
        let mut instructions = Vec::new();
        for (position, (definition, width)) in self.nodes.iter().enumerate() {
            match definition {
                Definition::Input(index) => places.push(Operand::Input(*index)),
                // Nobody reads where it is.
                Definition::Apply { .. } if last_use[position].is_none() => {
                    places.push(Operand::Register(0));
                }
                Definition::Apply { kernel, operands } => {
                    let to = free.pop().unwrap_or_else(|| {
                        num_registers += 1;
                        num_registers - 1
                    });
                    instructions.push(Instruction {
                        kernel: *kernel,
                        operands: operands.map(|operand| places[operand.0]),
                        to,
                        width: *width,
                    });
                    for (i, operand) in operands.iter().enumerate() {
                        if let Operand::Register(register) = places[operand.0]
                            && last_use[operand.0] == Some(position)
                            && !operands[..i].contains(operand)
                        {
                            free.push(register);
                        }
                    }
                    places.push(Operand::Register(to));
                }
            }
        }
        TileProgram {
            instructions,
            num_registers,
            outputs: outputs
                .iter()
                .filter_map(|output| match places[output.0] {
                    Operand::Register(register) => Some((register, self.width(*output))),
                    Operand::Input(_) => None,
                })
                .collect(),
        }
    }

    fn in_register(&mut self, node: Node) -> Node {
        match self.nodes[node.0] {
            (Definition::Input(_), width) => {
                self.apply(TileKernel::Unary(elementwise::copy(width)), &[node], width)
            }
            (Definition::Apply { .. }, _) => node,
        }
    }
}

/// A finished straight-line program.
#[derive(Clone, Debug)]
pub(crate) struct TileProgram {
    instructions: Vec<Instruction>,
    num_registers: usize,
    /// Registers and bytes per element.
    outputs: Vec<(usize, usize)>,
}

impl TileProgram {
    /// Computes the first `len` elements of every output from those of the inputs.
    pub(crate) fn run(&self, inputs: &[&[u8]], len: usize, registers: &mut Registers) {
        registers.reserve(self.num_registers);
        for instruction in &self.instructions {
            // The register written leaves the file, so that the others can be read meanwhile.
            let mut to = std::mem::take(&mut registers.0[instruction.to]);
            let out = &mut bytemuck::cast_slice_mut(&mut to)[..len * instruction.width];
            let [a, b, c] = instruction.operands.map(|operand| read(operand, inputs, &registers.0));
            match instruction.kernel {
                TileKernel::Unary(kernel) => kernel(a, out),
                TileKernel::Binary(kernel) => kernel(a, b, out),
                TileKernel::Ternary(kernel) => kernel(a, b, c, out),
                TileKernel::Rounding { kernel, exponent_bits, mantissa_bits } => {
                    kernel(a, out, exponent_bits, mantissa_bits);
                }
            }
            registers.0[instruction.to] = to;
        }
    }

    /// The first `len` elements of an output, after [`TileProgram::run`].
    pub(crate) fn output<'r>(
        &self,
        index: usize,
        len: usize,
        registers: &'r Registers,
    ) -> &'r [u8] {
        let (register, width) = self.outputs[index];
        registers.bytes(register, len * width)
    }
}

fn read<'a>(operand: Operand, inputs: &[&'a [u8]], registers: &'a [Vec<u128>]) -> &'a [u8] {
    match operand {
        Operand::Input(index) => inputs[index],
        Operand::Register(index) => bytemuck::cast_slice(&registers[index]),
    }
}

/// Tiles that are kept from one run to the next, each long enough and aligned for the widest
/// element.
#[derive(Default)]
pub(crate) struct Registers(Vec<Vec<u128>>);

impl Registers {
    /// Makes at least `count` registers exist.
    pub(crate) fn reserve(&mut self, count: usize) {
        while self.0.len() < count {
            self.0.push(vec![0; TILE]);
        }
    }

    /// The first bytes of a register.
    pub(crate) fn bytes(&self, register: usize, len_bytes: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.0[register])[..len_bytes]
    }

    /// The first bytes of a register, to be written.
    pub(crate) fn bytes_mut(&mut self, register: usize, len_bytes: usize) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.0[register])[..len_bytes]
    }
}
