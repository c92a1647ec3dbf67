//! The collectives, one a file: what each computes, and in which steps its bytes travel.
//!
//! In the files' headers P is the number of members, S the bytes of one member's operand; "sends"
//! counts the bytes that one member puts on the wire besides the opening. A *chunk* is the part of
//! an operand that one member owns.
//!
//! Every collective has two forms. When the operands fit into the opening
//! ([`Collective::contribution`]) there are no further steps: each member combines what it
//! received. Otherwise the steps of [`Collective::exchange`] follow. Both give the same bits, and
//! neither writes output before all members are known to agree.

mod all_gather;
mod all_reduce;
mod all_to_all;
mod barrier;
mod broadcast;
mod chunk;
mod collective_permute;
mod reduce_scatter;

pub(crate) use all_gather::AllGather;
pub(crate) use all_reduce::AllReduce;
pub(crate) use all_to_all::AllToAll;
pub(crate) use barrier::Barrier;
pub(crate) use broadcast::Broadcast;
pub(crate) use collective_permute::CollectivePermute;
pub(crate) use reduce_scatter::ReduceScatter;

use crate::descriptor::Signature;
use crate::element::{ElementType, Reduction};
use crate::ids::Member;
use crate::transport::{Incoming, Outgoing, Step, Transport, TransportError};

/// One collective with one member's operands.
pub(crate) trait Collective {
    /// What all members have to agree on.
    fn signature(&self) -> Signature;

    /// Whether the operands fit each other and the group.
    ///
    /// # Errors
    /// What does not fit, to follow "cannot take part: ".
    fn check(&self, members: &[Member]) -> Result<(), String>;

    /// The bytes from which, taken of all members, every member's result follows.
    fn contribution(&self) -> &[u8];

    /// Writes the output, given everyone's contribution in the order of the group.
    fn combine(&mut self, run: &Run<'_>, contributions: &[&[u8]]);

    /// Writes the output by exchanging data with the other members.
    ///
    /// # Errors
    /// As [`Transport::exchange`].
    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError>;
}

/// The exchanges of one collective, as its algorithm sees them.
pub(crate) struct Run<'a> {
    pub(crate) transport: &'a dyn Transport,
    /// The place of this member in the group.
    pub(crate) position: usize,
    /// The next exchange; every member counts the same.
    pub(crate) step: Step<'a>,
}

impl<'a> Run<'a> {
    /// The members in their order.
    pub(crate) fn members(&self) -> &'a [Member] {
        self.step.operation.members
    }

    /// Whether the group has no other member.
    pub(crate) fn is_alone(&self) -> bool {
        self.members().len() == 1
    }

    /// The other members with their positions.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (usize, Member)> + use<'a> {
        let position = self.position;
        self.members().iter().copied().enumerate().filter(move |(index, _)| *index != position)
    }

    /// One step: all these messages at once. A member alone in its group has none.
    pub(crate) fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError> {
        if self.is_alone() {
            return Ok(());
        }
        let step = self.next_step();
        self.transport.exchange(&step, sends, receives)
    }

    /// One step that folds: sends `sends`, receives as much as `own` from every other member, and
    /// folds all of it in the order of the group into `output`.
    pub(crate) fn exchange_fold(
        &mut self,
        element: ElementType,
        reduction: Reduction,
        sends: &[Outgoing<'_>],
        own: &[u8],
        output: &mut [u8],
    ) -> Result<(), TransportError> {
        let sources: Vec<Member> = self.peers().map(|(_, member)| member).collect();
        let position = self.position;
        let mut fold = |offset: usize, views: &[&[u8]]| {
            let length = views.first().map_or(own.len(), |view| view.len());
            let mut inputs = views.to_vec();
            inputs.insert(position, &own[offset..offset + length]);
            crate::reduce::fold(element, reduction, &inputs, &mut output[offset..offset + length]);
        };
        if self.is_alone() {
            fold(0, &[]);
            return Ok(());
        }
        let step = self.next_step();
        self.transport.exchange_views(&step, sends, &sources, own.len(), &mut fold)
    }

    fn next_step(&mut self) -> Step<'a> {
        let step = self.step;
        self.step.index += 1;
        step
    }
}

/// What does not fit when an operand has another length than it should.
fn expect_length(what: &str, found: usize, expected: Option<usize>) -> Result<(), String> {
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => {
            Err(format!("the {what} has {found} bytes where {expected} are expected"))
        }
        None => Err(format!("the {what} would have more bytes than there are addresses")),
    }
}

/// What does not fit when an operand is not whole elements.
fn expect_elements(element: ElementType, length_bytes: usize) -> Result<(), String> {
    match length_bytes.checked_rem(element.size_bytes()) {
        Some(0) => Ok(()),
        Some(_) => {
            Err(format!("the operand's {length_bytes} bytes are no whole {element} elements"))
        }
        None => Err("an element has no bytes".to_owned()),
    }
}

/// What does not fit when a type cannot be reduced like this.
fn expect_reduction(element: ElementType, reduction: Reduction) -> Result<(), String> {
    if element.supports(reduction) {
        Ok(())
    } else {
        Err(format!("{element} elements have no {reduction}"))
    }
}

/// Piece `index` of `bytes` cut into `count` equal ones.
fn piece(bytes: &[u8], index: usize, count: usize) -> &[u8] {
    let length = bytes.len() / count;
    &bytes[index * length..(index + 1) * length]
}

/// All of `count` equal pieces of `bytes`.
fn pieces_mut(mut bytes: &mut [u8], count: usize) -> Vec<&mut [u8]> {
    let length = bytes.len() / count;
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        let (piece, rest) = bytes.split_at_mut(length);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// What to receive from whom: the piece at each peer's position.
fn incoming<'b>(run: &Run<'_>, pieces: Vec<&'b mut [u8]>) -> Vec<Incoming<'b>> {
    let members = run.members().iter();
    let others = members.zip(pieces).enumerate().filter(|(index, _)| *index != run.position);
    others.map(|(_, (&from, bytes))| Incoming { from, bytes }).collect()
}
