//! All-gather: every member gets all operands one after the other, in the order of the group.
//!
//! 1 step: the operand to everyone. Sends (P-1) S. The output is P S.

use super::{Collective, Run, expect_elements, expect_length, incoming, pieces_mut};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Outgoing, TransportError};

pub(crate) struct AllGather<'a> {
    pub(crate) element: ElementType,
    pub(crate) input: &'a [u8],
    pub(crate) output: &'a mut [u8],
}

impl Collective for AllGather<'_> {
    fn signature(&self) -> Signature {
        Signature::new(CollectiveKind::AllGather, self.element, self.input.len())
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.input.len())?;
        expect_length("output", self.output.len(), self.input.len().checked_mul(members.len()))
    }

    fn contribution(&self) -> &[u8] {
        self.input
    }

    fn combine(&mut self, _run: &Run<'_>, contributions: &[&[u8]]) {
        for (piece, input) in
            pieces_mut(self.output, contributions.len()).into_iter().zip(contributions)
        {
            piece.copy_from_slice(input);
        }
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let mut pieces = pieces_mut(self.output, run.members().len());
        pieces[run.position].copy_from_slice(self.input);
        let sends: Vec<_> = run.peers().map(|(_, to)| Outgoing { to, bytes: self.input }).collect();
        let mut receives = incoming(run, pieces);
        run.exchange(&sends, &mut receives)
    }
}
