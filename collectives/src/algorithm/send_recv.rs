//! Send-receive: each of a pair gets the other's operand.
//!
//! 1 step: the operand to the other. Both send S.

use super::{Collective, Place, Run, expect_elements, expect_length, expect_pair};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Incoming, Outgoing, TransportError};

pub(crate) struct SendRecv<'a> {
    pub(crate) element: ElementType,
    pub(crate) input: &'a [u8],
    pub(crate) output: &'a mut [u8],
}

impl Collective for SendRecv<'_> {
    fn signature(&self) -> Signature {
        Signature::new(CollectiveKind::SendRecv, self.element, self.input.len())
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.input.len())?;
        expect_length("output", self.output.len(), Some(self.input.len()))?;
        expect_pair(members)
    }

    fn contribution(&self) -> &[u8] {
        self.input
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        if let Some((index, _)) = place.peers().next() {
            self.output.copy_from_slice(contributions[index]);
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let Some((_, peer)) = run.peers().next() else { return Ok(()) };
        let receives = &mut [Incoming { from: peer, bytes: self.output }];
        run.exchange(&[Outgoing { to: peer, bytes: self.input }], receives)
    }
}
