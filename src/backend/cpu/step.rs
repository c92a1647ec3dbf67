//! What a compiled program is made of: steps over numbered slots.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use super::buffer::Block;
use super::collective::CollectiveCall;
use super::tile::Registers;
use crate::backend::Transfer;
use crate::ifrt::DType;

/// Where a value lives while a program runs.
///
/// Lowering gives every value a slot of its own; [`super::plan`] then folds together those whose
/// lives do not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub(crate) usize);

impl Slot {
    /// The position in a frame.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// One compiled operation on flat memory.
pub(crate) trait Kernel: Send + Sync + fmt::Debug {
    /// What a trace calls it: the name of its type, without what it is generic over.
    fn name(&self) -> &'static str {
        let path = type_name::<Self>();
        let path = path.split_once('<').map_or(path, |(path, _)| path);
        path.rsplit_once("::").map_or(path, |(_, name)| name)
    }

    /// Pairs of an input and an output that may be the same memory.
    fn in_place(&self) -> Vec<(usize, usize)> {
        Vec::new()
    }

    /// Whether the time it takes follows from the sizes of its operands.
    fn is_bounded(&self) -> bool {
        true
    }

    /// Computes all outputs, whose former contents are unspecified, from all inputs.
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], scratch: &mut Scratch);
}

/// An operand of a [`Kernel`].
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// What the output of this index holds when the kernel starts.
    Output(usize),
}

impl<'a> Input<'a> {
    /// The bytes of an operand that is never in the memory of an output.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Output(_) => &[],
        }
    }
}

/// Memory that kernels use while they run and that outlives each of them.
#[derive(Default)]
pub(crate) struct Scratch {
    /// What tile programs compute in.
    pub(crate) registers: Registers,
    /// What their inputs are gathered into.
    pub(crate) tiles: Registers,
    /// How many random numbers the launch has drawn so far.
    pub(crate) random_numbers: u64,
}

/// One step.
#[derive(Debug)]
pub(crate) enum Step {
    /// A kernel.
    Compute(Compute),
    /// `while`.
    While(While),
    /// `case` and `if`.
    Case(Case),
    /// A collective of one operand.
    Collective(Collective),
    /// `infeed`, `outfeed`, `send` or `recv`.
    Transfer {
        /// Which of them.
        transfer: Transfer,
        /// What is handed over, dense.
        inputs: Vec<Slot>,
        /// What arrives, dense, with sizes in bytes.
        outputs: Vec<(Slot, usize)>,
    },
    /// `partition_id` or `replica_id`.
    ProcessId {
        /// Which of the two.
        id: ProcessId,
        /// A `ui32` scalar.
        output: Slot,
    },
}

impl Step {
    /// The slice of a trace that the step is: its kind and what it yields.
    pub(crate) fn span(&self) -> tracing::Span {
        tracing::trace_span!("step", name = self.name(), result_bytes = self.result_bytes())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Compute(step) => step.kernel.name(),
            Self::While(_) => "While",
            Self::Case(_) => "Case",
            Self::Collective(_) => "Collective",
            Self::Transfer { .. } => "Transfer",
            Self::ProcessId { .. } => "ProcessId",
        }
    }

    fn result_bytes(&self) -> usize {
        let total = |outputs: &[(Slot, usize)]| outputs.iter().map(|(_, size)| size).sum();
        match self {
            Self::Compute(Compute { outputs, .. })
            | Self::Case(Case { outputs, .. })
            | Self::Transfer { outputs, .. } => total(outputs),
            Self::Collective(step) => step.output.1,
            Self::ProcessId { .. } => size_of::<u32>(),
            // What a loop carries has been computed before and is counted there.
            Self::While(_) => 0,
        }
    }
}

/// A kernel with its operands.
#[derive(Debug)]
pub(crate) struct Compute {
    /// The operation.
    pub(crate) kernel: Box<dyn Kernel>,
    /// Its inputs.
    pub(crate) inputs: Vec<Slot>,
    /// Its outputs with their sizes in bytes.
    pub(crate) outputs: Vec<(Slot, usize)>,
    /// Per output, the input whose memory it takes over, as planned.
    pub(crate) reuse: Vec<Option<usize>>,
}

/// Steps in order, and the slots that hold what they yield.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// The steps.
    pub(crate) steps: Vec<Step>,
    /// The results: distinct, and defined by `steps`, unless the user of the body says otherwise.
    pub(crate) results: Vec<Slot>,
}

/// A loop.
#[derive(Debug)]
pub(crate) struct While {
    /// Yields one boolean.
    pub(crate) condition: Body,
    /// Yields the next state; `results[i]` may be `state[i]` itself, unchanged or overwritten.
    pub(crate) body: Body,
    /// What the loop carries: defined before it, its results afterwards.
    pub(crate) state: Vec<Slot>,
}

/// A choice among bodies.
#[derive(Debug)]
pub(crate) struct Case {
    /// A boolean for two branches, true first; else an `i32` index, the last branch for others.
    pub(crate) selector: Slot,
    /// The type of the selector.
    pub(crate) selector_type: DType,
    /// The branches.
    pub(crate) branches: Vec<Body>,
    /// Where the results of the branch taken end up, with their sizes in bytes.
    pub(crate) outputs: Vec<(Slot, usize)>,
}

/// A collective.
#[derive(Debug)]
pub(crate) struct Collective {
    /// Which one, and among whom.
    pub(crate) call: CollectiveCall,
    /// Its position among the collectives of the program.
    pub(crate) ordinal: u32,
    /// The operand, dense.
    pub(crate) input: Slot,
    /// The result with its size in bytes, dense.
    pub(crate) output: (Slot, usize),
}

/// Which id of the running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessId {
    /// `partition_id`.
    Partition,
    /// `replica_id`.
    Replica,
}

/// A compiled program.
pub(crate) struct Program {
    /// The slots that hold the arguments at the start.
    pub(crate) parameters: Vec<Slot>,
    /// The slots that hold constants at the start.
    pub(crate) constants: Vec<(Slot, Arc<Block>)>,
    /// The steps; its results may be any slots.
    pub(crate) body: Body,
    /// How many slots there are.
    pub(crate) num_slots: usize,
    /// What all slots hold together, at most.
    pub(crate) memory_bytes: usize,
    /// How many collectives there are.
    pub(crate) num_collectives: usize,
}

/// What a brief program has at most: few microseconds' work, of whatever kind.
const BRIEF_STEPS: usize = 32;
const BRIEF_BYTES: usize = 16 << 10;

impl Program {
    /// See [`crate::backend::Executable::is_brief`].
    pub(crate) fn is_brief(&self) -> bool {
        let is_brief = |step: &Step| match step {
            Step::Compute(step) => step.kernel.is_bounded(),
            Step::ProcessId { .. } | Step::Collective(_) => true,
            Step::While(_) | Step::Case(_) | Step::Transfer { .. } => false,
        };
        let steps = &self.body.steps;
        self.memory_bytes <= BRIEF_BYTES && steps.len() <= BRIEF_STEPS && steps.iter().all(is_brief)
    }
}
