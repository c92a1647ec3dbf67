//! The table for people and for the parsers of nccl-tests: its columns in its order, and the
//! spread of the iterations behind them.

use std::fmt::Write as _;

use crate::collective::Placement;
use crate::measure::Row;
use crate::report::Report;

/// What the figures are, where they come from, and the names of the columns.
pub(crate) fn header(report: &Report<'_>) -> String {
    let Report { cli, machine, ranks, .. } = report;
    let hosts: Vec<_> = machine
        .hosts
        .iter()
        .map(|host| format!("{} ({} ranks, {} processes)", host.name, host.ranks, host.processes))
        .collect();
    let checked = if cli.check { "checked" } else { "not checked" };
    let (spread, spread_units): (String, String) =
        shares(report).iter().map(|(name, _)| (column(name), column("(us)"))).unzip();
    let group = "       time   algbw   busbw #wrong";
    let units = "       (us)  (GB/s)  (GB/s)       ";
    format!(
        "# lockstep-perf {}: {} on {ranks} ranks, transport {}\n\
         # hosts: {}\n\
         # host of rank 0: {} cores, {}\n\
         # {} iterations after {} to warm up, {checked}\n\
         # times: of the rank with the greatest mean (nccl-tests -a 3); GB/s: 10^9 bytes/s\n\
         #\n\
         # {:49} {:^33} {:>20}\n\
         #{:>11}  {:>11} {:>8} {:>8} {:>6}{group}{group}{spread}\n\
         #{:>11}  {:>11} {:>8} {:>8} {:>6}{units}{units}{spread_units}\n",
        machine.lockstep,
        cli.collective,
        machine.transport,
        hosts.join(", "),
        machine.cores,
        machine.cpu,
        cli.iterations,
        cli.warm_up,
        "",
        "out-of-place",
        "in-place",
        "size",
        "count",
        "type",
        "redop",
        "root",
        "(B)",
        "(elements)",
        "",
        "",
        "",
    )
}

/// One size: its rows, one for each placement that was measured. The spread is that of the first.
pub(crate) fn line(report: &Report<'_>, rows: &[Row]) -> String {
    let terms = report.cli.terms();
    let Some(first) = rows.first() else { return String::new() };
    let mut line = format!(
        "{:>12}  {:>11} {:>8} {:>8} {:>6}",
        first.extent.size_bytes,
        first.extent.count,
        terms.element().map_or("none".to_owned(), |element| element.to_string()),
        terms.reduction().map_or("none".to_owned(), |reduction| reduction.to_string()),
        terms.root().map_or(-1, i64::from),
    );
    for placement in Placement::BOTH {
        let measured = rows.iter().find(|row| row.placement == placement);
        // Writing to a string does not fail.
        _ = match measured {
            Some(row) => {
                let wrong = row.wrong.map_or("N/A".to_owned(), |wrong| wrong.to_string());
                let (time_us, algbw, busbw) = (row.time_us(), row.algbw(), report.busbw(row));
                write!(line, " {time_us:>10.2} {algbw:>7.2} {busbw:>7.2} {wrong:>6}")
            }
            None => write!(line, " {:>10} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A"),
        };
    }
    for (_, share) in shares(report) {
        _ = write!(line, " {:>10.2}", first.percentile_us(*share));
    }
    line.push('\n');
    line
}

/// The sums over all sizes, in the words of nccl-tests.
pub(crate) fn footer(report: &Report<'_>) -> String {
    let wrong = match report.wrong() {
        None => "N/A".to_owned(),
        Some(0) => "0 OK".to_owned(),
        Some(wrong) => format!("{wrong} FAILED"),
    };
    let busbw = report.average_busbw();
    format!("# Out of bounds values : {wrong}\n# Avg bus bandwidth    : {busbw:.4}\n#\n")
}

/// The columns of the spread, with the share of the iterations below each.
fn shares(report: &Report<'_>) -> &'static [(&'static str, f64)] {
    const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("min", 0.0), ("max", 1.0)];
    if report.cli.all_times { &SHARES } else { &SHARES[..2] }
}

fn column(text: &str) -> String {
    format!(" {text:>10}")
}
