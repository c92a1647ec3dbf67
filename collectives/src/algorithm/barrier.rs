//! Barrier: nobody leaves before everybody has entered.
//!
//! 0 steps: a member that holds everyone's opening knows that everyone has entered.

use super::{Collective, Place, Run};
use crate::descriptor::{CollectiveKind, Signature};
use crate::ids::Member;
use crate::transport::TransportError;

pub(crate) struct Barrier;

impl Collective for Barrier {
    fn signature(&self) -> Signature {
        Signature {
            kind: CollectiveKind::Barrier,
            reduction: None,
            element: None,
            count: 0,
            root: None,
            pairs: None,
        }
    }

    fn check(&self, _members: &[Member]) -> Result<(), String> {
        Ok(())
    }

    fn contribution(&self) -> &[u8] {
        &[]
    }

    fn combine(
        &mut self,
        _place: Place<'_>,
        _contributions: &[&[u8]],
    ) -> Result<(), TransportError> {
        Ok(())
    }

    fn exchange(&mut self, _run: &mut Run<'_>) -> Result<(), TransportError> {
        Ok(())
    }
}
