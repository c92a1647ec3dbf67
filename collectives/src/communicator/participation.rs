//! One member's side of one collective: agreement first, then the data.

use std::time::Duration;

use super::error::{CollectiveCause, CollectiveError, Participant};
use super::wire::{self, INLINE_BYTES, Opening};
use crate::algorithm::{Collective, Place, Run};
use crate::descriptor::Descriptor;
use crate::ids::{Member, Rank};
use crate::transport::{Incoming, Outgoing, TransportError};

/// One member's side of one collective.
pub(super) struct Participation<'a> {
    pub(super) descriptor: &'a Descriptor,
    pub(super) timeout: Duration,
    pub(super) run: Run<'a>,
}

/// Whether `collective` can be run by `me` at this place.
///
/// # Errors
/// What does not fit, to follow "cannot take part: ".
#[inline(always)]
pub(super) fn check(
    collective: &(impl Collective + ?Sized),
    me: Member,
    place: Place<'_>,
) -> Result<(), String> {
    if place.members.get(place.position) == Some(&me) {
        collective.check(place.members)
    } else {
        Err("the group was made by another member's communicator".to_owned())
    }
}

/// How a collective failed here.
pub(super) enum Failure {
    /// Another member noticed first, and all others learn it from there.
    Adopted(CollectiveError),
    /// This member noticed, and tells the others.
    Noticed(CollectiveError),
}

impl Participation<'_> {
    pub(super) fn complete(&mut self, collective: &mut dyn Collective) -> Result<(), Failure> {
        if let Err(detail) = check(collective, self.me(), self.run.place()) {
            return Err(self.misused(detail));
        }
        if self.run.is_alone() {
            return collective.exchange(&mut self.run).map_err(|error| self.failure(error));
        }
        let openings = self.agree(collective)?;
        let result = match self.inline(collective, &openings) {
            Some(contributions) => collective.combine(self.run.place(), &contributions),
            None => collective.exchange(&mut self.run),
        };
        result.map_err(|error| self.failure(error))
    }

    /// Everyone's contribution, this member's left out, if all of them travelled in the openings.
    fn inline<'b>(
        &self,
        collective: &dyn Collective,
        openings: &'b [Opening],
    ) -> Option<Vec<&'b [u8]>> {
        let contributions = openings.iter().enumerate().map(|(position, opening)| {
            let length = collective.contribution_bytes(position)?;
            let own = position == self.run.position;
            (length <= INLINE_BYTES).then(|| opening.inline(if own { 0 } else { length }))
        });
        contributions.collect()
    }

    /// Exchanges openings with everyone; returns them in the order of the group if all agree.
    fn agree(&mut self, collective: &dyn Collective) -> Result<Vec<Opening>, Failure> {
        let position = self.run.position;
        let members = self.run.members();
        let own = Opening::new(self.descriptor, collective.contribution())
            .map_err(|error| self.breach(self.me(), error.to_string()))?;
        let mut openings = vec![Opening::empty(); members.len()];
        let sends: Vec<_> =
            self.run.peers().map(|(_, to)| Outgoing { to, bytes: own.bytes() }).collect();
        let mut receives: Vec<_> = members
            .iter()
            .zip(&mut openings)
            .enumerate()
            .filter(|(index, _)| *index != position)
            .map(|(_, (&from, opening))| Incoming { from, bytes: opening.bytes_mut() })
            .collect();
        let exchanged = self.run.exchange(&sends, &mut receives);
        let pending = match &exchanged {
            Ok(()) => &[][..],
            Err(TransportError::Deadline { pending }) => pending,
            Err(error) => return Err(self.failure(error.clone())),
        };
        openings[position] = own;

        let mut calls = Vec::with_capacity(members.len());
        for (&member, opening) in members.iter().zip(&openings) {
            if pending.contains(&member) {
                continue;
            }
            let descriptor = opening.descriptor();
            let descriptor = descriptor.map_err(|error| self.breach(member, error.to_string()))?;
            calls.push((self.participant(member), descriptor));
        }
        // Of those who are here, a disagreement says more than that others are late.
        if let Some(cause) = CollectiveCause::mismatch(&calls) {
            return Err(self.noticed(cause));
        }
        exchanged.map_err(|error| self.failure(error))?;
        Ok(openings)
    }

    /// What it means that this member's call does not fit.
    pub(super) fn misused(&self, detail: String) -> Failure {
        let by = self.participant(self.me());
        self.noticed(CollectiveCause::Usage { by, detail })
    }

    /// What a failed exchange means for the collective.
    pub(super) fn failure(&self, error: TransportError) -> Failure {
        match error {
            TransportError::Aborted { from, notice } => match wire::decode_notice(&notice) {
                Ok((descriptor, cause)) => {
                    let descriptor = descriptor.unwrap_or(*self.descriptor);
                    Failure::Adopted(self.error(descriptor, cause))
                }
                Err(error) => {
                    let culprit = self.run.members().iter().copied();
                    let mut culprit = culprit.filter(|&member| self.rank_of(member) == from);
                    let peer = culprit.next().unwrap_or(self.me());
                    self.breach(peer, error.to_string())
                }
            },
            TransportError::Cancelled => {
                let by = self.participant(self.me());
                self.noticed(CollectiveCause::Cancelled { by })
            }
            TransportError::Deadline { pending } => {
                let missing = pending.iter().map(|&member| self.participant(member)).collect();
                self.noticed(CollectiveCause::Late { missing, timeout: self.timeout })
            }
            TransportError::Peer { peer, detail } => self.breach(peer, detail),
            TransportError::RankFailed(failure) => {
                self.noticed(CollectiveCause::RankFailed(failure))
            }
        }
    }

    pub(super) fn breach(&self, peer: Member, detail: String) -> Failure {
        let (by, peer) = (self.participant(self.me()), self.participant(peer));
        self.noticed(CollectiveCause::Transport { by, peer, detail })
    }

    pub(super) fn noticed(&self, cause: CollectiveCause) -> Failure {
        let descriptor = match &cause {
            CollectiveCause::Mismatch { sides } => sides.first().map(|side| side.descriptor),
            _ => None,
        };
        Failure::Noticed(self.error(descriptor.unwrap_or(*self.descriptor), cause))
    }

    fn error(&self, descriptor: Descriptor, cause: CollectiveCause) -> CollectiveError {
        let group = self.run.members().to_vec();
        CollectiveError { descriptor: Box::new(descriptor), group, cause }
    }

    pub(super) fn me(&self) -> Member {
        self.run.step.operation.me
    }

    pub(super) fn participant(&self, member: Member) -> Participant {
        Participant { rank: self.rank_of(member), member }
    }

    /// The rank of a member of the group: `Communicator::group` has checked that there is one.
    fn rank_of(&self, member: Member) -> Rank {
        self.run.transport.rank_of(member).unwrap_or(Rank(u32::MAX))
    }
}
