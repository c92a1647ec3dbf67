//! The processors that each process is kept to.
//!
//! Owns their division among the processes of this host. The system gives a process the
//! processors of the thread that starts it, so that is the one kept to them meanwhile.

use std::io;
use std::ops::Range;

use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// What processes are kept to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BindTo {
    /// Nothing: each may use all processors that the launcher may.
    None,
    /// An equal share of those processors. Processes that outnumber them share one with others.
    Core,
}

/// The processors that the launcher may use, divided among processes.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The numbers of the processors, ascending.
    processors: Vec<usize>,
    processes: u32,
}

/// Keeps this thread, and what it starts, to some processors until it is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    before: CpuSet,
}

impl Shares {
    /// Those of this thread, for this many processes.
    ///
    /// # Errors
    /// When the system does not tell which they are.
    pub(crate) fn among(processes: u32) -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let processors = (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor));
        Ok(Self { processors: processors.collect(), processes })
    }

    /// How many of them can run at a time.
    pub(crate) fn processors(&self) -> u32 {
        // A group of processes may have less time than its processors have.
        let running = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
        u32::try_from(running.min(self.processors.len())).unwrap_or(u32::MAX).max(1)
    }

    /// Keeps this thread to the processors of the process with this number.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn keep(&self, process: u32) -> io::Result<Kept> {
        let mut share = CpuSet::new();
        for processor in &self.processors[self.share(process)] {
            share.set(*processor);
        }
        let before = sched_getaffinity(None)?;
        sched_setaffinity(None, &share)?;
        Ok(Kept { before })
    }

    /// Neighbours in number are neighbours in place.
    fn share(&self, process: u32) -> Range<usize> {
        let count = self.processors.len();
        let begin = |process: u32| {
            let place = process as usize * count;
            place.checked_div(self.processes as usize).unwrap_or(0).min(count)
        };
        let start = begin(process).min(count.saturating_sub(1));
        start..begin(process + 1).max(start + 1).min(count)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // They were this thread's a moment ago.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_a_share_and_every_processor_is_somebodys() {
        for (processors, processes, expected) in [
            (4, 1, &[(0, 4)][..]),
            (4, 2, &[(0, 2), (2, 4)]),
            (5, 2, &[(0, 2), (2, 5)]),
            (3, 3, &[(0, 1), (1, 2), (2, 3)]),
            (2, 4, &[(0, 1), (0, 1), (1, 2), (1, 2)]),
            (2, 3, &[(0, 1), (0, 1), (1, 2)]),
            (1, 3, &[(0, 1), (0, 1), (0, 1)]),
        ] {
            let shares = Shares { processors: (0..processors).collect(), processes };
            let found = (0..processes).map(|process| shares.share(process));
            let found: Vec<_> = found.map(|share| (share.start, share.end)).collect();
            assert_eq!(found, expected, "{processors} processors, {processes} processes");
        }
    }

    #[test]
    fn a_thread_is_kept_to_a_share_and_no_longer() {
        let shares = Shares::among(1000).unwrap();
        let all = sched_getaffinity(None).unwrap();
        let kept = shares.keep(999).unwrap();
        let share = sched_getaffinity(None).unwrap();
        assert_eq!(share.count(), 1);
        assert!(share.is_set(*shares.processors.last().unwrap()));
        drop(kept);
        assert_eq!(sched_getaffinity(None).unwrap(), all);
    }
}
