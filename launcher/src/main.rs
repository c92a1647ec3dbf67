//! The `lockstep` command: starts the processes of a job and answers for them.
//!
//! Policy and I/O are kept apart: `job` decides (when to end, when to kill, which exit code counts)
//! and knows no process; `run` carries it out, with `process`, `output`, `signals` and `guard` as
//! its hands. The launcher meets the processes in the environment variables that
//! `lockstep_collectives::environment` names, and nowhere else.

#![forbid(unsafe_code)]

mod binding;
mod cli;
mod exit;
mod external;
mod flight;
mod guard;
mod job;
mod job_directory;
mod output;
mod process;
mod rank_list;
mod relay;
mod run;
mod signals;
mod summary;
mod sweep;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                exit::LAUNCHER_ERROR.into()
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Guard => guard::serve().map(|()| 0),
        Command::Relay => relay::serve().map(|()| 0),
        Command::External(words) => Ok(external::exec(&words)),
    };
    match result {
        Ok(code) => code.into(),
        Err(error) => {
            complain(format_args!("{error:#}"));
            exit::LAUNCHER_ERROR.into()
        }
    }
}

/// Says what is wrong, before and after there is a job. When nobody can be told, the exit code
/// still says it.
fn complain(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "lockstep: {text}");
}
