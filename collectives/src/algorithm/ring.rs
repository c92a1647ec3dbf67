//! The ring: every member sends to the next and receives from the one before.
//!
//! | | steps | sends | scratch |
//! |---|---|---|---|
//! | reduce_scatter | P-1 | (P-1)/P S | 2 S/P |
//! | all_gather, of S from everyone | P-1 | (P-1) S | 0 |
//! | all_reduce: the first, then the second on its chunks | 2 (P-1) | 2 (P-1)/P S | 2 S/P |
//!
//! As many bytes as directly, and every member has but two neighbours: where members of one host
//! follow each other, a host sends no more than one member does. Floats of 8 and 16 bits travel as
//! f32 while they are folded.
//!
//! Chunk j sets out from the member behind its owner and is folded once round, what comes with what
//! is there: `(a[j+1] op a[j+2]) … op a[j]`, places counted along the ring. A step folds each piece
//! while the next is under way.

use super::chunk::Chunks;
use super::{Incoming, Outgoing, Run};
use crate::ids::Member;
use crate::reduce::Partial;
use crate::transport::TransportError;

/// The ring as one of its members sees it.
struct Ring {
    /// Positions along it.
    order: Vec<usize>,
    /// Where this member is.
    place: usize,
}

impl Ring {
    fn of(run: &Run<'_>) -> Self {
        let order: Vec<usize> = run.hosts.order().collect();
        let place = order.iter().position(|position| *position == run.position).unwrap_or(0);
        Self { order, place }
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    /// The position so many places before this member, less than a round.
    fn before(&self, places: usize) -> usize {
        self.order[(self.place + self.len() - places) % self.len()]
    }

    /// The member to send to, and the one to receive from.
    fn neighbours(&self, run: &Run<'_>) -> (Member, Member) {
        let next = self.order[(self.place + 1) % self.len()];
        (run.members()[next], run.members()[self.before(1 % self.len())])
    }
}

/// The fold of this member's chunk of all operands.
pub(super) fn reduce_scatter(
    run: &mut Run<'_>,
    partial: &Partial,
    chunks: &Chunks,
    operand: &[u8],
) -> Result<Vec<u8>, TransportError> {
    let ring = Ring::of(run);
    let count = ring.len();
    let (to, from) = ring.neighbours(run);
    let chunk = |places: usize| &operand[chunks.range(ring.before(places % count))];
    let mut passed = partial.begin(chunk(1));
    let mut folded = Vec::new();
    for places in 2..=count {
        let own = chunk(places);
        folded.clear();
        folded.resize(partial.carried_bytes(own.len()), 0);
        let length_bytes = folded.len();
        let sends = [Outgoing { to, bytes: &passed }];
        run.exchange_views(&sends, &[from], length_bytes, &mut |offset, views| {
            let [view] = views else { return };
            let range = offset..offset + view.len();
            let start = partial.operand_bytes(range.start);
            let operand = &own[start..start + partial.operand_bytes(view.len())];
            partial.append(Some(*view), operand, &mut folded[range]);
        })?;
        std::mem::swap(&mut passed, &mut folded);
    }
    let mut output = vec![0; chunk(0).len()];
    partial.finish(passed, count, &mut output);
    Ok(output)
}

/// Fills `output`, which has this member's chunk.
pub(super) fn all_gather(
    run: &mut Run<'_>,
    chunks: &Chunks,
    output: &mut [u8],
) -> Result<(), TransportError> {
    let ring = Ring::of(run);
    let (to, from) = ring.neighbours(run);
    let mut pieces = chunks.split(output, ring.len());
    for places in 1..ring.len() {
        let [sent, received] = [ring.before(places - 1), ring.before(places)];
        // A place and the one before it are two.
        let Ok([sent, received]) = pieces.get_disjoint_mut([sent, received]) else { break };
        let sends = [Outgoing { to, bytes: sent }];
        run.exchange(&sends, &mut [Incoming { from, bytes: received }])?;
    }
    Ok(())
}
