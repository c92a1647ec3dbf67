//! All-to-all: member i's jth piece becomes member j's ith.
//!
//! 1 step: piece j to member j. Sends (P-1)/P S. The output is S.

use super::{
    Collective, Place, Run, expect_elements, expect_length, expect_pieces, incoming, outgoing,
    piece, pieces_mut,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::stream::Copying;
use crate::transport::TransportError;

pub(crate) struct AllToAll<'a> {
    pub(crate) element: ElementType,
    pub(crate) input: &'a [u8],
    pub(crate) output: &'a mut [u8],
}

impl Collective for AllToAll<'_> {
    fn signature(&self) -> Signature {
        Signature::new(CollectiveKind::AllToAll, self.element, self.input.len())
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.input.len())?;
        expect_pieces(self.element, self.input.len(), members)?;
        expect_length("output", self.output.len(), Some(self.input.len()))
    }

    fn contribution(&self) -> &[u8] {
        self.input
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        let count = contributions.len();
        let copying = Copying::of(self.output.len().saturating_mul(count));
        let pieces = pieces_mut(self.output, count);
        for ((index, output), input) in pieces.into_iter().enumerate().zip(contributions) {
            let input = if index == place.position { self.input } else { input };
            copying.copy(output, piece(input, place.position, count));
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let count = run.members().len();
        let mut pieces = pieces_mut(self.output, count);
        pieces[run.position].copy_from_slice(piece(self.input, run.position, count));
        let sends = outgoing(run, |index| piece(self.input, index, count));
        let mut receives = incoming(run, pieces);
        run.exchange(&sends, &mut receives)
    }
}
