//! Program agreement: before a program runs, its processes show each other what they compiled.
//!
//! Owns the protocol and its encoding (version 1, text) over a [`Store`]; does no I/O of its own.
//! Every process publishes a [`Record`], reads those of all others, judges, and adopts the first
//! verdict that anybody reached, so that all of them return the same. Listings of programs travel
//! only when records differ. Invariants: every wait has a deadline (I3); what a peer wrote is
//! parsed, never trusted (I5).

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::ifrt::{Result, Status};

/// Bytes of a listing or message that travel; what is longer is cut.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// What the processes write to and read from: the rendezvous' key-value store.
pub(super) trait Store {
    /// Writes `value` under `key`.
    fn publish(&self, key: &str, value: Vec<u8>) -> Result<()>;

    /// Writes `value` under `key` unless something is there, and returns what is there then.
    fn decide(&self, key: &str, value: Vec<u8>) -> Result<Vec<u8>>;

    /// What is under `key`, waiting for it for `timeout`; `None` when it does not come.
    fn read(&self, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>>;

    /// Removes `key`.
    fn remove(&self, key: &str) -> Result<()>;
}

/// What one process compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The version of the runtime.
    pub(super) runtime: String,
    /// The fingerprint of the program, or why there is none.
    pub(super) program: Result<u64, String>,
}

/// One compilation of one process, about to be compared.
pub(super) struct Proposal<'a> {
    /// What is compiled, to people: it begins error messages.
    pub(super) what: String,
    /// Names the compilation, the same on every process.
    pub(super) key: String,
    /// The name of the compilation before it, whose record is no longer needed.
    pub(super) previous_key: Option<String>,
    /// This process, and all that must agree, ascending.
    pub(super) rank: u32,
    pub(super) ranks: &'a [u32],
    pub(super) record: Record,
    /// The program line by line, if it could be read.
    pub(super) listing: &'a dyn Fn() -> String,
    pub(super) timeout: Duration,
}

/// How a comparison ended, the same on every process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Agreed,
    /// Programs or runtimes differ.
    Different(String),
    /// A process failed.
    Failed(String),
    /// Processes did not come in time.
    Missing(String),
}

