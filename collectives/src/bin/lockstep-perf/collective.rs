//! The collectives as a benchmark sees them: operands of a size, the calls out of place and in
//! place, and the share of the bytes that crosses the bus.
//!
//! A size is that of the larger side, as nccl-tests has it; counts are those of one rank's part.

use std::ops::Range;

use lockstep_collectives::{
    Call, CollectiveError, CollectiveKind, Communicator, ElementType, Group, Member, Reduction,
};

/// What can be measured.
pub(crate) const COLLECTIVES: [CollectiveKind; 13] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll,
    CollectiveKind::AllToAllV,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
    CollectiveKind::Gather,
    CollectiveKind::Scatter,
    CollectiveKind::CollectivePermute,
    CollectiveKind::Send,
    CollectiveKind::SendRecv,
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

/// The operands at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The size: bytes of the larger side.
    pub(crate) size_bytes: usize,
    /// Elements of one rank's part.
    pub(crate) count: usize,
    /// How many ranks there are.
    pub(crate) ranks: usize,
}

/// Where the result is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    OutOfPlace,
    InPlace,
}

/// One rank's buffer in place, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buffered {
    /// How many it has.
    pub(crate) length: usize,
    /// Where the operand is; elsewhere is room.
    pub(crate) input: Range<usize>,
    /// What becomes the result; elsewhere it stays as it is.
    pub(crate) result: Range<usize>,
}

