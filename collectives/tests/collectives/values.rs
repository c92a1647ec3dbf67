//! Every collective, every type, every size, compared with the reference.

use std::sync::Arc;
use std::time::Duration;

use lockstep_collectives::transport::{
    Incoming, Operation, Outgoing, Step, Transport, TransportError,
};
use lockstep_collectives::{
    Call, Communicator, ElementType, Group, Member, Rank, RankFailure, Reduction,
};

use crate::jobs::{Job, quic, shm, sim};
use crate::reference::{fold, operand};

/// No test of values waits for it.
pub(crate) const AMPLE: Duration = Duration::from_secs(60);

/// Groups of 1 to 5 of 5 members: consecutive, with gaps, and in another order.
pub(crate) const GROUPS: [&[u32]; 9] = [
    &[0],
    &[4],
    &[0, 1],
    &[3, 1],
    &[0, 2, 4],
    &[4, 0, 3],
    &[0, 1, 2, 3],
    &[0, 1, 2, 3, 4],
    &[2, 4, 1, 0, 3],
];

pub(crate) fn elements() -> impl Iterator<Item = ElementType> {
    let opaque = [3, 600].map(|size_bytes| ElementType::Opaque { size_bytes });
    ElementType::ARITHMETIC.into_iter().chain(opaque)
}

pub(crate) fn members(numbers: &[u32]) -> Vec<Member> {
    numbers.iter().copied().map(Member).collect()
}

/// Runs `body` on the members of each of `groups`, one group after the other.
pub(crate) fn each_group(
    job: &dyn Job,
    groups: &[&[u32]],
    body: impl Fn(&Communicator, &Group) + Sync,
) {
    job.run(AMPLE, &|communicator| {
        for numbers in groups {
            if numbers.contains(&communicator.member().0) {
                body(&communicator, &communicator.group(&members(numbers)).unwrap());
            }
        }
    });
}

/// The operands of all members of `group`, in its order.
fn operands(group: &Group, element: ElementType, count: usize) -> Vec<Vec<u8>> {
    group.members().iter().map(|member| operand(element, member.0, count)).collect()
}

pub(crate) fn all_reduce(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    reduction: Reduction,
    count: usize,
) {
    let operands = operands(group, element, count);
    let input = &operands[group.position()];
    let mut output = vec![0xa5; input.len()];
    communicator.all_reduce(&Call::on(group), element, reduction, input, &mut output).unwrap();
    let expected = fold(element, reduction, &operands);
    assert!(output == expected, "all_reduce({reduction}, {element}, {count}) on {group:?}");
    let mut buffer = input.clone();
    communicator.all_reduce_in_place(&Call::on(group), element, reduction, &mut buffer).unwrap();
    assert!(buffer == expected, "all_reduce({reduction}, {element}, {count}) in place");
}

pub(crate) fn reduce_scatter(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    reduction: Reduction,
    piece: usize,
) {
    let operands = operands(group, element, piece * group.members().len());
    let piece_bytes = piece * element.size_bytes();
    let mut output = vec![0xa5; piece_bytes];
    let input = &operands[group.position()];
    communicator.reduce_scatter(&Call::on(group), element, reduction, input, &mut output).unwrap();
    let expected = fold(element, reduction, &operands);
    let own = group.position() * piece_bytes..(group.position() + 1) * piece_bytes;
    let expected = &expected[own.clone()];
    assert!(output == expected, "reduce_scatter({reduction}, {element}, {piece}) on {group:?}");
    let mut buffer = input.clone();
    communicator
        .reduce_scatter_in_place(&Call::on(group), element, reduction, &mut buffer)
        .unwrap();
    let mut unchanged = input.clone();
    unchanged[own].copy_from_slice(expected);
    assert!(buffer == unchanged, "reduce_scatter({reduction}, {element}, {piece}) in place");
}

