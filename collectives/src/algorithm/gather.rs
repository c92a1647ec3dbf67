//! Gather: the root gets all operands one after the other, in the order of the group.
//!
//! 1 step: the operand to the root. All but the root send S. The root's output is P S.

use super::{
    Collective, Operand, Place, Run, expect_elements, expect_length, expect_root, incoming,
    pieces_mut, root_number,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::shm::Exposure;
use crate::transport::{Outgoing, TransportError};

pub(crate) struct Gather<'a> {
    pub(crate) element: ElementType,
    /// A position in the group.
    pub(crate) root: usize,
    /// In place, which only the root is: its piece of the output.
    pub(crate) input: Operand<'a>,
    /// Written on the root, and empty elsewhere.
    pub(crate) output: &'a mut [u8],
    /// Whether this member is the root.
    pub(crate) is_root: bool,
}

impl Collective for Gather<'_> {
    fn signature(&self) -> Signature {
        Signature {
            root: root_number(self.root),
            ..Signature::new(CollectiveKind::Gather, self.element, self.input.len())
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.input.len())?;
        expect_root(self.root, members)?;
        let pieces = if self.is_root { members.len() } else { 0 };
        expect_length("output", self.output.len(), self.input.len().checked_mul(pieces))
    }

    fn contribution(&self) -> &[u8] {
        self.input.bytes(self.output)
    }

    fn exposure(&self, _members: usize) -> Exposure {
        self.input.exposure()
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        if !self.is_root {
            return Ok(());
        }
        let pieces = pieces_mut(self.output, contributions.len());
        for ((index, piece), input) in pieces.into_iter().enumerate().zip(contributions) {
            if index == place.position {
                self.input.copy_to(piece);
            } else {
                piece.copy_from_slice(input);
            }
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        if !self.is_root {
            let to = run.members()[self.root];
            let bytes = self.input.bytes(self.output);
            return run.exchange(&[Outgoing { to, bytes }], &mut []);
        }
        let mut pieces = pieces_mut(self.output, run.members().len());
        self.input.copy_to(pieces[run.position]);
        let mut receives = incoming(run, pieces);
        run.exchange(&[], &mut receives)
    }
}
