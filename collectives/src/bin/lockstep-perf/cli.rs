//! The command line: nccl-tests' options, checked as far as the text alone allows.

use std::time::Duration;

use clap::{ArgAction, Parser};
use lockstep_collectives::{
    Algorithm, CollectiveKind, ElementType, Policy, Reduction, TransportChoice, parse_duration,
};

use crate::collective::{COLLECTIVES, Placement, Terms};
use crate::failure::Failure;
use crate::size::{Step, parse_size, sweep};

const HELP: &str = "\
Sizes are bytes, with K, M and G for powers of 1024; GB/s are 10^9 bytes/s. A size is that of the
larger side and is rounded down to whole elements on every rank; the size that ran is printed.
algbw is size/time; busbw is algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather,
reduce_scatter, gather, scatter and all_to_all(_v), and algbw itself for the others.
time is the mean over the iterations, taken by the rank where it is greatest (nccl-tests -a 3; its
default is the mean of all ranks); p50, p99, min and max are of the same rank's iterations, out of
place where both are measured.

collective_permute moves from each rank to the next. send and send_recv work in pairs of ranks, of
which the even one sends. all_to_all_v moves pieces of 1 to n units. send, all_to_all_v and
barrier have no form in place.

Exit code: 0 all is well; 1 something is wrong, too slow or failed; 2 the command line is.
Under a launcher rank 0 carries the verdict.";

/// Measures and checks the collectives of a job, as nccl-tests does.
#[derive(Debug, Parser)]
#[command(name = "lockstep-perf", version, after_help = HELP)]
pub(crate) struct Cli {
    /// all_reduce, all_gather, reduce_scatter, all_to_all, all_to_all_v, broadcast, reduce, gather,
    /// scatter, collective_permute, send, send_recv or barrier.
    #[arg(value_parser = named(COLLECTIVES))]
    pub(crate) collective: CollectiveKind,

    /// The first size.
    #[arg(short = 'b', long = "minbytes", value_name = "SIZE", default_value = "8")]
    #[arg(value_parser = parse_size)]
    pub(crate) min_bytes: u64,

    /// The last size.
    #[arg(short = 'e', long = "maxbytes", value_name = "SIZE", default_value = "32M")]
    #[arg(value_parser = parse_size)]
    pub(crate) max_bytes: u64,

    /// Multiply by FACTOR from one size to the next.
    #[arg(short = 'f', long = "stepfactor", value_name = "FACTOR", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(2..))]
    factor: u64,

    /// Add SIZE from one size to the next.
    #[arg(short = 'i', long = "stepbytes", value_name = "SIZE", conflicts_with = "factor")]
    #[arg(value_parser = parse_increment)]
    increment: Option<u64>,

    /// The type of the elements: bool, i2 to i64, u2 to u64, the kinds of f8, f16, bf16, f32, f64,
    /// c64 or c128.
    #[arg(short = 'd', long = "datatype", value_name = "TYPE", default_value = "f32")]
    #[arg(value_parser = named(ElementType::ARITHMETIC))]
    element: ElementType,

    /// The reduction, where the collective has one: sum, prod, min, max, and, or, xor, avg.
    #[arg(short = 'o', long = "op", value_name = "OP", default_value = "sum")]
    #[arg(value_parser = parse_reduction)]
    reduction: Reduction,

    /// The root, where the collective has one.
    #[arg(short = 'r', long = "root", value_name = "RANK", default_value_t = 0)]
    root: u32,

    /// Where results are put: out_of_place, in_place or both, as far as the collective has them.
    #[arg(long, value_name = "PLACE", default_value = "both")]
    #[arg(value_parser = named(["both", "out_of_place", "in_place"]))]
    placement: &'static str,

    /// Timed iterations of each size.
    #[arg(short = 'n', long = "iters", value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) iterations: u32,

    /// Iterations before those.
    #[arg(short = 'w', long = "warmup_iters", value_name = "N", default_value_t = 5)]
    pub(crate) warm_up: u32,

    /// Whether to run once more and compare with a serial fold, on every rank.
    #[arg(short = 'c', long = "check", value_name = "0|1", default_value = "1")]
    #[arg(action = ArgAction::Set, value_parser = parse_switch)]
    pub(crate) check: bool,

