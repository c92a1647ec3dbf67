//! Running a compiled program: a frame of slots and a walk over the flat list of steps.

use std::sync::Arc;

use smallvec::SmallVec;

use super::buffer::{Block, Memory};
use super::step::{
    Body, Case, Collective, Compute, Input, ProcessId, Program, Scratch, Slot, Step,
};
use crate::backend::{Buffer, CollectiveContext};
use crate::ifrt::{DType, Result};

/// The memory of one launch. Kept between launches, it makes the next one allocate nothing but
/// its results.
pub(crate) struct Frame {
    memory: Memory,
    slots: Vec<Storage>,
    scratch: Scratch,
    /// Per collective of the program, how often it has run in this launch.
    iterations: Vec<u64>,
}

/// What a slot holds.
#[derive(Default)]
enum Storage {
    #[default]
    Empty,
    /// Memory of this launch's own.
    Owned(Block),
    /// An argument or a constant: not to be written.
    Shared(Arc<Block>),
}

impl Frame {
    /// A frame without slots, which takes its blocks from `memory`.
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, slots: Vec::new(), scratch: Scratch::default(), iterations: Vec::new() }
    }

    /// Runs `program` on `arguments`, which match its parameters in number and size.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        arguments: SmallVec<[Arc<Block>; 4]>,
        context: &dyn CollectiveContext,
    ) -> Result<Vec<Buffer>> {
        self.slots.resize_with(program.num_slots, Storage::default);
        self.scratch.random_numbers = 0;
        self.iterations.clear();
        self.iterations.resize(program.num_collectives, 0);
        for (slot, block) in &program.constants {
            self.slots[slot.index()] = Storage::Shared(Arc::clone(block));
        }
        for (slot, argument) in program.parameters.iter().zip(arguments) {
            self.slots[slot.index()] = match Arc::try_unwrap(argument) {
                Ok(block) if block.is_writable() => Storage::Owned(block),
                Ok(block) => Storage::Shared(Arc::new(block)),
                Err(shared) => Storage::Shared(shared),
            };
        }
        self.steps(&program.body.steps, context)?;
        let mut results = Vec::with_capacity(program.body.results.len());
        for &slot in &program.body.results {
            results.push(Buffer::new(self.result(program, slot)?));
        }
        for storage in &mut self.slots {
            if matches!(storage, Storage::Shared(_)) {
                *storage = Storage::Empty;
            }
        }
        Ok(results)
    }

    fn steps(&mut self, steps: &[Step], context: &dyn CollectiveContext) -> Result<()> {
        for step in steps {
            let _slice = step.span().entered();
            match step {
                Step::Compute(step) => self.compute(step)?,
                Step::While(step) => loop {
                    self.steps(&step.condition.steps, context)?;
                    if !self.is_true(step.condition.results.first().copied()) {
                        break;
                    }
                    self.steps(&step.body.steps, context)?;
                    self.swap_results(&step.body, step.state.iter().copied());
                },
                Step::Case(step) => self.case(step, context)?,
                Step::Collective(step) => self.collective(step, context)?,
                Step::Transfer { transfer, inputs, outputs } => {
                    let mut blocks = outputs
                        .iter()
                        .map(|&(slot, size)| self.take_to_write(slot, size))
                        .collect::<Result<Vec<_>>>()?;
                    let inputs: Vec<&[u8]> =
                        inputs.iter().map(|&slot| bytes(&self.slots, slot)).collect();
                    let mut filled: Vec<&mut [u8]> =
                        blocks.iter_mut().map(Block::bytes_mut).collect();
                    context.transfer(*transfer, &inputs, &mut filled)?;
                    for (&(slot, _), block) in outputs.iter().zip(blocks) {
                        self.slots[slot.index()] = Storage::Owned(block);
                    }
                }
                Step::ProcessId { id, output } => {
                    let value = match id {
                        ProcessId::Partition => context.partition_id(),
                        ProcessId::Replica => context.replica_id(),
                    };
                    let mut block = self.take_to_write(*output, size_of::<u32>())?;
                    block.bytes_mut().copy_from_slice(&value.to_ne_bytes());
                    self.slots[output.index()] = Storage::Owned(block);
                }
            }
        }
        Ok(())
    }

    fn compute(&mut self, step: &Compute) -> Result<()> {
        // An argument that others still hold cannot be written over: it is read from where it is.
        let mut kept: SmallVec<[Option<Arc<Block>>; 2]> = SmallVec::new();
        let mut blocks: SmallVec<[Block; 2]> = SmallVec::new();
        for (&(slot, size), reuse) in step.outputs.iter().zip(&step.reuse) {
            match (reuse, std::mem::take(&mut self.slots[slot.index()])) {
                (Some(_), Storage::Owned(block)) => {
                    kept.push(None);
                    blocks.push(block);
                }
                (Some(_), Storage::Shared(shared)) => {
                    kept.push(Some(shared));
                    blocks.push(self.memory.block(size)?);
                }
                (_, Storage::Owned(mut block)) => {
                    kept.push(None);
                    self.memory.resize(&mut block, size)?;
                    blocks.push(block);
                }
                (_, Storage::Shared(_) | Storage::Empty) => {
                    kept.push(None);
                    blocks.push(self.memory.block(size)?);
                }
            }
        }
        let inputs: SmallVec<[Input<'_>; 6]> = step
            .inputs
            .iter()
            .enumerate()
            .map(|(index, &slot)| match step.reuse.iter().position(|reuse| *reuse == Some(index)) {
                Some(output) => match &kept[output] {
                    Some(shared) => Input::Bytes(shared.bytes()),
                    None => Input::Output(output),
                },
                None => Input::Bytes(bytes(&self.slots, slot)),
            })
            .collect();
        let mut outputs: SmallVec<[&mut [u8]; 2]> =
            blocks.iter_mut().map(Block::bytes_mut).collect();
        step.kernel.run(&inputs, &mut outputs, &mut self.scratch);
        drop((inputs, outputs));
        for (&(slot, _), block) in step.outputs.iter().zip(blocks) {
            self.slots[slot.index()] = Storage::Owned(block);
        }
        Ok(())
    }

    fn case(&mut self, step: &Case, context: &dyn CollectiveContext) -> Result<()> {
        let last = step.branches.len().saturating_sub(1);
        let selector = bytes(&self.slots, step.selector);
        let index = if step.selector_type == DType::Bool {
            usize::from(selector.first() == Some(&0))
        } else {
            let index = selector.first_chunk().map_or(-1, |&bytes| i32::from_ne_bytes(bytes));
            usize::try_from(index).unwrap_or(last)
        };
        if let Some(branch) = step.branches.get(index.min(last)) {
            self.steps(&branch.steps, context)?;
            self.swap_results(branch, step.outputs.iter().map(|(slot, _)| *slot));
        }
        Ok(())
    }

    fn collective(&mut self, step: &Collective, context: &dyn CollectiveContext) -> Result<()> {
        let (output, size) = step.output;
        let mut block = self.take_to_write(output, size)?;
        let iteration = &mut self.iterations[step.ordinal as usize];
        let input = bytes(&self.slots, step.input);
        step.call.run(step.ordinal, *iteration, context, input, block.bytes_mut())?;
        *iteration += 1;
        self.slots[output.index()] = Storage::Owned(block);
        Ok(())
    }

    /// Puts the results of a body where its user wants them; the memory that was there serves the
    /// body's next run.
    fn swap_results(&mut self, body: &Body, targets: impl Iterator<Item = Slot>) {
        for (result, target) in body.results.iter().zip(targets) {
            self.slots.swap(result.index(), target.index());
        }
    }

    fn is_true(&self, slot: Option<Slot>) -> bool {
        slot.is_some_and(|slot| bytes(&self.slots, slot).first().is_some_and(|&byte| byte != 0))
    }

    /// Takes the memory of a slot out of the frame, `size` bytes long, its contents unspecified.
    fn take_to_write(&mut self, slot: Slot, size: usize) -> Result<Block> {
        match std::mem::take(&mut self.slots[slot.index()]) {
            Storage::Owned(mut block) => {
                self.memory.resize(&mut block, size)?;
                Ok(block)
            }
            Storage::Shared(_) | Storage::Empty => self.memory.block(size),
        }
    }

    /// A result, which shares no memory with an argument that its owner keeps: as with XLA, what
    /// writes to one by its address does not change the other.
    fn result(&mut self, program: &Program, slot: Slot) -> Result<Arc<Block>> {
        match &self.slots[slot.index()] {
            Storage::Shared(block) if program.parameters.contains(&slot) => {
                self.memory.copy(block.bytes()).map(Arc::new)
            }
            _ => Ok(self.share(slot)),
        }
    }

    /// Another reference to what a slot holds.
    fn share(&mut self, slot: Slot) -> Arc<Block> {
        let storage = &mut self.slots[slot.index()];
        let block = match std::mem::take(storage) {
            Storage::Owned(block) => Arc::new(block),
            Storage::Shared(block) => block,
            Storage::Empty => Arc::default(),
        };
        *storage = Storage::Shared(Arc::clone(&block));
        block
    }
}

fn bytes(slots: &[Storage], slot: Slot) -> &[u8] {
    match &slots[slot.index()] {
        Storage::Owned(block) => block.bytes(),
        Storage::Shared(block) => block.bytes(),
        Storage::Empty => &[],
    }
}
