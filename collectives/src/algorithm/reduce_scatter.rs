//! Reduce-scatter: member j gets the fold of everyone's jth piece, in the order of the group.
//!
//! 1 step: piece j to member j, who folds. Sends (P-1)/P S, scratch (P-1)/P S. The output is S/P.

use super::{Collective, Run, expect_elements, expect_length, expect_reduction, piece};
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::{ElementType, Reduction};
use crate::ids::Member;
use crate::reduce::fold;
use crate::transport::{Outgoing, TransportError};

pub(crate) struct ReduceScatter<'a> {
    pub(crate) element: ElementType,
    pub(crate) reduction: Reduction,
    pub(crate) input: &'a [u8],
    pub(crate) output: &'a mut [u8],
}

impl Collective for ReduceScatter<'_> {
    fn signature(&self) -> Signature {
        Signature {
            reduction: Some(self.reduction),
            ..Signature::new(CollectiveKind::ReduceScatter, self.element, self.input.len())
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_reduction(self.element, self.reduction)?;
        expect_elements(self.element, self.output.len())?;
        expect_length("input", self.input.len(), self.output.len().checked_mul(members.len()))
    }

    fn contribution(&self) -> &[u8] {
        self.input
    }

    fn combine(&mut self, run: &Run<'_>, contributions: &[&[u8]]) {
        let count = contributions.len();
        let pieces: Vec<_> =
            contributions.iter().map(|input| piece(input, run.position, count)).collect();
        fold(self.element, self.reduction, &pieces, self.output);
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let count = run.members().len();
        let sends: Vec<_> = run
            .peers()
            .map(|(index, to)| Outgoing { to, bytes: piece(self.input, index, count) })
            .collect();
        let own = piece(self.input, run.position, count);
        run.exchange_fold(self.element, self.reduction, &sends, own, self.output)
    }
}
