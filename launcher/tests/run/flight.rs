//! The merged report of what the ranks' collectives were when a job failed.

use std::time::Duration;

use lockstep_collectives::{Call, ElementType, Member, Reduction, World};
use rustix::process::Signal;

use crate::support::{Scratch, code, finish, lockstep, signal, stderr};

/// How long the ranks wait for each other in a collective.
const TIMEOUT: &str = "LOCKSTEP_COLLECTIVE_TIMEOUT=2s";

/// Runs four processes that each call [`rank`] in the given role; what stderr says of collectives.
fn run_ranks(role: &str, options: &[&str]) -> (i32, Vec<String>) {
    let program = std::env::current_exe().unwrap();
    let mut command = lockstep(["run", "-n", "4", "-x", &format!("ROLE={role}"), "-x", TIMEOUT]);
    command.args(options).arg(program);
    command.args(["--ignored", "--exact", "--nocapture", "flight::rank"]);
    let output = finish(command.spawn().unwrap());
    let text = stderr(&output);
    let mut lines = text.lines().skip_while(|line| !line.contains("the collectives of each rank"));
    assert!(lines.next().is_some(), "{text}");
    let report = lines.map_while(|line| line.strip_prefix("  | ").map(str::to_owned));
    let report = report.collect();
    assert_eq!(text.matches("the collectives of each rank").count(), 1, "{text}");
    (code(&output), report)
}

/// Three all-reduces by everyone; then rank 1 plays its role, and the others run a fourth.
#[test]
#[ignore = "not a test: what the processes of the tests here run"]
fn rank() {
    let Ok(role) = std::env::var("ROLE") else { return };
    let world = World::from_environment().unwrap();
    let communicator = world.communicator(Member(world.rank().0));
    let group = communicator.group(&[0, 1, 2, 3].map(Member)).unwrap();
    let reduce = || {
        let mut output = [0; 12];
        let (element, sum) = (ElementType::I32, Reduction::Sum);
        communicator.all_reduce(&Call::on(&group), element, sum, &[1; 12], &mut output)
    };
    for _ in 0..3 {
        reduce().unwrap();
    }
    let log = world.flight_log();
    assert_eq!((log.recorded, log.entries.len()), (3, 3));
    if world.rank().0 != 1 {
        // A failure of the fourth ends the process as an error that `main` returns would.
        let failed = reduce().is_err();
        drop(world);
        std::process::exit(i32::from(failed));
    }
    match role.as_str() {
        "killed" => signal(std::process::id(), Signal::KILL),
        "raises" => panic!("as the test wants it"),
        "stuck" => std::thread::sleep(Duration::from_secs(1000)),
        "stopped" => signal(std::process::id(), Signal::STOP),
        other => panic!("{other:?}"),
    }
}

/// The line of rank 1. All others say that they waited for the fourth, or learnt that it is in
/// vain; one that did not end in time by itself says so in a line of its own.
fn line_of_rank_1(report: &[String]) -> &str {
    let (rank_1, others): (Vec<_>, Vec<_>) =
        report.iter().partition(|line| line.starts_with("rank 1: "));
    let mut named = Vec::new();
    for line in others {
        let (ranks, said) = line.split_once(": ").unwrap();
        named.extend(ranks.chars().filter(char::is_ascii_digit));
        let begin = "all_reduce(i32, 3 elements) #4 of 4 members failed after ";
        assert!(said.starts_with(begin), "{line}");
        let before = "; the last to complete was all_reduce(i32, 3 elements) #3 of 4 members";
        assert!(said.contains(before), "{line}");
    }
    named.sort_unstable();
    assert_eq!(named, ['0', '2', '3'], "{report:?}");
    assert_eq!(rank_1.len(), 1, "{report:?}");
    rank_1[0]
}

#[test]
fn a_killed_rank_has_a_line() {
    let (code, report) = run_ranks("killed", &[]);
    assert_eq!(code, 137);
    let expected = "rank 1: said nothing of its collectives; it was killed by signal 9 (SIGKILL)";
    assert_eq!(line_of_rank_1(&report), expected);
}

#[test]
fn a_rank_that_raised_has_a_line() {
    let (code, report) = run_ranks("raises", &[]);
    assert_eq!(code, 101);
    let line = line_of_rank_1(&report);
    assert!(line.starts_with("rank 1: in none for "), "{line}");
    let end = ", since all_reduce(i32, 3 elements) #3 of 4 members completed; \
               it exited with code 101";
    assert!(line.ends_with(end), "{line}");
}

#[test]
fn a_stuck_rank_has_a_line_and_the_file_has_all() {
    let scratch = Scratch::new();
    let file = scratch.file("flight.json");
    let (code, report) = run_ranks("stuck", &["--flight-report", &file]);
    assert_eq!(code, 1);
    let line = line_of_rank_1(&report);
    let words = "rank 1: in none for 2.";
    assert!(line.starts_with(words) && line.ends_with(" completed"), "{line}");

    let document: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for (rank, states) in [
        (0, &["completed", "completed", "completed", "failed"][..]),
        (1, &["completed", "completed", "completed"]),
    ] {
        let entries = document["ranks"][rank]["entries"].as_array().unwrap();
        let found: Vec<_> = entries.iter().map(|entry| entry["state"].as_str().unwrap()).collect();
        assert_eq!(found, states, "rank {rank}");
        assert_eq!(entries[2]["operation"], "#3");
    }
}

#[test]
fn a_stopped_rank_that_answers_nobody_has_a_line() {
    let (code, report) = run_ranks("stopped", &["--kill-grace", "100ms"]);
    assert_eq!(code, 1);
    let line = line_of_rank_1(&report);
    // When it is told to end it goes on for a moment, in which it may still answer.
    let silent = line == "rank 1: said nothing of its collectives";
    assert!(silent || line.starts_with("rank 1: in none for "), "{line}");
}