    /// How long all iterations of a size may take together, on every rank; the error names who
    /// did not take part. Without it, LOCKSTEP_COLLECTIVE_TIMEOUT limits each collective.
    #[arg(short = 'T', long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Fail when the average bus bandwidth of all sizes is below GB/S.
    #[arg(long, value_name = "GB/S", value_parser = parse_bandwidth)]
    pub(crate) min_busbw: Option<f64>,

    /// How to reach processes of the same host: auto, shm (shared memory or an error) or quic.
    /// Without it, LOCKSTEP_TRANSPORT says.
    #[arg(long, value_name = "NAME")]
    pub(crate) transport: Option<TransportChoice>,

    /// The algorithm: direct, recursive_doubling, ring or two_level; memory that all ranks share is
    /// used in any case. Without it, LOCKSTEP_ALGORITHM says, else the table that --explain prints.
    #[arg(long = "algo", value_name = "NAME")]
    algorithm: Option<Algorithm>,

    /// Fold in the order of the ranks, so that results have the same bits wherever they run.
    #[arg(long)]
    reproducible: bool,

    /// Print which algorithm each size takes, its steps and the bytes it sends, and measure nothing.
    #[arg(long)]
    pub(crate) explain: bool,

    /// Print the shortest and the longest iteration too.
    #[arg(long)]
    pub(crate) all_times: bool,

    /// Print one JSON object, with every sample.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print comma-separated values.
    #[arg(long)]
    pub(crate) csv: bool,

    /// Spoil the result of RANK before it is checked, to see that the check finds it.
    #[arg(long, value_name = "RANK", hide = true)]
    pub(crate) corrupt: Option<u32>,
}

impl Cli {
    /// What is called, whatever the size.
    pub(crate) fn terms(&self) -> Terms {
        let Self { collective, element, reduction, root, .. } = *self;
        Terms { collective, element, reduction, root }
    }

    /// By what algorithms are chosen, where the environment says `policy`.
    pub(crate) fn policy(&self, policy: Policy) -> Policy {
        Policy {
            algorithm: self.algorithm.or(policy.algorithm),
            reproducible: self.reproducible || policy.reproducible,
        }
    }

    /// The placements to measure, of those that the collective has.
    pub(crate) fn placements(&self) -> impl Iterator<Item = Placement> {
        let terms = self.terms();
        let asked = |placement: &Placement| ["both", placement.name()].contains(&self.placement);
        Placement::BOTH.into_iter().filter(asked).filter(move |placement| terms.has(*placement))
    }

    /// The sizes to measure; a barrier has but one.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u64> {
        let step = self.increment.map_or(Step::Factor(self.factor), Step::Increment);
        let one = self.collective == CollectiveKind::Barrier;
        let (first, last) = if one { (0, 0) } else { (self.min_bytes, self.max_bytes) };
        sweep(first, last, step)
    }

    /// Checks what depends on other arguments or on the number of ranks.
    pub(crate) fn check_ranks(&self, ranks: u32) -> Result<(), Failure> {
        let usage = |text| Err(Failure::Usage(text));
        let terms = self.terms();
        let Terms { collective, element, reduction, root } = terms;
        if self.placements().next().is_none() {
            return usage(format!("{collective} has no form in place"));
        }
        if let Some(algorithm) = self.algorithm.filter(|a| !a.serves(collective)) {
            return usage(format!("{algorithm} has no form of {collective}"));
        }
        if terms.is_of_pairs() && !ranks.is_multiple_of(2) {
            return usage(format!("{collective} works in pairs, and there are {ranks} ranks"));
        }
        if collective == CollectiveKind::Barrier {
            return match self.min_busbw {
                Some(_) => usage("a barrier has no bandwidth for --min-busbw".to_owned()),
                None => Ok(()),
            };
        }
        let (min, max) = (self.min_bytes, self.max_bytes);
        if min > max {
            return usage(format!("-b is {min} bytes and -e, which may not be less, is {max}"));
        }
        if terms.reduction().is_some() && !element.supports(reduction) {
            return usage(format!("{element} has no {reduction}"));
        }
        if terms.root().is_some() && root >= ranks {
            return usage(format!("-r {root} in a job of {ranks} ranks, which count from 0"));
        }
        match self.corrupt.filter(|rank| *rank >= ranks) {
            Some(rank) => usage(format!("--corrupt {rank} in a job of {ranks} ranks")),
            None => Ok(()),
        }
    }
}

