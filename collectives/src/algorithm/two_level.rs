//! Two levels: the members of one host first among themselves, then hosts with hosts.
//!
//! H hosts; chunk j belongs to member j. On every host one member carries a chunk for all of them:
//! on the owner's host the owner, elsewhere each member in turn, so that all have their share of
//! what crosses between hosts, however many members each host has.
//!
//! | step | what | between hosts, of H hosts with as many members each |
//! |---|---|---|
//! | 1 | on each host: the members' chunk j to its carrier, who folds | 0 |
//! | 2 | carriers to the owner, who folds | (H-1)/P S |
//! | 3 | the owner to the carriers | (H-1)/P S |
//! | 4 | on each host: carriers to everyone | 0 |
//!
//! reduce_scatter takes the first two steps, all_gather the last two (with S for S/P), all_reduce
//! all of them. A host sends 2 (H-1)/H S, where directly it would send as much for each member.
//! Where the members of a host share memory, steps 1 and 4 read it, a copy of the operands: who
//! gives the operation up leaves nothing behind that could change. Scratch H/P S or, without
//! shared memory, 2 S. Floats of 8 and 16 bits travel as f32 while they are folded.
//!
//! The members of a host are folded in the order of the group, and then the hosts in the order of
//! their first members. So the bits depend on who is where, and are the same on all.

use super::chunk::Chunks;
use super::{Incoming, Outgoing, Run};
use crate::ids::Member;
use crate::reduce::{Partial, Source};
use crate::transport::TransportError;
use crate::transport::shm::{Exposure, Head, Opened, Presence};

/// How a member reaches those on its host.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(super) enum Near<'a> {
    /// In memory.
    Shared(Presence<'a>, Opened),
    /// As it does all others.
    Apart,
}

impl<'a> Near<'a> {
    /// Shows `operand` to the members of this host if they share memory.
    pub(super) fn open(run: &Run<'a>, operand: &[u8]) -> Result<Self, TransportError> {
        let Some(group) = run.nearby else { return Ok(Self::Apart) };
        let (host, _) = run.hosts.of(run.position);
        let mut presence = group.enter(run.transport, run.step, &host.members)?;
        // What all agree on has been compared, so there is nothing left to say.
        let mut opened = Opened::default();
        presence.open(&Head::default(), operand, Exposure::Changing, &mut opened, || {
            run.step.deadline
        })?;
        Ok(Self::Shared(presence, opened))
    }
}

/// The fold of this member's chunk of all operands: steps 1 and 2.
pub(super) fn reduce_scatter(
    run: &mut Run<'_>,
    near: &mut Near<'_>,
    partial: &Partial,
    chunks: &Chunks,
    operand: &[u8],
) -> Result<Vec<u8>, TransportError> {
    let (hosts, members, me) = (run.hosts, run.members(), run.position);
    let share = hosts.share(me);
    let mut carried = match near {
        Near::Shared(presence, opened) => {
            run.pass();
            fold_shared(run, presence, opened, partial, chunks, operand)?
        }
        Near::Apart => fold_apart(run, partial, chunks, operand)?,
    };
    let mut own: &mut [u8] = &mut [];
    let mut sends = Vec::with_capacity(share.len());
    let mut rest = &mut carried[..];
    for chunk in share {
        let length = partial.carried_bytes(chunks.range(chunk).len());
        let (bytes, behind) = rest.split_at_mut(length);
        rest = behind;
        if chunk == me {
            own = bytes;
        } else {
            sends.push(Outgoing { to: members[chunk], bytes });
        }
    }
    let place = hosts.index_of(me);
    let others = (0..hosts.count()).filter(|host| *host != place);
    let sources: Vec<Member> = others.map(|host| members[hosts.carrier(host, me)]).collect();
    let length_bytes = own.len();
    run.exchange_views(&sends, &sources, length_bytes, &mut |offset, views| {
        let length = views.first().map_or(length_bytes, |view| view.len());
        let mut inputs: Vec<Source<'_>> = views.iter().copied().map(Some).collect();
        inputs.insert(place, None);
        partial.join(&inputs, &mut own[offset..offset + length]);
    })?;
    let mut folded = vec![0; chunks.range(me).len()];
    partial.finish(own.to_vec(), members.len(), &mut folded);
    Ok(folded)
}

/// Step 1 in memory: what the others show is folded where it lies.
fn fold_shared(
    run: &Run<'_>,
    presence: &Presence<'_>,
    opened: &Opened,
    partial: &Partial,
    chunks: &Chunks,
    operand: &[u8],
) -> Result<Vec<u8>, TransportError> {
    let (host, place) = run.hosts.of(run.position);
    let shown = |index| {
        if index == place {
            return Ok(operand);
        }
        presence.opened(opened, index, Some(operand.len()))
    };
    let operands = (0..host.members.len()).map(shown).collect::<Result<Vec<_>, _>>()?;
    let mut carried = Vec::new();
    for chunk in run.hosts.share(run.position) {
        let range = chunks.range(chunk);
        let start = carried.len();
        carried.resize(start + partial.carried_bytes(range.len()), 0);
        let pieces: Vec<&[u8]> = operands.iter().map(|operand| &operand[range.clone()]).collect();
        partial.gather(&pieces, &mut carried[start..]);
    }
    Ok(carried)
}

