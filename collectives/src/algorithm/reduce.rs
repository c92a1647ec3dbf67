//! Reduce: the root gets the fold of all operands, in the order of the group.
//!
//! | operands | steps | sends | scratch on the root |
//! |---|---|---|---|
//! | S up to 4 KiB | 1: the operand to the root, who folds | S | (P-1) S |
//! | larger | 2: chunk j to its owner, who folds; the folded to the root | S | (P-1)/P S |
//!
//! Cut into chunks the fold is shared by all members, and no link carries more than 2 S. Only the
//! root's output is written.

use super::chunk::Chunks;
use super::{
    Collective, Operand, Place, Run, expect_elements, expect_length, expect_operator, expect_root,
    incoming, outgoing, root_number, sources,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::{ElementType, Operator};
use crate::ids::Member;
use crate::reduce::fold;
use crate::transport::shm::Exposure;
use crate::transport::{Outgoing, TransportError};

/// The longest operand that is sent to the root whole: up to here a step costs more than bytes.
const ONE_STEP_BYTES: usize = 4096;

pub(crate) struct Reduce<'a> {
    pub(crate) element: ElementType,
    pub(crate) operator: Operator<'a>,
    /// A position in the group.
    pub(crate) root: usize,
    /// In place, which only the root is: the whole output.
    pub(crate) input: Operand<'a>,
    /// Written on the root, and empty elsewhere.
    pub(crate) output: &'a mut [u8],
    /// Whether this member is the root.
    pub(crate) is_root: bool,
}

impl Collective for Reduce<'_> {
    fn signature(&self) -> Signature {
        Signature {
            reduction: Some(self.operator.name()),
            root: root_number(self.root),
            ..Signature::new(CollectiveKind::Reduce, self.element, self.input.len())
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_operator(self.element, &self.operator)?;
        expect_elements(self.element, self.input.len())?;
        expect_root(self.root, members)?;
        let expected = if self.is_root { self.input.len() } else { 0 };
        expect_length("output", self.output.len(), Some(expected))
    }

    fn contribution(&self) -> &[u8] {
        self.input.bytes(self.output)
    }

    fn exposure(&self, _members: usize) -> Exposure {
        self.input.exposure()
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        if self.is_root {
            let inputs = sources(place, contributions, self.input.source());
            fold(self.element, &self.operator, &inputs, self.output);
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let length = self.input.len();
        if run.is_alone() {
            let own = self.input.source();
            return run.exchange_fold(self.element, &self.operator, &[], own, self.output);
        }
        if length > ONE_STEP_BYTES {
            return self.exchange_chunks(run);
        }
        if self.is_root {
            let own = self.input.source();
            return run.exchange_fold(self.element, &self.operator, &[], own, self.output);
        }
        let bytes = self.input.bytes(self.output);
        run.exchange(&[Outgoing { to: run.members()[self.root], bytes }], &mut [])
    }
}

impl Reduce<'_> {
    /// Every member folds its chunk; the root collects them.
    fn exchange_chunks(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let Self { element, operator, root, ref input, ref mut output, is_root } = *self;
        let count = run.members().len();
        let chunks = Chunks::new(element, input.len(), count);
        let own = chunks.range(run.position);
        if !is_root {
            let input = input.bytes(output);
            let mut folded = vec![0; own.len()];
            let sends = outgoing(run, |index| &input[chunks.range(index)]);
            run.exchange_fold(element, &operator, &sends, Some(&input[own]), &mut folded)?;
            let to = run.members()[root];
            return run.exchange(&[Outgoing { to, bytes: &folded }], &mut []);
        }
        let mut pieces = chunks.split(output, count);
        let folded = std::mem::take(&mut pieces[run.position]);
        match input {
            Operand::Apart(input) => {
                let sends = outgoing(run, |index| &input[chunks.range(index)]);
                run.exchange_fold(element, &operator, &sends, Some(&input[own]), folded)?;
            }
            Operand::Within(_) => {
                let sends = outgoing(run, |index| &*pieces[index]);
                run.exchange_fold(element, &operator, &sends, None, folded)?;
            }
        }
        let mut receives = incoming(run, pieces);
        run.exchange(&[], &mut receives)
    }
}