fn parse_increment(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("a step of 0 bytes leads nowhere".to_owned()),
        size => Ok(size),
    }
}

/// A parser of the names of `choices`, which lists them when it has none such.
fn named<T, const N: usize>(
    choices: [T; N],
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: ToString + Copy + Send + Sync + 'static,
{
    move |text| {
        let found = choices.into_iter().find(|choice| choice.to_string() == text);
        found.ok_or_else(|| format!("choose from {}", choices.map(|c| c.to_string()).join(", ")))
    }
}

/// The reduction called `text`, by our names or by those of nccl-tests.
fn parse_reduction(text: &str) -> Result<Reduction, String> {
    named(Reduction::ALL)(match text {
        "prod" => "product",
        "avg" => "mean",
        other => other,
    })
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("write 0 or 1".to_owned()),
    }
}

fn parse_bandwidth(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(least) if least.is_finite() && least >= 0.0 => Ok(least),
        _ => Err("write a number of GB/s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cli(words: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["lockstep-perf"].into_iter().chain(words.split_whitespace()))
    }

    #[test]
    fn options_are_those_of_nccl_tests() {
        let cli =
            cli("reduce_scatter -b 8 -e 64M -f 8 -d bf16 -o prod -n 20 -w 5 -c 0 -r 3").unwrap();
        let expected = Terms {
            collective: CollectiveKind::ReduceScatter,
            element: ElementType::BF16,
            reduction: Reduction::Product,
            root: 3,
        };
        assert_eq!(cli.terms(), expected);
        assert_eq!((cli.iterations, cli.warm_up, cli.check), (20, 5, false));
        assert_eq!(cli.sizes().collect::<Vec<_>>()[..3], [8, 64, 512]);
        // The collective has no root, so any will do.
        cli.check_ranks(2).unwrap();
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        for (words, culprit) in [
            ("all_reduce --transport tcp", "write auto, shm or quic"),
            ("all_reduce --algo tree", "write direct, recursive_doubling, ring or two_level"),
            ("all_reduce -d f8", "'f8'"),
            ("all_reduce -o mulsum", "'mulsum'"),
            ("all_reduce -b 1T", "'1T'"),
            ("all_reduce -c 2", "write 0 or 1"),
            ("all_reduce -n 0", "--iters"),
            ("all_reduce --min-busbw nan", "GB/s"),
            ("gossip", "gossip"),
        ] {
            let error = cli(words).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words}");
            assert!(error.to_string().contains(culprit), "{words}: {error}");
        }
    }

    #[test]
    fn arguments_are_held_against_each_other_and_the_job() {
        for (words, message) in [
            ("all_reduce -o xor", "f32 has no xor"),
            ("broadcast -r 2", "-r 2 in a job of 2 ranks, which count from 0"),
            ("all_gather -b 2K -e 1K", "-b is 2048 bytes and -e, which may not be less, is 1024"),
            ("barrier --min-busbw 1", "a barrier has no bandwidth for --min-busbw"),
            ("all_reduce -o avg -d i32", "i32 has no mean"),
            ("reduce -d f8e5m2 -o and", "f8e5m2 has no and"),
            ("reduce --algo ring", "ring has no form of reduce"),
            ("send --placement in_place", "send has no form in place"),
            ("all_gather --corrupt 2", "--corrupt 2 in a job of 2 ranks"),
        ] {
            assert_eq!(cli(words).unwrap().check_ranks(2).unwrap_err().to_string(), message);
        }
        cli("all_gather -o xor -d f8e5m2").unwrap().check_ranks(2).unwrap();
        let error = cli("send_recv").unwrap().check_ranks(3).unwrap_err().to_string();
        assert_eq!(error, "send_recv works in pairs, and there are 3 ranks");
    }
}
