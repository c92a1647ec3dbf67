//! The `lockstep-perf` command in small worlds: what it prints, what it finds, how it exits.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use lockstep_collectives::{
    Attempt, Coordinator, CoordinatorOptions, Environment, JobId, JobSecret, KeySource, Limits,
    Rank, World, environment,
};
use serde_json::Value;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

struct Job {
    coordinator: Coordinator,
    world_size: u32,
    /// Of each rank.
    devices: u32,
    key: PathBuf,
    _folder: tempfile::TempDir,
}

impl Job {
    fn new(world_size: u32, devices: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        let secret = JobSecret::generate().unwrap();
        secret.write_new(&key).unwrap();
        let coordinator = Coordinator::start(CoordinatorOptions {
            bind: LOOPBACK,
            job: JobId::new("perf").unwrap(),
            attempt: Attempt(0),
            world_size,
            secret,
            heartbeat_timeout: Duration::from_secs(30),
        })
        .unwrap();
        Self { coordinator, world_size, devices, key, _folder: folder }
    }

    fn environment(&self, rank: u32) -> Environment {
        Environment {
            rank: Rank(rank),
            world_size: self.world_size,
            local_rank: rank,
            local_size: self.world_size,
            local_processors: None,
            coordinator: self.coordinator.address().to_string(),
            coordinator_hosted: true,
            job: JobId::new("perf").unwrap(),
            attempt: Attempt(0),
            key: KeySource::File(self.key.clone()),
            devices: self.devices,
        }
    }

