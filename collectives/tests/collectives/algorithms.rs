//! Every algorithm, wherever the members are: right values, the same bits, one error.

use std::sync::Mutex;

use lockstep_collectives::transport::sim::Simulation;
use lockstep_collectives::{
    Algorithm, Call, CancelToken, CollectiveError, Communicator, ElementType, FailureCause, Group,
    Member, Policy, Rank, Reduction,
};

use crate::jobs::{Job, LATENCY, quic_on, shm_on, sim_on};
use crate::reference::{float, fold, operand};
use crate::values::{AMPLE, GROUPS, all_gather, each_group, elements, members};

/// Where five ranks are: on one host, on five, and on two or three of any sizes, not always next to
/// each other.
const PLACEMENTS: [[usize; 5]; 6] = [
    [0, 0, 0, 0, 0],
    [0, 1, 2, 3, 4],
    [0, 0, 1, 1, 1],
    [0, 1, 1, 1, 1],
    [0, 1, 0, 1, 2],
    [2, 0, 0, 1, 0],
];

/// All that can be asked for but the one that the other tests have.
const INDIRECT: [Algorithm; 3] =
    [Algorithm::RecursiveDoubling, Algorithm::Ring, Algorithm::TwoLevel];

fn by(algorithm: Algorithm) -> Policy {
    Policy { algorithm: Some(algorithm), ..Policy::default() }
}

/// A small number as an element of a type that has it, complex ones with twice as much as their
/// imaginary part.
fn number(element: ElementType, real: f32) -> Vec<u8> {
    let complex = |part| [real, 2.0 * real].map(|value| float(part, value)).concat();
    match element {
        ElementType::C64 => complex(ElementType::F32),
        ElementType::C128 => complex(ElementType::F64),
        other => float(other, real),
    }
}

/// The operand of a member of which sums and products are exact as long as they are not rounded,
/// so that they are the same in any order and tell how often they were.
fn exact(element: ElementType, reduction: Reduction, member: u32, count: usize) -> Vec<u8> {
    let real = |index: usize| {
        let mixed = index * 5 + member as usize * 3;
        match reduction {
            Reduction::Product => {
                let magnitude = [0.5, 1.0, 2.0][mixed % 3];
                if mixed.is_multiple_of(2) { magnitude } else { -magnitude }
            }
            // The first is so great that bf16 and f16 have none of the others' ones beside it.
            _ if member == 0 && index.is_multiple_of(2) && element.size_bytes() > 1 => 4096.0,
            _ => f32::from(u8::try_from(mixed % 17).unwrap()) - 7.0,
        }
    };
    let is_integer = element.supports(Reduction::Xor);
    if is_integer {
        return operand(element, member, count);
    }
    (0..count).flat_map(|index| number(element, real(index))).collect()
}

/// An all_reduce and a reduce_scatter, apart and in place.
fn reduces(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    reduction: Reduction,
    count: usize,
) {
    let members = group.members();
    let operands: Vec<Vec<u8>> =
        members.iter().map(|member| exact(element, reduction, member.0, count)).collect();
    let expected = fold(element, reduction, &operands);
    let input = &operands[group.position()];
    let call = Call::on(group);
    let case = format!("{reduction} of {count} {element} on {group:?}");
    let mut output = vec![0xa5; input.len()];
    communicator.all_reduce(&call, element, reduction, input, &mut output).unwrap();
    assert!(output == expected, "all_reduce, {case}");
    let mut buffer = input.clone();
    communicator.all_reduce_in_place(&call, element, reduction, &mut buffer).unwrap();
    assert!(buffer == expected, "all_reduce in place, {case}");

    if !count.is_multiple_of(members.len()) {
        return;
    }
    let length = input.len() / members.len();
    let own = group.position() * length..(group.position() + 1) * length;
    let mut output = vec![0xa5; length];
    communicator.reduce_scatter(&call, element, reduction, input, &mut output).unwrap();
    assert!(output == expected[own.clone()], "reduce_scatter, {case}");
    let mut buffer = input.clone();
    communicator.reduce_scatter_in_place(&call, element, reduction, &mut buffer).unwrap();
    let mut unchanged = input.clone();
    unchanged[own.clone()].copy_from_slice(&expected[own]);
    assert!(buffer == unchanged, "reduce_scatter in place, {case}");
}

/// No element, fewer than members, and on both sides of what fits into the opening.
fn every_group_and_size(job: &dyn Job, algorithm: Algorithm) {
    each_group(job, &GROUPS, |communicator, group| {
        let communicator = communicator.with_policy(by(algorithm));
        let count = group.members().len();
        for elements in [0, count - 1, 32, 33, 32 * count, 33 * count, 1021] {
            reduces(&communicator, group, ElementType::F32, Reduction::Sum, elements);
            all_gather(&communicator, group, ElementType::F32, elements);
        }
    });
}

