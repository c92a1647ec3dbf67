//! Many rounds in the same memory, several groups at once: nothing is read after its owner writes
//! over it, whatever the size.

use std::time::Duration;

use lockstep_collectives::{
    Call, CollectiveError, Communicator, ElementType, Group, Member, Reduction,
};

use crate::jobs::{Job, quic, shm};

/// Longer than any one collective takes on a busy machine.
const AMPLE: Duration = Duration::from_secs(300);

/// The element at `index` of what `member` contributes in `round`.
fn element(member: usize, round: usize, index: usize) -> u64 {
    let salt = (member as u64) << 48 | (round as u64) << 32;
    (index as u64 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn fill(elements: &mut [u64], member: usize, round: usize) {
    for (index, value) in elements.iter_mut().enumerate() {
        *value = element(member, round, index);
    }
}

/// Whether `elements` are what `expected` says of each place.
fn hold(elements: &[u64], expected: impl Fn(usize) -> u64) -> bool {
    elements.iter().enumerate().all(|(index, value)| *value == expected(index))
}

/// A collective, given its input and output.
type Run<'a> = dyn Fn(&[u8], &mut [u8]) -> Result<(), CollectiveError> + 'a;

/// Runs every collective in `group` so many rounds, each with operands of `piece` elements for
/// every member, in memory that is written over as soon as a call returns.
fn rounds(communicator: &Communicator, group: &Group, piece: usize, rounds: usize) {
    let (call, kind) = (Call::on(group), ElementType::U64);
    let (me, count) = (group.position(), group.members().len());
    let whole = piece * count;
    let sum = |round: usize, index: usize| {
        (0..count).fold(0_u64, |sum, member| sum.wrapping_add(element(member, round, index)))
    };
    let targets = group.members().iter().copied().cycle().skip(1);
    let ring: Vec<(Member, Member)> = group.members().iter().copied().zip(targets).collect();
    let (mut input, mut output) = (vec![0; whole], vec![0; whole]);
    for round in 0..rounds {
        let told = |what: &str| format!("{what} of {piece} elements, round {round} on {group:?}");
        let root = round % count;
        let at_root = if me == root { whole } else { 0 };
        // Every call has operands of its own.
        let mut step = round * 16;
        let mut check = |what: &str,
                         input_length: usize,
                         output_length: usize,
                         expected: &dyn Fn(usize, usize) -> u64,
                         run: &Run<'_>| {
            step += 1;
            fill(&mut input, me, step);
            let output = &mut output[..output_length];
            let from = bytemuck::cast_slice(&input[..input_length]);
            run(from, bytemuck::cast_slice_mut(output)).unwrap();
            assert!(hold(output, |index| expected(step, index)), "{}", told(what));
        };
        check("all_reduce", whole, whole, &sum, &|input, output| {
            communicator.all_reduce(&call, kind, Reduction::Sum, input, output)
        });
        let own = |step, index| sum(step, me * piece + index);
        check("reduce_scatter", whole, piece, &own, &|input, output| {
            communicator.reduce_scatter(&call, kind, Reduction::Sum, input, output)
        });
        check("reduce", whole, at_root, &sum, &|input, output| {
            communicator.reduce(&call, kind, Reduction::Sum, root, input, output)
        });
        let gathered = |step, index| element(index / piece, step, index % piece);
        check("all_gather", piece, whole, &gathered, &|input, output| {
            communicator.all_gather(&call, kind, input, output)
        });
        check("gather", piece, at_root, &gathered, &|input, output| {
            communicator.gather(&call, kind, root, input, output)
        });
        let exchanged = |step, index| element(index / piece, step, me * piece + index % piece);
        check("all_to_all", whole, whole, &exchanged, &|input, output| {
            communicator.all_to_all(&call, kind, input, output)
        });
        check("all_to_all_v", whole, whole, &exchanged, &|input, output| {
            let counts = vec![piece; count];
            communicator.all_to_all_v(&call, kind, &counts, input, &counts, output)
        });
        let before = |step, index| element((me + count - 1) % count, step, index);
        check("collective_permute", whole, whole, &before, &|input, output| {
            communicator.collective_permute(&call, kind, &ring, input, output)
        });
        check("broadcast", whole, whole, &|step, index| element(root, step, index), &|i, o| {
            communicator.broadcast(&call, kind, root, i, o)
        });
        let own = |step, index| element(root, step, me * piece + index);
        check("scatter", whole, piece, &own, &|input, output| {
            communicator.scatter(&call, kind, root, input, output)
        });
        if count == 2 {
            let others = |step, index| element(1 - me, step, index);
            check("send_recv", whole, whole, &others, &|input, output| {
                communicator.send_recv(&call, kind, input, output)
            });
            let received = if me == root { 0 } else { whole };
            check("send and recv", whole, received, &others, &|input, output| {
                if me == root {
                    communicator.send(&call, kind, input)
                } else {
                    communicator.recv(&call, kind, output)
                }
            });
        }
    }
}

/// Five members: a pair and three at once, each of `sizes` so many rounds; then all together.
fn groups_at_once(job: &dyn Job, sizes: &[(usize, usize)]) {
    job.run(AMPLE, &|communicator| {
        let group = |numbers: &[u32]| {
            let members: Vec<Member> = numbers.iter().copied().map(Member).collect();
            communicator.group(&members).unwrap()
        };
        let part = group(if communicator.member().0 < 2 { &[1, 0] } else { &[4, 2, 3] });
        let all = group(&[0, 1, 2, 3, 4]);
        for &(piece, count) in sizes {
            rounds(&communicator, &part, piece, count);
            rounds(&communicator, &all, piece, count.div_ceil(4));
        }
    });
}

/// Elements of 8 bytes, and rounds.
const SHORT: [(usize, usize); 8] =
    [(1, 8), (16, 8), (17, 8), (512, 4), (513, 4), (1025, 4), (32 << 10, 1), ((128 << 10) + 1, 1)];

#[test]
fn rounds_in_groups_at_once_shm() {
    groups_at_once(&shm(&[1; 5]), &SHORT);
}

#[test]
fn rounds_in_groups_at_once_quic() {
    groups_at_once(&quic(&[1; 5]), &SHORT);
}

#[test]
fn rounds_in_groups_at_once_of_processes_with_several_members() {
    groups_at_once(&shm(&[2, 1, 2]), &SHORT[..6]);
}

/// A hundred rounds up to 64 MiB, which three members have three times.
fn long() -> Vec<(usize, usize)> {
    let sizes = (0..20).flat_map(|exponent| [1 << exponent, (1 << exponent) + 1]);
    let sizes = sizes.map(|piece| (piece, 100));
    sizes.chain([(2 << 20, 100), (8 << 20, 100)]).collect()
}

/// In release builds: `cargo nextest run --release --run-ignored only hundred_rounds`.
#[test]
#[ignore = "stress: a hundred rounds up to 64 MiB"]
fn a_hundred_rounds_up_to_64_mib_shm() {
    groups_at_once(&shm(&[1; 5]), &long());
}

#[test]
#[ignore = "stress: a hundred rounds up to 64 MiB"]
fn a_hundred_rounds_up_to_64_mib_quic() {
    groups_at_once(&quic(&[1; 5]), &long());
}

/// Twelve pairs at once, spread over the processes: the end of the first member's piece is right.
fn reduce_scatter_of_twelve_pairs(job: &dyn Job, piece: usize, rounds: usize) {
    job.run(AMPLE, &|communicator| {
        let number = communicator.member().0;
        let pair = [number % 12, number % 12 + 12].map(Member);
        let group = communicator.group(&pair).unwrap();
        let me = group.position();
        let (call, element) = (Call::on(&group), ElementType::F64);
        let value = |member: usize, round: usize, index: usize| {
            f64::from(u32::try_from((index * 7 + member * 13 + round * 5) % 1_000_003).unwrap())
        };
        let mut input = vec![0.0; 2 * piece];
        let mut output = vec![0.0; piece];
        for round in 0..rounds {
            for (index, number) in input.iter_mut().enumerate() {
                *number = value(me, round, index);
            }
            let (from, to) = (bytemuck::cast_slice(&input), bytemuck::cast_slice_mut(&mut output));
            communicator.reduce_scatter(&call, element, Reduction::Sum, from, to).unwrap();
            for (index, sum) in output.iter().enumerate() {
                let index = me * piece + index;
                let expected = value(0, round, index) + value(1, round, index);
                assert!(*sum == expected, "round {round}, {index} of {pair:?}: {sum}");
            }
        }
    });
}

#[test]
fn reduce_scatter_of_twelve_pairs_shm() {
    reduce_scatter_of_twelve_pairs(&shm(&[6; 4]), 8192, 3);
}

#[test]
fn reduce_scatter_of_twelve_pairs_quic() {
    reduce_scatter_of_twelve_pairs(&quic(&[12; 2]), 8192, 3);
}

#[test]
#[ignore = "stress: 30 rounds of 4 MiB each"]
fn reduce_scatter_of_twelve_pairs_of_4_mib() {
    for job in [shm(&[6; 4]), quic(&[12; 2])] {
        reduce_scatter_of_twelve_pairs(&job, 4 << 17, 30);
    }
}
