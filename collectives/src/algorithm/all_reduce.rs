//! All-reduce: every member gets the fold of all operands, in the order of the group.
//!
//! | operands | steps | sends | scratch |
//! |---|---|---|---|
//! | in the opening | 0 | 0 | 0 |
//! | S up to 4 KiB, or 1 MiB of P = 2 | 1: the operand to everyone | (P-1) S | (P-1) S |
//! | larger | 2: chunk j to its owner, who folds; the folded to everyone | 2 (P-1)/P S | (P-1)/P S |
//!
//! So it is done directly; `recursive_doubling`, `ring` and `two_level` have other ways.
//!
//! In shared memory everyone folds all operands where they lie, or, if they are more than 32 KiB
//! together and P > 2, its own chunk of them, which all others then read: 2 rounds.
//!
//! P = 4, two steps; `a1` is chunk 1 of member a, `*` folded:
//! ```text
//! member      a            b            c            d
//! start       a0 a1 a2 a3  b0 b1 b2 b3  c0 c1 c2 c3  d0 d1 d2 d3
//! step 1      *0           *1           *2           *3
//! step 2      *0 *1 *2 *3  *0 *1 *2 *3  *0 *1 *2 *3  *0 *1 *2 *3
//! ```

use smallvec::SmallVec;

use super::chunk::Chunks;
use super::two_level::Near;
use super::{
    Algorithm, Collective, Operand, Place, Run, expect_elements, expect_length, expect_operator,
    incoming, outgoing, recursive_doubling, ring, sources, two_level,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::{ElementType, Operator};
use crate::ids::Member;
use crate::reduce::{Partial, Source, fold, fold_shared};
use crate::stream::Copying;
use crate::transport::TransportError;
use crate::transport::shm::{Exposure, Opened, Presence};

/// The longest operand that more than two send to everyone whole: up to here a step costs more than
/// bytes.
const ONE_STEP_BYTES: usize = 4096;

/// The longest that two do, for whom chunks are as many bytes in twice the steps: up to here a step
/// costs more than what two spare, half of the folding and, in place, a copy of the operand.
const PAIR_STEP_BYTES: usize = 1 << 20;

/// Whether everyone gets the operand whole.
pub(super) fn is_one_step(operand_bytes: usize, members: usize) -> bool {
    operand_bytes <= if members == 2 { PAIR_STEP_BYTES } else { ONE_STEP_BYTES }
}

/// The most bytes of all operands in shared memory together that everyone folds if there are more
/// than two: reading them all again for every member soon costs more than a round.
const WHOLE_BYTES: usize = 32 << 10;

pub(crate) struct AllReduce<'a> {
    pub(crate) element: ElementType,
    pub(crate) operator: Operator<'a>,
    /// In place: the whole output.
    pub(crate) input: Operand<'a>,
    pub(crate) output: &'a mut [u8],
}

