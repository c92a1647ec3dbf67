//! Broadcast: the root's operand becomes everyone's output.
//!
//! 1 step: the operand to everyone. The root sends (P-1) S, nobody else anything.

use super::{
    Collective, Place, Run, expect_elements, expect_length, expect_root, outgoing, root_number,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Incoming, TransportError};

pub(crate) struct Broadcast<'a> {
    pub(crate) element: ElementType,
    /// A position in the group.
    pub(crate) root: usize,
    /// Bytes of the operand.
    pub(crate) length_bytes: usize,
    /// The operand; `None` where it is not read.
    pub(crate) input: Option<&'a [u8]>,
    /// `None` where the operand is in its place.
    pub(crate) output: Option<&'a mut [u8]>,
}

impl Collective for Broadcast<'_> {
    fn signature(&self) -> Signature {
        Signature {
            root: root_number(self.root),
            ..Signature::new(CollectiveKind::Broadcast, self.element, self.length_bytes)
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.length_bytes)?;
        expect_root(self.root, members)?;
        let output = self.output.as_ref().map_or(self.length_bytes, |output| output.len());
        expect_length("output", output, Some(self.length_bytes))
    }

    fn contribution(&self) -> &[u8] {
        self.input.unwrap_or_default()
    }

    fn contribution_bytes(&self, position: usize) -> Option<usize> {
        Some(if position == self.root { self.length_bytes } else { 0 })
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        if let Some(output) = &mut self.output {
            let own = if place.position == self.root { self.input } else { None };
            output.copy_from_slice(own.unwrap_or(contributions[self.root]));
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        if run.position != self.root {
            let from = run.members()[self.root];
            let receive = self.output.as_deref_mut().map(|bytes| Incoming { from, bytes });
            return run.exchange(&[], receive.into_iter().collect::<Vec<_>>().as_mut_slice());
        }
        let input = self.input.unwrap_or_default();
        if let Some(output) = &mut self.output {
            output.copy_from_slice(input);
        }
        run.exchange(&outgoing(run, |_| input), &mut [])
    }
}
