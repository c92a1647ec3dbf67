//! What the ranks' flight recorders held when the job failed, merged into one report.
//!
//! Every rank has a line, also the one that can no longer say anything; ranks that say the same
//! share one, so that the one that differs is seen. The whole logs go into a file for those who
//! ask for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use lockstep_collectives::{FlightEntry, FlightLog, FlightState, JobId, Rank};
use serde::Serialize;

use crate::exit::words;
use crate::job::Fate;
use crate::rank_list::RankList;

/// Counts changes of the file that a reader has to know of.
const SCHEMA: u32 = 1;

/// Ranks that say the same, and for how long at most.
struct Line {
    ranks: Vec<Rank>,
    /// With `{}` in place of the time.
    text: String,
    time: Option<Duration>,
}

/// The report, in whole lines; the logs go to `file`, if one is wanted.
pub(crate) fn conclude(
    file: Option<&Path>,
    job: &JobId,
    fates: &[Fate],
    logs: &BTreeMap<Rank, FlightLog>,
) -> String {
    let mut text = report(fates, logs);
    if let Some(file) = file {
        let name = file.display();
        text.push_str(&match write(file, job, fates, logs) {
            Ok(()) => format!("lockstep: all that is known of them is in {name}\n"),
            Err(error) => format!("lockstep: cannot write {name}: {error}\n"),
        });
    }
    text
}

/// A line for each rank or for several; empty when no rank has recorded anything.
fn report(fates: &[Fate], logs: &BTreeMap<Rank, FlightLog>) -> String {
    let mut report = String::new();
    if logs.is_empty() {
        return report;
    }
    let mut lines: Vec<Line> = Vec::new();
    for (rank, fate) in (0..).map(Rank).zip(fates) {
        let (mut text, time) = logs
            .get(&rank)
            .map_or_else(|| ("said nothing of its collectives".to_owned(), None), situation);
        if let Some(end) = end_of_its_own(*fate) {
            text.push_str(&format!("; it {end}"));
        }
        match lines.iter_mut().find(|line| line.text == text) {
            Some(line) => {
                line.ranks.push(rank);
                line.time = line.time.max(time);
            }
            None => lines.push(Line { ranks: vec![rank], text, time }),
        }
    }
    report.push_str("lockstep: the collectives of each rank:\n");
    for Line { ranks, text, time } in lines {
        let text = match time {
            Some(time) => text.replacen("{}", &format!("{:.1} s", time.as_secs_f64()), 1),
            None => text,
        };
        // Writing to memory does not fail.
        let _ = writeln!(report, "  | {}: {text}", RankList(&ranks));
    }
    report
}

/// What a process was doing, with `{}` for how long.
fn situation(log: &FlightLog) -> (String, Option<Duration>) {
    let completed = log.last(FlightState::Completed);
    let failed = log.last(FlightState::Failed);
    let before = completed.map_or("; none had completed".to_owned(), |completed| {
        format!("; the last to complete was {}", described(completed))
    });
    let now = log.taken;
    if let Some(entry) = log.running().next() {
        let text = format!("in {} for {{}}{before}", described(entry));
        return (text, Some(entry.took(now)));
    }
    match (completed, failed) {
        (completed, Some(failed)) if completed.is_none_or(|c| c.ended <= failed.ended) => {
            let text = format!("{} failed after {{}}{before}", described(failed));
            (text, Some(failed.took(now)))
        }
        (Some(completed), _) => {
            let since = now.saturating_sub(completed.ended.unwrap_or(now));
            let text = format!("in none for {{}}, since {} completed", described(completed));
            (text, Some(since))
        }
        _ => ("in none".to_owned(), None),
    }
}

fn described(entry: &FlightEntry) -> String {
    format!("{entry} of {} members", entry.group_size)
}

