//! Groups: who takes part in what, and who waits for whom.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockstep_collectives::transport::Transport;
use lockstep_collectives::{
    Call, CollectiveCause, CollectiveError, Communicator, Group, Member, Rank,
};

use crate::calls::{TERMS, call};
use crate::jobs::{Job, quic, shm, sim};

const AMPLE: Duration = Duration::from_secs(60);

fn group<const N: usize>(communicator: &Communicator, members: [u32; N]) -> Group {
    communicator.group(&members.map(Member)).unwrap()
}

/// The ranks that a collective missed.
fn missed(result: Result<(), CollectiveError>) -> Vec<u32> {
    let error = result.unwrap_err();
    let CollectiveCause::Late { missing, .. } = &error.cause else { panic!("{error}") };
    missing.iter().map(|participant| participant.rank.0).collect()
}

/// Members 0 and 3 leave their barrier again and again while 1 has not come to that with 2; and
/// 2 leaves it only when 1 is there.
fn barriers_of_disjoint_groups_do_not_mix(job: &dyn Job) {
    let others_are_through = Barrier::new(3);
    let has_come = AtomicBool::new(false);
    job.run(AMPLE, &|communicator| {
        let members = communicator.member().0;
        let pair = group(&communicator, if members % 3 == 0 { [0, 3] } else { [1, 2] });
        let call = Call::on(&pair);
        match members {
            0 | 3 => {
                for _ in 0..100 {
                    communicator.barrier(&call).unwrap();
                }
                others_are_through.wait();
            }
            1 => {
                others_are_through.wait();
                has_come.store(true, Ordering::SeqCst);
                communicator.barrier(&call).unwrap();
            }
            _ => {
                communicator.barrier(&call).unwrap();
                assert!(has_come.load(Ordering::SeqCst), "a barrier let through too early");
            }
        }
    });
}

#[test]
fn barriers_of_disjoint_groups_do_not_mix_quic() {
    barriers_of_disjoint_groups_do_not_mix(&quic(&[1; 4]));
}

#[test]
fn barriers_of_disjoint_groups_do_not_mix_shm() {
    barriers_of_disjoint_groups_do_not_mix(&shm(&[1; 4]));
}

/// A group is its members in their order: who names another group is in that.
#[test]
fn members_that_name_different_groups_miss_each_other() {
    let sim = sim(&[1; 3]);
    sim.run(Duration::from_secs(5), &|communicator| {
        let me = communicator.member();
        let named = group(&communicator, if me == Member(1) { [1, 0, 2] } else { [0, 1, 2] });
        let missed = missed(call(&communicator, &named, &TERMS, None));
        assert_eq!(missed, if me == Member(1) { vec![0, 2] } else { vec![1] });
        assert!(sim.0.now() < Duration::from_secs(6), "{:?}", sim.0.now());
        call(&communicator, &group(&communicator, [2, 1, 0]), &TERMS, None).unwrap();
    });
}

/// Two of four run one group before the other, the other two the other way round: each is told
/// whom it missed in which group, all groups are in step again, and in one order all goes well.
#[test]
fn a_circular_wait_ends_in_time_and_names_both_sides() {
    let sim = sim(&[1; 4]);
    sim.run(Duration::from_secs(5), &|communicator| {
        let (one, other) = (group(&communicator, [0, 1, 2, 3]), group(&communicator, [3, 2, 1, 0]));
        let ahead = communicator.member().0 < 2;
        let (begun, expected) = if ahead { (&one, [2, 3]) } else { (&other, [1, 0]) };
        let waited = call(&communicator, begun, &TERMS, None);
        assert_eq!(missed(waited), expected);
        // What the others gave up is known.
        let start = sim.0.now();
        let next = if ahead { &other } else { &one };
        let told = missed(call(&communicator, next, &TERMS, None));
        assert_eq!(told, if ahead { [1, 0] } else { [2, 3] });
        assert!(sim.0.now() - start < Duration::from_secs(1));
        for group in [&one, &other] {
            call(&communicator, group, &TERMS, None).unwrap();
        }
    });
}

/// To make a group and to run it takes its members, not the rest of the job.
#[test]
fn a_group_needs_nobody_but_its_members() {
    let sim = sim(&[1; 4]);
    sim.run(Duration::from_secs(5), &|communicator| {
        let me = communicator.member();
        if me == Member(0) {
            sim.0.partition(&[Rank(3)]);
        }
        sim.0.sleep(me, Duration::from_secs(1));
        if me != Member(3) {
            let three = group(&communicator, [2, 0, 1]);
            for _ in 0..10 {
                call(&communicator, &three, &TERMS, None).unwrap();
            }
            assert!(sim.0.now() < Duration::from_secs(2), "{:?}", sim.0.now());
        }
    });
}