impl Placement {
    pub(crate) const BOTH: [Self; 2] = [Self::OutOfPlace, Self::InPlace];

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
        let reduces = matches!(
            self.collective,
            CollectiveKind::AllReduce | CollectiveKind::Reduce | CollectiveKind::ReduceScatter
        );
        reduces.then_some(self.reduction)
    }

    /// The root, where there is one.
    pub(crate) fn root(&self) -> Option<u32> {
        let rooted = matches!(
            self.collective,
            CollectiveKind::Broadcast
                | CollectiveKind::Gather
                | CollectiveKind::Reduce
                | CollectiveKind::Scatter
        );
        rooted.then_some(self.root)
    }

    /// Whether ranks work in pairs.
    pub(crate) fn is_of_pairs(&self) -> bool {
        matches!(self.collective, CollectiveKind::Send | CollectiveKind::SendRecv)
    }

    /// Whether there is a form in place.
    pub(crate) fn has(&self, placement: Placement) -> bool {
        let apart_only = matches!(
            self.collective,
            CollectiveKind::AllToAllV | CollectiveKind::Barrier | CollectiveKind::Send
        );
        placement == Placement::OutOfPlace || !apart_only
    }

    /// Bytes that cross the bus, for each byte of the size, among `ranks` ranks.
    pub(crate) fn bus_factor(&self, ranks: usize) -> f64 {
        let others = (ranks as f64 - 1.0) / ranks as f64;
        match self.collective {
            CollectiveKind::AllReduce => 2.0 * others,
            CollectiveKind::AllGather
            | CollectiveKind::AllToAll
            | CollectiveKind::AllToAllV
            | CollectiveKind::Gather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::Scatter => others,
            CollectiveKind::Broadcast
            | CollectiveKind::CollectivePermute
            | CollectiveKind::Reduce
            | CollectiveKind::Send
            | CollectiveKind::SendRecv => 1.0,
            CollectiveKind::Barrier => 0.0,
        }
    }

    /// The operands of `size_bytes` or, where that is no whole number of elements on each of
    /// `ranks`, the next smaller ones. `ranks` is at least 1.
    pub(crate) fn extent(&self, size_bytes: usize, ranks: usize) -> Extent {
        let parts = match self.collective {
            CollectiveKind::AllGather
            | CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::Scatter => ranks,
            CollectiveKind::AllToAllV => weights(ranks),
            _ => 1,
        };
        let elements = size_bytes / self.element.size_bytes();
        let elements = if self.element().is_some() { elements } else { 0 };
        let count = elements / parts;
        Extent { size_bytes: count * parts * self.element.size_bytes(), count, ranks }
    }

    /// Elements of `rank`'s operand out of place.
    pub(crate) fn input_count(&self, extent: Extent, rank: usize) -> usize {
        let Extent { count, ranks, .. } = extent;
        match self.collective {
            CollectiveKind::AllToAll | CollectiveKind::ReduceScatter => count * ranks,
            CollectiveKind::AllToAllV => count * weights(ranks),
            CollectiveKind::Scatter if self.is_root(rank) => count * ranks,
            CollectiveKind::Broadcast if self.is_root(rank) => count,
            CollectiveKind::Scatter | CollectiveKind::Broadcast => 0,
            CollectiveKind::Send if !rank.is_multiple_of(2) => 0,
            _ => count,
        }
    }

    /// Elements of `rank`'s result out of place.
    pub(crate) fn output_count(&self, extent: Extent, rank: usize) -> usize {
        let Extent { count, ranks, .. } = extent;
        match self.collective {
            CollectiveKind::AllGather | CollectiveKind::AllToAll => count * ranks,
            CollectiveKind::AllToAllV => count * weights(ranks),
            CollectiveKind::Gather if self.is_root(rank) => count * ranks,
            CollectiveKind::Reduce if self.is_root(rank) => count,
            CollectiveKind::Gather | CollectiveKind::Reduce => 0,
            CollectiveKind::Send if rank.is_multiple_of(2) => 0,
            _ => count,
        }
    }

    /// `rank`'s buffer in place.
    pub(crate) fn buffered(&self, extent: Extent, rank: usize) -> Buffered {
        let (input, output) = (self.input_count(extent, rank), self.output_count(extent, rank));
        let piece = rank * extent.count..(rank + 1) * extent.count;
        let (length, input, result) = match self.collective {
            CollectiveKind::AllGather => (output, piece, 0..output),
            CollectiveKind::Gather if self.is_root(rank) => (output, piece, 0..output),
            CollectiveKind::ReduceScatter => (input, 0..input, piece),
            CollectiveKind::Scatter if self.is_root(rank) => (input, 0..input, piece),
            _ => (input.max(output), 0..input, 0..output),
        };
        Buffered { length, input, result }
    }

    fn is_root(&self, rank: usize) -> bool {
        rank == self.root as usize
    }

    /// Runs the collective once out of place.
    pub(crate) fn run(
        &self,
        communicator: &Communicator,
        call: &Call<'_>,
        extent: Extent,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let Self { collective, element, reduction, root } = *self;
        let root = root as usize;
        let position = call.group.position();
        match collective {
            CollectiveKind::AllReduce => {
                communicator.all_reduce(call, element, reduction, input, output)
            }
            CollectiveKind::AllGather => communicator.all_gather(call, element, input, output),
            CollectiveKind::ReduceScatter => {
                communicator.reduce_scatter(call, element, reduction, input, output)
            }
            CollectiveKind::AllToAll => communicator.all_to_all(call, element, input, output),
            CollectiveKind::AllToAllV => {
                let of = |peer| extent.count * weight(position, peer, extent.ranks);
                // What goes there and what comes from there is as much.
                let counts: Vec<usize> = (0..extent.ranks).map(of).collect();
                communicator.all_to_all_v(call, element, &counts, input, &counts, output)
            }
            CollectiveKind::Broadcast => communicator.broadcast(call, element, root, input, output),
            CollectiveKind::Reduce => {
                communicator.reduce(call, element, reduction, root, input, output)
            }
            CollectiveKind::Gather => communicator.gather(call, element, root, input, output),
            CollectiveKind::Scatter => communicator.scatter(call, element, root, input, output),
            CollectiveKind::CollectivePermute => {
                let pairs = ring(call.group);
                communicator.collective_permute(call, element, &pairs, input, output)
            }
            CollectiveKind::Send if position == 0 => communicator.send(call, element, input),
            CollectiveKind::Send => communicator.recv(call, element, output),
            CollectiveKind::SendRecv => communicator.send_recv(call, element, input, output),
            CollectiveKind::Barrier => communicator.barrier(call),
        }
    }

    /// Runs the collective once in place; the ones that have no such form do nothing.
    pub(crate) fn run_in_place(
        &self,
        communicator: &Communicator,
        call: &Call<'_>,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let Self { collective, element, reduction, root } = *self;
        let root = root as usize;
        match collective {
            CollectiveKind::AllReduce => {
                communicator.all_reduce_in_place(call, element, reduction, buffer)
            }
            CollectiveKind::AllGather => communicator.all_gather_in_place(call, element, buffer),
            CollectiveKind::ReduceScatter => {
                communicator.reduce_scatter_in_place(call, element, reduction, buffer)
            }
            CollectiveKind::AllToAll => communicator.all_to_all_in_place(call, element, buffer),
            CollectiveKind::Broadcast => {
                communicator.broadcast_in_place(call, element, root, buffer)
            }
            CollectiveKind::Reduce => {
                communicator.reduce_in_place(call, element, reduction, root, buffer)
            }
            CollectiveKind::Gather => communicator.gather_in_place(call, element, root, buffer),
            CollectiveKind::Scatter => communicator.scatter_in_place(call, element, root, buffer),
            CollectiveKind::CollectivePermute => {
                let pairs = ring(call.group);
                communicator.collective_permute_in_place(call, element, &pairs, buffer)
            }
            CollectiveKind::SendRecv => communicator.send_recv_in_place(call, element, buffer),
            CollectiveKind::AllToAllV | CollectiveKind::Barrier | CollectiveKind::Send => Ok(()),
        }
    }
}

