//! The collectives as a benchmark sees them: operands of a size, the call, and the share of the
//! bytes that crosses the bus.
//!
//! A size is that of the larger side, as nccl-tests has it; counts are those of one rank's part.

use lockstep_collectives::{
    Call, CollectiveError, CollectiveKind, Communicator, ElementType, Group, Member, Reduction,
};

/// What can be measured.
pub(crate) const COLLECTIVES: [CollectiveKind; 7] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::CollectivePermute,
    CollectiveKind::Barrier,
];

/// What is called, whatever the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) collective: CollectiveKind,
    pub(crate) element: ElementType,
    /// Ignored where the collective has none.
    pub(crate) reduction: Reduction,
    /// Ignored where the collective has none.
    pub(crate) root: u32,
}

/// The operands of one rank at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The size: bytes of the larger side.
    pub(crate) size_bytes: usize,
    /// Elements of one rank's part.
    pub(crate) count: usize,
    pub(crate) input_bytes: usize,
    pub(crate) output_bytes: usize,
}

/// Where the result is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    InPlace,
    OutOfPlace,
}

impl Placement {
    /// The name for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in_place",
            Self::OutOfPlace => "out_of_place",
        }
    }
}

impl Terms {
    /// The type, where there are elements.
    pub(crate) fn element(&self) -> Option<ElementType> {
        (self.collective != CollectiveKind::Barrier).then_some(self.element)
    }

    /// The reduction, where there is one.
    pub(crate) fn reduction(&self) -> Option<Reduction> {
        let reduces =
            matches!(self.collective, CollectiveKind::AllReduce | CollectiveKind::ReduceScatter);
        reduces.then_some(self.reduction)
    }

    /// The root, where there is one.
    pub(crate) fn root(&self) -> Option<u32> {
        (self.collective == CollectiveKind::Broadcast).then_some(self.root)
    }

    pub(crate) fn placement(&self) -> Placement {
        match self.collective {
            CollectiveKind::Broadcast => Placement::InPlace,
            _ => Placement::OutOfPlace,
        }
    }

    /// Bytes that cross the bus, for each byte of the size, among `ranks` ranks.
    pub(crate) fn bus_factor(&self, ranks: usize) -> f64 {
        let others = (ranks as f64 - 1.0) / ranks as f64;
        match self.collective {
            CollectiveKind::AllReduce => 2.0 * others,
            CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll => others,
            CollectiveKind::Broadcast | CollectiveKind::CollectivePermute => 1.0,
            _ => 0.0,
        }
    }

    /// The operands of `size_bytes` or, where that is no whole number of elements on each of
    /// `ranks`, the next smaller ones. `ranks` is at least 1.
    pub(crate) fn extent(&self, size_bytes: usize, ranks: usize) -> Extent {
        let elements = size_bytes / self.element.size_bytes();
        let (count, inputs, outputs) = match self.collective {
            CollectiveKind::AllReduce
            | CollectiveKind::Broadcast
            | CollectiveKind::CollectivePermute => (elements, 1, 1),
            CollectiveKind::AllGather => (elements / ranks, 1, ranks),
            CollectiveKind::ReduceScatter => (elements / ranks, ranks, 1),
            CollectiveKind::AllToAll => (elements / ranks, ranks, ranks),
            _ => (0, 0, 0),
        };
        let part_bytes = count * self.element.size_bytes();
        let (input_bytes, output_bytes) = (part_bytes * inputs, part_bytes * outputs);
        let size_bytes = input_bytes.max(output_bytes);
        Extent { size_bytes, count, input_bytes, output_bytes }
    }

    /// Runs the collective once.
    pub(crate) fn run(
        &self,
        communicator: &Communicator,
        call: &Call<'_>,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let Self { collective, element, reduction, root } = *self;
        match collective {
            CollectiveKind::AllReduce => {
                communicator.all_reduce(call, element, reduction, input, output)
            }
            CollectiveKind::AllGather => communicator.all_gather(call, element, input, output),
            CollectiveKind::ReduceScatter => {
                communicator.reduce_scatter(call, element, reduction, input, output)
            }
            CollectiveKind::AllToAll => communicator.all_to_all(call, element, input, output),
            CollectiveKind::Broadcast => {
                communicator.broadcast_in_place(call, element, root as usize, output)
            }
            CollectiveKind::CollectivePermute => {
                let pairs = ring(call.group);
                communicator.collective_permute(call, element, &pairs, input, output)
            }
            _ => communicator.barrier(call),
        }
    }
}

/// From each member to the next, and from the last to the first.
fn ring(group: &Group) -> Vec<(Member, Member)> {
    let sources = group.members().iter().copied();
    let targets = sources.clone().cycle().skip(1);
    sources.zip(targets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(collective: CollectiveKind, element: ElementType) -> Terms {
        Terms { collective, element, reduction: Reduction::Sum, root: 0 }
    }

    #[test]
    fn a_size_is_that_of_the_larger_side_in_whole_elements_per_rank() {
        for (collective, count, input_bytes, output_bytes) in [
            (CollectiveKind::AllReduce, 25, 100, 100),
            (CollectiveKind::AllGather, 8, 32, 96),
            (CollectiveKind::ReduceScatter, 8, 96, 32),
            (CollectiveKind::AllToAll, 8, 96, 96),
            (CollectiveKind::Broadcast, 25, 100, 100),
            (CollectiveKind::CollectivePermute, 25, 100, 100),
            (CollectiveKind::Barrier, 0, 0, 0),
        ] {
            let size_bytes = input_bytes.max(output_bytes);
            let expected = Extent { size_bytes, count, input_bytes, output_bytes };
            assert_eq!(
                terms(collective, ElementType::F32).extent(103, 3),
                expected,
                "{collective}"
            );
        }
        assert_eq!(terms(CollectiveKind::AllGather, ElementType::F64).extent(23, 3).size_bytes, 0);
    }

    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        let factors =
            |ranks| COLLECTIVES.map(|kind| terms(kind, ElementType::F32).bus_factor(ranks));
        assert_eq!(factors(2), [1.0, 0.5, 0.5, 0.5, 1.0, 1.0, 0.0]);
        assert_eq!(factors(4), [1.5, 0.75, 0.75, 0.75, 1.0, 1.0, 0.0]);
        assert_eq!(factors(1), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    }
}
