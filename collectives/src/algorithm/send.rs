//! Send: of a pair, one member's operand becomes the other's output.
//!
//! 1 step: the operand to the receiver. The sender sends S.

use super::{Collective, Place, Run, expect_elements, expect_pair, root_number};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Incoming, Outgoing, TransportError};

/// What a member is to a send.
pub(crate) enum End<'a> {
    /// It sends these bytes.
    Sender(&'a [u8]),
    /// It receives as many bytes as there are here.
    Receiver(&'a mut [u8]),
}

pub(crate) struct Send<'a> {
    pub(crate) element: ElementType,
    pub(crate) end: End<'a>,
    /// The sender's position in the group.
    pub(crate) sender: usize,
}

impl Send<'_> {
    fn length_bytes(&self) -> usize {
        match &self.end {
            End::Sender(bytes) => bytes.len(),
            End::Receiver(bytes) => bytes.len(),
        }
    }
}

impl Collective for Send<'_> {
    fn signature(&self) -> Signature {
        Signature {
            root: root_number(self.sender),
            ..Signature::new(CollectiveKind::Send, self.element, self.length_bytes())
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.length_bytes())?;
        expect_pair(members)
    }

    fn contribution(&self) -> &[u8] {
        match &self.end {
            End::Sender(bytes) => bytes,
            End::Receiver(_) => &[],
        }
    }

    fn contribution_bytes(&self, position: usize) -> Option<usize> {
        Some(if position == self.sender { self.length_bytes() } else { 0 })
    }

    fn combine(
        &mut self,
        _place: Place<'_>,
        contributions: &[&[u8]],
    ) -> Result<(), TransportError> {
        if let End::Receiver(output) = &mut self.end {
            output.copy_from_slice(contributions[self.sender]);
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let Some((_, peer)) = run.peers().next() else { return Ok(()) };
        match &mut self.end {
            End::Sender(bytes) => run.exchange(&[Outgoing { to: peer, bytes }], &mut []),
            End::Receiver(bytes) => run.exchange(&[], &mut [Incoming { from: peer, bytes }]),
        }
    }
}
