//! All-gather: every member gets all operands one after the other, in the order of the group.
//!
//! 1 step: the operand to everyone. Sends (P-1) S. The output is P S.

use super::{
    Collective, Operand, Run, expect_elements, expect_length, incoming, outgoing, pieces_mut,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::TransportError;

pub(crate) struct AllGather<'a> {
    pub(crate) element: ElementType,
    /// In place: this member's piece of the output.
    pub(crate) input: Operand<'a>,
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
        self.input.bytes(self.output)
    }

    fn is_in_place(&self) -> bool {
        self.input.is_within()
    }

    fn combine(&mut self, run: &Run<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        let pieces = pieces_mut(self.output, contributions.len());
        for ((index, piece), input) in pieces.into_iter().enumerate().zip(contributions) {
            if index == run.position {
                self.input.copy_to(piece);
            } else {
                piece.copy_from_slice(input);
            }
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let mut pieces = pieces_mut(self.output, run.members().len());
        self.input.copy_to(pieces[run.position]);
        let own = &*std::mem::take(&mut pieces[run.position]);
        let sends = outgoing(run, |_| own);
        let mut receives = incoming(run, pieces);
        run.exchange(&sends, &mut receives)
    }
}
