//! Whole jobs: the launcher, real processes, their rendezvous, and what happens when one fails.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod job;
mod processes;

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use job::{Job, Outcome, expect_nothing_left};

const PROGRAM: &str = "examples/job_under_test";
const TRAIN: &str = "examples/train_mlp";

/// The losses of a training, one an epoch.
fn losses(outcome: &Outcome) -> Vec<f64> {
    let lines = outcome.stdout_of(0);
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("epoch")?.rsplit(' ').next()?.parse().ok())
        .collect()
}

fn number_after(outcome: &Outcome, label: &str) -> f64 {
    let lines = outcome.stdout_of(0);
    let rest = lines.iter().find_map(|line| line.strip_prefix(label));
    let rest = rest.unwrap_or_else(|| panic!("no line {label:?} in {lines:?}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn training_learns_and_does_not_depend_on_the_number_of_processes() {
    let run = |n: &str| Job::start(&["-n", n], TRAIN, &[], &[]).finish().expect_success();
    let one = run("1");
    assert_eq!(losses(&one).len(), 15);
    for n in ["2", "4"] {
        let many = run(n);
        assert!(number_after(&many, "test accuracy ") >= 0.95);
        let verdict = format!("parameters identical on {n} processes: yes");
        assert!(many.stdout_of(0).contains(&verdict.as_str()), "{:?}", many.stdout);
        assert_eq!(losses(&many).len(), 15);
        for (epoch, (one, many)) in losses(&one).into_iter().zip(losses(&many)).enumerate() {
            let relative = ((many - one) / one).abs();
            assert!(relative <= 1e-4, "epoch {epoch}: {one} on 1 process, {many} on {n}");
        }
    }
}

#[test]
fn training_runs_on_several_devices_of_one_process() {
    let options = ["-n", "2", "-d", "2"];
    let run = || Job::start(&options, TRAIN, &["--epochs", "2"], &[]).finish().expect_success();
    let (first, second) = (run(), run());
    assert_eq!(losses(&first).len(), 2);
    // Invariant I4.
    assert_eq!(losses(&first), losses(&second));
}

#[test]
fn a_killed_rank_ends_the_job_and_is_named() {
    for rank in [0, 2] {
        let mut job = Job::start(&["-n", "4"], TRAIN, &["--epochs", "1000000"], &[]);
        job.wait_for_line(|line| line.contains("epoch  1"));
        let id = job.id();
        let pid = job.process_of(rank);
        let start = Instant::now();
        assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
        let outcome = job.finish();
        let took = start.elapsed();
        assert_eq!(outcome.code, Some(128 + 9));
        assert!(took < Duration::from_secs(2), "the job ended after {took:?}");
        expect_nothing_left(&id, Duration::from_secs(1));
        // Every survivor was told the same.
        for survivor in (0..4).filter(|&survivor| survivor != rank) {
            let said = outcome.stderr_of(survivor);
            assert!(
                said.contains(&format!("rank {rank} was killed by signal 9 (SIGKILL)")),
                "{said}"
            );
        }
        let summary = outcome.stderr.join("\n");
        assert!(summary.contains(&format!("rank {rank}")), "{summary}");
        assert!(summary.contains(&pid.to_string()), "{summary}");
    }
}

#[test]
fn a_stuck_rank_is_named_by_all_others_within_the_deadline() {
    let start = Instant::now();
    let job = Job::start(
        &["-n", "4"],
        PROGRAM,
        &["steps", "10", "sleep", "2", "4"],
        &[("LOCKSTEP_COLLECTIVE_TIMEOUT", "5s")],
    );
    let outcome = job.finish();
    let took = start.elapsed();
    assert_eq!(outcome.code, Some(1), "{:#?}", outcome.stderr);
    assert!(took < Duration::from_secs(9), "the job ended after {took:?}");
    let said: Vec<String> = [0, 1, 3].map(|rank| outcome.stderr_of(rank)).to_vec();
    for said in &said {
        assert!(said.contains("rank 2"), "{said}");
        assert!(said.contains("all_reduce"), "{said}");
        // The first collective of the fifth step, both counted from 1.
        assert!(said.contains("#5.1"), "{said}");
        assert!(said.contains("5s"), "{said}");
    }
    assert_eq!(said[0], said[1], "the same error on every rank");
    assert_eq!(said[0], said[2], "the same error on every rank");
    assert_eq!(outcome.stdout_of(0).len(), 4);
}

#[test]
fn programs_that_differ_are_refused_on_every_rank_before_anything_runs() {
    for (kind, evidence) in [("shape", "4x4xf32"), ("constant", "2.0"), ("fewer", "all_reduce")] {
        let outcome = Job::start(&["-n", "4"], PROGRAM, &["variant", kind, "2"], &[]).finish();
        assert_eq!(outcome.code, Some(1), "{kind}: {outcome:#?}");
        assert!(outcome.stdout.is_empty(), "{kind}: a step ran: {:?}", outcome.stdout);
        for rank in 0..4 {
            let said = outcome.stderr_of(rank);
            assert!(said.contains("rank 2"), "{kind}, rank {rank}: {said}");
            assert!(said.contains(evidence), "{kind}, rank {rank}: {said}");
        }
    }
    let outcome = Job::start(&["-n", "4"], PROGRAM, &["variant", "same", "2"], &[]).finish();
    assert_eq!(outcome.expect_success().stdout.len(), 4);
}

#[test]
fn rank_zero_may_leave_first() {
    for leaver in ["0", "3"] {
        let arguments = ["steps", "5", "leave-first", leaver];
        let outcome = Job::start(&["-n", "4"], PROGRAM, &arguments, &[]).finish().expect_success();
        assert!(outcome.stderr.is_empty(), "{:?}", outcome.stderr);
        for rank in 0..4 {
            let expected = if rank.to_string() == leaver { 5 } else { 10 };
            assert_eq!(outcome.stdout_of(rank).len(), expected, "rank {rank}");
        }
    }
}

#[test]
fn strangers_are_refused_with_a_reason_and_harm_nobody() {
    let folder = tempfile::tempdir().unwrap();
    // The job is half done, and goes on only when all strangers have knocked.
    let gone = folder.path().join("gone");
    let arguments = ["steps", "6000", "wait-for", gone.to_str().unwrap()];
    let mut job = Job::start(&["-n", "2"], PROGRAM, &arguments, &[]);
    job.wait_for_line(|line| line.contains("step 3 "));
    let other_key = folder.path().join("key");
    lockstep_collectives::JobSecret::generate().unwrap().write_new(&other_key).unwrap();
    let other_key = other_key.to_str().unwrap();
    for (variable, value, reason) in [
        ("LOCKSTEP_KEY_FILE", other_key, "another job secret"),
        ("LOCKSTEP_JOB", "another-job", "another-job"),
        ("LOCKSTEP_ATTEMPT", "7", "attempt 7"),
        // Nothing changed: a second rank 1.
        ("LOCKSTEP_RANK", "1", "rank 1"),
    ] {
        let stranger = Command::new(job::built(PROGRAM))
            .args(["steps", "1"])
            .envs(job.variables_of(1))
            .env(variable, value)
            .env("LOCKSTEP_INIT_TIMEOUT", "5s")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&stranger.stderr);
        assert!(!stranger.status.success(), "{variable}={value} was let in");
        assert!(said.contains(reason), "{variable}={value}: {said}");
        assert!(stranger.stdout.is_empty());
    }
    std::fs::write(&gone, "").unwrap();
    let outcome = job.finish().expect_success();
    assert_eq!(outcome.stdout_of(1).len(), 6000);
    // The launcher says that somebody knocked, at most once a second for each peer.
    assert!(outcome.stderr.len() < 30, "a log flood: {:#?}", outcome.stderr);
}

#[test]
fn a_flood_of_datagrams_changes_nothing_but_time() {
    let train = || Job::start(&["-n", "4"], TRAIN, &["--epochs", "4"], &[]);
    let calm = losses(&train().finish().expect_success());
    let mut job = train();
    job.wait_for_line(|line| line.contains("epoch  1"));
    let targets = job.udp_addresses();
    assert!(targets.len() >= 5, "a coordinator and four ranks: {targets:?}");
    let over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut state = 1_u64;
            for round in 0.. {
                let bytes: Vec<u8> = (0..(round * 37) % 1400 + 1)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (state >> 56) as u8
                    })
                    .collect();
                for target in &targets {
                    // The job may be over, and its ports closed.
                    let _ = socket.send_to(&bytes, target);
                }
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let outcome = job.finish();
        over.store(true, Ordering::Relaxed);
        outcome
    });
    let outcome = outcome.expect_success();
    assert_eq!(losses(&outcome), calm);
    assert!(outcome.stderr.len() < 100, "a log flood: {} lines", outcome.stderr.len());
}

#[test]
fn hello_world_sums_over_all_devices() {
    for (options, devices, sum) in
        [(&["-n", "4"][..], 4, 10), (&["-n", "2"], 2, 3), (&["-n", "2", "-d", "2"], 4, 10)]
    {
        let outcome =
            Job::start(options, "examples/hello_world", &[], &[]).finish().expect_success();
        let expected = format!("the sum over all devices is {sum}");
        let sums = outcome.stdout.iter().filter(|line| line.ends_with(&expected)).count();
        let processes: usize = options[1].parse().unwrap();
        assert_eq!(sums, processes, "{devices} devices: {:?}", outcome.stdout);
    }
}
