//! The figures of all sizes on standard output, in the form that was asked for, and the verdict.

use std::io::{self, IsTerminal as _, Write as _};

use crate::cli::Cli;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::measure::Row;
use crate::{csv, json, table};

/// A report in the making: each row is out as soon as it is known, except in JSON.
pub(crate) struct Report<'a> {
    pub(crate) cli: &'a Cli,
    pub(crate) machine: Machine,
    pub(crate) ranks: usize,
    pub(crate) rows: Vec<Row>,
}

impl<'a> Report<'a> {
    /// Prints what comes before the first row.
    ///
    /// # Errors
    /// When standard output takes nothing.
    pub(crate) fn begin(cli: &'a Cli, machine: Machine, ranks: usize) -> Result<Self, Failure> {
        let report = Self { cli, machine, ranks, rows: Vec::new() };
        if report.cli.csv {
            print(csv::HEADER)?;
        } else if !report.cli.json {
            print(&table::header(&report))?;
        }
        Ok(report)
    }

    /// Takes, and prints, the rows of the next size.
    ///
    /// # Errors
    /// When standard output takes nothing.
    pub(crate) fn size(&mut self, rows: Vec<Row>) -> Result<(), Failure> {
        if self.cli.csv {
            let lines: String = rows.iter().map(|row| csv::line(self, row)).collect();
            print(&lines)?;
        } else if !self.cli.json {
            print(&table::line(self, &rows))?;
        }
        self.rows.extend(rows);
        Ok(())
    }

    /// Says on the terminal, if there is one, what is being measured, where that does not show.
    pub(crate) fn progress(&self, size_bytes: usize) {
        let mut terminal = io::stderr();
        if self.cli.json && terminal.is_terminal() {
            // Nobody depends on it.
            let _ = write!(terminal, "\rmeasuring {size_bytes} bytes\x1b[K");
        }
    }

    /// Takes back what [`Report::progress`] has said.
    fn clear_progress(&self) {
        let mut terminal = io::stderr();
        if self.cli.json && terminal.is_terminal() {
            let _ = write!(terminal, "\r\x1b[K");
        }
    }

    /// Prints what comes after the last row, and judges.
    ///
    /// # Errors
    /// When something is wrong or too slow, or standard output takes nothing.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.clear_progress();
        if self.cli.json {
            print(&json::document(&self))?;
        } else if !self.cli.csv {
            print(&table::footer(&self))?;
        }
        let count = self.wrong().unwrap_or(0);
        if count > 0 {
            return Err(Failure::Wrong { count });
        }
        let found = self.average_busbw();
        match self.cli.min_busbw {
            Some(least) if found < least => Err(Failure::TooSlow { found, least }),
            _ => Ok(()),
        }
    }

    /// Wrong elements of all sizes; `None` when nobody looked.
    pub(crate) fn wrong(&self) -> Option<u64> {
        let wrong = self.rows.iter().filter_map(|row| row.wrong).fold(0, u64::saturating_add);
        self.cli.check.then_some(wrong)
    }

    pub(crate) fn busbw(&self, row: &Row) -> f64 {
        row.busbw(&self.cli.terms(), self.ranks)
    }

    /// The mean over sizes, in GB/s.
    pub(crate) fn average_busbw(&self) -> f64 {
        let sum: f64 = self.rows.iter().map(|row| self.busbw(row)).sum();
        sum / self.rows.len().max(1) as f64
    }
}

pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
