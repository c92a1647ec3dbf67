//! Recursive doubling: after each step a member has what twice as many members put in.
//!
//! | | steps | sends | scratch |
//! |---|---|---|---|
//! | all_reduce, P a power of two | log2 P | S log2 P | 2 S |
//! | all_reduce, any other P, M the power below | log2 M + 2 | up to S (log2 M + 1) | 2 S |
//! | all_gather, of S from everyone | log2 P, rounded up | (P-1) S | 0 |
//!
//! The fewest steps there are, for operands so small that steps cost more than bytes. Floats of 8
//! and 16 bits travel as f32 while they are folded.
//!
//! Where P is no power of two, the first 2 (P-M) members pair up: the second of a pair gives its
//! operand to the first and gets the result from it. Partners fold what they have in the order of
//! the group, both in the same way, so all members get the same bits: of four
//! `(a0 op a1) op (a2 op a3)`.
//!
//! An all-gather works for every P by dissemination: with distance d = 1, 2, 4, … a member has the
//! operands of d members from its own on, gives as many to the one d before it and gets those of
//! the one d behind it.

use super::{Incoming, Outgoing, Run};
use crate::reduce::Partial;
use crate::transport::TransportError;

/// What a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Gives its operand to the position before it and gets the result from there.
    Given,
    /// Exchanges with others of a power of two, as the one at this place.
    Doubling { place: usize, takes: bool },
}

/// How a group of `count` members doubles.
#[derive(Clone, Copy, Debug)]
struct Doubling {
    /// The greatest power of two that is not greater than the number of members.
    power: usize,
    /// How many members are beyond it.
    pairs: usize,
}

impl Doubling {
    fn of(count: usize) -> Self {
        let power = 1 << count.max(1).ilog2();
        Self { power, pairs: count - power }
    }

    fn part(self, position: usize) -> Part {
        if position >= 2 * self.pairs {
            return Part::Doubling { place: position - self.pairs, takes: false };
        }
        match position % 2 {
            0 => Part::Doubling { place: position / 2, takes: true },
            _ => Part::Given,
        }
    }

    /// The position of the member at `place` of those that double.
    fn position(self, place: usize) -> usize {
        if place < self.pairs { 2 * place } else { place + self.pairs }
    }
}

/// Writes the fold of all operands, of which `operand` is this member's.
pub(super) fn all_reduce(
    run: &mut Run<'_>,
    partial: &Partial,
    operand: &[u8],
) -> Result<Vec<u8>, TransportError> {
    let members = run.members();
    let doubling = Doubling::of(members.len());
    let part = doubling.part(run.position);
    let mut folded = partial.begin(operand);
    let mut output = vec![0; operand.len()];
    match part {
        _ if doubling.pairs == 0 => {}
        Part::Given => {
            let to = members[run.position - 1];
            run.exchange(&[Outgoing { to, bytes: &folded }], &mut [])?;
        }
        Part::Doubling { takes: false, .. } => run.pass(),
        Part::Doubling { .. } => join(run, partial, run.position + 1, &[], &mut folded)?,
    }
    for distance in (0..doubling.power.ilog2()).map(|bit| 1 << bit) {
        match part {
            Part::Given => run.pass(),
            Part::Doubling { place, .. } => {
                let partner = doubling.position(place ^ distance);
                let sent = folded.clone();
                let sends = [Outgoing { to: members[partner], bytes: &sent }];
                join(run, partial, partner, &sends, &mut folded)?;
            }
        }
    }
    if part != Part::Given {
        partial.finish(folded, members.len(), &mut output);
    }
    match part {
        _ if doubling.pairs == 0 => {}
        Part::Given => {
            let from = members[run.position - 1];
            run.exchange(&[], &mut [Incoming { from, bytes: &mut output }])?;
        }
        Part::Doubling { takes: false, .. } => run.pass(),
        Part::Doubling { .. } => {
            let to = members[run.position + 1];
            run.exchange(&[Outgoing { to, bytes: &output }], &mut [])?;
        }
    }
    Ok(output)
}

/// Folds what the member at `partner` has with `folded`, in the order of the group.
///
/// One of the two lies where the result goes on either side, so both take the same way through the
/// fold, and bits that it leaves open, those of a NaN, are the same.
fn join(
    run: &mut Run<'_>,
    partial: &Partial,
    partner: usize,
    sends: &[Outgoing<'_>],
    folded: &mut [u8],
) -> Result<(), TransportError> {
    let from = run.members()[partner];
    let is_first = run.position < partner;
    run.exchange_views(sends, &[from], folded.len(), &mut |offset, views| {
        let [view] = views else { return };
        let inputs = if is_first { [None, Some(*view)] } else { [Some(*view), None] };
        partial.join(&inputs, &mut folded[offset..offset + view.len()]);
    })
}

/// Fills `output` with the operands of all members, given this member's at its place.
pub(super) fn all_gather(run: &mut Run<'_>, output: &mut [u8]) -> Result<(), TransportError> {
    let members = run.members();
    let (count, position) = (members.len(), run.position);
    let length = output.len() / count;
    // This member's operand comes first while others are gathered behind it.
    output.rotate_left(position * length);
    let mut distance = 1;
    while distance < count {
        let moved = distance.min(count - distance) * length;
        let (had, missing) = output.split_at_mut(distance * length);
        let to = members[(position + count - distance) % count];
        let from = members[(position + distance) % count];
        let sends = [Outgoing { to, bytes: &had[..moved] }];
        run.exchange(&sends, &mut [Incoming { from, bytes: &mut missing[..moved] }])?;
        distance *= 2;
    }
    output.rotate_right(position * length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_have_a_part_and_all_places_a_member() {
        for count in 1..=17 {
            let doubling = Doubling::of(count);
            assert!(doubling.power.is_power_of_two() && doubling.power <= count);
            assert!(count < 2 * doubling.power);
            let mut places = Vec::new();
            for position in 0..count {
                match doubling.part(position) {
                    Part::Doubling { place, takes } => {
                        assert_eq!(doubling.position(place), position, "of {count}");
                        let given =
                            position + 1 < count && doubling.part(position + 1) == Part::Given;
                        assert_eq!(takes, given, "{position} of {count}");
                        places.push(place);
                    }
                    Part::Given => assert_ne!(doubling.part(position - 1), Part::Given),
                }
            }
            // In the order of the group, so that what partners fold is.
            assert_eq!(places, (0..doubling.power).collect::<Vec<_>>(), "of {count}");
        }
    }
}
