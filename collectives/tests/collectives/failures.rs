//! How collectives fail: soon, and with the same words on every member.

use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use lockstep_collectives::transport::Transport;
use lockstep_collectives::{
    Call, CancelToken, CollectiveCause, CollectiveError, CollectiveKey, CollectiveKind,
    Communicator, ElementType, FailureCause, Group, MAX_REASON_BYTES, Member, Rank, RankFailure,
    Reduction,
};

use crate::calls::{
    KEY, TERMS, Terms, call, every_form, first, has_in_place, has_root, members_of, reduces,
};
use crate::jobs::{Job, Quic, quic, shm, shm_on, sim};
use crate::reference::{fold, operand};

/// The limit where no test waits for it.
const AMPLE: Duration = Duration::from_secs(60);

/// A collective that succeeds: the communicator is in order.
fn assert_works(communicator: &Communicator, group: &Group) {
    let element = ElementType::F32;
    let operands: Vec<_> =
        group.members().iter().map(|member| operand(element, member.0, 2000)).collect();
    let input = &operands[group.position()];
    let mut output = vec![0; input.len()];
    let call = Call::on(group);
    communicator.all_reduce(&call, element, Reduction::Sum, input, &mut output).unwrap();
    assert!(output == fold(element, Reduction::Sum, &operands));
}

/// What each member of a job was told.
#[derive(Default)]
struct Reports(Mutex<Vec<(Member, CollectiveError)>>);

impl Reports {
    fn add(&self, communicator: &Communicator, error: CollectiveError) {
        self.0.lock().unwrap().push((communicator.member(), error));
    }

    /// The one text that `count` members were told.
    fn text(self, count: usize) -> String {
        let reports = self.0.into_inner().unwrap();
        assert_eq!(reports.len(), count, "{reports:?}");
        let text = reports[0].1.to_string();
        for (member, error) in &reports {
            assert_eq!(error.to_string(), text, "{member}");
        }
        text
    }
}

/// What most members call, what one calls instead, and which words the error has of either.
struct Difference {
    usual: Terms,
    different: Terms,
    words: fn(&Terms) -> String,
}

/// All that two calls of a collective can differ in.
fn differences(usual: Terms) -> Vec<Difference> {
    use CollectiveKind::{AllGather, AllToAllV, Barrier, CollectivePermute};
    let kind = usual.kind;
    let mut differences = Vec::new();
    let mut differ = |different: Terms, words: fn(&Terms) -> String| {
        differences.push(Difference { usual, different, words });
    };
    for other in [Barrier, AllToAllV, AllGather].into_iter().filter(|other| *other != kind) {
        let in_place = usual.in_place && has_in_place(other);
        differ(Terms { kind: other, in_place, ..usual }, |terms| format!("{}(", terms.kind));
    }
    for key in [
        None,
        Some(CollectiveKey { launch: 9, ..KEY }),
        Some(CollectiveKey { program: 9, ..KEY }),
        Some(CollectiveKey { ordinal: 9, ..KEY }),
        Some(CollectiveKey { iteration: 9, ..KEY }),
    ] {
        let words = |terms: &Terms| terms.key.map_or(")".to_owned(), |key| format!(") as {key}"));
        differ(Terms { key, ..usual }, words);
    }
    if kind != Barrier {
        for element in [ElementType::I32, ElementType::U8] {
            differ(Terms { element, ..usual }, |terms| terms.element.to_string());
        }
    }
    if kind != Barrier && kind != AllToAllV {
        // The last has more than fits into the opening, where the others have less.
        for count in [24, 3000] {
            differ(Terms { count, ..usual }, |terms| format!("{} elements", terms.count));
        }
    }
    if reduces(kind) {
        differ(Terms { reduction: Reduction::Max, ..usual }, |terms| terms.reduction.to_string());
    }
    if has_root(kind) {
        differ(Terms { root: 1, ..usual }, |terms| format!("root {}", terms.root));
    }
    if kind == CollectivePermute {
        differ(Terms { shift: 2, ..usual }, |_| "pairs ".to_owned());
    }
    differences
}

