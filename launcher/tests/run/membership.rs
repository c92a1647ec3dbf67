//! What the launcher, which hosts the rendezvous, and the ranks know of each other.

use std::process::Output;
use std::time::{Duration, Instant};

use lockstep_collectives::World;
use rustix::process::Signal;

use crate::support::{code, eventually, finish, is_alive, lockstep, signal, stderr};

/// Runs three processes that each call [`rank`] in the given role.
fn run_ranks(role: &str, options: &[&str]) -> Output {
    let program = std::env::current_exe().unwrap();
    let mut command = lockstep(["run", "-n", "3", "-x", &format!("ROLE={role}")]);
    command.args(options).arg(program);
    command.args(["--ignored", "--exact", "--nocapture", "membership::rank"]);
    finish(command.spawn().unwrap())
}

#[test]
#[ignore = "not a test: what the processes of the tests here run"]
fn rank() {
    let Ok(role) = std::env::var("ROLE") else {
        return;
    };
    if role == "latecomer" && std::env::var("LOCKSTEP_RANK").unwrap() == "2" {
        std::thread::sleep(Duration::from_secs(1000));
    }
    let world = World::from_environment().unwrap();
    let session = world.session().unwrap();
    let rank = world.rank().0;
    match (role.as_str(), rank) {
        ("victim", 1) => signal(std::process::id(), Signal::KILL),
        ("victim", _) => {
            let failure = session.failures().wait(Duration::from_secs(60)).unwrap();
            eprintln!("{failure}");
            std::process::exit(1);
        }
        ("first_to_leave", 0) => {}
        ("first_to_leave", _) => {
            let first = world.topology().ranks()[0].process_id;
            eventually("the end of rank 0", || (!is_alive(first)).then_some(()));
            session.set(&format!("rank {rank}"), "here").unwrap();
            let other = format!("rank {}", 3 - rank);
            assert_eq!(session.get(&other, Duration::from_secs(60)).unwrap(), "here");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn survivors_learn_of_a_death_at_once_and_end_by_themselves() {
    let start = Instant::now();
    let output = run_ranks("victim", &[]);
    assert_eq!(code(&output), 137);
    let text = stderr(&output);
    let news = text.lines().filter(|line| *line == "rank 1 was killed by signal 9 (SIGKILL)");
    assert_eq!(news.count(), 2, "{text}");
    assert_eq!(text.matches(") exited with code 1\n").count(), 2, "{text}");
    assert!(text.contains("failed first: it was killed by signal 9 (SIGKILL)"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn the_first_rank_may_leave_first() {
    let output = run_ranks("first_to_leave", &[]);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

#[test]
fn who_does_not_join_in_time_is_named() {
    let output = run_ranks("latecomer", &["--start-timeout", "500ms"]);
    assert_eq!(code(&output), 125);
    let last = stderr(&output).lines().last().unwrap().to_owned();
    assert_eq!(last, "lockstep: rank 2 did not join the job within 500ms (--start-timeout)");
}

#[test]
fn programs_that_never_join_are_not_waited_for() {
    let output = finish(
        lockstep(["run", "-n", "2", "--start-timeout", "1ms", "sleep", "0.5"]).spawn().unwrap(),
    );
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}