pub(crate) fn all_gather(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    count: usize,
) {
    let operands = operands(group, element, count);
    let expected = operands.concat();
    let mut output = vec![0xa5; expected.len()];
    let input = &operands[group.position()];
    communicator.all_gather(&Call::on(group), element, input, &mut output).unwrap();
    assert!(output == expected, "all_gather({element}, {count}) on {group:?}");
    let mut buffer = vec![0xa5; expected.len()];
    buffer[group.position() * input.len()..][..input.len()].copy_from_slice(input);
    communicator.all_gather_in_place(&Call::on(group), element, &mut buffer).unwrap();
    assert!(buffer == expected, "all_gather({element}, {count}) in place");
}

fn all_to_all(communicator: &Communicator, group: &Group, element: ElementType, piece: usize) {
    let operands = operands(group, element, piece * group.members().len());
    let piece_bytes = piece * element.size_bytes();
    let input = &operands[group.position()];
    let mut output = vec![0xa5; input.len()];
    communicator.all_to_all(&Call::on(group), element, input, &mut output).unwrap();
    let expected: Vec<u8> = operands
        .iter()
        .flat_map(|operand| operand[group.position() * piece_bytes..][..piece_bytes].to_vec())
        .collect();
    assert!(output == expected, "all_to_all({element}, {piece}) on {group:?}");
    let mut buffer = input.clone();
    communicator.all_to_all_in_place(&Call::on(group), element, &mut buffer).unwrap();
    assert!(buffer == expected, "all_to_all({element}, {piece}) in place");
}

fn broadcast(communicator: &Communicator, group: &Group, element: ElementType, count: usize) {
    let operands = operands(group, element, count);
    for (root, expected) in operands.iter().enumerate() {
        let input = &operands[group.position()];
        let mut output = vec![0xa5; input.len()];
        communicator.broadcast(&Call::on(group), element, root, input, &mut output).unwrap();
        assert!(output == *expected, "broadcast({element}, {count}, root {root}) on {group:?}");
        let mut buffer = input.clone();
        communicator.broadcast_in_place(&Call::on(group), element, root, &mut buffer).unwrap();
        assert!(buffer == *expected, "broadcast({element}, {count}, root {root}) in place");
    }
}

/// To every root, apart and in place; nobody else's memory changes.
fn reduce(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    reduction: Reduction,
    count: usize,
) {
    let operands = operands(group, element, count);
    let input = &operands[group.position()];
    let expected = fold(element, reduction, &operands);
    for root in 0..operands.len() {
        let place = format!("reduce({reduction}, {element}, {count}, root {root}) on {group:?}");
        let is_root = group.position() == root;
        let mut output = vec![0xa5; if is_root { input.len() } else { 0 }];
        let call = Call::on(group);
        communicator.reduce(&call, element, reduction, root, input, &mut output).unwrap();
        assert!(output == if is_root { &expected[..] } else { &[] }, "{place}");
        let mut buffer = input.clone();
        communicator.reduce_in_place(&call, element, reduction, root, &mut buffer).unwrap();
        assert!(buffer == *if is_root { &expected } else { input }, "{place} in place");
    }
}

/// To every root, and back from it, apart and in place.
fn gather_and_scatter(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    count: usize,
) {
    let operands = operands(group, element, count);
    let input = &operands[group.position()];
    let all = operands.concat();
    let call = Call::on(group);
    for root in 0..operands.len() {
        let place = format!("({element}, {count}, root {root}) on {group:?}");
        let is_root = group.position() == root;
        let expected = if is_root { &all[..] } else { &[] };
        let mut gathered = vec![0xa5; expected.len()];
        communicator.gather(&call, element, root, input, &mut gathered).unwrap();
        assert!(gathered == expected, "gather{place}");
        let mut buffer = input.clone();
        if is_root {
            buffer = vec![0xa5; all.len()];
            buffer[root * input.len()..][..input.len()].copy_from_slice(input);
        }
        communicator.gather_in_place(&call, element, root, &mut buffer).unwrap();
        assert!(buffer == if is_root { &all[..] } else { input }, "gather{place} in place");

        let mut piece = vec![0xa5; input.len()];
        communicator.scatter(&call, element, root, &gathered, &mut piece).unwrap();
        assert!(piece == *input, "scatter{place}");
        let mut buffer = if is_root { all.clone() } else { vec![0xa5; input.len()] };
        communicator.scatter_in_place(&call, element, root, &mut buffer).unwrap();
        assert!(buffer == if is_root { &all[..] } else { input }, "scatter{place} in place");
    }
}