/// Step 1 over the transport: to every member of this host its share.
fn fold_apart(
    run: &mut Run<'_>,
    partial: &Partial,
    chunks: &Chunks,
    operand: &[u8],
) -> Result<Vec<u8>, TransportError> {
    let (host, place) = run.hosts.of(run.position);
    let mut shares: Vec<Vec<u8>> = host
        .positions
        .iter()
        .map(|position| {
            let share = run.hosts.share(*position).into_iter();
            share.map(|chunk| &operand[chunks.range(chunk)]).collect::<Vec<_>>().concat()
        })
        .collect();
    let own = std::mem::take(&mut shares[place]);
    let mut carried = vec![0; partial.carried_bytes(own.len())];
    let others = host.members.iter().zip(&shares).enumerate();
    let others = others.filter(|(index, _)| *index != place).map(|(_, other)| other);
    let sends: Vec<Outgoing<'_>> =
        others.clone().map(|(&to, bytes)| Outgoing { to, bytes }).collect();
    let sources: Vec<Member> = others.map(|(&from, _)| from).collect();
    run.exchange_views(&sends, &sources, own.len(), &mut |offset, views| {
        let length = views.first().map_or(own.len(), |view| view.len());
        let mut operands = views.to_vec();
        operands.insert(place, &own[offset..offset + length]);
        let start = partial.carried_bytes(offset);
        partial.gather(&operands, &mut carried[start..][..partial.carried_bytes(length)]);
    })?;
    Ok(carried)
}

/// Fills `output` with the chunks of all members, `own` the one of this: steps 3 and 4.
pub(super) fn all_gather(
    run: &mut Run<'_>,
    near: Near<'_>,
    chunks: &Chunks,
    own: &[u8],
    output: &mut [u8],
) -> Result<(), TransportError> {
    let (host, place) = run.hosts.of(run.position);
    let shares: Vec<Vec<usize>> =
        host.positions.iter().map(|position| run.hosts.share(*position)).collect();
    let length =
        |share: &[usize]| -> usize { share.iter().map(|chunk| chunks.range(*chunk).len()).sum() };
    match near {
        Near::Shared(mut presence, _) => {
            let mut received = vec![0; length(&shares[place])];
            receive(run, chunks, &shares[place], own, &mut received)?;
            run.pass();
            presence.show(&received)?;
            for (index, share) in shares.iter().enumerate() {
                unpack(presence.shown(index, length(share))?, chunks, share, output);
            }
            presence.part()
        }
        Near::Apart => {
            let mut gathered: Vec<Vec<u8>> =
                shares.iter().map(|share| vec![0; length(share)]).collect();
            let mut received = std::mem::take(&mut gathered[place]);
            receive(run, chunks, &shares[place], own, &mut received)?;
            let others = |index: usize| index != place;
            let sends = host.members.iter().enumerate().filter(|(index, _)| others(*index));
            let sends: Vec<Outgoing<'_>> =
                sends.map(|(_, &to)| Outgoing { to, bytes: &received }).collect();
            let mut receives: Vec<Incoming<'_>> = host
                .members
                .iter()
                .zip(&mut gathered)
                .enumerate()
                .filter(|(index, _)| others(*index))
                .map(|(_, (&from, bytes))| Incoming { from, bytes })
                .collect();
            run.exchange(&sends, &mut receives)?;
            gathered[place] = received;
            for (bytes, share) in gathered.iter().zip(&shares) {
                unpack(bytes, chunks, share, output);
            }
            Ok(())
        }
    }
}

/// Step 3: this member's chunk to those that carry it, and into `received` the ones it carries.
fn receive(
    run: &mut Run<'_>,
    chunks: &Chunks,
    share: &[usize],
    own: &[u8],
    mut received: &mut [u8],
) -> Result<(), TransportError> {
    let (hosts, members, me) = (run.hosts, run.members(), run.position);
    let carriers = (0..hosts.count()).map(|host| hosts.carrier(host, me));
    let carriers = carriers.filter(|carrier| *carrier != me);
    let sends: Vec<Outgoing<'_>> =
        carriers.map(|carrier| Outgoing { to: members[carrier], bytes: own }).collect();
    let mut receives = Vec::with_capacity(share.len());
    for &chunk in share {
        let (bytes, behind) = received.split_at_mut(chunks.range(chunk).len());
        received = behind;
        if chunk == me {
            bytes.copy_from_slice(own);
        } else {
            receives.push(Incoming { from: members[chunk], bytes });
        }
    }
    run.exchange(&sends, &mut receives)
}

/// Puts the chunks of a share where they belong.
fn unpack(mut bytes: &[u8], chunks: &Chunks, share: &[usize], output: &mut [u8]) {
    for &chunk in share {
        let place = &mut output[chunks.range(chunk)];
        let (piece, behind) = bytes.split_at(place.len());
        place.copy_from_slice(piece);
        bytes = behind;
    }
}