impl Collective for AllReduce<'_> {
    #[inline(always)]
    fn signature(&self) -> Signature {
        Signature {
            reduction: Some(self.operator.name()),
            ..Signature::new(CollectiveKind::AllReduce, self.element, self.input.len())
        }
    }

    #[inline(always)]
    fn check(&self, _members: &[Member]) -> Result<(), String> {
        expect_operator(self.element, &self.operator)?;
        expect_elements(self.element, self.input.len())?;
        expect_length("output", self.output.len(), Some(self.input.len()))
    }

    #[inline(always)]
    fn contribution(&self) -> &[u8] {
        self.input.bytes(self.output)
    }

    #[inline(always)]
    fn exposure(&self, members: usize) -> Exposure {
        if self.is_folded_whole(members) { self.input.exposure() } else { Exposure::Passing }
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        self.fold_whole(&sources(place, contributions, self.input.source()));
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let Self { element, operator, ref input, ref mut output } = *self;
        let own = input.source();
        if run.is_alone() {
            return run.exchange_fold(element, &operator, &[], own, output);
        }
        if let Some(partial) = Partial::new(element, &operator) {
            let chunks = Chunks::new(element, input.len(), run.members().len());
            let chunk = chunks.range(run.position);
            let operand = input.bytes(output);
            match run.algorithm {
                Algorithm::RecursiveDoubling => {
                    let folded = recursive_doubling::all_reduce(run, &partial, operand)?;
                    output.copy_from_slice(&folded);
                    return Ok(());
                }
                Algorithm::Ring => {
                    let folded = ring::reduce_scatter(run, &partial, &chunks, operand)?;
                    output[chunk].copy_from_slice(&folded);
                    return ring::all_gather(run, &chunks, output);
                }
                Algorithm::TwoLevel => {
                    let mut near = Near::open(run, operand)?;
                    let folded =
                        two_level::reduce_scatter(run, &mut near, &partial, &chunks, operand)?;
                    return two_level::all_gather(run, near, &chunks, &folded, output);
                }
                Algorithm::Direct | Algorithm::Shared => {}
            }
        }
        if is_one_step(input.len(), run.members().len()) {
            // In place the operand goes out while its memory is written.
            let copy = own.is_none().then(|| output.to_vec());
            let sent = copy.as_deref().or(own).unwrap_or_default();
            return run.exchange_fold(element, &operator, &outgoing(run, |_| sent), own, output);
        }
        let count = run.members().len();
        let chunks = Chunks::new(element, input.len(), count);
        let mut pieces = chunks.split(output, count);
        let folded = std::mem::take(&mut pieces[run.position]);
        match input {
            Operand::Apart(input) => {
                let own = Some(&input[chunks.range(run.position)]);
                let sends = outgoing(run, |index| &input[chunks.range(index)]);
                run.exchange_fold(element, &operator, &sends, own, folded)?;
            }
            Operand::Within(_) => {
                let sends = outgoing(run, |index| &*pieces[index]);
                run.exchange_fold(element, &operator, &sends, None, folded)?;
            }
        }
        let folded = &*folded;
        let sends = outgoing(run, |_| folded);
        let mut receives = incoming(run, pieces);
        run.exchange(&sends, &mut receives)
    }

    #[inline(always)]
    fn share(
        &mut self,
        place: Place<'_>,
        presence: &mut Presence<'_>,
        opened: &Opened,
    ) -> Result<(), TransportError> {
        let count = place.members.len();
        let length = self.input.len();
        if self.is_folded_whole(count) {
            let mut operands: SmallVec<[Source<'_>; 8]> = SmallVec::new();
            for index in 0..count {
                operands.push(match index == place.position {
                    true => self.input.source(),
                    false => Some(presence.opened(opened, index, Some(length))?),
                });
            }
            self.fold_whole(&operands);
            return presence.part();
        }
        let chunks = Chunks::new(self.element, length, count);
        let chunk = chunks.range(place.position);
        let mut pieces = chunks.split(self.output, count);
        let folded = std::mem::take(&mut pieces[place.position]);
        // In place the others' operands change beside this chunk.
        let inputs = (0..count).map(|index| {
            if index == place.position {
                return Ok(self.input.source().map(|own| &own[chunk.clone()]));
            }
            presence.opened_part(opened, index, length, chunk.clone()).map(Some)
        });
        let inputs: SmallVec<[_; 8]> = inputs.collect::<Result<_, TransportError>>()?;
        fold(self.element, &self.operator, &inputs, folded);
        presence.show(folded)?;
        let copying = Copying::of(length.saturating_mul(count));
        for (index, piece) in pieces.into_iter().enumerate() {
            if index != place.position {
                copying.copy(piece, presence.shown(index, piece.len())?);
            }
        }
        drop(copying);
        presence.part()
    }
}

impl AllReduce<'_> {
    /// Folds the operands of all into the output, as all do.
    fn fold_whole(&mut self, operands: &[Source<'_>]) {
        let written_bytes = self.output.len().saturating_mul(operands.len());
        fold_shared(self.element, &self.operator, operands, self.output, written_bytes);
    }

    /// Whether everyone folds all of the operands in shared memory: the same for all members,
    /// which may differ in whether theirs lie in the output.
    fn is_folded_whole(&self, members: usize) -> bool {
        members <= 2 || self.input.len().saturating_mul(members) <= WHOLE_BYTES
    }
}