/// Member at place i sends j * i + j + i elements to the one at place j, and nothing to itself if
/// it is the first: all lengths differ, and some are 0.
fn all_to_all_v(communicator: &Communicator, group: &Group, element: ElementType, scale: usize) {
    let places = 0..group.members().len();
    let count = |from: usize, to: usize| (from * to + from + to) * scale;
    let counts = |from: usize| places.clone().map(|to| count(from, to)).collect::<Vec<_>>();
    let operands: Vec<_> = group
        .members()
        .iter()
        .zip(places.clone())
        .map(|(member, from)| operand(element, member.0, counts(from).iter().sum()))
        .collect();
    let me = group.position();
    let receive_counts: Vec<_> = places.clone().map(|from| count(from, me)).collect();
    let expected: Vec<u8> = places
        .clone()
        .flat_map(|from| {
            let before: usize = counts(from)[..me].iter().sum();
            let size = element.size_bytes();
            operands[from][before * size..][..count(from, me) * size].to_vec()
        })
        .collect();
    let mut output = vec![0xa5; expected.len()];
    let call = Call::on(group);
    communicator
        .all_to_all_v(&call, element, &counts(me), &operands[me], &receive_counts, &mut output)
        .unwrap();
    assert!(output == expected, "all_to_all_v({element}, {scale}) on {group:?}");
}

/// Of pairs only.
fn send_and_recv(communicator: &Communicator, group: &Group, element: ElementType, count: usize) {
    let operands = operands(group, element, count);
    let [input, expected] = [group.position(), 1 - group.position()].map(|place| &operands[place]);
    let call = Call::on(group);
    for sender in [0, 1, 1] {
        if sender == group.position() {
            communicator.send(&call, element, input).unwrap();
        } else {
            let mut output = vec![0xa5; input.len()];
            communicator.recv(&call, element, &mut output).unwrap();
            assert!(output == *expected, "recv({element}, {count}) on {group:?}");
        }
    }
    let mut output = vec![0xa5; input.len()];
    communicator.send_recv(&call, element, input, &mut output).unwrap();
    assert!(output == *expected, "send_recv({element}, {count}) on {group:?}");
    let mut buffer = input.clone();
    communicator.send_recv_in_place(&call, element, &mut buffer).unwrap();
    assert!(buffer == *expected, "send_recv({element}, {count}) in place");
}

/// Shifts by one, without the last member: the first gets zeros.
fn collective_permute(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    count: usize,
) {
    let operands = operands(group, element, count);
    let pairs: Vec<_> = group.members().windows(2).map(|pair| (pair[0], pair[1])).collect();
    let input = &operands[group.position()];
    let mut output = vec![0xa5; input.len()];
    communicator.collective_permute(&Call::on(group), element, &pairs, input, &mut output).unwrap();
    let expected = match group.position() {
        0 => vec![0; input.len()],
        position => operands[position - 1].clone(),
    };
    assert!(output == expected, "collective_permute({element}, {count}) on {group:?}");
    // To itself, and in reverse.
    let pairs: Vec<_> =
        group.members().iter().copied().zip(group.members().iter().copied().rev()).collect();
    communicator.collective_permute(&Call::on(group), element, &pairs, input, &mut output).unwrap();
    let expected = &operands[group.members().len() - 1 - group.position()];
    assert!(output == *expected, "collective_permute({element}, {count}, reverse) on {group:?}");
    let mut buffer = input.clone();
    let call = Call::on(group);
    communicator.collective_permute_in_place(&call, element, &pairs, &mut buffer).unwrap();
    assert!(buffer == *expected, "collective_permute({element}, {count}) in place");
}

