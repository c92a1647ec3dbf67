//! What every implementation of [`Client`] must do, on jobs of several shapes.
//!
//! A case is a function of a client. All processes of a job run the cases of a topic in the same
//! order, each over its own client, so a case may move arrays between processes. What a case
//! needs and a job does not have, the table of skips says, with the reason.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod arrays;
mod clients;
mod executions;
mod failures;
mod fixture;
mod jobs;
mod movement;
mod shardings;
mod values;

use std::sync::Arc;

use fixture::Fixture;
use jobs::{Job, TOPIC};
use lockstep::client;
use lockstep::ifrt::Client;

/// One thing that a client must do.
struct Case {
    name: &'static str,
    run: fn(&Fixture),
}

/// The cases of a topic, by the names of their functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$($crate::Case { name: stringify!($name), run: $name }),*]
    };
}
pub(crate) use cases;

/// The topics, and a test of each on every job.
macro_rules! topics {
    ($($topic:ident),* $(,)?) => {
        const TOPICS: &[(&str, &[Case])] = &[$((stringify!($topic), $topic::CASES)),*];

        mod one_device {
            $(#[test] fn $topic() { super::conform(super::ONE_DEVICE, stringify!($topic)); })*
        }
        mod one_process {
            $(#[test] fn $topic() { super::conform(super::ONE_PROCESS, stringify!($topic)); })*
        }
        mod two_processes {
            $(#[test] fn $topic() { super::conform(super::TWO_PROCESSES, stringify!($topic)); })*
        }
        mod four_processes {
            $(#[test] fn $topic() { super::conform(super::FOUR_PROCESSES, stringify!($topic)); })*
        }
        mod two_clients_of_one_process {
            $(#[test] fn $topic() { super::conform(super::TWO_CLIENTS, stringify!($topic)); })*
        }
    };
}

topics!(arrays, clients, executions, movement, shardings, values);

/// Topics that not every job runs.
const OTHER_TOPICS: &[(&str, &[Case])] = &[("failures", failures::CASES)];

const ONE_DEVICE: Job = Job::new("one device", &[1]);
const ONE_PROCESS: Job = Job::new("one process", &[8]);
const TWO_PROCESSES: Job = Job::new("two processes", &[4, 4]);
const FOUR_PROCESSES: Job = Job::new("four processes", &[2, 2, 2, 2]);
/// As if each were a process: nothing is global (I6). One has more devices than the other.
const TWO_CLIENTS: Job = Job::new("two clients of one process", &[3, 1]).in_one_process();

/// Cases that a job leaves out, and why.
const SKIPS: &[(&str, &str, &str)] = &[
    ("one device", "shards_of_matrices", "there is nothing to cut an array over"),
    ("one device", "sums_go_over_either_axis_of_a_grid", "one device has no rows and columns"),
    (
        "one device",
        "summands_are_added_up_where_the_sum_is_asked_for",
        "one device has no rows and columns",
    ),
    (
        "one device",
        "devices_make_their_parts_alone_where_they_can",
        "one device has no rows and columns",
    ),
    ("two clients of one process", "shards_of_matrices", "four devices make no grid of 2 x 4"),
    ("two clients of one process", "any_two_shardings", "its meshes are of eight devices"),
    ("one device", "any_two_shardings", "its meshes are of eight devices"),
];

/// Runs the cases of a topic on a job.
fn conform(job: Job, topic: &str) {
    job.run(topic, |client| run_cases(job.name, topic, client));
}

#[test]
fn the_loss_of_a_process_is_told_and_survived() {
    for job in [TWO_PROCESSES, FOUR_PROCESSES] {
        let mut ends = job.ends("failures");
        let (last_ended_well, _) = ends.pop().unwrap();
        assert!(!last_ended_well, "the last process was to be lost");
        jobs::expect_success(&ends);
    }
}

/// A process joins one world after another, of other sizes, and nothing of the former is left.
#[test]
fn worlds_follow_one_another_in_one_process() {
    for job in [TWO_CLIENTS, ONE_PROCESS, TWO_CLIENTS, ONE_DEVICE] {
        conform(job, "clients");
        conform(job, "executions");
    }
}

/// A process of a job of several: this binary again, at this test, which does nothing otherwise.
#[test]
fn process_of_a_job() {
    let Ok(words) = std::env::var(TOPIC) else { return };
    let (job, topic) = words.split_once('/').unwrap();
    let client: Arc<dyn Client> = client::Client::from_environment().unwrap();
    run_cases(job, topic, client);
}

fn run_cases(job: &str, topic: &str, client: Arc<dyn Client>) {
    let fixture = Fixture::new(client);
    let mut topics = TOPICS.iter().chain(OTHER_TOPICS);
    let (_, cases) = topics.find(|(name, _)| *name == topic).unwrap();
    for case in *cases {
        if !SKIPS.iter().any(|(on, name, _)| (*on, *name) == (job, case.name)) {
            eprintln!("{topic}: {}", case.name);
            (case.run)(&fixture);
        }
    }
}

#[test]
fn skips_name_cases_and_jobs_that_are_there() {
    let jobs = [ONE_DEVICE, ONE_PROCESS, TWO_PROCESSES, FOUR_PROCESSES, TWO_CLIENTS];
    for (job, name, reason) in SKIPS {
        assert!(jobs.iter().any(|known| known.name == *job), "there is no job {job}");
        let mut cases = TOPICS.iter().flat_map(|(_, cases)| *cases);
        assert!(cases.any(|case| case.name == *name), "there is no case {name}");
        assert!(!reason.is_empty());
    }
}