#[test]
fn every_group_and_size_wherever_the_members_are() {
    for algorithm in INDIRECT {
        for hosts in PLACEMENTS {
            every_group_and_size(&sim_on(&hosts), algorithm);
        }
    }
}

#[test]
fn every_group_and_size_between_hosts_with_shared_memory() {
    for hosts in [[0, 0, 1, 1, 1], [2, 0, 0, 1, 0]] {
        every_group_and_size(&shm_on(&[1; 5], &hosts), Algorithm::TwoLevel);
    }
}

#[test]
fn every_group_and_size_over_quic() {
    for algorithm in INDIRECT {
        every_group_and_size(&quic_on(&[1; 5], &[0, 1, 0, 1, 1]), algorithm);
    }
}

/// Several members of one process, with shared memory and without.
#[test]
fn processes_with_several_members() {
    for algorithm in INDIRECT {
        for job in [quic_on(&[2, 1, 2], &[0, 1, 1]), shm_on(&[2, 1, 2], &[0, 1, 1])] {
            each_group(&job, &[&[0, 1, 2, 3, 4], &[4, 0, 1]], |communicator, group| {
                let communicator = communicator.with_policy(by(algorithm));
                for elements in [150, 6000] {
                    reduces(&communicator, group, ElementType::BF16, Reduction::Sum, elements);
                    all_gather(&communicator, group, ElementType::BF16, elements);
                }
            });
        }
    }
}

/// Narrow floats too: they are rounded once, however often they are passed on.
#[test]
fn every_type_and_reduction() {
    for algorithm in INDIRECT {
        each_group(&sim_on(&[0, 1, 1]), &[&[2, 0, 1]], |communicator, group| {
            let communicator = communicator.with_policy(by(algorithm));
            for element in elements() {
                all_gather(&communicator, group, element, 131);
                let reductions = Reduction::ALL.into_iter().filter(|r| element.supports(*r));
                for reduction in reductions {
                    for count in [131, 600] {
                        reduces(&communicator, group, element, reduction, count);
                    }
                }
            }
        });
    }
}

/// The results of an all_reduce of operands whose sums depend on their order, by member.
fn sums(job: &dyn Job, policy: Policy, element: ElementType, count: usize) -> Vec<Vec<u8>> {
    let results = Mutex::new(Vec::new());
    job.run(AMPLE, &|communicator| {
        let communicator = communicator.with_policy(policy);
        let group = communicator.group(&members(&[0, 1, 2, 3, 4])).unwrap();
        let input = operand(element, communicator.member().0, count);
        let mut output = vec![0; input.len()];
        let call = Call::on(&group);
        communicator.all_reduce(&call, element, Reduction::Sum, &input, &mut output).unwrap();
        results.lock().unwrap().push(output);
    });
    results.into_inner().unwrap()
}

#[test]
fn all_members_get_the_same_bits_whenever_they_ask_and_whatever_the_transport() {
    let (hosts, numbers) = ([0, 0, 1, 1, 1], [0, 0, 1, 1, 1]);
    for algorithm in Algorithm::ALL {
        for element in [ElementType::F32, ElementType::F8E5M2] {
            let policy = by(algorithm);
            let first = sums(&sim_on(&hosts), policy, element, 2003);
            let again = sums(&sim_on(&hosts), policy, element, 2003);
            let quic = sums(&quic_on(&[1; 5], &numbers), policy, element, 2003);
            let shm = sums(&shm_on(&[1; 5], &numbers), policy, element, 2003);
            for results in [&first, &again, &quic, &shm] {
                assert_eq!(results.len(), 5);
                assert!(results.iter().all(|result| *result == first[0]), "{element} {algorithm}");
            }
        }
    }
}

/// The order in which members are folded is seen in the bits, or the next test says nothing.
#[test]
fn algorithms_fold_in_orders_of_their_own() {
    let count = 2003;
    let of = |algorithm| sums(&sim_on(&[0, 0, 1, 1, 1]), by(algorithm), ElementType::F32, count);
    let direct = of(Algorithm::Direct);
    for algorithm in INDIRECT {
        assert_ne!(of(algorithm)[0], direct[0], "{algorithm}");
    }
}