/// Whatever one member does otherwise, all are told the same, which names it and both sides, and
/// no output is touched.
fn every_difference_is_told(job: &dyn Job) {
    let cases: Vec<Difference> = every_form(TERMS).flat_map(differences).collect();
    let reports: Vec<_> = cases.iter().map(|_| Reports::default()).collect();
    job.run(AMPLE, &|communicator| {
        for (Difference { usual, different, .. }, reports) in cases.iter().zip(&reports) {
            let members = members_of(usual.kind, 3);
            if communicator.member().0 >= members {
                continue;
            }
            let group = first(&communicator, members);
            let terms = if communicator.member() == Member(1) { different } else { usual };
            let error = call(&communicator, &group, terms, None).unwrap_err();
            assert!(matches!(error.cause, CollectiveCause::Mismatch { .. }), "{error:?}");
            reports.add(&communicator, error);
            assert_works(&communicator, &group);
        }
    });
    let mut sequences = [0; 4];
    for (Difference { usual, different, words }, reports) in cases.iter().zip(reports) {
        let members = members_of(usual.kind, 3);
        let sequence = &mut sequences[members as usize];
        *sequence += 2;
        let text = reports.text(members as usize);
        let (place, sides) = text.split_once(": ").unwrap();
        let expected = format!(", #{} on devices 0-{}", *sequence - 1, members - 1);
        assert!(place.ends_with(&expected), "{text}");
        let (odd, even) = sides.split_once(" where ").unwrap();
        // Of two nobody is the odd one.
        let disagree = if members == 2 { "the members disagree: " } else { "" };
        assert!(odd.starts_with(&format!("{disagree}rank 1 (device 1) called ")), "{text}");
        assert!(even.starts_with("rank 0 (device 0)"), "{text}");
        assert!(odd.contains(&words(different)) && even.contains(&words(usual)), "{text}");
    }
}

#[test]
fn every_difference_is_told_sim() {
    every_difference_is_told(&sim(&[1; 3]));
}

#[test]
fn every_difference_is_told_quic() {
    every_difference_is_told(&quic(&[1; 3]));
}

#[test]
fn every_difference_is_told_shm() {
    every_difference_is_told(&shm(&[1; 3]));
}

/// Two members have no majority: both are named.
#[test]
fn two_members_that_disagree_are_both_named() {
    let reports = Reports::default();
    quic(&[2]).run(AMPLE, &|communicator| {
        let group = first(&communicator, 2);
        let count = if communicator.member() == Member(0) { 100 } else { 200 };
        let error = call(&communicator, &group, &Terms { count, ..TERMS }, None).unwrap_err();
        reports.add(&communicator, error);
    });
    let text = reports.text(2);
    let told = "#1 on devices 0-1: the members disagree: rank 0 (device 1) called all_reduce(sum, \
                f32, 200 elements)";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("rank 0 (device 0) called all_reduce(sum, f32, 100 elements)"), "{text}");
}

/// Of an all_to_all_v everyone learns which pair does not mean the same number, also who is in no
/// such pair, and no output is touched.
fn counts_that_do_not_match_are_told(job: &dyn Job) {
    const COUNTS: [usize; 3] = [0, 4, 3000];
    let reports = COUNTS.map(|_| Reports::default());
    job.run(AMPLE, &|communicator| {
        let group = first(&communicator, 3);
        let me = communicator.member();
        for (count, reports) in COUNTS.into_iter().zip(&reports) {
            let (mut sends, receives) = ([count; 3], [count; 3]);
            if me == Member(1) {
                sends[2] += 1;
            }
            let input = vec![3; 2 * sends.iter().sum::<usize>()];
            let mut output = vec![0xa5; 2 * 3 * count];
            let (call, element) = (Call::on(&group), ElementType::U16);
            let error = communicator
                .all_to_all_v(&call, element, &sends, &input, &receives, &mut output)
                .unwrap_err();
            assert!(output.iter().all(|byte| *byte == 0xa5), "{me} has written");
            reports.add(&communicator, error);
            assert_works(&communicator, &group);
        }
    });
    for ((index, count), reports) in COUNTS.into_iter().enumerate().zip(reports) {
        let expected = format!(
            "all_to_all_v(u16), #{} on devices 0-2: rank 1 (device 1) sends {} elements to rank 2 \
             (device 2), which expects {count}",
            2 * index + 1,
            count + 1
        );
        assert_eq!(reports.text(3), expected);
    }
}

