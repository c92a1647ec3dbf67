//! All-gather: every member gets all operands one after the other, in the order of the group.
//!
//! 1 step: the operand to everyone. Sends (P-1) S. So it is done directly; `recursive_doubling`,
//! `ring` and `two_level` have other ways. The output is P S.

use super::chunk::Chunks;
use super::two_level::Near;
use super::{
    Algorithm, Collective, Operand, Place, Run, expect_elements, expect_length, incoming, outgoing,
    piece_range, pieces_mut, recursive_doubling, ring, two_level,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::stream::Copying;
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

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        let copying = Copying::of(self.output.len().saturating_mul(contributions.len()));
        let pieces = pieces_mut(self.output, contributions.len());
        for ((index, piece), input) in pieces.into_iter().enumerate().zip(contributions) {
            if index != place.position {
                copying.copy(piece, input);
            } else if let Operand::Apart(input) = self.input {
                copying.copy(piece, input);
            }
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let count = run.members().len();
        let chunks = Chunks::new(self.element, self.output.len(), count);
        let own = piece_range(self.output.len(), run.position, count);
        self.input.copy_to(&mut self.output[own.clone()]);
        match run.algorithm {
            Algorithm::RecursiveDoubling => {
                return recursive_doubling::all_gather(run, self.output);
            }
            Algorithm::Ring => return ring::all_gather(run, &chunks, self.output),
            Algorithm::TwoLevel => {
                let own = self.output[own].to_vec();
                let near = Near::open(run, &[])?;
                return two_level::all_gather(run, near, &chunks, &own, self.output);
            }
            Algorithm::Direct | Algorithm::Shared => {}
        }
        let mut pieces = pieces_mut(self.output, count);
        let own = &*std::mem::take(&mut pieces[run.position]);
        let sends = outgoing(run, |_| own);
        let mut receives = incoming(run, pieces);
        run.exchange(&sends, &mut receives)
    }
}
