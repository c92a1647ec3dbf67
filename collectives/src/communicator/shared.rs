//! One member's side of one collective in memory that the group shares: agreement and operands
//! are there in one round.

use super::error::CollectiveCause;
use super::head;
use super::participation::{Failure, Participation};
use crate::algorithm::Collective;
use crate::descriptor::Descriptor;
use crate::transport::TransportError;
use crate::transport::shm::{Opened, Presence, SharedGroup};

impl Participation<'_> {
    /// Agrees with the others and completes the collective.
    pub(super) fn meet(
        &mut self,
        shared: &SharedGroup,
        collective: &mut dyn Collective,
    ) -> Result<(), Failure> {
        let presence = shared.enter(self.run.transport, self.run.step, self.run.members());
        let mut presence = presence.map_err(|error| self.failure(error))?;
        let head = head::encode(self.descriptor);
        let exposure = collective.exposure(self.run.members().len());
        let mut opened = Opened::default();
        match presence.open(&head, collective.contribution(), exposure, &mut opened) {
            Ok(true) => {}
            Ok(false) => {
                if let Some(disagreement) = self.disagreement(&presence) {
                    return Err(disagreement);
                }
            }
            Err(error @ TransportError::Deadline { .. }) => {
                // Of those who are here, a disagreement says more than that others are late.
                return Err(self.disagreement(&presence).unwrap_or_else(|| self.failure(error)));
            }
            Err(error) => return Err(self.failure(error)),
        }
        let shared = collective.share(&self.run, &mut presence, &opened);
        let is_brief = shared.is_ok() && presence.is_brief();
        drop(presence);
        self.is_brief = is_brief;
        shared.map_err(|error| self.failure(error))
    }

    /// What the members that are here do not agree on.
    fn disagreement(&self, presence: &Presence<'_>) -> Option<Failure> {
        let mut calls: Vec<(_, Descriptor)> = Vec::new();
        for (place, head) in presence.heads() {
            let Some(member) = self.run.members().get(place) else { continue };
            match head::decode(&head, self.descriptor.operation) {
                Ok(descriptor) => calls.push((self.participant(*member), descriptor)),
                Err(error) => return Some(self.breach(*member, error.to_string())),
            }
        }
        CollectiveCause::mismatch(&calls).map(|cause| self.noticed(cause))
    }
}