#[test]
fn counts_that_do_not_match_are_told_sim() {
    counts_that_do_not_match_are_told(&sim(&[1; 3]));
}

#[test]
fn counts_that_do_not_match_are_told_quic() {
    counts_that_do_not_match_are_told(&quic(&[1; 3]));
}

#[test]
fn counts_that_do_not_match_are_told_shm() {
    counts_that_do_not_match_are_told(&shm(&[1; 3]));
}

/// A member asleep before its fifth collective: the others are told after the limit and not long
/// after, it is told the same when it comes, and the group works again.
#[test]
fn a_late_member_is_named_by_all_sim() {
    for terms in every_form(TERMS) {
        let members = members_of(terms.kind, 4);
        let sleeper = Member(members / 2);
        let sim = sim(&vec![1; members as usize]);
        let reports = Reports::default();
        sim.run(Duration::from_secs(5), &|communicator| {
            let group = first(&communicator, members);
            for _ in 0..4 {
                call(&communicator, &group, &terms, None).unwrap();
            }
            let late = communicator.member() == sleeper;
            if late {
                sim.0.sleep(sleeper, Duration::from_secs(100));
            }
            let start = sim.0.now();
            let error = call(&communicator, &group, &terms, None).unwrap_err();
            let waited = sim.0.now() - start;
            let limits = if late { 0..1 } else { 5..6 };
            assert!(limits.contains(&waited.as_secs()), "{}: {waited:?}", terms.kind);
            reports.add(&communicator, error);
            sim.0.sleep(communicator.member(), Duration::from_secs(200) - sim.0.now());
            assert_works(&communicator, &group);
        });
        let text = reports.text(members as usize);
        assert!(text.starts_with(&format!("{}(", terms.kind)), "{text}");
        let number = sleeper.0;
        let told = format!(
            ", #5 on devices 0-{}: rank {number} (device {number}) did not take part within 5s",
            members - 1
        );
        assert!(text.contains(&told), "{text}");
    }
}

/// As above, by the real clock.
fn a_late_member_is_named_by_all(job: &dyn Job, terms: &Terms) {
    let limit = Duration::from_millis(300);
    let told = Barrier::new(4);
    let reports = Reports::default();
    job.run(AMPLE, &|communicator| {
        let group = first(&communicator, 4);
        assert_works(&communicator, &group);
        let late = communicator.member() == Member(2);
        if late {
            told.wait();
        }
        let start = Instant::now();
        let error = call(&communicator, &group, terms, Some(limit)).unwrap_err();
        let waited = start.elapsed();
        reports.add(&communicator, error);
        if !late {
            told.wait();
        }
        assert!(late || waited < limit + Duration::from_secs(2), "{waited:?}");
        assert_works(&communicator, &group);
    });
    let text = reports.text(4);
    assert!(text.contains("rank 2 (device 2) did not take part within 300ms"), "{text}");
}

/// The operands do not fit into the opening: else the late member, which comes right behind the
/// others' notices, might find that it has all it needs.
#[test]
fn a_late_member_is_named_by_all_quic() {
    a_late_member_is_named_by_all(&quic(&[1; 4]), &Terms { count: 3000, ..TERMS });
}

/// Here it does not: those who have left a round say so where they posted.
#[test]
fn a_late_member_is_named_by_all_shm() {
    use CollectiveKind::{AllGather, AllReduce, Barrier};
    for kind in [AllReduce, AllGather, Barrier] {
        for count in [12, 3000, 100_000] {
            a_late_member_is_named_by_all(&shm(&[1; 4]), &Terms { kind, count, ..TERMS });
        }
    }
}

