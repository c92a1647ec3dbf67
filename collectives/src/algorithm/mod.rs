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
//!
//! Each collective's file has its direct form, in which every member exchanges with every other.
//! The other algorithms have a file each (`recursive_doubling`, `ring`, `two_level`), and `choice`
//! has the table that says which is taken.

mod all_gather;
mod all_reduce;
mod all_to_all;
pub(crate) mod all_to_all_v;
mod barrier;
mod broadcast;
mod choice;
mod chunk;
mod collective_permute;
mod cost;
mod gather;
mod hosts;
mod operand;
mod recursive_doubling;
mod reduce;
mod reduce_scatter;
mod ring;
mod scatter;
mod send;
mod send_recv;
mod two_level;

pub(crate) use all_gather::AllGather;
pub(crate) use all_reduce::AllReduce;
pub(crate) use all_to_all::AllToAll;
pub(crate) use all_to_all_v::{AllToAllV, Counts, Disagreement, Layout};
pub(crate) use barrier::Barrier;
pub(crate) use broadcast::Broadcast;
pub use choice::{Algorithm, InvalidAlgorithm, Policy};
pub(crate) use collective_permute::CollectivePermute;
pub use cost::Cost;
pub(crate) use gather::Gather;
pub(crate) use hosts::Hosts;
pub(crate) use operand::Operand;
pub(crate) use reduce::Reduce;
pub(crate) use reduce_scatter::ReduceScatter;
pub(crate) use scatter::Scatter;
pub(crate) use send::{End, Send};
pub(crate) use send_recv::SendRecv;

use std::ops::Range;

use smallvec::SmallVec;

use crate::descriptor::Signature;
use crate::element::{ElementType, Operator};
use crate::ids::Member;
use crate::reduce::Source;
use crate::transport::shm::{Exposure, Opened, Presence, SharedGroup};
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

    /// The bytes from which, taken of all members, every member's result follows. A member on
    /// whose operand nothing depends contributes nothing.
    fn contribution(&self) -> &[u8];

    /// Bytes that the member at `position` contributes, by what this member knows: all who agree
    /// on the signature say the same. `None` where nobody else can know.
    fn contribution_bytes(&self, _position: usize) -> Option<usize> {
        Some(self.contribution().len())
    }

    /// How long the contribution stays as it is in [`Collective::share`].
    fn exposure(&self, _members: usize) -> Exposure {
        Exposure::Lasting
    }

    /// Writes the output, given everyone's contribution in the order of the group.
    ///
    /// This member's own is not among them, its place is empty: it may lie in the output, and is
    /// read where it lies. Only what the result takes is read of the others'.
    ///
    /// # Errors
    /// When a contribution is not what its owner said ([`TransportError::Peer`]).
    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError>;

    /// Writes the output by exchanging data with the other members.
    ///
    /// # Errors
    /// As [`Transport::exchange`].
    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError>;

    /// Writes the output given what the members show each other in shared memory.
    ///
    /// # Errors
    /// As [`Transport::exchange`].
    fn share(
        &mut self,
        place: Place<'_>,
        presence: &mut Presence<'_>,
        opened: &Opened,
    ) -> Result<(), TransportError> {
        let expected = |position| self.contribution_bytes(position);
        let contributions = contributions(expected, place, presence, opened)?;
        self.combine(place, &contributions)?;
        presence.part()
    }
}

/// The others' contributions as they are shown, and this member's place empty.
fn contributions<'b>(
    expected_bytes: impl Fn(usize) -> Option<usize>,
    place: Place<'_>,
    presence: &Presence<'b>,
    opened: &'b Opened,
) -> Result<SmallVec<[&'b [u8]; 8]>, TransportError> {
    let mut contributions = SmallVec::new();
    for position in 0..place.members.len() {
        contributions.push(if position == place.position {
            &[][..]
        } else {
            presence.opened(opened, position, expected_bytes(position))?
        });
    }
    Ok(contributions)
}

/// Where a member is among those of its group.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) position: usize,
    /// The members in their order.
    pub(crate) members: &'a [Member],
}

impl<'a> Place<'a> {
    /// The other members with their positions.
    pub(crate) fn peers(self) -> impl Iterator<Item = (usize, Member)> + use<'a> {
        let Self { position, members } = self;
        members.iter().copied().enumerate().filter(move |(index, _)| *index != position)
    }
}

