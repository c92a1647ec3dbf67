//! `lockstep trace`: works on the traces that processes write with `lockstep::trace::Trace`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

/// Works on traces of processes.
#[derive(Parser)]
#[command(name = "lockstep trace", bin_name = "lockstep trace", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Joins the traces of several processes to one that Perfetto shows side by side.
    Merge {
        /// The file to write.
        #[arg(short, long, default_value = "trace.json")]
        output: PathBuf,
        /// The traces.
        #[arg(required = true)]
        traces: Vec<PathBuf>,
    },
}

fn main() -> anyhow::Result<()> {
    let Command::Merge { output, traces } = Cli::parse().command;
    let traces: Vec<&Path> = traces.iter().map(PathBuf::as_path).collect();
    let events = lockstep::trace::merge(&traces, &output)?;
    println!("{events} events of {} processes in {}", traces.len(), output.display());
    Ok(())
}
