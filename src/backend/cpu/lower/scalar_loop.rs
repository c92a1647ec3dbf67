//! `while` loops of scalars, which become instructions on registers.

use std::collections::HashMap;

use super::Lowering;
use crate::backend::cpu::kernels::carrier::carrier_for;
use crate::backend::cpu::kernels::scalar::{
    MAX_REGISTERS, MAX_WIDTH, Register, Registers, in_a_row, load, scalar,
};
use crate::backend::cpu::kernels::scalar_loop::{Instruction, ScalarLoop};
use crate::ifrt::DType;
use crate::stablehlo::entity::Entity;
use crate::stablehlo::op::Binary;
use crate::stablehlo::{Block, OpData, OpKind, Value, ValueDef};

impl Lowering<'_> {
    /// A loop as instructions, and the values from around it that it reads; none when some value
    /// of it is no scalar, some operation has no function of registers, or there are too few.
    pub(super) fn scalar_loop(&self, op: &OpData) -> Option<(ScalarLoop, Vec<Value>)> {
        let &[condition, body] = op.regions.as_slice() else {
            return None;
        };
        let [condition, body] = [condition, body].map(|region| self.function.regions[region].block);
        let mut assembler = Assembler {
            lowering: self,
            known: HashMap::new(),
            registers: [0; MAX_REGISTERS],
            count: 0,
            captures: Vec::new(),
            inputs: Vec::new(),
        };
        let mut state = Vec::with_capacity(op.operands.len());
        for &operand in &op.operands {
            let width = assembler.scalar_type(operand)?.size_bytes();
            state.push((assembler.new_register()?, width));
        }
        assembler.inputs.extend(state.iter().map(|&(register, _)| register));
        for block in [condition, body] {
            let arguments = &self.function.blocks[block].arguments;
            let arguments =
                arguments.iter().copied().zip(state.iter().map(|&(register, _)| register));
            assembler.known.extend(arguments);
        }
        let (condition, goes_on) = assembler.block(condition)?;
        let (mut body, mut results) = assembler.block(body)?;
        compute_in_place(&mut body, &state, &mut results);
        let moves = assembler.moves(&state, &results)?;
        let kernel = ScalarLoop {
            registers: assembler.registers,
            inputs: assembler.inputs,
            state,
            condition,
            goes_on: *goes_on.first()?,
            body,
            moves,
        };
        Some((kernel, assembler.captures))
    }
}

/// Gives values registers, and operations instructions.
struct Assembler<'l, 'f> {
    lowering: &'l Lowering<'f>,
    known: HashMap<Value, Register>,
    /// What the registers hold at first.
    registers: Registers,
    count: usize,
    captures: Vec<Value>,
    /// The registers of the inputs, the state's and then those of `captures`.
    inputs: Vec<Register>,
}

impl Assembler<'_, '_> {
    /// The type of a value that fits a register.
    fn scalar_type(&self, value: Value) -> Option<DType> {
        let ty = self.lowering.function.tensor(value)?;
        (ty.shape.rank() == 0 && ty.dtype.size_bytes() <= MAX_WIDTH).then_some(ty.dtype)
    }

    fn new_register(&mut self) -> Option<Register> {
        let register = Register::try_from(self.count).ok().filter(|_| self.count < MAX_REGISTERS);
        self.count += 1;
        register
    }

    /// The register of a value, which is a constant or comes from around the loop if it has none.
    fn register(&mut self, value: Value) -> Option<Register> {
        if let Some(&register) = self.known.get(&value) {
            return Some(register);
        }
        self.scalar_type(value)?;
        let register = self.new_register()?;
        let function = self.lowering.function;
        if let ValueDef::Result(definer, _) = function.values[value].def
            && let OpKind::Constant(literal) = &function.ops[definer].kind
        {
            self.registers[usize::from(register)] = load(literal.stored_bytes());
        } else {
            self.captures.push(value);
            self.inputs.push(register);
        }
        self.known.insert(value, register);
        Some(register)
    }

    /// The moves that make `results` the state. What is read after it is overwritten, when parts
    /// of the state change places, is put aside first.
    fn moves(
        &mut self,
        state: &[(Register, usize)],
        results: &[Register],
    ) -> Option<Vec<(Register, Register)>> {
        let mut aside = Vec::new();
        let mut moves = Vec::new();
        for (&(to, _), &from) in state.iter().zip(results).filter(|((to, _), from)| to != *from) {
            let is_overwritten = moves.iter().any(|&(earlier, _)| earlier == from);
            let from = if is_overwritten {
                let kept = self.new_register()?;
                aside.push((kept, from));
                kept
            } else {
                from
            };
            moves.push((to, from));
        }
        aside.append(&mut moves);
        Some(aside)
    }

