//! Broadcast: the root's buffer becomes everyone's.
//!
//! 1 step: the buffer to everyone. The root sends (P-1) S, nobody else anything.

use super::{Collective, Run, expect_elements};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Incoming, Outgoing, TransportError};

pub(crate) struct Broadcast<'a> {
    pub(crate) element: ElementType,
    /// A position in the group.
    pub(crate) root: usize,
    pub(crate) buffer: &'a mut [u8],
}

impl Collective for Broadcast<'_> {
    fn signature(&self) -> Signature {
        Signature {
            root: Some(u32::try_from(self.root).unwrap_or(u32::MAX)),
            ..Signature::new(CollectiveKind::Broadcast, self.element, self.buffer.len())
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.buffer.len())?;
        if self.root >= members.len() {
            return Err(format!("root {} in a group of {}", self.root, members.len()));
        }
        Ok(())
    }

    fn contribution(&self) -> &[u8] {
        self.buffer
    }

    fn combine(&mut self, run: &Run<'_>, contributions: &[&[u8]]) {
        if run.position != self.root {
            self.buffer.copy_from_slice(contributions[self.root]);
        }
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        if run.position == self.root {
            let sends: Vec<_> =
                run.peers().map(|(_, to)| Outgoing { to, bytes: self.buffer }).collect();
            run.exchange(&sends, &mut [])
        } else {
            let from = run.members()[self.root];
            run.exchange(&[], &mut [Incoming { from, bytes: self.buffer }])
        }
    }
}