fn every_collective(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    reduction: Option<Reduction>,
    count: usize,
) {
    if let Some(reduction) = reduction {
        all_reduce(communicator, group, element, reduction, count);
        reduce_scatter(communicator, group, element, reduction, count);
        reduce(communicator, group, element, reduction, count);
    }
    all_gather(communicator, group, element, count);
    gather_and_scatter(communicator, group, element, count);
    all_to_all(communicator, group, element, count);
    all_to_all_v(communicator, group, element, count / 4);
    broadcast(communicator, group, element, count);
    collective_permute(communicator, group, element, count);
    if group.members().len() == 2 {
        send_and_recv(communicator, group, element, count);
    }
    communicator.barrier(&Call::on(group)).unwrap();
}

fn every_group_and_size(job: &dyn Job) {
    each_group(job, &GROUPS, |communicator, group| {
        let members = group.members().len();
        for count in [0, 1, members - 1, members, members + 1, 1000] {
            every_collective(communicator, group, ElementType::F32, Some(Reduction::Sum), count);
        }
    });
}

#[test]
fn every_group_and_size_sim() {
    every_group_and_size(&sim(&[1; 5]));
}

#[test]
fn every_group_and_size_quic() {
    every_group_and_size(&quic(&[1; 5]));
}

#[test]
fn every_group_and_size_shm() {
    every_group_and_size(&shm(&[1; 5]));
}

fn every_type(job: &dyn Job) {
    each_group(job, &[&[2, 0, 1], &[2, 1]], |communicator, group| {
        for element in elements() {
            every_collective(communicator, group, element, None, 67);
            for reduction in Reduction::ALL {
                if element.supports(reduction) {
                    all_reduce(communicator, group, element, reduction, 5);
                    all_reduce(communicator, group, element, reduction, 601);
                    reduce_scatter(communicator, group, element, reduction, 41);
                    reduce(communicator, group, element, reduction, 67);
                }
            }
        }
    });
}

#[test]
fn every_type_sim() {
    every_type(&sim(&[1; 3]));
}

#[test]
fn every_type_quic() {
    every_type(&quic(&[1; 3]));
}

#[test]
fn every_type_shm() {
    every_type(&shm(&[1; 3]));
}

const MEBIBYTE: usize = 1 << 20;

/// Around the sizes at which a collective changes its way: the opening's room and one step's, which
/// for two is another.
fn around_thresholds(job: &dyn Job) {
    each_group(job, &[&[0, 1, 2]], |communicator, group| {
        for bytes in [127, 128, 129, 4095, 4096, 4097, 3 * 4096] {
            every_collective(communicator, group, ElementType::U8, Some(Reduction::Sum), bytes);
        }
    });
    each_group(job, &[&[2, 0]], |communicator, group| {
        for bytes in [MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1] {
            all_reduce(communicator, group, ElementType::U8, Reduction::Sum, bytes);
        }
    });
}

#[test]
fn around_thresholds_sim() {
    around_thresholds(&sim(&[1; 3]));
}

#[test]
fn around_thresholds_quic() {
    around_thresholds(&quic(&[1; 3]));
}

#[test]
fn around_thresholds_shm() {
    around_thresholds(&shm(&[1; 3]));
}

fn a_mebibyte(job: &dyn Job) {
    each_group(job, &[&[4, 0, 2]], |communicator, group| {
        let (element, elements) = (ElementType::F64, MEBIBYTE / 8);
        all_reduce(communicator, group, element, Reduction::Sum, elements);
        reduce_scatter(communicator, group, element, Reduction::Sum, elements / 3);
        all_gather(communicator, group, element, elements);
        all_to_all(communicator, group, element, elements / 3);
        broadcast(communicator, group, element, elements);
        collective_permute(communicator, group, element, elements);
    });
    each_group(job, &[&[0, 1, 2, 3, 4]], |communicator, group| {
        all_reduce(communicator, group, ElementType::F32, Reduction::Sum, MEBIBYTE / 4);
    });
}

