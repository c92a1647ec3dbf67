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

/// One size.
pub(crate) fn line(report: &Report<'_>, row: &Row) -> String {
    let terms = report.cli.terms();
    let mut line = format!(
        "{:>12}  {:>11} {:>8} {:>8} {:>6}",
        row.extent.size_bytes,
        row.extent.count,
        terms.element().map_or("none".to_owned(), |element| element.to_string()),
        terms.reduction().map_or("none".to_owned(), |reduction| reduction.to_string()),
        terms.root().map_or(-1, i64::from),
    );
    let na = "N/A".to_owned();
    let wrong = row.wrong.map_or(na, |wrong| wrong.to_string());
    let measured = format!(
        " {:>10.2} {:>7.2} {:>7.2} {wrong:>6}",
        row.time_us(),
        row.algbw(),
        report.busbw(row)
    );
    let absent = format!(" {:>10} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A");
    let (out_of_place, in_place) = match terms.placement() {
        Placement::OutOfPlace => (measured, absent),
        Placement::InPlace => (absent, measured),
    };
    line.push_str(&out_of_place);
    line.push_str(&in_place);
    for (_, share) in shares(report) {
        // Writing to a string does not fail.
        _ = write!(line, " {:>10.2}", row.percentile_us(*share));
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