    /// The instructions of a block, and where what it yields is.
    fn block(&mut self, block: Block) -> Option<(Vec<Instruction>, Vec<Register>)> {
        let function = self.lowering.function;
        let (&terminator, ops) = function.blocks[block].ops.split_last()?;
        let mut instructions = Vec::<Assembled>::with_capacity(ops.len());
        for op in ops.iter().map(|&op| &function.ops[op]) {
            let [result] = op.results.as_slice() else {
                return None;
            };
            let to = self.scalar_type(*result)?;
            if matches!(op.kind, OpKind::Constant(_)) {
                continue;
            }
            let from = self.scalar_type(*op.operands.first()?)?;
            let moves = matches!(op.kind, OpKind::Reshape | OpKind::BroadcastInDim { .. });
            if moves || matches!(op.kind, OpKind::Convert) && from == to {
                let register = self.register(*op.operands.first()?)?;
                self.known.insert(*result, register);
                continue;
            }
            if !op.regions.is_empty() || carrier_for(&op.kind, from).is_some() {
                return None;
            }
            let mut assembled = match self.with_operand(op, from, &mut instructions) {
                Some(assembled) => assembled,
                None => self.alone(op, from, to)?,
            };
            let register = self.new_register()?;
            assembled.instruction.operands[3] = register;
            assembled.result = Some(*result);
            self.known.insert(*result, register);
            instructions.push(assembled);
        }
        let results = function.ops[terminator].operands.iter();
        let results = results.map(|&value| self.register(value)).collect::<Option<_>>()?;
        Some((instructions.into_iter().map(|known| known.instruction).collect(), results))
    }

    /// An operation as one instruction, which does not write anywhere yet.
    fn alone(&mut self, op: &OpData, from: DType, to: DType) -> Option<Assembled> {
        let kernel = scalar(&op.kind, from, to)?;
        let mut operands = [self.register(*op.operands.first()?)?; 4];
        for (register, &operand) in operands.iter_mut().zip(&op.operands) {
            *register = self.register(operand)?;
        }
        let binary = if let OpKind::Binary(binary) = op.kind { Some(binary) } else { None };
        Some(Assembled { instruction: Instruction { kernel, operands }, binary, result: None })
    }

    /// An operation as one instruction with that before it which makes an operand for it only:
    /// what goes from one to the other stays out of the registers, whose way is longer than the
    /// arithmetic is.
    fn with_operand(
        &mut self,
        op: &OpData,
        dtype: DType,
        instructions: &mut Vec<Assembled>,
    ) -> Option<Assembled> {
        let OpKind::Binary(second) = op.kind else { return None };
        let &[left, right] = op.operands.as_slice() else { return None };
        for (inner, outer, is_right) in [(left, right, false), (right, left, true)] {
            let made = instructions.iter().position(|known| known.result == Some(inner));
            let Some(position) = made.filter(|_| self.lowering.uses[inner.index()] == 1) else {
                continue;
            };
            let first = instructions[position].binary;
            if let Some(kernel) = first.and_then(|first| in_a_row(first, second, is_right, dtype)) {
                let third = self.register(outer)?;
                let [a, b, ..] = instructions.remove(position).instruction.operands;
                let instruction = Instruction { kernel, operands: [a, b, third, third] };
                return Some(Assembled { instruction, binary: None, result: None });
            }
        }
        None
    }
}

/// An instruction on its way into a block.
struct Assembled {
    instruction: Instruction,
    /// The operation that it is, if it is one of two operands.
    binary: Option<Binary>,
    /// The value that it makes; a value that is that of another has no instruction.
    result: Option<Value>,
}

/// Lets instructions write the next state where the state is, if nothing reads that afterwards.
fn compute_in_place(
    body: &mut Vec<Instruction>,
    state: &[(Register, usize)],
    results: &mut [Register],
) {
    let writes = |instruction: &Instruction, register| instruction.operands[3] == register;
    let reads = |instruction: &Instruction, register| instruction.operands[..3].contains(&register);
    // What makes a result that nothing else needs comes last, so that others have read the state.
    for &result in &*results {
        if let Some(position) = body.iter().position(|known| writes(known, result))
            && !body[position..].iter().any(|later| reads(later, result))
        {
            let last = body.remove(position);
            body.push(last);
        }
    }
    for (index, &(to, _)) in state.iter().enumerate() {
        let from = results[index];
        let is_only_here = results.iter().filter(|&&result| result == from).count() == 1;
        let Some(position) = body.iter().position(|known| writes(known, from)) else { continue };
        let is_free = is_only_here
            && !results.contains(&to)
            && !body[position + 1..].iter().any(|later| reads(later, to));
        if is_free {
            for operand in body[position..].iter_mut().flat_map(|known| &mut known.operands) {
                // The instruction itself may still read the old state.
                if *operand == from {
                    *operand = to;
                }
            }
            results[index] = to;
        }
    }
}
