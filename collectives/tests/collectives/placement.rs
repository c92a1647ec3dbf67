//! Operands in memory that the members share, in memory of the caller, and some here and some
//! there: what is computed does not depend on it, and nobody waits for a member that does not.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use lockstep_collectives::shared_memory::SharedBytes;
use lockstep_collectives::{Call, Communicator, ElementType, Group, Member, Reduction};

use crate::jobs::{Job, Quic, shm};
use crate::reference::{fold, operand};

/// Far above what the test takes, far below what it takes if one waits for another in vain.
const AMPLE: Duration = Duration::from_secs(60);

const MEMBERS: u32 = 3;
const SUM: Reduction = Reduction::Sum;
const F32: ElementType = ElementType::F32;

/// Elements on both sides of what is part of a post, is copied, and is folded in chunks.
const COUNTS: [usize; 8] = [12, 30, 2048, 2049, 2730, 2731, 16_384, 16_385];

enum Memory {
    Own(Vec<u8>),
    Shared(SharedBytes),
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// One member's memory for operands.
struct Placement<'a> {
    job: &'a Quic,
    rank: usize,
    shared: bool,
}

impl Placement<'_> {
    fn place(&self, bytes: &[u8]) -> Memory {
        if !self.shared {
            return Memory::Own(bytes.to_vec());
        }
        let mut memory = self.job.segments[self.rank].arena().allocate(bytes.len()).unwrap();
        memory.copy_from_slice(bytes);
        Memory::Shared(memory)
    }
}

/// Every collective whose operands may be lent, apart and in place.
fn every_collective(
    communicator: &Communicator,
    group: &Group,
    placement: &Placement<'_>,
    count: usize,
) {
    let call = &Call::on(group);
    let me = group.position();
    let places = 0..group.members().len();
    let operands: Vec<_> = (0..MEMBERS).map(|member| operand(F32, member, count)).collect();
    let sum = fold(F32, SUM, &operands);
    let all = operands.concat();
    let piece = |place: usize| {
        let bytes = F32.size_bytes() * (count / places.len());
        place * bytes..(place + 1) * bytes
    };
    let whole = F32.size_bytes() * (count / places.len()) * places.len();
    let input = placement.place(&operands[me]);

    let mut output = placement.place(&vec![0xa5; input.len()]);
    communicator.all_reduce(call, F32, SUM, &input, &mut output).unwrap();
    assert!(*output == *sum, "all_reduce of {count}");
    let mut buffer = placement.place(&input);
    communicator.all_reduce_in_place(call, F32, SUM, &mut buffer).unwrap();
    assert!(*buffer == *sum, "all_reduce of {count} in place");

    let mut output = placement.place(&vec![0xa5; all.len()]);
    communicator.all_gather(call, F32, &input, &mut output).unwrap();
    assert!(*output == *all, "all_gather of {count}");

    let mut output = placement.place(&vec![0xa5; whole]);
    communicator.all_to_all(call, F32, &input[..whole], &mut output).unwrap();
    let expected: Vec<_> =
        operands.iter().flat_map(|operand| &operand[piece(me)]).copied().collect();
    assert!(*output == *expected, "all_to_all of {count}");
    let mut output = placement.place(&vec![0xa5; piece(me).len()]);
    communicator.reduce_scatter(call, F32, SUM, &input[..whole], &mut output).unwrap();
    assert!(*output == sum[piece(me)], "reduce_scatter of {count}");

    for root in places {
        let is_root = root == me;
        let mut output = placement.place(&vec![0xa5; input.len()]);
        communicator.broadcast(call, F32, root, &input, &mut output).unwrap();
        assert!(*output == *operands[root], "broadcast of {count} from {root}");
        let mut buffer = placement.place(&input);
        communicator.broadcast_in_place(call, F32, root, &mut buffer).unwrap();
        assert!(*buffer == *operands[root], "broadcast of {count} from {root} in place");
        let mut buffer = placement.place(&input);
        communicator.reduce_in_place(call, F32, SUM, root, &mut buffer).unwrap();
        let expected = if is_root { &sum } else { &operands[me] };
        assert!(*buffer == **expected, "reduce of {count} to {root}");
        let mut gathered = placement.place(&vec![0xa5; if is_root { all.len() } else { 0 }]);
        communicator.gather(call, F32, root, &input, &mut gathered).unwrap();
        assert!(*gathered == all[..gathered.len()], "gather of {count} to {root}");
        let mut output = placement.place(&vec![0xa5; input.len()]);
        communicator.scatter(call, F32, root, &gathered, &mut output).unwrap();
        assert!(*output == *operands[me], "scatter of {count} from {root}");
    }
}

#[test]
fn members_may_differ_in_where_their_operands_lie() {
    let job = shm(&[1; MEMBERS as usize]);
    let members: Vec<_> = (0..MEMBERS).map(Member).collect();
    job.run(AMPLE, &|communicator| {
        let group = communicator.group(&members).unwrap();
        let rank = communicator.member().0;
        for who in 0..1 << MEMBERS {
            let placement =
                Placement { job: &job, rank: rank as usize, shared: who >> rank & 1 == 1 };
            for count in COUNTS {
                every_collective(&communicator, &group, &placement, count);
            }
        }
    });
}

#[test]
fn members_may_differ_in_whether_they_reduce_in_place() {
    for members in [2, 3] {
        let job = shm(&vec![1; members]);
        job.run(AMPLE, &|communicator| {
            let all: Vec<_> = (0..).map(Member).take(members).collect();
            let group = communicator.group(&all).unwrap();
            let call = &Call::on(&group);
            let me = group.position();
            for count in COUNTS {
                let operands: Vec<_> =
                    all.iter().map(|member| operand(F32, member.0, count)).collect();
                let sum = fold(F32, SUM, &operands);
                for in_place in 0..members {
                    let mut buffer = operands[me].clone();
                    if me == in_place {
                        communicator.all_reduce_in_place(call, F32, SUM, &mut buffer).unwrap();
                    } else {
                        let input = &operands[me];
                        communicator.all_reduce(call, F32, SUM, input, &mut buffer).unwrap();
                    }
                    assert!(buffer == sum, "{count} elements on {members}, {in_place} in place");
                }
            }
        });
    }
}
