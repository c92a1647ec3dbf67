//! The last words of the launcher about a job that is not a success.
//!
//! The reader looks at the bottom of the screen, so what matters most comes last: the other ranks,
//! then the end of the guilty rank's stderr, then what happened.

use std::io::Write;

use lockstep_collectives::{FailureCause, Rank};

use crate::exit::{signal_words, words};
use crate::job::{Cause, Fate};
use crate::output::Tail;
use crate::rank_list::RankList;

/// What the summary says of one rank.
#[derive(Debug)]
pub(crate) struct RankReport<'a> {
    pub(crate) rank: Rank,
    pub(crate) pid: Option<u32>,
    pub(crate) fate: Fate,
    /// What the rendezvous noticed before the process ended.
    pub(crate) news: Option<&'a FailureCause>,
    pub(crate) stderr: &'a Tail,
}

/// The summary of a job that ended because of `cause`, in whole lines.
pub(crate) fn summary(cause: &Cause, ranks: &[RankReport<'_>]) -> Vec<u8> {
    let mut text = String::new();
    let culprit = match cause {
        Cause::RankFailed(rank, _) => ranks.iter().find(|report| report.rank == *rank),
        _ => None,
    };
    let others = ranks.iter().filter(|report| Some(report.rank) != culprit.map(|c| c.rank));
    for report in others.filter(|report| report.fate != Fate::NotStarted) {
        text.push_str(&format!("lockstep: {}\n", line(report)));
    }
    let mut out = text.into_bytes();
    if let Some(culprit) = culprit {
        quote(culprit, &mut out);
    }
    // Writing to memory does not fail.
    let _ = writeln!(out, "lockstep: {}", verdict(cause, culprit));
    out
}

fn name(report: &RankReport<'_>) -> String {
    match report.pid {
        Some(pid) => format!("{} (pid {pid})", report.rank),
        None => report.rank.to_string(),
    }
}

fn line(report: &RankReport<'_>) -> String {
    let name = name(report);
    let mut line = match report.fate {
        Fate::NotStarted => format!("{name} was not started"),
        Fate::Running => format!("{name} still runs"),
        Fate::Ended(exit) => format!("{name} {}", words(exit)),
        Fate::Stopped(exit) => format!("{name} was told to end and {}", words(exit)),
    };
    // That a connection closes is part of every end.
    if let Some(news @ (FailureCause::Silent { .. } | FailureCause::Reported(_))) = report.news {
        line.push_str(&format!("; earlier it {news}"));
    }
    line
}

fn quote(report: &RankReport<'_>, out: &mut Vec<u8>) {
    let lines = report.stderr.lines();
    let _ = match lines.len() {
        0 => writeln!(out, "lockstep: {} wrote nothing to stderr", report.rank),
        1 => writeln!(out, "lockstep: the last line of stderr of {}:", report.rank),
        count => writeln!(out, "lockstep: the last {count} lines of stderr of {}:", report.rank),
    };
    for line in lines {
        out.extend_from_slice(b"  | ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
}

fn verdict(cause: &Cause, culprit: Option<&RankReport<'_>>) -> String {
    match cause {
        Cause::RankFailed(rank, exit) => {
            let name = culprit.map_or_else(|| rank.to_string(), name);
            format!("{name} failed first: it {}", words(*exit))
        }
        Cause::TimedOut(limit) => format!("the job was not over after {limit:?} (--timeout)"),
        Cause::StartTimedOut { missing, after } => {
            let missing = RankList(missing);
            format!("{missing} did not join the job within {after:?} (--start-timeout)")
        }
        Cause::Interrupted(signal) => format!("ended by {}", signal_words(*signal)),
        Cause::Broken { message, .. } => message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockstep_collectives::ProcessExit;

    use super::*;

    fn text(cause: &Cause, fates: &[Fate], stderr: &[u8]) -> String {
        let (mut tail, silent) = (Tail::default(), Tail::default());
        let silent_for_a_while = FailureCause::Silent { for_: Duration::from_secs(30) };
        tail.push(stderr);
        let reports: Vec<_> = (0..)
            .zip(fates)
            .map(|(rank, &fate)| RankReport {
                rank: Rank(rank),
                pid: (fate != Fate::NotStarted).then_some(100 + rank),
                fate,
                news: (rank == 2).then_some(&silent_for_a_while),
                stderr: if rank == 1 { &tail } else { &silent },
            })
            .collect();
        String::from_utf8(summary(cause, &reports)).unwrap()
    }

    #[test]
    fn the_guilty_rank_comes_last_with_its_stderr() {
        let killed = ProcessExit::Signalled { signal: 9 };
        let fates = [
            Fate::Ended(ProcessExit::Exited { code: 0 }),
            Fate::Ended(killed),
            Fate::Stopped(ProcessExit::Signalled { signal: 15 }),
            Fate::Ended(ProcessExit::Exited { code: 1 }),
        ];
        assert_eq!(
            text(&Cause::RankFailed(Rank(1), killed), &fates, b"one\ntwo\n"),
            "lockstep: rank 0 (pid 100) exited with code 0\n\
             lockstep: rank 2 (pid 102) was told to end and was killed by signal 15 (SIGTERM); \
             earlier it was silent for 30.0 s\n\
             lockstep: rank 3 (pid 103) exited with code 1\n\
             lockstep: the last 2 lines of stderr of rank 1:\n  | one\n  | two\n\
             lockstep: rank 1 (pid 101) failed first: it was killed by signal 9 (SIGKILL)\n"
        );
    }

    #[test]
    fn other_causes_say_what_was_waited_for() {
        let fates = [Fate::Stopped(ProcessExit::Exited { code: 0 }), Fate::NotStarted];
        let told = "lockstep: rank 0 (pid 100) was told to end and exited with code 0\n";
        for (cause, verdict) in [
            (
                Cause::TimedOut(Duration::from_millis(1500)),
                "the job was not over after 1.5s (--timeout)",
            ),
            (
                Cause::StartTimedOut {
                    missing: vec![Rank(1), Rank(2), Rank(3)],
                    after: Duration::from_secs(30),
                },
                "ranks 1-3 did not join the job within 30s (--start-timeout)",
            ),
            (Cause::Interrupted(2), "ended by SIGINT"),
            (Cause::Broken { message: "no such file".into(), exit_code: 127 }, "no such file"),
        ] {
            assert_eq!(text(&cause, &fates, b""), format!("{told}lockstep: {verdict}\n"));
        }
    }

    #[test]
    fn silence_is_said() {
        let exit = ProcessExit::Exited { code: 3 };
        assert_eq!(
            text(&Cause::RankFailed(Rank(0), exit), &[Fate::Ended(exit)], b""),
            "lockstep: rank 0 wrote nothing to stderr\n\
             lockstep: rank 0 (pid 100) failed first: it exited with code 3\n"
        );
    }
}
