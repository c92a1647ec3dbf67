//! The command line: what can be asked, checked as far as the text alone allows.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand};
use lockstep_collectives::parse_duration;

use crate::binding::BindTo;

/// Starts the processes of a Lockstep job and answers for them.
#[derive(Debug, Parser)]
#[command(name = "lockstep", version, propagate_version = false)]
#[command(
    after_help = "`lockstep foo` runs `lockstep-foo` from beside this program, or from PATH."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a program as N processes on this host and wait for all of them.
    Run(RunArgs),
    /// What the launcher starts itself as, to outlive itself.
    #[command(name = "__guard", hide = true)]
    Guard,
    /// What the launcher starts itself as, to hold the pipes of many ranks.
    #[command(name = "__relay", hide = true)]
    Relay,
    /// A program `lockstep-foo`, with its arguments.
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

const RUN_HELP: &str = "\
Exit code:
  0    every process exited with 0
  N    the code of the first process that failed, by time; 128+S if signal S killed it.
       Processes that the launcher ended never decide. (mpirun takes the lowest rank,
       srun the highest code.)
  124  --timeout was reached
  125  the command line is wrong, or the launcher itself failed
  126  the program cannot be executed
  127  the program was not found
  130  Ctrl-C; 128+S for any signal S that ended the job

Signals:
  INT, TERM and HUP end the job: TERM to every process group, KILL after --kill-grace; a second
  one kills at once. USR1, USR2, QUIT, TSTP and CONT are passed on to the processes.

Each process reads /dev/null, runs in its own process group and finds its place in LOCKSTEP_RANK,
LOCKSTEP_WORLD_SIZE, LOCKSTEP_LOCAL_RANK and LOCKSTEP_LOCAL_SIZE. When the job is over, whatever
its processes left running is killed.

Durations: 300, 5s, 500ms, 2m, 1h. LOCKSTEP_LOG=debug shows what the launcher sees.";

#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// How many processes to start.
    #[arg(short = 'n', long = "processes", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processes: u32,

    /// How many devices each process shows.
    #[arg(short = 'd', long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) devices_per_process: u32,

    /// Pass VAR on (an error if it is not set), set VAR to VALUE, or pass on all that start with
    /// PREFIX. Repeatable. Processes of this host inherit the whole environment anyway.
    #[arg(short = 'x', long = "export", value_name = "VAR[=VALUE] | PREFIX*")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Export::parse))]
    pub(crate) exports: Vec<Export>,

    /// Start the processes in DIR. A relative path of the program is looked up from there.
    #[arg(long, value_name = "DIR")]
    pub(crate) wdir: Option<PathBuf>,

    /// Keep each process to processors of its own: `core` gives every one an equal share of those
    /// that the launcher may use. Processes that outnumber them share one with others.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = BindTo::None)]
    pub(crate) bind_to: BindTo,

    /// Begin each line of output with `[rank] `. Default: when there are several processes and
    /// the output goes to a terminal.
    #[arg(long, overrides_with = "no_tag")]
    tag: bool,

    /// Pass lines on as they are.
    #[arg(long, action = ArgAction::SetTrue)]
    no_tag: bool,

    /// End the job, with exit code 124, when it is not over after DURATION.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// How long processes that have joined the job wait for the others to join (5 s more in the
    /// processes themselves: LOCKSTEP_INIT_TIMEOUT, if it is not set).
    #[arg(long, value_name = "DURATION", default_value = "300s", value_parser = parse_duration)]
    pub(crate) start_timeout: Duration,

    /// How long processes that are told to end (TERM) have until they are killed (KILL).
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    pub(crate) kill_grace: Duration,

    /// If the job fails, write the last 1024 collectives of each process to FILE, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) flight_report: Option<PathBuf>,

    /// The program and its arguments, passed on byte for byte.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// What the user said about tags, if anything.
    pub(crate) fn tag(&self) -> Option<bool> {
        (self.tag || self.no_tag).then_some(self.tag)
    }
}

/// One `-x`: a part of the environment that the processes must see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Export {
    /// `VAR`: as the launcher has it.
    Inherit(OsString),
    /// `VAR=VALUE`.
    Set(OsString, OsString),
    /// `PREFIX*`: all that start so, as the launcher has them.
    Prefix(OsString),
}

impl Export {
    fn parse(text: OsString) -> Result<Self, &'static str> {
        let bytes = text.as_bytes();
        let equals = bytes.iter().position(|&byte| byte == b'=');
        if bytes.is_empty() || equals == Some(0) {
            return Err("the name of the variable is missing");
        }
        if let Some(at) = equals {
            let (name, value) = (&bytes[..at], &bytes[at + 1..]);
            return Ok(Self::Set(OsStr::from_bytes(name).into(), OsStr::from_bytes(value).into()));
        }
        match bytes.strip_suffix(b"*") {
            Some(prefix) => Ok(Self::Prefix(OsString::from_vec(prefix.to_vec()))),
            None => Ok(Self::Inherit(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        match Cli::try_parse_from(["lockstep", "run"].iter().chain(words))?.command {
            Command::Run(run) => Ok(run),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_the_program_is_the_programs() {
        for (words, command) in [
            (&["-n", "2", "prog"][..], &["prog"][..]),
            (&["-n", "2", "prog", "-n", "3", "--tag"], &["prog", "-n", "3", "--tag"]),
            (&["-n", "2", "--", "prog", "--", "-x"], &["prog", "--", "-x"]),
            (&["-n", "2", "prog", "--", "-x"], &["prog", "--", "-x"]),
            (&["-n", "2", "prog", "--help", ""], &["prog", "--help", ""]),
            (&["-n2", "--", "-prog", "a   b"], &["-prog", "a   b"]),
        ] {
            let run = run(words).unwrap();
            assert_eq!(run.processes, 2);
            assert_eq!(run.command, command, "{words:?}");
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        for words in [
            &["-n", "2"][..],
            &["prog"],
            &["-n", "0", "prog"],
            &["-n", "-1", "prog"],
            &["-n", "two", "prog"],
            &["-n", "1", "-d", "0", "prog"],
            &["-n", "1", "--bogus", "prog"],
            &["-n", "1", "--bind-to", "moon", "prog"],
            &["-n", "1", "--timeout", "soon", "prog"],
            &["-n", "1", "-x", "=v", "prog"],
        ] {
            assert!(run(words).unwrap_err().use_stderr(), "{words:?}");
        }
    }

    #[test]
    fn the_last_word_about_tags_counts() {
        assert_eq!(run(&["-n", "1", "p"]).unwrap().tag(), None);
        assert_eq!(run(&["-n", "1", "--tag", "p"]).unwrap().tag(), Some(true));
        assert_eq!(run(&["-n", "1", "--no-tag", "p"]).unwrap().tag(), Some(false));
        assert_eq!(run(&["-n", "1", "--tag", "--no-tag", "p"]).unwrap().tag(), Some(false));
        assert_eq!(run(&["-n", "1", "--no-tag", "--tag", "p"]).unwrap().tag(), Some(true));
    }

    #[test]
    fn exports_have_three_forms() {
        let exports = run(&["-n1", "-x", "A", "-x", "B=1=2", "-x", "C*", "-xD=", "p"]).unwrap();
        assert_eq!(
            exports.exports,
            [
                Export::Inherit("A".into()),
                Export::Set("B".into(), "1=2".into()),
                Export::Prefix("C".into()),
                Export::Set("D".into(), "".into()),
            ]
        );
    }
}
