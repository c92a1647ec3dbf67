//! Reduce-scatter: member j gets the fold of everyone's jth piece, in the order of the group.
//!
//! 1 step: piece j to member j, who folds. Sends (P-1)/P S, scratch (P-1)/P S. So it is done
//! directly; `ring` and `two_level` have other ways. The output is S/P; in place it is piece j of
//! the operand, whose other pieces stay as they were.

use smallvec::SmallVec;

use super::chunk::Chunks;
use super::two_level::Near;
use super::{
    Algorithm, Collective, Operand, Place, Run, expect_elements, expect_length, expect_operator,
    expect_pieces, outgoing, piece, pieces_mut, ring, sources, two_level,
};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::{ElementType, Operator};
use crate::ids::Member;
use crate::reduce::{Partial, fold};
use crate::transport::TransportError;
use crate::transport::shm::Exposure;

pub(crate) struct ReduceScatter<'a> {
    pub(crate) element: ElementType,
    pub(crate) operator: Operator<'a>,
    /// In place: the whole output.
    pub(crate) input: Operand<'a>,
    pub(crate) output: &'a mut [u8],
}

impl Collective for ReduceScatter<'_> {
    fn signature(&self) -> Signature {
        Signature {
            reduction: Some(self.operator.name()),
            ..Signature::new(CollectiveKind::ReduceScatter, self.element, self.input.len())
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_operator(self.element, &self.operator)?;
        expect_elements(self.element, self.input.len())?;
        expect_pieces(self.element, self.input.len(), members)?;
        match self.input {
            Operand::Apart(input) => {
                expect_length("output", self.output.len(), Some(input.len() / members.len()))
            }
            Operand::Within(_) => Ok(()),
        }
    }

    fn contribution(&self) -> &[u8] {
        self.input.bytes(self.output)
    }

    fn exposure(&self, _members: usize) -> Exposure {
        self.input.exposure()
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        let count = contributions.len();
        let position = place.position;
        let pieces: SmallVec<[_; 8]> =
            contributions.iter().map(|input| piece(input, position, count)).collect();
        let Self { element, operator, ref input, ref mut output } = *self;
        match input {
            Operand::Apart(input) => {
                let own = Some(piece(input, position, count));
                fold(element, &operator, &sources(place, &pieces, own), output);
            }
            Operand::Within(_) => {
                let result = &mut *pieces_mut(output, count).swap_remove(position);
                fold(element, &operator, &sources(place, &pieces, None), result);
            }
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let count = run.members().len();
        let position = run.position;
        let Self { element, operator, ref input, ref mut output } = *self;
        if let Some(partial) = Partial::new(element, &operator) {
            let chunks = Chunks::new(element, input.len(), count);
            let operand = input.bytes(output);
            let folded = match run.algorithm {
                Algorithm::Ring => Some(ring::reduce_scatter(run, &partial, &chunks, operand)?),
                Algorithm::TwoLevel => {
                    let mut near = Near::open(run, operand)?;
                    Some(two_level::reduce_scatter(run, &mut near, &partial, &chunks, operand)?)
                }
                Algorithm::Direct | Algorithm::RecursiveDoubling | Algorithm::Shared => None,
            };
            if let Some(folded) = folded {
                let place =
                    if input.is_within() { chunks.range(position) } else { 0..folded.len() };
                output[place].copy_from_slice(&folded);
                return Ok(());
            }
        }
        match input {
            Operand::Apart(input) => {
                let sends = outgoing(run, |index| piece(input, index, count));
                let own = Some(piece(input, position, count));
                run.exchange_fold(element, &operator, &sends, own, output)
            }
            Operand::Within(_) => {
                let mut pieces = pieces_mut(output, count);
                let result = std::mem::take(&mut pieces[position]);
                let sends = outgoing(run, |index| &*pieces[index]);
                run.exchange_fold(element, &operator, &sends, None, result)
            }
        }
    }
}