/// By two levels, which the size makes an all-gather take: some wait in memory, some for messages.
#[test]
fn a_late_member_is_named_by_all_between_hosts() {
    let terms = Terms { kind: CollectiveKind::AllGather, count: 100_000, ..TERMS };
    a_late_member_is_named_by_all(&shm_on(&[1; 4], &[0, 0, 1, 1]), &terms);
    a_late_member_is_named_by_all(&shm_on(&[1; 4], &[0, 1, 0, 0]), &terms);
}

/// A member that is slow but not too slow is waited for, in every collective.
#[test]
fn a_member_within_the_limit_is_waited_for() {
    let sim = sim(&[1; 3]);
    sim.run(Duration::from_secs(60), &|communicator| {
        for terms in every_form(TERMS) {
            let members = members_of(terms.kind, 3);
            if communicator.member().0 >= members {
                continue;
            }
            let group = first(&communicator, members);
            let start = sim.0.now();
            if communicator.member() == Member(1) {
                sim.0.sleep(Member(1), Duration::from_secs(40));
            }
            call(&communicator, &group, &terms, None).unwrap();
            // Those of a pair do not wait for it before: it is where it sends that they do.
            let waited = (sim.0.now() - start).as_secs();
            assert!(waited >= 40, "{}: {waited} s", terms.kind);
        }
    });
}

/// A rank cut off from the others finds them late, they find it late; then the network heals.
#[test]
fn a_partition_is_named_on_both_sides_and_heals() {
    let sim = sim(&[1; 3]);
    sim.run(Duration::from_secs(5), &|communicator| {
        let group = first(&communicator, 3);
        let me = communicator.member();
        assert_works(&communicator, &group);
        if me == Member(0) {
            sim.0.partition(&[Rank(0)]);
        }
        sim.0.sleep(me, Duration::from_secs(1));
        let error = call(&communicator, &group, &TERMS, None).unwrap_err();
        let CollectiveCause::Late { missing, .. } = &error.cause else { panic!("{error}") };
        let missing: Vec<u32> = missing.iter().map(|participant| participant.rank.0).collect();
        assert_eq!(missing, if me == Member(0) { vec![1, 2] } else { vec![0] });
        sim.0.sleep(me, Duration::from_secs(1));
        if me == Member(0) {
            sim.0.heal();
        }
        sim.0.sleep(me, Duration::from_secs(1));
        assert_works(&communicator, &group);
    });
}

const KILLED: FailureCause = FailureCause::Signalled { signal: 9 };

/// A killed rank is named with its signal by those whose group it was in, at once; groups without
/// it do not notice, and the survivors go on.
#[test]
fn a_dead_rank_is_named_with_its_cause_sim() {
    let sim = sim(&[1; 4]);
    let reports = Reports::default();
    sim.run(AMPLE, &|communicator| {
        let me = communicator.member();
        let all = first(&communicator, 4);
        assert_works(&communicator, &all);
        if me == Member(3) {
            sim.0.sleep(me, Duration::from_secs(1));
            sim.0.kill(Rank(3), KILLED, Duration::from_millis(10));
            return;
        }
        let error = call(&communicator, &all, &TERMS, None).unwrap_err();
        assert!((1.0..1.1).contains(&sim.0.now().as_secs_f64()), "{:?}", sim.0.now());
        reports.add(&communicator, error);
        assert_works(&communicator, &first(&communicator, 3));
        let again = call(&communicator, &all, &TERMS, None).unwrap_err();
        assert!(matches!(again.cause, CollectiveCause::RankFailed(_)), "{again}");
    });
    let text = reports.text(3);
    assert!(text.ends_with("#2 on devices 0-3: rank 3 was killed by signal 9 (SIGKILL)"), "{text}");
}

/// The same by the real clock, where the news comes from the rendezvous while the others wait.
fn a_dead_rank_is_named_with_its_cause(job: &Quic) {
    let reports = Reports::default();
    let start = Instant::now();
    let begun = Barrier::new(4);
    job.run(AMPLE, &|communicator| {
        let all = first(&communicator, 4);
        assert_works(&communicator, &all);
        begun.wait();
        if communicator.member() == Member(3) {
            for transport in &job.transports {
                transport.fail_rank(RankFailure { rank: Rank(3), cause: KILLED });
            }
            return;
        }
        reports.add(&communicator, call(&communicator, &all, &TERMS, None).unwrap_err());
        assert_works(&communicator, &first(&communicator, 3));
    });
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let text = reports.text(3);
    assert!(text.ends_with("#2 on devices 0-3: rank 3 was killed by signal 9 (SIGKILL)"), "{text}");
}

