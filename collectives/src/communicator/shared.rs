//! One member's side of one collective in memory that the group shares: agreement and operands
//! are there in one round.
//!
//! A short collective takes a fraction of a microsecond here. So what it goes through is compiled
//! for each kind, and what only a failure needs is made when there is one.

use std::time::Duration;

use super::error::{CollectiveCause, CollectiveError};
use super::head;
use super::participation::{Failure, Participation, check};
use super::{Call, Communicator};
use crate::algorithm::{Collective, Place};
use crate::descriptor::Descriptor;
use crate::transport::shm::{Head, Opened, SharedGroup};
use crate::transport::{Step, TICK, Transport, TransportError};

/// Why a collective ended without a result.
enum Ended {
    /// This member's call does not fit.
    Misused(String),
    /// The members that were here showed these heads, by place, which differ if there is no error
    /// besides.
    Heads(Vec<(usize, Head)>, Option<TransportError>),
    Failed(TransportError),
}

impl From<TransportError> for Ended {
    fn from(error: TransportError) -> Self {
        Self::Failed(error)
    }
}

impl Communicator {
    /// Runs `collective` in memory.
    pub(super) fn meet<C: Collective>(
        &self,
        shared: &SharedGroup,
        sequence: u64,
        call: &Call<'_>,
        collective: &mut C,
    ) -> Result<(), CollectiveError> {
        let (transport, recorder) = (&*self.shared.transport, &*self.shared.recorder);
        // The clock is read when the operand is on its way to the others: until then none is late.
        let (descriptor, step) = self.begin(sequence, call, collective, Duration::MAX);
        let place = Place { position: call.group.position, members: &call.group.members };
        let record = || {
            // It is not held up by a clock that takes a tenth of its time.
            let start = transport.last_tick();
            (start, recorder.begin(start, self.member(), place.members.len(), &descriptor))
        };
        let mut recorded = None;
        let begin = || {
            let (start, _) = recorded.insert(record());
            start.saturating_add(TICK).saturating_add(self.timeout(call))
        };
        let met = match check(collective, self.member(), place) {
            Ok(()) => {
                let head = head::encode(&descriptor);
                meet(shared, transport, step, place, &head, collective, begin)
            }
            Err(detail) => Err(Ended::Misused(detail)),
        };
        let (start, ticket) = recorded.unwrap_or_else(record);
        let (result, is_brief) = match met {
            Ok(is_brief) => (Ok(()), is_brief),
            Err(ended) => {
                let failure = self.participation(call, &descriptor, step).ended(ended);
                (Err(self.fail(&step.operation, failure)), false)
            }
        };
        let end = if is_brief { start } else { transport.last_tick() };
        recorder.end(end, ticket, result.is_ok());
        result
    }
}

/// Agrees with the others and completes the collective; says whether that took much less than a
/// tick of the clock. `begin` says when it is late.
#[inline(always)]
fn meet<C: Collective>(
    shared: &SharedGroup,
    transport: &dyn Transport,
    step: Step<'_>,
    place: Place<'_>,
    head: &Head,
    collective: &mut C,
    begin: impl FnOnce() -> Duration,
) -> Result<bool, Ended> {
    let mut presence = shared.enter(transport, step, place.members)?;
    let exposure = collective.exposure(place.members.len());
    let mut opened = Opened::default();
    match presence.open(head, collective.contribution(), exposure, &mut opened, begin) {
        Ok(true) => {}
        Ok(false) => return Err(Ended::Heads(presence.heads().collect(), None)),
        Err(error @ TransportError::Deadline { .. }) => {
            return Err(Ended::Heads(presence.heads().collect(), Some(error)));
        }
        Err(error) => return Err(Ended::Failed(error)),
    }
    collective.share(place, &mut presence, &opened)?;
    Ok(presence.is_brief())
}

impl Participation<'_> {
    /// What it means for the collective how it ended.
    #[cold]
    fn ended(&self, ended: Ended) -> Failure {
        match ended {
            Ended::Misused(detail) => self.misused(detail),
            // Of those who are here, a disagreement says more than that others are late.
            Ended::Heads(heads, error) => {
                self.disagreement(&heads).unwrap_or_else(|| match error {
                    Some(error) => self.failure(error),
                    None => self.breach(self.me(), "a head changed as it was read".to_owned()),
                })
            }
            Ended::Failed(error) => self.failure(error),
        }
    }

    /// What the members with these heads do not agree on.
    fn disagreement(&self, heads: &[(usize, Head)]) -> Option<Failure> {
        let mut calls: Vec<(_, Descriptor)> = Vec::new();
        for (place, head) in heads {
            let Some(member) = self.run.members().get(*place) else { continue };
            match head::decode(head, self.descriptor.operation) {
                Ok(descriptor) => calls.push((self.participant(*member), descriptor)),
                Err(error) => return Some(self.breach(*member, error.to_string())),
            }
        }
        CollectiveCause::mismatch(&calls).map(|cause| self.noticed(cause))
    }
}
