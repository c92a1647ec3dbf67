//! Scatter: the root's jth piece becomes member j's output.
//!
//! 1 step: piece j to member j. The root sends (P-1) S, with S the bytes of one piece.

use super::{
    Collective, Place, Run, expect_elements, expect_length, expect_root, outgoing, piece,
    root_number,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Incoming, TransportError};

pub(crate) struct Scatter<'a> {
    pub(crate) element: ElementType,
    /// A position in the group.
    pub(crate) root: usize,
    /// Bytes of one piece.
    pub(crate) piece_bytes: usize,
    /// All pieces, on the root.
    pub(crate) input: Option<&'a [u8]>,
    /// `None` where the piece is in its place.
    pub(crate) output: Option<&'a mut [u8]>,
    /// How many members there are.
    pub(crate) count: usize,
}

impl Collective for Scatter<'_> {
    fn signature(&self) -> Signature {
        Signature {
            root: root_number(self.root),
            ..Signature::new(CollectiveKind::Scatter, self.element, self.piece_bytes)
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.piece_bytes)?;
        expect_root(self.root, members)?;
        match self.input {
            Some(input) => {
                expect_length("input", input.len(), self.piece_bytes.checked_mul(self.count))
            }
            None => Ok(()),
        }
    }

    fn contribution(&self) -> &[u8] {
        self.input.unwrap_or_default()
    }

    fn contribution_bytes(&self, position: usize) -> Option<usize> {
        if position == self.root { self.piece_bytes.checked_mul(self.count) } else { Some(0) }
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        let pieces = self.input.unwrap_or(contributions[self.root]);
        if let Some(output) = &mut self.output {
            output.copy_from_slice(piece(pieces, place.position, self.count));
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let Some(input) = self.input else {
            let from = run.members()[self.root];
            let receive = self.output.as_deref_mut().map(|bytes| Incoming { from, bytes });
            return run.exchange(&[], receive.into_iter().collect::<Vec<_>>().as_mut_slice());
        };
        if let Some(output) = &mut self.output {
            output.copy_from_slice(piece(input, run.position, self.count));
        }
        run.exchange(&outgoing(run, |index| piece(input, index, self.count)), &mut [])
    }
}
