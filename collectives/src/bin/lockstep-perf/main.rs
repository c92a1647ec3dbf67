//! `lockstep-perf`: how fast collectives are, and whether their results are right.
//!
//! `lockstep run -n 4 lockstep-perf all_reduce -b 8 -e 64M` prints what nccl-tests would: the same
//! options, columns and formulas. Every process of the job runs this program; member 0 prints and
//! its process's exit code is the verdict, so that a launcher ends nobody before the table is out.
//! Exits with 0 when all is well, with 1 when a result is wrong, a bandwidth too low or a
//! collective failed, and with 2 when the command line is at fault.

mod buffer;
mod cli;
mod collective;
mod csv;
mod explain;
mod failure;
mod json;
mod machine;
mod measure;
mod number;
mod report;
mod size;
mod table;
mod values;

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use lockstep_collectives::{Member, World};

use crate::cli::Cli;
use crate::explain::explain;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::measure::Bench;
use crate::report::{Report, print};

fn main() -> ExitCode {
    // Clap itself exits with 2.
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(format_args!("{failure}"));
            failure.exit_code()
        }
    }
}

/// Says what is wrong. When nobody can be told, the exit code still says it.
fn complain(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "error: {text}");
}

/// Measures with every local member at once, each on its thread.
fn run(cli: &Cli) -> Result<(), Failure> {
    let world = match cli.transport {
        Some(choice) => World::from_environment_over(choice)?,
        None => World::from_environment()?,
    };
    cli.check_ranks(world.topology().member_count())?;
    let world = &world;
    std::thread::scope(|scope| {
        let members = world.local_members();
        let threads: Vec<_> =
            members.map(|member| scope.spawn(move || run_member(cli, world, member))).collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        // All are waited for before the first failure is told.
        results.collect::<Vec<_>>().into_iter().collect()
    })
}

/// One member's part in all sizes.
fn run_member(cli: &Cli, world: &World, member: Member) -> Result<(), Failure> {
    let members: Vec<Member> = (0..world.topology().member_count()).map(Member).collect();
    let communicator = world.communicator(member);
    let communicator = communicator.with_policy(cli.policy(communicator.policy()));
    let group = communicator.group(&members)?;
    let pair = cli.terms().is_of_pairs().then(|| {
        // Ranks are an even number, which was checked.
        let first = group.position() & !1;
        communicator.group(&members[first..first + 2])
    });
    let pair = pair.transpose()?;
    let partners = pair.as_ref().unwrap_or(&group);
    if cli.explain {
        let explains = group.position() == 0;
        return if explains { print(&explain(cli, &communicator, partners)) } else { Ok(()) };
    }
    let arena = world.arena();
    let bench = Bench { cli, communicator: &communicator, group: &group, partners, arena };
    let mut report = if group.position() == 0 {
        Some(Report::begin(cli, Machine::of(world), members.len())?)
    } else {
        None
    };
    let mut previous = None;
    for size_bytes in cli.sizes() {
        let extent = bench.extent(size_bytes)?;
        // Small steps round down to the same operands.
        if previous.replace(extent) == Some(extent) {
            continue;
        }
        if let Some(report) = &report {
            report.progress(extent.size_bytes);
        }
        let placements = cli.placements();
        let rows = placements.map(|placement| bench.measure(extent, placement));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        if let Some(report) = &mut report {
            report.size(rows)?;
        }
    }
    report.map_or(Ok(()), Report::end)
}
