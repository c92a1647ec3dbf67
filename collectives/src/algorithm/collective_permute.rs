//! Collective-permute: along each source-target pair, the source's operand becomes the target's
//! output. Who is nobody's target gets zeros.
//!
//! 1 step: the operand from each source to its target. A source sends S.

use std::collections::HashSet;

use super::{Collective, Place, Run, expect_elements, expect_length};
use crate::descriptor::{CollectiveKind, Signature, pairs_digest};
use crate::element::ElementType;
use crate::ids::Member;
use crate::transport::{Incoming, Outgoing, TransportError};

pub(crate) struct CollectivePermute<'a> {
    pub(crate) element: ElementType,
    /// Source and target, both of the group; each at most once as either.
    pub(crate) pairs: &'a [(Member, Member)],
    /// The member whose operands these are.
    pub(crate) me: Member,
    pub(crate) input: &'a [u8],
    pub(crate) output: &'a mut [u8],
}

impl CollectivePermute<'_> {
    fn source(&self) -> Option<Member> {
        self.pairs.iter().find(|(_, target)| *target == self.me).map(|(source, _)| *source)
    }

    fn target(&self) -> Option<Member> {
        self.pairs.iter().find(|(source, _)| *source == self.me).map(|(_, target)| *target)
    }
}

impl Collective for CollectivePermute<'_> {
    fn signature(&self) -> Signature {
        Signature {
            pairs: Some(pairs_digest(self.pairs)),
            ..Signature::new(CollectiveKind::CollectivePermute, self.element, self.input.len())
        }
    }

    fn check(&self, members: &[Member]) -> Result<(), String> {
        expect_elements(self.element, self.input.len())?;
        expect_length("output", self.output.len(), Some(self.input.len()))?;
        let mut sources = HashSet::new();
        let mut targets = HashSet::new();
        for &(source, target) in self.pairs {
            let stranger = [source, target].into_iter().find(|member| !members.contains(member));
            if let Some(stranger) = stranger {
                return Err(format!("{stranger} of a source-target pair is not of the group"));
            }
            if !sources.insert(source) {
                return Err(format!("{source} is the source of two pairs"));
            }
            if !targets.insert(target) {
                return Err(format!("{target} is the target of two pairs"));
            }
        }
        Ok(())
    }

    fn contribution(&self) -> &[u8] {
        self.input
    }

    fn combine(&mut self, place: Place<'_>, contributions: &[&[u8]]) -> Result<(), TransportError> {
        let source = self.source();
        let mut operands = place.members.iter().zip(contributions);
        match operands.find(|(member, _)| Some(**member) == source) {
            Some((source, _)) if *source == self.me => self.output.copy_from_slice(self.input),
            Some((_, operand)) => self.output.copy_from_slice(operand),
            None => self.output.fill(0),
        }
        Ok(())
    }

    fn exchange(&mut self, run: &mut Run<'_>) -> Result<(), TransportError> {
        let (source, target) = (self.source(), self.target());
        match source {
            None => self.output.fill(0),
            Some(source) if source == self.me => self.output.copy_from_slice(self.input),
            Some(_) => {}
        }
        let others = |member: &Member| *member != self.me;
        let sends = target.filter(others).map(|to| Outgoing { to, bytes: self.input });
        let mut receives = source.filter(others).map(|from| Incoming { from, bytes: self.output });
        run.exchange(sends.as_slice(), receives.as_mut_slice())
    }
}
