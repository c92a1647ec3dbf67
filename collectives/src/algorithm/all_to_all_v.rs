//! All-to-all of pieces of any lengths: member i's jth piece becomes member j's ith.
//!
//! Two collectives, one after the other. [`Counts`] is an all-to-all in which every pair tells
//! each other what it sends, where that lies, and what it expects; so a disagreement is known on
//! both sides before a byte of output is written. [`AllToAllV`] then moves the pieces in 1 step.
//!
//! Sends 24 (P-1) and then what the counts say. Pieces without elements are not sent.

use std::ops::Range;

use super::{AllToAll, Collective, Place, Run, expect_length};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Incoming, Outgoing, TransportError};

/// What one member tells another, in elements: where in its input the other's piece begins, how
/// many it has, how many it expects.
pub(crate) type Told = [u64; 3];

/// The first part: everyone tells everyone what it sends and expects.
pub(crate) struct Counts<'a> {
    /// The type of the elements that the counts are of.
    pub(crate) element: ElementType,
    /// As bytes of [`Told`], one for each member.
    pub(crate) exchange: AllToAll<'a>,
    /// The counts of this member's input and output, with the bytes that these have.
    pub(crate) operands: [(&'a [usize], usize); 2],
}

/// Which bytes a member moves: of each member in their order, as the second part needs them.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Of this member's input, what goes there.
    sends: Vec<Range<usize>>,
    /// Of the output, what comes from there.
    receives: Vec<Range<usize>>,
    /// Of its input, what comes from there.
    sources: Vec<Range<usize>>,
}

/// Two members that do not mean the same number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disagreement {
    /// The sender's position.
    pub(crate) sender: usize,
    /// The receiver's position.
    pub(crate) receiver: usize,
    pub(crate) sent: u64,
    pub(crate) expected: u64,
}

/// The second part: the pieces.
pub(crate) struct AllToAllV<'a> {
    pub(crate) element: ElementType,
    pub(crate) layout: Layout,
    pub(crate) input: &'a [u8],
    pub(crate) output: &'a mut [u8],
}

/// The signature of both parts: what the members' counts are is told apart from it.
pub(crate) fn signature(element: ElementType) -> Signature {
    Signature::new(CollectiveKind::AllToAllV, element, 0)
}

impl Layout {
    /// What a member with these counts tells each of the others.
    pub(crate) fn tell(send_counts: &[usize], receive_counts: &[usize]) -> Vec<Told> {
        let mut start = 0_u64;
        let counts = send_counts.iter().zip(receive_counts);
        let told = counts.map(|(&send, &receive)| {
            let told = [start, send as u64, receive as u64];
            start = start.saturating_add(send as u64);
            told
        });
        told.collect()
    }

    /// The layout that follows from what all members `heard` of each other.
    ///
    /// # Errors
    /// The first disagreement of the member at `position` with another.
    pub(crate) fn of(
        element: ElementType,
        position: usize,
        told: &[Told],
        heard: &[Told],
    ) -> Result<Self, Disagreement> {
        let pairs = told.iter().zip(heard).enumerate();
        for (peer, (&[_, send, expect], &[_, sent, expected])) in pairs {
            if send != expected {
                let (sender, receiver) = (position, peer);
                return Err(Disagreement { sender, receiver, sent: send, expected });
            }
            if sent != expect {
                let (sender, receiver) = (peer, position);
                return Err(Disagreement { sender, receiver, sent, expected: expect });
            }
        }
        // What is agreed on fits this member's memory, except where a peer's offset is wrong: that
        // makes a range that no operand has.
        let size = element.size_bytes() as u64;
        let bytes = |elements: u64| usize::try_from(elements.saturating_mul(size));
        let bytes = |elements| bytes(elements).unwrap_or(usize::MAX);
        let range = |[start, count, _]: &Told| bytes(*start)..bytes(start.saturating_add(*count));
        let mut end = 0;
        let receives = told.iter().map(|[_, _, expect]| {
            let start = end;
            end = bytes(*expect).saturating_add(start);
            start..end
        });
        Ok(Self {
            receives: receives.collect(),
            sends: told.iter().map(range).collect(),
            sources: heard.iter().map(range).collect(),
        })
    }
}

impl Collective for Counts<'_> {
    fn signature(&self) -> Signature {
        signature(self.element)
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        for ((counts, length_bytes), what) in self.operands.iter().zip(["input", "output"]) {
            if counts.len() != members.len() {
                let (found, expected) = (counts.len(), members.len());
                return Err(format!("{found} counts of the {what} for {expected} members"));
            }
            let elements = counts.iter().try_fold(0, |sum: usize, count| sum.checked_add(*count));
            let expected =
                elements.and_then(|elements| elements.checked_mul(self.element.size_bytes()));
            expect_length(what, *length_bytes, expected)?;
        }
        Ok(())
    }

    fn contribution(&self) -> &[u8] {
        self.exchange.contribution()
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        self.exchange.combine(place, contributions)
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        self.exchange.exchange(run)
    }
}

impl Collective for AllToAllV<'_> {
    fn signature(&self) -> Signature {
        signature(self.element)
    }

    /// What the first part has checked holds.
    fn check(&self, _members: &[Member]) -> Result<(), String> {
        Ok(())
    }

    fn contribution(&self) -> &[u8] {
        self.input
    }

    fn contribution_bytes(&self, _position: usize) -> Option<usize> {
        None
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        let Layout { sends, receives, sources } = &self.layout;
        for (index, &peer) in place.members.iter().enumerate() {
            let output = &mut self.output[receives[index].clone()];
            if index == place.position {
                output.copy_from_slice(&self.input[sends[index].clone()]);
                continue;
            }
            // Its length is agreed on, so it is all there or not where its owner said.
            let piece = contributions[index].get(sources[index].clone());
            let piece = piece.filter(|piece| piece.len() == output.len()).ok_or_else(|| {
                let detail = "its operand has no piece where it said".to_owned();
                TransportError::Peer { peer, detail }
            })?;
            output.copy_from_slice(piece);
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let Layout { sends, receives, .. } = &self.layout;
        let own = run.position;
        let mut outgoing = Vec::new();
        for (index, to) in run.peers().filter(|(index, _)| !sends[*index].is_empty()) {
            outgoing.push(Outgoing { to, bytes: &self.input[sends[index].clone()] });
        }
        let mut incoming = Vec::new();
        let mut rest = &mut *self.output;
        for (index, (&from, receive)) in run.members().iter().zip(receives).enumerate() {
            let (bytes, after) = rest.split_at_mut(receive.len());
            rest = after;
            if index == own {
                bytes.copy_from_slice(&self.input[sends[index].clone()]);
            } else if !bytes.is_empty() {
                incoming.push(Incoming { from, bytes });
            }
        }
        run.exchange(&outgoing, &mut incoming)
    }
}