/// The exchanges of one collective, as its algorithm sees them.
pub(crate) struct Run<'a> {
    pub(crate) transport: &'a dyn Transport,
    /// The place of this member in the group.
    pub(crate) position: usize,
    /// How to exchange what does not fit into the opening.
    pub(crate) algorithm: Algorithm,
    /// Where the members are.
    pub(crate) hosts: &'a Hosts,
    /// The memory that the members of this host share, for two levels.
    pub(crate) nearby: Option<&'a SharedGroup>,
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
        self.place().peers()
    }

    /// Where this member is.
    pub(crate) fn place(&self) -> Place<'a> {
        Place { position: self.position, members: self.members() }
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

    /// One step that folds: sends `sends`, receives as much as `output` has from every other
    /// member, and folds all of it in the order of the group into `output`, `own` at this
    /// member's turn.
    pub(crate) fn exchange_fold(
        &mut self,
        element: ElementType,
        operator: &Operator<'_>,
        sends: &[Outgoing<'_>],
        own: Source<'_>,
        output: &mut [u8],
    ) -> Result<(), TransportError> {
        let sources: Vec<Member> = self.peers().map(|(_, member)| member).collect();
        let position = self.position;
        let length_bytes = output.len();
        let mut fold = |offset: usize, views: &[&[u8]]| {
            let length = views.first().map_or(length_bytes, |view| view.len());
            let range = offset..offset + length;
            let mut inputs: Vec<Source<'_>> = views.iter().copied().map(Some).collect();
            inputs.insert(position, own.map(|own| &own[range.clone()]));
            crate::reduce::fold(element, operator, &inputs, &mut output[range]);
        };
        self.exchange_views(sends, &sources, length_bytes, &mut fold)
    }

    /// One step that shows what it receives, `length_bytes` from each of `sources`, as
    /// [`Transport::exchange_views`] does; once, without a view, if there are no sources.
    pub(crate) fn exchange_views(
        &mut self,
        sends: &[Outgoing<'_>],
        sources: &[Member],
        length_bytes: usize,
        read: &mut dyn FnMut(usize, &[&[u8]]),
    ) -> Result<(), TransportError> {
        if !sources.is_empty() {
            let step = self.next_step();
            return self.transport.exchange_views(&step, sends, sources, length_bytes, read);
        }
        if sends.is_empty() {
            self.pass();
        } else {
            self.exchange(sends, &mut [])?;
        }
        read(0, &[]);
        Ok(())
    }

    /// A step of the others in which this member does nothing.
    pub(crate) fn pass(&mut self) {
        self.step.index += 1;
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
    let size = element.size_bytes();
    if size == 0 {
        Err("an element has no bytes".to_owned())
    } else if element.elements_in(length_bytes) * size == length_bytes {
        Ok(())
    } else {
        Err(format!("the operand's {length_bytes} bytes are no whole {element} elements"))
    }
}

/// What does not fit when a type cannot be reduced like this.
fn expect_operator(element: ElementType, operator: &Operator<'_>) -> Result<(), String> {
    if operator.supports(element) {
        Ok(())
    } else {
        Err(format!("{element} elements have no {}", operator.name()))
    }
}

/// What does not fit when an operand makes no equal pieces for all members.
fn expect_pieces(
    element: ElementType,
    length_bytes: usize,
    members: &[Member],
) -> Result<(), String> {
    let elements = length_bytes / element.size_bytes();
    let count = members.len();
    if elements.is_multiple_of(count) {
        Ok(())
    } else {
        Err(format!("{elements} elements make no {count} equal pieces"))
    }
}

/// What does not fit when a root is none of the members.
fn expect_root(root: usize, members: &[Member]) -> Result<(), String> {
    if root < members.len() {
        Ok(())
    } else {
        Err(format!("root {root} in a group of {}", members.len()))
    }
}

/// What does not fit when a group is no pair.
fn expect_pair(members: &[Member]) -> Result<(), String> {
    match members.len() {
        2 => Ok(()),
        count => Err(format!("a pair sends and receives, and the group has {count} members")),
    }
}

/// A position as a signature has it.
fn root_number(root: usize) -> Option<u32> {
    // Members are numbered by u32, so only a wrong root has no number, which the check finds.
    Some(u32::try_from(root).unwrap_or(u32::MAX))
}

/// The operands of a fold: the others' contributions, and `own` in its turn.
fn sources<'b>(
    place: Place<'_>,
    contributions: &[&'b [u8]],
    own: Source<'b>,
) -> SmallVec<[Source<'b>; 8]> {
    let mut sources: SmallVec<_> = contributions.iter().copied().map(Some).collect();
    if let Some(source) = sources.get_mut(place.position) {
        *source = own;
    }
    sources
}

/// Where piece `index` of `count` equal ones of `length_bytes` lies.
pub(crate) fn piece_range(length_bytes: usize, index: usize, count: usize) -> Range<usize> {
    let length = length_bytes.checked_div(count).unwrap_or(0);
    index * length..(index + 1) * length
}

/// Piece `index` of `bytes` cut into `count` equal ones.
fn piece(bytes: &[u8], index: usize, count: usize) -> &[u8] {
    &bytes[piece_range(bytes.len(), index, count)]
}

/// All pieces of an operand; those of a small group need no allocation.
type Pieces<'a> = SmallVec<[&'a mut [u8]; 8]>;

/// All of `count` equal pieces of `bytes`.
fn pieces_mut(mut bytes: &mut [u8], count: usize) -> Pieces<'_> {
    let length = bytes.len() / count;
    let mut pieces = Pieces::with_capacity(count);
    for _ in 0..count {
        let (piece, rest) = bytes.split_at_mut(length);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// What to send to whom: what `bytes` are for each peer's position.
fn outgoing<'b>(run: &Run<'_>, bytes: impl Fn(usize) -> &'b [u8]) -> Vec<Outgoing<'b>> {
    run.peers().map(|(index, to)| Outgoing { to, bytes: bytes(index) }).collect()
}

/// What to receive from whom: the piece at each peer's position.
fn incoming<'b>(run: &Run<'_>, pieces: Pieces<'b>) -> Vec<Incoming<'b>> {
    let members = run.members().iter();
    let others = members.zip(pieces).enumerate().filter(|(index, _)| *index != run.position);
    others.map(|(_, (&from, bytes))| Incoming { from, bytes }).collect()
}