#[test]
fn what_is_reproducible_has_the_bits_of_the_serial_fold_wherever_the_members_are() {
    for count in 1..=8 {
        let numbers: Vec<u32> = (0..count).collect();
        let size = count as usize;
        let one_host = vec![0; size];
        let own_hosts: Vec<usize> = (0..size).collect();
        let pairs: Vec<usize> = (0..size).map(|rank| rank / 2).collect();
        let in_turn: Vec<usize> = (0..size).map(|rank| rank % 3).collect();
        for hosts in [one_host, own_hosts, pairs, in_turn] {
            for algorithm in Algorithm::ALL {
                let policy = Policy { algorithm: Some(algorithm), reproducible: true };
                each_group(&sim_on(&hosts), &[&numbers], |communicator, group| {
                    let communicator = communicator.with_policy(policy);
                    for element in [ElementType::F32, ElementType::BF16, ElementType::I16] {
                        let count = 100 * size;
                        crate::values::all_reduce(
                            &communicator,
                            group,
                            element,
                            Reduction::Sum,
                            count,
                        );
                        crate::values::reduce_scatter(
                            &communicator,
                            group,
                            element,
                            Reduction::Sum,
                            100,
                        );
                    }
                });
            }
        }
    }
}

/// Has the first five of six ranks reduce, and runs `then` on the last when the opening has come
/// through and no more than a step after it. Each of the five gets an error.
fn interrupted(
    algorithm: Algorithm,
    token: &CancelToken,
    then: impl Fn(&Simulation) + Sync,
) -> Vec<(Communicator, CollectiveError)> {
    let job = sim_on(&[0, 0, 1, 1, 2, 2]);
    let errors = Mutex::new(Vec::new());
    job.run(AMPLE, &|communicator| {
        let communicator = communicator.with_policy(by(algorithm));
        let member = communicator.member();
        if member == Member(5) {
            job.0.sleep(member, LATENCY + LATENCY / 2);
            return then(&job.0);
        }
        let group = communicator.group(&members(&[0, 1, 2, 3, 4])).unwrap();
        let call = Call { cancel: (member == Member(1)).then_some(token), ..Call::on(&group) };
        let input = operand(ElementType::F32, member.0, 3000);
        let mut output = vec![0; input.len()];
        let (element, reduction) = (ElementType::F32, Reduction::Sum);
        let result = communicator.all_reduce(&call, element, reduction, &input, &mut output);
        errors.lock().unwrap().push((communicator.clone(), result.unwrap_err()));
        // The others go on.
        if member != Member(2) {
            let group = communicator.group(&members(&[0, 1, 3, 4])).unwrap();
            reduces(&communicator, &group, element, reduction, 1000);
        }
    });
    errors.into_inner().unwrap()
}

#[test]
fn a_rank_that_dies_half_way_is_named_by_all() {
    for algorithm in INDIRECT {
        let kill = |job: &Simulation| job.kill(Rank(2), FailureCause::Disconnected, LATENCY);
        let errors = interrupted(algorithm, &CancelToken::new(), kill);
        assert_eq!(errors.len(), 5);
        for (communicator, error) in errors {
            let text = error.to_string();
            let named = format!("all_reduce(sum, f32, 3000 elements) by {algorithm}, #1");
            assert!(text.starts_with(&named), "{}: {text}", communicator.member());
            assert!(text.contains("rank 2"), "{}: {text}", communicator.member());
        }
    }
}

#[test]
fn a_call_that_is_cancelled_half_way_fails_for_all() {
    for algorithm in INDIRECT {
        let token = CancelToken::new();
        let errors = interrupted(algorithm, &token, |_| token.cancel());
        assert_eq!(errors.len(), 5);
        for (communicator, error) in errors {
            let text = error.to_string();
            let by = "cancelled by rank 1 (device 1)";
            assert!(text.contains(by), "{}: {text}", communicator.member());
        }
    }
}

/// Members that were told to choose differently do not exchange what the others do not expect.
#[test]
fn another_choice_is_told_before_anything_is_written() {
    for algorithm in INDIRECT {
        sim_on(&[0, 0, 1]).run(AMPLE, &|communicator| {
            let odd = communicator.member() == Member(1);
            let chosen = if odd { algorithm } else { Algorithm::Direct };
            let communicator = communicator.with_policy(by(chosen));
            let group = communicator.group(&members(&[0, 1, 2])).unwrap();
            let (input, mut output) = (vec![1; 4000], vec![0xa5; 4000]);
            let (element, reduction) = (ElementType::I32, Reduction::Sum);
            let call = Call::on(&group);
            let error = communicator.all_reduce(&call, element, reduction, &input, &mut output);
            let text = error.unwrap_err().to_string();
            let called = format!(
                "rank 1 (device 1) called all_reduce(sum, i32, 1000 elements) by {algorithm} where"
            );
            assert!(text.contains(&called), "{text}");
            assert_eq!(output, [0xa5; 4000]);
        });
    }
}