#[test]
fn a_mebibyte_sim() {
    a_mebibyte(&sim(&[1; 5]));
}

#[test]
fn a_mebibyte_quic() {
    a_mebibyte(&quic(&[1; 5]));
}

#[test]
fn a_mebibyte_shm() {
    a_mebibyte(&shm(&[1; 5]));
}

/// Two groups that share no member run different collectives at the same time, a third spans both.
fn disjoint_groups(job: &dyn Job) {
    job.run(AMPLE, &|communicator| {
        let number = communicator.member().0;
        let half = communicator.group(&members(if number < 2 { &[0, 1] } else { &[4, 2, 3] }));
        let half = half.unwrap();
        let all = communicator.group(&members(&[0, 1, 2, 3, 4])).unwrap();
        for round in 1..20 {
            if number < 2 {
                all_reduce(&communicator, &half, ElementType::F64, Reduction::Sum, 100 * round);
                all_gather(&communicator, &half, ElementType::I16, round);
            } else {
                all_gather(&communicator, &half, ElementType::F64, 100 * round);
            }
            if round % 5 == 0 {
                all_reduce(&communicator, &all, ElementType::I32, Reduction::Max, 7000);
            }
        }
    });
}

#[test]
fn disjoint_groups_sim() {
    disjoint_groups(&sim(&[1; 5]));
}

#[test]
fn disjoint_groups_quic() {
    disjoint_groups(&quic(&[1; 5]));
}

#[test]
fn disjoint_groups_shm() {
    disjoint_groups(&shm(&[1; 5]));
}

/// Several members of one process, and processes with different numbers of them.
fn members_share_a_process(job: &dyn Job) {
    each_group(job, &[&[0, 1], &[0, 1, 2, 3, 4], &[3, 0, 1]], |communicator, group| {
        for count in [5, 1000, 5000] {
            every_collective(communicator, group, ElementType::F32, Some(Reduction::Sum), count);
        }
    });
}

#[test]
fn members_share_a_process_sim() {
    members_share_a_process(&sim(&[2, 1, 2]));
}

#[test]
fn members_share_a_process_quic() {
    members_share_a_process(&quic(&[2, 1, 2]));
}

#[test]
fn members_share_a_process_shm() {
    members_share_a_process(&shm(&[2, 1, 2]));
}

#[test]
fn members_share_a_process_local() {
    members_share_a_process(&crate::jobs::local(5));
}

/// A transport that must not be used.
struct Unused;

impl Transport for Unused {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn rank_of(&self, _member: Member) -> Option<Rank> {
        Some(Rank(0))
    }

    fn exchange(
        &self,
        _step: &Step<'_>,
        _sends: &[Outgoing<'_>],
        _receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError> {
        panic!("an exchange with nobody")
    }

    fn abort(&self, _operation: &Operation<'_>, _notice: &[u8]) {
        panic!("a notice to nobody")
    }

    fn retire(&self, _operation: &Operation<'_>) {
        panic!("nothing arrives that could be dropped")
    }

    fn fail_rank(&self, _failure: RankFailure) {}

    fn flush(&self, _timeout: Duration) {}
}

#[test]
fn a_member_alone_needs_no_transport() {
    let communicator = Communicator::new(Member(3), Arc::new(Unused), AMPLE);
    let group = communicator.group(&[Member(3)]).unwrap();
    let (element, reduction) = (ElementType::F32, Reduction::Sum);
    for count in [0, 1, 32, 33, 2000] {
        every_collective(&communicator, &group, element, Some(reduction), count);
    }
    let error = communicator
        .all_reduce(&Call::on(&group), element, reduction, &[0; 4], &mut [0; 3])
        .unwrap_err();
    let told = " on devices 3: rank 0 (device 3) cannot take part: the output has 3 bytes";
    assert!(error.to_string().contains(told), "{error}");
}