impl Proposal<'_> {
    /// Compares with all other processes.
    ///
    /// # Errors
    /// `FailedPrecondition` when processes compiled different things, naming which and where they
    /// begin to differ; `DeadlineExceeded` naming the processes that did not come; `Unavailable`
    /// when one has failed, or the store is out of reach.
    pub(super) fn agree(&self, store: &dyn Store) -> Result<()> {
        store.publish(&self.record_key(self.rank), self.record.encode())?;
        let own = self.verdict(store).unwrap_or_else(|status| {
            Verdict::Failed(format!("{}: {}", self.what, status.message()))
        });
        let decided = store.decide(&format!("{}/verdict", self.key), own.encode())?;
        match Verdict::decode(&decided) {
            Verdict::Agreed => self.forget_previous(store),
            Verdict::Different(text) => Err(Status::failed_precondition(text)),
            Verdict::Failed(text) => Err(Status::unavailable(text)),
            Verdict::Missing(text) => Err(Status::deadline_exceeded(text)),
        }
    }

    fn verdict(&self, store: &dyn Store) -> Result<Verdict> {
        let start = Instant::now();
        let mut records = Vec::with_capacity(self.ranks.len());
        let mut missing = Vec::new();
        for &rank in self.ranks {
            let left = self.timeout.saturating_sub(start.elapsed());
            match store.read(&self.record_key(rank), left)? {
                Some(bytes) => records.push((rank, Record::decode(&bytes))),
                None => missing.push(rank),
            }
        }
        if missing.is_empty() {
            return self.judge(&records, store);
        }
        Ok(Verdict::Missing(format!(
            "{}: {} did not compile within {:?}; every process that owns one of the devices must \
             compile the same programs in the same order",
            self.what,
            ranks(&missing),
            self.timeout
        )))
    }

    /// Everybody has come to this compilation: nobody reads what the one before it left.
    fn forget_previous(&self, store: &dyn Store) -> Result<()> {
        let previous = self.previous_key.as_ref();
        previous.map_or(Ok(()), |previous| store.remove(&record_key(previous, self.rank)))
    }

    fn judge(&self, records: &[(u32, Option<Record>)], store: &dyn Store) -> Result<Verdict> {
        let mut sides = sides(records);
        // The most numerous side is right; among equals, that of the lowest rank. The sort is
        // stable, and sides come in the order of their lowest ranks.
        sides.sort_by_key(|side| std::cmp::Reverse(side.ranks.len()));
        let Some((reference, others)) = sides.split_first() else { return Ok(Verdict::Agreed) };
        if others.is_empty() {
            return Ok(Verdict::Agreed);
        }
        let speakers: Vec<u32> =
            sides.iter().filter_map(|side| side.ranks.first().copied()).collect();
        if speakers.contains(&self.rank) {
            let mut listing = (self.listing)();
            truncate(&mut listing, MAX_TEXT_BYTES);
            store.publish(&self.listing_key(self.rank), listing.into_bytes())?;
        }
        let mut text = format!("{}: the processes compiled different programs", self.what);
        for side in others {
            let difference = self.difference(reference, side, store)?;
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "; {} {} from {}: {difference}",
                ranks(&side.ranks),
                if side.ranks.len() == 1 { "differs" } else { "differ" },
                ranks(&reference.ranks)
            );
        }
        Ok(Verdict::Different(text))
    }

    fn difference(
        &self,
        reference: &Side<'_>,
        side: &Side<'_>,
        store: &dyn Store,
    ) -> Result<String> {
        let (Some(expected), Some(found)) = (reference.record, side.record) else {
            return Ok("one side's record cannot be read".to_owned());
        };
        match (&expected.program, &found.program) {
            (_, Err(message)) => return Ok(format!("it could not compile: {message}")),
            (Err(message), _) => return Ok(format!("the others could not compile: {message}")),
            _ if expected.runtime != found.runtime => {
                return Ok(format!("runtime {} where {} is", found.runtime, expected.runtime));
            }
            _ => {}
        }
        // The programs are at hand where they were compiled: a moment is enough to fetch them.
        let listing = |side: &Side<'_>| match side.ranks.first() {
            Some(&rank) => store.read(&self.listing_key(rank), self.timeout),
            None => Ok(None),
        };
        let (Some(expected), Some(found)) = (listing(reference)?, listing(side)?) else {
            return Ok("the fingerprints of the programs differ".to_owned());
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(first_difference(&text(expected), &text(found)))
    }

    fn record_key(&self, rank: u32) -> String {
        record_key(&self.key, rank)
    }

    fn listing_key(&self, rank: u32) -> String {
        format!("{}/listing/{rank}", self.key)
    }
}

fn record_key(key: &str, rank: u32) -> String {
    format!("{key}/record/{rank}")
}

/// Processes with equal records.
struct Side<'a> {
    ranks: Vec<u32>,
    /// `None` when it cannot be read.
    record: Option<&'a Record>,
}

fn sides(records: &[(u32, Option<Record>)]) -> Vec<Side<'_>> {
    let mut sides: Vec<Side<'_>> = Vec::new();
    for (rank, record) in records {
        match sides.iter_mut().find(|side| side.record == record.as_ref()) {
            Some(side) => side.ranks.push(*rank),
            None => sides.push(Side { ranks: vec![*rank], record: record.as_ref() }),
        }
    }
    sides
}

/// Where two listings begin to differ.
fn first_difference(expected: &str, found: &str) -> String {
    let mut expected = expected.lines();
    let mut found = found.lines();
    for number in 1_usize.. {
        match (expected.next(), found.next()) {
            (None, None) => break,
            (expected, found) if expected == found => {}
            (expected, found) => {
                let line = |line: Option<&str>| {
                    line.map_or("nothing more".to_owned(), |line| format!("`{}`", line.trim()))
                };
                return format!(
                    "its line {number} is {} where theirs is {}",
                    line(found),
                    line(expected)
                );
            }
        }
    }
    "the fingerprints differ, the listings do not".to_owned()
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let runtime = &self.runtime;
        match &self.program {
            Ok(program) => format!("1 compiled {runtime} {program:016x}"),
            Err(message) => {
                let mut text = format!("1 refused {runtime} {message}");
                truncate(&mut text, MAX_TEXT_BYTES);
                text
            }
        }
        .into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix("1 ")?;
        let (kind, text) = text.split_once(' ')?;
        let (runtime, text) = text.split_once(' ')?;
        let program = match kind {
            "compiled" => Ok(u64::from_str_radix(text, 16).ok()?),
            "refused" => Err(text.to_owned()),
            _ => return None,
        };
        Some(Self { runtime: runtime.to_owned(), program })
    }
}

