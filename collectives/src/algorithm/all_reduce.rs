//! All-reduce: every member gets the fold of all operands, in the order of the group.
//!
//! | operands | steps | sends | scratch |
//! |---|---|---|---|
//! | in the opening | 0 | 0 | 0 |
//! | S up to 4 KiB | 1: the operand to everyone | (P-1) S | (P-1) S |
//! | larger | 2: chunk j to its owner, who folds; the folded to everyone | 2 (P-1)/P S | (P-1)/P S |
//!
//! P = 4, two steps; `a1` is chunk 1 of member a, `*` folded:
//! ```text
//! member      a            b            c            d
//! start       a0 a1 a2 a3  b0 b1 b2 b3  c0 c1 c2 c3  d0 d1 d2 d3
//! step 1      *0           *1           *2           *3
//! step 2      *0 *1 *2 *3  *0 *1 *2 *3  *0 *1 *2 *3  *0 *1 *2 *3
//! ```

use super::chunk::Chunks;
use super::{Collective, Run, expect_elements, expect_length, expect_reduction, incoming};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::{ElementType, Reduction};
use crate::ids::Member;
use crate::reduce::fold;
use crate::transport::{Outgoing, TransportError};

/// The longest operand that is sent to everyone whole: up to here a step costs more than bytes.
const ONE_STEP_BYTES: usize = 4096;

pub(crate) struct AllReduce<'a> {
    pub(crate) element: ElementType,
    pub(crate) reduction: Reduction,
    pub(crate) input: &'a [u8],
    pub(crate) output: &'a mut [u8],
}

impl Collective for AllReduce<'_> {
    fn signature(&self) -> Signature {
        Signature {
            reduction: Some(self.reduction),
            ..Signature::new(CollectiveKind::AllReduce, self.element, self.input.len())
        }
    }

    fn check(&self, _members: &[Member]) -> Result<(), String> {
        expect_reduction(self.element, self.reduction)?;
        expect_elements(self.element, self.input.len())?;
        expect_length("output", self.output.len(), Some(self.input.len()))
    }

    fn contribution(&self) -> &[u8] {
        self.input
    }

    fn combine(&mut self, _run: &Run<'_>, contributions: &[&[u8]]) {
        fold(self.element, self.reduction, contributions, self.output);
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let Self { element, reduction, input, ref mut output } = *self;
        if input.len() <= ONE_STEP_BYTES {
            let sends: Vec<_> = run.peers().map(|(_, to)| Outgoing { to, bytes: input }).collect();
            return run.exchange_fold(element, reduction, &sends, input, output);
        }
        let count = run.members().len();
        let chunks = Chunks::new(element, input.len(), count);
        let own = chunks.range(run.position);
        let sends: Vec<_> = run
            .peers()
            .map(|(index, to)| Outgoing { to, bytes: &input[chunks.range(index)] })
            .collect();
        run.exchange_fold(element, reduction, &sends, &input[own.clone()], &mut output[own])?;

        let mut pieces = chunks.split(output, count);
        let folded = &*std::mem::take(&mut pieces[run.position]);
        let sends: Vec<_> = run.peers().map(|(_, to)| Outgoing { to, bytes: folded }).collect();
        let mut receives = incoming(run, pieces);
        run.exchange(&sends, &mut receives)
    }
}