/// How a process ended, if that was a failure and not the launcher's doing.
fn end_of_its_own(fate: Fate) -> Option<String> {
    match fate {
        Fate::Ended(exit) if exit.failure().is_some() => Some(words(exit)),
        _ => None,
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    job: &'a str,
    ranks: Vec<RankDocument>,
}

#[derive(Serialize)]
struct RankDocument {
    rank: u32,
    /// How the process ended, if it ended by itself with a failure.
    failure: Option<String>,
    /// How many collectives it had begun; the entries are the last of them.
    recorded: u64,
    /// When the log was taken, on the process's own clock like all times below, in seconds.
    taken_s: f64,
    entries: Vec<EntryDocument>,
}

#[derive(Serialize)]
struct EntryDocument {
    member: u32,
    group: String,
    group_size: u32,
    operation: String,
    kind: String,
    element: Option<String>,
    count: u64,
    started_s: f64,
    ended_s: Option<f64>,
    state: String,
}

/// Writes all that is known of the ranks' collectives to the file, as one JSON object.
///
/// # Errors
/// When the file cannot be written.
fn write(
    path: &Path,
    job: &JobId,
    fates: &[Fate],
    logs: &BTreeMap<Rank, FlightLog>,
) -> io::Result<()> {
    let nothing = FlightLog::default();
    let ranks = (0..).map(Rank).zip(fates).map(|(rank, fate)| {
        let log = logs.get(&rank).unwrap_or(&nothing);
        RankDocument {
            rank: rank.0,
            failure: end_of_its_own(*fate),
            recorded: log.recorded,
            taken_s: log.taken.as_secs_f64(),
            entries: log.entries.iter().map(entry_document).collect(),
        }
    });
    let document = Document { schema: SCHEMA, job: job.as_str(), ranks: ranks.collect() };
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer(&mut file, &document)?;
    file.write_all(b"\n")?;
    file.flush()
}

fn entry_document(entry: &FlightEntry) -> EntryDocument {
    EntryDocument {
        member: entry.member.0,
        group: format!("{:016x}", entry.group),
        group_size: entry.group_size,
        operation: entry.operation().to_string(),
        kind: entry.kind.to_string(),
        element: entry.element.map(|element| element.to_string()),
        count: entry.count,
        started_s: entry.started.as_secs_f64(),
        ended_s: entry.ended.map(|time| time.as_secs_f64()),
        state: entry.state.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use lockstep_collectives::{CollectiveKind, ElementType, Member, ProcessExit};

    use super::*;

    fn entry(sequence: u64, started_ms: u64, state: FlightState, took_ms: u64) -> FlightEntry {
        let ended = Duration::from_millis(started_ms + took_ms);
        FlightEntry {
            member: Member(0),
            group: 7,
            group_size: 4,
            sequence,
            kind: CollectiveKind::AllReduce,
            element: Some(ElementType::F32),
            count: 10,
            started: Duration::from_millis(started_ms),
            ended: (state != FlightState::Running).then_some(ended),
            state,
        }
    }

    fn log(taken_ms: u64, entries: &[FlightEntry]) -> FlightLog {
        let recorded = entries.len().try_into().unwrap();
        FlightLog { recorded, taken: Duration::from_millis(taken_ms), entries: entries.to_vec() }
    }

    fn job() -> (Vec<Fate>, BTreeMap<Rank, FlightLog>) {
        use FlightState::{Completed, Failed, Running};
        let done = entry(1, 0, Completed, 10);
        let exited = Fate::Ended(ProcessExit::Exited { code: 1 });
        let stopped = Fate::Stopped(ProcessExit::Signalled { signal: 15 });
        let killed = Fate::Ended(ProcessExit::Signalled { signal: 9 });
        let fates = vec![exited, exited, stopped, killed, exited, stopped];
        let logs = [
            (Rank(0), log(6000, &[done, entry(2, 20, Failed, 5000)])),
            (Rank(1), log(6000, &[done, entry(2, 20, Failed, 5100)])),
            (Rank(2), log(7010, &[done])),
            (Rank(4), log(5000, &[entry(1, 0, Failed, 7)])),
            (Rank(5), log(2020, &[done, entry(2, 20, Running, 0)])),
        ];
        (fates, logs.into())
    }

    #[test]
    fn every_rank_has_a_line_and_equals_share_one() {
        let (fates, logs) = job();
        assert_eq!(
            report(&fates, &logs),
            "lockstep: the collectives of each rank:\n\
             \x20 | ranks 0 and 1: all_reduce(f32, 10 elements) #2 of 4 members failed after 5.1 s; \
             the last to complete was all_reduce(f32, 10 elements) #1 of 4 members; \
             it exited with code 1\n\
             \x20 | rank 2: in none for 7.0 s, since all_reduce(f32, 10 elements) #1 of 4 members \
             completed\n\
             \x20 | rank 3: said nothing of its collectives; it was killed by signal 9 (SIGKILL)\n\
             \x20 | rank 4: all_reduce(f32, 10 elements) #1 of 4 members failed after 0.0 s; \
             none had completed; it exited with code 1\n\
             \x20 | rank 5: in all_reduce(f32, 10 elements) #2 of 4 members for 2.0 s; the last \
             to complete was all_reduce(f32, 10 elements) #1 of 4 members\n"
        );
    }

    #[test]
    fn there_is_no_report_of_programs_without_collectives() {
        assert_eq!(report(&job().0, &BTreeMap::new()), "");
    }

    #[test]
    fn the_file_has_every_entry_of_every_rank() {
        let (fates, logs) = job();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flight.json");
        write(&path, &JobId::new("job").unwrap(), &fates, &logs).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&document["schema"], &document["job"]), (&1.into(), &"job".into()));
        let ranks = document["ranks"].as_array().unwrap();
        let counts: Vec<_> =
            ranks.iter().map(|rank| rank["entries"].as_array().unwrap().len()).collect();
        assert_eq!(counts, [2, 2, 1, 0, 1, 2]);
        let expected = serde_json::json!({
            "member": 0, "group": "0000000000000007", "group_size": 4, "operation": "#2",
            "kind": "all_reduce", "element": "f32", "count": 10,
            "started_s": 0.02, "ended_s": 5.02, "state": "failed",
        });
        assert_eq!(ranks[0]["entries"][1], expected);
        assert_eq!(ranks[3]["failure"], "was killed by signal 9 (SIGKILL)");
        assert_eq!(ranks[5]["entries"][1]["ended_s"], serde_json::Value::Null);
    }
}