impl Verdict {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Agreed => "1 agreed ".to_owned(),
            Self::Different(text) => format!("1 different {text}"),
            Self::Failed(text) => format!("1 failed {text}"),
            Self::Missing(text) => format!("1 missing {text}"),
        }
        .into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let parts = text.strip_prefix("1 ").and_then(|text| text.split_once(' '));
        match parts {
            Some(("agreed", _)) => Self::Agreed,
            Some(("different", text)) => Self::Different(text.to_owned()),
            Some(("failed", text)) => Self::Failed(text.to_owned()),
            Some(("missing", text)) => Self::Missing(text.to_owned()),
            _ => Self::Different("another process reached a verdict of an unknown form".to_owned()),
        }
    }
}

/// `rank 2`, `ranks 0, 1, 3`
fn ranks(ranks: &[u32]) -> String {
    let plural = if ranks.len() == 1 { "" } else { "s" };
    let numbers: Vec<String> = ranks.iter().map(u32::to_string).collect();
    format!("rank{plural} {}", numbers.join(", "))
}

/// Cuts `text` to at most `length` bytes, at a character.
fn truncate(text: &mut String, length: usize) {
    if text.len() > length {
        let end = (0..=length).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::Code;
    use std::collections::BTreeMap;
    use std::sync::{Condvar, Mutex};

    #[derive(Default)]
    struct Memory {
        entries: Mutex<BTreeMap<String, Vec<u8>>>,
        changed: Condvar,
        /// What reading something absent reports, if a process has failed.
        failure: Option<Status>,
    }

    impl Store for Memory {
        fn publish(&self, key: &str, value: Vec<u8>) -> Result<()> {
            self.entries.lock().unwrap().insert(key.to_owned(), value);
            self.changed.notify_all();
            Ok(())
        }

        fn decide(&self, key: &str, value: Vec<u8>) -> Result<Vec<u8>> {
            Ok(self.entries.lock().unwrap().entry(key.to_owned()).or_insert(value).clone())
        }

        fn read(&self, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>> {
            let entries = self.entries.lock().unwrap();
            if let (Some(failure), None) = (&self.failure, entries.get(key)) {
                return Err(failure.clone());
            }
            let absent = |entries: &mut BTreeMap<_, _>| !entries.contains_key(key);
            let (entries, _) = self.changed.wait_timeout_while(entries, timeout, absent).unwrap();
            Ok(entries.get(key).cloned())
        }

        fn remove(&self, key: &str) -> Result<()> {
            self.entries.lock().unwrap().remove(key);
            Ok(())
        }
    }

    fn record(program: u64) -> Record {
        Record { runtime: "0.1.0".into(), program: Ok(program) }
    }

    /// What each of the processes with a program gets; those without one do not come.
    fn compile(
        store: &Memory,
        number: u64,
        programs: &[Option<(Record, &str)>],
        timeout: Duration,
    ) -> Vec<Result<()>> {
        let all: Vec<u32> = (0..).take(programs.len()).collect();
        std::thread::scope(|scope| {
            let processes: Vec<_> = (0..)
                .zip(programs)
                .filter_map(|(rank, program)| {
                    let (record, listing) = program.clone()?;
                    let ranks = &all;
                    Some(scope.spawn(move || {
                        let proposal = Proposal {
                            what: format!("compilation {number}"),
                            key: format!("c/{number}"),
                            previous_key: number.checked_sub(1).map(|last| format!("c/{last}")),
                            rank,
                            ranks,
                            record,
                            listing: &|| listing.to_owned(),
                            timeout,
                        };
                        proposal.agree(store)
                    }))
                })
                .collect();
            processes.into_iter().map(|process| process.join().unwrap()).collect()
        })
    }

    const AMPLE: Duration = Duration::from_secs(30);

    fn the_one_error(results: Vec<Result<()>>) -> Status {
        let mut errors: Vec<Status> =
            results.into_iter().map(|result| result.unwrap_err()).collect();
        let last = errors.pop().unwrap();
        for error in errors {
            assert_eq!((error.code(), error.message()), (last.code(), last.message()));
        }
        last
    }

    #[test]
    fn equal_programs_agree_and_leave_little_behind() {
        let store = Memory::default();
        for number in 0..3 {
            let programs = vec![Some((record(number), "")); 3];
            assert!(compile(&store, number, &programs, AMPLE).iter().all(Result::is_ok));
        }
        let records = store.entries.lock().unwrap().keys().filter(|k| k.contains("record")).count();
        assert_eq!(records, 3, "those of the last compilation");
    }

    #[test]
    fn the_minority_and_the_first_difference_are_named() {
        let good = Some((record(1), "a\nb\nc"));
        let bad = Some((record(2), "a\nB\nc\nd"));
        let results =
            compile(&Memory::default(), 0, &[good.clone(), good.clone(), bad, good], AMPLE);
        let error = the_one_error(results);
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert_eq!(
            error.message(),
            "compilation 0: the processes compiled different programs; rank 2 differs from ranks \
             0, 1, 3: its line 2 is `B` where theirs is `b`"
        );
    }

    #[test]
    fn a_program_that_ends_early_is_a_difference() {
        assert_eq!(
            first_difference("a\n  b\n", "a\n"),
            "its line 2 is nothing more where theirs is `b`"
        );
        assert_eq!(
            first_difference("a\n", "a\n b\n"),
            "its line 2 is `b` where theirs is nothing more"
        );
    }

    #[test]
    fn one_process_that_cannot_compile_stops_all() {
        let refused = Record { runtime: "0.1.0".into(), program: Err("line 3:\n  oops".into()) };
        let good = Some((record(1), "a"));
        let results =
            compile(&Memory::default(), 0, &[good.clone(), Some((refused, "")), good], AMPLE);
        let message = the_one_error(results).message().to_owned();
        assert!(
            message
                .ends_with("rank 1 differs from ranks 0, 2: it could not compile: line 3:\n  oops"),
            "{message}"
        );
    }

    #[test]
    fn runtimes_must_be_the_same() {
        let other = Record { runtime: "0.2.0".into(), ..record(1) };
        let results =
            compile(&Memory::default(), 0, &[Some((record(1), "a")), Some((other, "a"))], AMPLE);
        let message = the_one_error(results).message().to_owned();
        assert!(message.ends_with("runtime 0.2.0 where 0.1.0 is"), "{message}");
    }

    #[test]
    fn who_does_not_come_is_named_and_is_refused_later() {
        let store = Memory::default();
        let good = Some((record(1), "a"));
        let results = compile(
            &store,
            0,
            &[good.clone(), None, good.clone(), None],
            Duration::from_millis(20),
        );
        let error = the_one_error(results);
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert!(error.message().contains("ranks 1, 3 did not compile within 20ms"));
        // Late, all records are there, but the others have given up.
        let late = compile(&store, 0, &vec![good; 4], AMPLE);
        assert_eq!(the_one_error(late).message(), error.message());
    }

    #[test]
    fn a_failed_process_is_the_same_error_everywhere() {
        let failure = Some(Status::unavailable("rank 2 was killed"));
        let store = Memory { failure, ..Memory::default() };
        let good = Some((record(1), "a"));
        let error = the_one_error(compile(&store, 0, &[good.clone(), good, None], AMPLE));
        assert_eq!(error.code(), Code::Unavailable);
        assert_eq!(error.message(), "compilation 0: rank 2 was killed");
    }

    #[test]
    fn what_peers_write_is_not_trusted() {
        for bytes in [&b""[..], b"1 ", b"1 compiled", b"1 compiled x zz", b"2 agreed ", b"\xff"] {
            assert_eq!(Record::decode(bytes), None);
            assert!(matches!(Verdict::decode(bytes), Verdict::Different(_)));
        }
        let mut text = "aé".to_owned();
        truncate(&mut text, 2);
        assert_eq!(text, "a");
    }
}