/// What an all_to_all_v moves between two ranks, either way, as a multiple of the least.
pub(crate) fn weight(from: usize, to: usize, ranks: usize) -> usize {
    (from + to) % ranks + 1
}

/// What a rank of an all_to_all_v sends in all, as a multiple of the least.
fn weights(ranks: usize) -> usize {
    ranks * (ranks + 1) / 2
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
        for (collective, count, inputs, outputs) in [
            (CollectiveKind::AllReduce, 25, [25, 25], [25, 25]),
            (CollectiveKind::AllGather, 8, [8, 8], [24, 24]),
            (CollectiveKind::ReduceScatter, 8, [24, 24], [8, 8]),
            (CollectiveKind::AllToAll, 8, [24, 24], [24, 24]),
            (CollectiveKind::AllToAllV, 4, [24, 24], [24, 24]),
            (CollectiveKind::Broadcast, 25, [25, 0], [25, 25]),
            (CollectiveKind::Reduce, 25, [25, 25], [25, 0]),
            (CollectiveKind::Gather, 8, [8, 8], [24, 0]),
            (CollectiveKind::Scatter, 8, [24, 0], [8, 8]),
            (CollectiveKind::CollectivePermute, 25, [25, 25], [25, 25]),
            (CollectiveKind::Send, 25, [25, 0], [0, 25]),
            (CollectiveKind::SendRecv, 25, [25, 25], [25, 25]),
            (CollectiveKind::Barrier, 0, [0, 0], [0, 0]),
        ] {
            let terms = terms(collective, ElementType::F32);
            let extent = terms.extent(103, 3);
            assert_eq!(extent.count, count, "{collective}");
            assert_eq!([0, 1].map(|rank| terms.input_count(extent, rank)), inputs, "{collective}");
            assert_eq!([0, 1].map(|rank| terms.output_count(extent, rank)), outputs);
            let larger = [inputs, outputs].concat().into_iter().max().unwrap();
            assert_eq!(extent.size_bytes, 4 * larger, "{collective}");
            if terms.has(Placement::InPlace) {
                for rank in 0..2 {
                    let Buffered { length, input, result } = terms.buffered(extent, rank);
                    assert_eq!(input.len(), inputs[rank], "{collective}");
                    assert_eq!(result.len(), outputs[rank], "{collective}");
                    assert_eq!(length, inputs[rank].max(outputs[rank]), "{collective}");
                }
            }
        }
        assert_eq!(terms(CollectiveKind::AllGather, ElementType::F64).extent(23, 3).size_bytes, 0);
    }

    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        let factors =
            |ranks| COLLECTIVES.map(|kind| terms(kind, ElementType::F32).bus_factor(ranks));
        let h = 0.5;
        assert_eq!(factors(2), [1.0, h, h, h, h, 1.0, 1.0, h, h, 1.0, 1.0, 1.0, 0.0]);
        let q = 0.75;
        assert_eq!(factors(4), [1.5, q, q, q, q, 1.0, 1.0, q, q, 1.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn what_a_rank_sends_another_is_what_the_other_expects() {
        for ranks in 1..6 {
            for rank in 0..ranks {
                let row = (0..ranks).map(|peer| weight(rank, peer, ranks));
                let column = (0..ranks).map(|peer| weight(peer, rank, ranks));
                assert!(row.clone().eq(column));
                assert_eq!(row.sum::<usize>(), weights(ranks));
            }
        }
    }
}