#[test]
fn a_dead_rank_is_named_with_its_cause_quic() {
    a_dead_rank_is_named_with_its_cause(&quic(&[1; 4]));
}

#[test]
fn a_dead_rank_is_named_with_its_cause_shm() {
    a_dead_rank_is_named_with_its_cause(&shm(&[1; 4]));
}

/// The news of a death comes at any moment of an operation, which is through then or fails for that
/// reason; either way those that are left go on.
#[test]
fn the_news_of_a_death_ends_two_levels_at_any_moment() {
    for delay_us in [0, 50, 200, 500, 1000, 2000, 4000] {
        let job = shm_on(&[1; 5], &[0, 0, 1, 1, 0]);
        let begun = Barrier::new(6);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                let until = Instant::now() + Duration::from_micros(delay_us);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                for transport in &job.transports {
                    transport.fail_rank(RankFailure { rank: Rank(3), cause: KILLED });
                }
            });
            job.run(AMPLE, &|communicator| {
                let all = first(&communicator, 5);
                assert_works(&communicator, &all);
                let member = communicator.member().0;
                let input = operand(ElementType::U8, member, 300_000);
                let mut output = vec![0; 5 * input.len()];
                begun.wait();
                let element = ElementType::U8;
                match communicator.all_gather(&Call::on(&all), element, &input, &mut output) {
                    Ok(()) => {
                        let all = (0..5).flat_map(|from| operand(element, from, 300_000));
                        assert!(output.into_iter().eq(all));
                    }
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("rank 3 was killed by signal 9"), "{text}");
                    }
                }
                if member < 3 {
                    assert_works(&communicator, &first(&communicator, 3));
                }
            });
        });
    }
}

/// A member that cannot take part tells the others instead of leaving them to wait.
fn a_member_that_cannot_take_part_tells_the_others(job: &dyn Job) {
    let reports = Reports::default();
    job.run(AMPLE, &|communicator| {
        let group = first(&communicator, 3);
        if communicator.member() == Member(1) {
            let mut output = [0; 3];
            let call = Call::on(&group);
            let error = communicator.all_reduce(
                &call,
                ElementType::F32,
                Reduction::Sum,
                &[0; 4],
                &mut output,
            );
            reports.add(&communicator, error.unwrap_err());
        } else {
            let terms = Terms { count: 1, key: None, ..TERMS };
            reports.add(&communicator, call(&communicator, &group, &terms, None).unwrap_err());
        }
        assert_works(&communicator, &group);
    });
    assert_eq!(
        reports.text(3),
        "all_reduce(sum, f32, 1 elements), #1 on devices 0-2: rank 1 (device 1) cannot take part: \
         the output has 3 bytes where 4 are expected"
    );
}

#[test]
fn a_member_that_cannot_take_part_tells_the_others_sim() {
    a_member_that_cannot_take_part_tells_the_others(&sim(&[1; 3]));
}

#[test]
fn a_member_that_cannot_take_part_tells_the_others_quic() {
    a_member_that_cannot_take_part_tells_the_others(&quic(&[1; 3]));
}

#[test]
fn a_member_that_cannot_take_part_tells_the_others_shm() {
    a_member_that_cannot_take_part_tells_the_others(&shm(&[1; 3]));
}