    /// Starts the command as `rank`, with arguments that are split at spaces.
    fn start(&self, rank: u32, arguments: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_lockstep-perf"))
            .args(arguments.split_whitespace())
            .envs(self.environment(rank).variables())
            .env(environment::COLLECTIVE_TIMEOUT, "60s")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs the command as all ranks; answers what became of each.
    fn run(&self, arguments: &str) -> Vec<Output> {
        let ranks: Vec<_> = (0..self.world_size).map(|rank| self.start(rank, arguments)).collect();
        ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect()
    }
}

/// Runs the command without a job.
fn alone(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep-perf"))
        .args(arguments.split_whitespace())
        .env_remove(environment::RANK)
        .env_remove(environment::DEVICES)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What rank 0 printed as JSON; the others print nothing.
fn report(ranks: &[Output]) -> Value {
    for rank in &ranks[1..] {
        assert_eq!((text(&rank.stdout), rank.status.code()), ("", Some(0)), "{rank:?}");
    }
    let report = serde_json::from_slice(&ranks[0].stdout);
    assert!(report.is_ok(), "{ranks:?}");
    report.unwrap()
}

/// The sizes that were measured, each as often as there are placements.
fn sizes(report: &Value) -> Vec<u64> {
    let results = report["results"].as_array().unwrap();
    results.iter().map(|result| result["size_bytes"].as_u64().unwrap()).collect()
}

/// What the name of each collective stands for: the sizes that run when asked for 8, 128 and 2048
/// bytes of 4 by `ranks` ranks, and the bus factor.
fn expected(collective: &str, ranks: u32) -> (Vec<u64>, f64) {
    let others = f64::from(ranks - 1) / f64::from(ranks);
    // With three ranks, whole elements for each of them.
    let split = if ranks == 3 { vec![0, 120, 2040] } else { vec![8, 128, 2048] };
    // With two an uneven exchange is of three units.
    let uneven = vec![0, 120, 2040];
    let whole = vec![8, 128, 2048];
    match collective {
        "all_reduce" => (whole, 2.0 * others),
        "broadcast" | "reduce" | "collective_permute" | "send" | "send_recv" => (whole, 1.0),
        "barrier" => (vec![0], 0.0),
        "all_to_all_v" => (uneven, others),
        _ => (split, others),
    }
}

fn every_collective_is_right(ranks: u32, terms: &str, redop: &str) {
    for collective in [
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "all_to_all_v",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
        "collective_permute",
        "send",
        "send_recv",
        "barrier",
    ] {
        if ranks % 2 == 1 && collective.starts_with("send") {
            continue;
        }
        let words = format!("{collective} -e 4K -f 16 -n 3 -w 1 -r 1 --json {terms}");
        let outputs = Job::new(ranks, 1).run(&words);
        let report = report(&outputs);
        assert_eq!(outputs[0].status.code(), Some(0), "{collective}: {outputs:?}");
        let (expected_sizes, factor) = expected(collective, ranks);
        let apart_only = matches!(collective, "all_to_all_v" | "send" | "barrier");
        let placements = if apart_only { 1 } else { 2 };
        let expected_sizes: Vec<u64> = expected_sizes
            .into_iter()
            .flat_map(|size| std::iter::repeat_n(size, placements))
            .collect();
        assert_eq!(sizes(&report), expected_sizes, "{collective}");
        assert_eq!(report["wrong"], 0, "{collective}");
        let reduces = matches!(collective, "all_reduce" | "reduce" | "reduce_scatter");
        assert_eq!(report["redop"], if reduces { redop.into() } else { Value::Null });
        let rooted = matches!(collective, "broadcast" | "gather" | "reduce" | "scatter");
        assert_eq!(report["root"], if rooted { 1.into() } else { Value::Null });
        for (index, result) in report["results"].as_array().unwrap().iter().enumerate() {
            let in_place = index % placements == 1;
            let placement = if in_place { "in_place" } else { "out_of_place" };
            assert_eq!((&result["placement"], &result["wrong"]), (&placement.into(), &0.into()));
            let number = |name: &str| result[name].as_f64().unwrap();
            let algbw = number("size_bytes") / number("time_us") / 1e3;
            let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected;
            assert!(close(number("algbw_gbs"), algbw), "{collective}: {result}");
            assert!(close(number("busbw_gbs"), algbw * factor), "{collective}: {result}");
            let samples = result["samples_us"].as_array().unwrap();
            assert_eq!(samples.len(), 3);
            let sum: f64 = samples.iter().map(|sample| sample.as_f64().unwrap()).sum();
            assert!(sum > 0.0 && close(number("time_us"), sum / 3.0), "{result}");
            assert!(result["slowest_rank"].as_u64().unwrap() < u64::from(ranks), "{result}");
            assert!(number("min_us") <= number("p50_us"), "{result}");
            assert!(number("p99_us") <= number("max_us"), "{result}");
        }
    }
}

#[test]
fn two_ranks_get_every_collective_right_in_f32() {
    every_collective_is_right(2, "-d f32 -o sum", "sum");
}

#[test]
fn three_ranks_get_every_collective_right_in_i32() {
    every_collective_is_right(3, "-d i32 -o prod", "product");
}

/// What few programs reduce is checked as well.
#[test]
fn narrow_and_complex_types_are_reduced_right() {
    for terms in ["f8e4m3fn -o sum", "f8e5m2 -o avg", "c64 -o prod", "i4 -o min"] {
        let words = format!("all_reduce -e 4K -f 32 -n 1 -w 0 --json -d {terms}");
        let outputs = Job::new(2, 1).run(&words);
        assert_eq!((&report(&outputs)["wrong"], outputs[0].status.code()), (&0.into(), Some(0)));
    }
}

#[test]
fn a_spoilt_result_is_counted_on_whichever_rank_it_is() {
    for (rank, arguments) in [(0, "all_gather -d u8"), (2, "all_reduce -d bf16")] {
        let words = format!(
            "{arguments} -e 64 -f 8 -n 1 -w 0 --placement out_of_place --json --corrupt {rank}"
        );
        let outputs = Job::new(3, 1).run(&words);
        let report = report(&outputs);
        assert_eq!(report["wrong"], 2);
        for result in report["results"].as_array().unwrap() {
            assert_eq!(result["wrong"], 1, "one of each size: {report}");
        }
        assert_eq!(outputs[0].status.code(), Some(1));
        assert_eq!(text(&outputs[0].stderr), "error: 2 elements are wrong\n");
        // Unless nobody looks.
        let outputs = Job::new(3, 1).run(&format!("{words} -c 0"));
        let report = self::report(&outputs);
        assert_eq!((&report["wrong"], outputs[0].status.code()), (&Value::Null, Some(0)));
    }
}

#[test]
fn the_devices_of_one_process_are_ranks_too() {
    let words = "all_to_all -b 4K -e 4K -n 2 --json";
    let report = report(&Job::new(2, 2).run(words));
    assert_eq!((&report["ranks"], &report["wrong"]), (&4.into(), &0.into()));
    let host = &report["machine"]["hosts"][0];
    assert_eq!((&host["processes"], &host["ranks"]), (&2.into(), &4.into()));
    assert_eq!(report["machine"]["transport"], "shm");
}

#[test]
fn the_transport_is_the_one_that_is_asked_for() {
    for transport in ["shm", "quic"] {
        let words = format!("all_reduce -b 100K -e 100K -n 2 --transport {transport} --json");
        let report = report(&Job::new(2, 1).run(&words));
        assert_eq!(
            (&report["machine"]["transport"], &report["wrong"]),
            (&transport.into(), &0.into())
        );
    }
}

#[test]
fn the_table_has_the_columns_of_nccl_tests() {
    for (collective, placement, columns) in [
        ("all_reduce", "both", 5..13),
        ("all_reduce", "out_of_place", 5..9),
        ("broadcast", "in_place", 9..13),
        ("send", "both", 5..9),
    ] {
        let words =
            format!("{collective} -b 1K -e 3K -i 1K -n 2 --all-times --placement {placement}");
        let outputs = Job::new(2, 1).run(&words);
        assert_eq!(text(&outputs[1].stdout), "");
        let table = text(&outputs[0].stdout);
        let title = table.lines().next().unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("# lockstep-perf {version}: {collective} on 2 ranks, transport shm");
        assert_eq!(title, expected);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 3, "{table}");
        for (row, size) in rows.iter().zip([1024, 2048, 3072]) {
            assert_eq!(row[..2], [size.to_string(), (size / 4).to_string()]);
            let terms = match collective {
                "broadcast" => ["none", "0"],
                "send" => ["none", "-1"],
                _ => ["sum", "-1"],
            };
            assert_eq!((row[2], &row[3..5]), ("f32", &terms[..]));
            for (index, cell) in row[5..13].iter().enumerate() {
                let measured = columns.contains(&(index + 5));
                assert_eq!(cell.parse::<f64>().is_ok(), measured, "{table}");
            }
            assert_eq!((row[columns.end - 1], row.len()), ("0", 17), "{table}");
        }
        assert!(table.contains("# Out of bounds values : 0 OK\n"), "{table}");
    }
}

#[test]
fn a_world_of_one_prints_values_for_programs() {
    let output = alone("broadcast -b 12 -e 13 -i 1 -d f64 -n 4 --placement in_place --csv");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines: Vec<Vec<&str>> =
        text(&output.stdout).lines().map(|line| line.split(',').collect()).collect();
    // Both sizes are one element.
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((lines[0].len(), lines[1].len()), (16, 16));
    assert_eq!(lines[1][..8], ["broadcast", "in_place", "1", "8", "1", "f64", "", "0"]);
    assert_eq!(lines[1][11], "0");
}

#[test]
fn what_is_too_slow_fails_and_wrong_arguments_are_told_from_it() {
    let output = alone("collective_permute -b 64 -e 64 --min-busbw 1e9");
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.ends_with(" GB/s, below the 1000000000 GB/s of --min-busbw\n"), "{error}");
    let output = alone("collective_permute -b 64 -e 64 --min-busbw 0");
    assert_eq!(output.status.code(), Some(0));

    for (words, culprit) in [
        ("all_reduce --transport tcp", "shm or quic"),
        ("broadcast -r 1", "-r 1"),
        ("gossip", "gossip"),
    ] {
        let output = alone(words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{words}");
        assert!(text(&output.stderr).contains(culprit), "{output:?}");
    }
}

#[test]
fn the_deadline_names_the_rank_that_is_missing() {
    let job = Job::new(2, 1);
    let benchmark = job.start(0, "all_reduce -b 4K -e 4K --timeout 1s");
    // It is there and takes no part.
    let limits = Limits { init: Duration::from_secs(60), ..Limits::default() };
    let world = World::join(&job.environment(1), limits).unwrap();
    let output = benchmark.wait_with_output().unwrap();
    drop(world);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = text(&output.stderr);
    assert!(error.starts_with("error: at 4096 bytes: all_reduce(sum, f32, 1024 el"), "{error}");
    assert!(error.contains("rank 1 (device 1) did not take part within "), "{error}");
    assert!(error.ends_with("(--timeout gives a size 1s)\n"), "{error}");
}