/// Whatever the others call, and however much they have to move, they are told at once by whom and
/// why it does not happen, and the group stays in step.
fn declining_ends_the_collective_of_all(job: &dyn Job) {
    let cases: Vec<Terms> =
        [12, 3000].into_iter().flat_map(|count| every_form(Terms { count, ..TERMS })).collect();
    let reports: Vec<_> = cases.iter().map(|_| Reports::default()).collect();
    job.run(AMPLE, &|communicator| {
        for (terms, reports) in cases.iter().zip(&reports) {
            let members = members_of(terms.kind, 3);
            if communicator.member().0 >= members {
                continue;
            }
            let group = first(&communicator, members);
            if communicator.member() == Member(1) {
                communicator.decline(&group, "its input is lost");
            } else {
                reports.add(&communicator, call(&communicator, &group, terms, None).unwrap_err());
            }
            assert_works(&communicator, &group);
        }
    });
    let mut sequences = [0; 4];
    for (terms, reports) in cases.iter().zip(reports) {
        let members = members_of(terms.kind, 3);
        let sequence = &mut sequences[members as usize];
        *sequence += 2;
        let text = reports.text(members as usize - 1);
        assert!(text.starts_with(&format!("{}(", terms.kind)), "{text}");
        let told = format!(
            "launch 1, iteration 4, #{} on devices 0-{}: rank 1 does not take part: its input is \
             lost",
            *sequence - 1,
            members - 1
        );
        assert!(text.ends_with(&told), "{text}");
    }
}

#[test]
fn declining_ends_the_collective_of_all_sim() {
    declining_ends_the_collective_of_all(&sim(&[1; 3]));
}

#[test]
fn declining_ends_the_collective_of_all_quic() {
    declining_ends_the_collective_of_all(&quic(&[1; 3]));
}

#[test]
fn declining_ends_the_collective_of_all_shm() {
    declining_ends_the_collective_of_all(&shm(&[1; 3]));
}

/// A reason beyond the limit is cut between two characters.
#[test]
fn a_long_reason_is_cut() {
    let reports = Reports::default();
    sim(&[1; 2]).run(AMPLE, &|communicator| {
        let group = first(&communicator, 2);
        if communicator.member() == Member(0) {
            communicator.decline(&group, &"x\u{00e9}".repeat(MAX_REASON_BYTES));
        } else {
            reports.add(&communicator, call(&communicator, &group, &TERMS, None).unwrap_err());
        }
    });
    let text = reports.text(1);
    let (_, reason) = text.rsplit_once("part: ").unwrap();
    // The limit is within a repetition of three bytes: after its first.
    assert_eq!(reason, "x\u{00e9}".repeat(MAX_REASON_BYTES / 3) + "x");
}

/// Two groups in one launch. Member 0 fails in the first with member 1, so it declines the second,
/// in which member 2 waits or does not; whoever did what, the next epoch is everyone's.
fn an_epoch_that_ends_early_leaves_the_next_in_step(job: &dyn Job) {
    job.run(AMPLE, &|communicator| {
        let group = |pair: [u32; 2]| communicator.group(&pair.map(Member)).unwrap();
        for round in 1..=10 {
            let fails = round % 2 == 1;
            match communicator.member() {
                Member(0) => {
                    let groups = [group([0, 1]), group([0, 2])];
                    groups.iter().for_each(Group::begin_epoch);
                    if fails {
                        call(&communicator, &groups[0], &TERMS, None).unwrap_err();
                        for group in &groups {
                            communicator.decline(group, "no luck");
                        }
                    } else {
                        for group in &groups {
                            assert_works(&communicator, group);
                        }
                    }
                }
                Member(1) => {
                    let group = group([0, 1]);
                    group.begin_epoch();
                    if fails {
                        communicator.decline(&group, "no memory");
                    } else {
                        assert_works(&communicator, &group);
                    }
                }
                _ => {
                    let group = group([0, 2]);
                    group.begin_epoch();
                    // It comes to none of its collectives, to the declined one, or to all.
                    match round % 4 {
                        1 => {}
                        3 => {
                            let error = call(&communicator, &group, &TERMS, None).unwrap_err();
                            let told = format!(
                                ", #{round}.1 on devices 0, 2: rank 0 does not take part: no luck"
                            );
                            assert!(error.to_string().ends_with(&told), "{error}");
                            communicator.decline(&group, &error.to_string());
                        }
                        _ => assert_works(&communicator, &group),
                    }
                }
            }
        }
    });
}

#[test]
fn an_epoch_that_ends_early_leaves_the_next_in_step_sim() {
    an_epoch_that_ends_early_leaves_the_next_in_step(&sim(&[1; 3]));
}

#[test]
fn an_epoch_that_ends_early_leaves_the_next_in_step_quic() {
    an_epoch_that_ends_early_leaves_the_next_in_step(&quic(&[1; 3]));
}

#[test]
fn an_epoch_that_ends_early_leaves_the_next_in_step_shm() {
    an_epoch_that_ends_early_leaves_the_next_in_step(&shm(&[1; 3]));
}

/// A member that gives up tells the others.
fn cancelling_ends_the_wait_of_all(job: &dyn Job) {
    let reports = Reports::default();
    let token = CancelToken::new();
    let entered = Barrier::new(2);
    job.run(AMPLE, &|communicator| {
        let group = first(&communicator, 3);
        // Another group, so that nobody's collective waits for the one that cancels.
        match communicator.member() {
            Member(2) => {
                let pair = communicator.group(&[Member(0), Member(2)]).unwrap();
                communicator.barrier(&Call::on(&pair)).unwrap();
                entered.wait();
                token.cancel();
            }
            Member(0) => {
                let pair = communicator.group(&[Member(0), Member(2)]).unwrap();
                communicator.barrier(&Call::on(&pair)).unwrap();
                entered.wait();
            }
            _ => {}
        }
        let cancel = (communicator.member() == Member(0)).then_some(&token);
        let call = Call { cancel, ..Call::on(&group) };
        if communicator.member() != Member(2) {
            reports.add(&communicator, communicator.barrier(&call).unwrap_err());
        }
    });
    let text = reports.text(2);
    assert_eq!(text, "barrier(), #1 on devices 0-2: cancelled by rank 0 (device 0)");
}

#[test]
fn cancelling_ends_the_wait_of_all_quic() {
    cancelling_ends_the_wait_of_all(&quic(&[1; 3]));
}

#[test]
fn cancelling_ends_the_wait_of_all_shm() {
    cancelling_ends_the_wait_of_all(&shm(&[1; 3]));
}

#[test]
fn cancelling_ends_the_wait_of_all_sim() {
    let sim = sim(&[1; 3]);
    let reports = Reports::default();
    let token = CancelToken::new();
    sim.run(AMPLE, &|communicator| {
        let group = first(&communicator, 3);
        let me = communicator.member();
        if me == Member(2) {
            sim.0.sleep(me, Duration::from_secs(1));
            token.cancel();
            sim.0.sleep(me, Duration::from_secs(1));
        }
        let cancel = (me == Member(0)).then_some(&token);
        let call = Call { cancel, ..Call::on(&group) };
        reports.add(&communicator, communicator.barrier(&call).unwrap_err());
        assert!(sim.0.now() < Duration::from_secs(3), "{:?}", sim.0.now());
    });
    let text = reports.text(3);
    assert_eq!(text, "barrier(), #1 on devices 0-2: cancelled by rank 0 (device 0)");
}

/// A process that leaves right after its last collective: the others still get all of it, and a
/// collective with it fails soon and says so.
#[test]
fn a_process_that_leaves_harms_nobody() {
    let mut quic = quic(&[1; 3]);
    let transports = std::mem::take(&mut quic.transports);
    std::thread::scope(|scope| {
        for (member, transport) in (0..).map(Member).zip(transports) {
            scope.spawn(move || {
                let communicator = Communicator::new(member, transport, AMPLE);
                let all = first(&communicator, 3);
                let element = ElementType::U8;
                let own = operand(element, member.0, 300_000);
                let mut output = vec![0; 900_000];
                communicator.all_gather(&Call::on(&all), element, &own, &mut output).unwrap();
                if member == Member(0) {
                    return;
                }
                let expected: Vec<u8> = (0..3).flat_map(|m| operand(element, m, 300_000)).collect();
                assert!(output == expected);
                let pair = communicator.group(&[Member(2), Member(1)]).unwrap();
                assert_works(&communicator, &pair);
                let error = communicator.barrier(&Call::on(&all)).unwrap_err();
                let told = "barrier(), #2 on devices 0-2: rank 0 left the job";
                assert_eq!(error.to_string(), told);
            });
        }
    });
}
