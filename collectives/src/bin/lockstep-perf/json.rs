//! The whole report as one JSON object, with every sample.

use serde::Serialize;

use crate::machine::Machine;
use crate::report::Report;

/// Counts changes that a reader has to know of.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    arguments: Vec<String>,
    machine: &'a Machine,
    collective: String,
    ranks: usize,
    #[serde(rename = "type")]
    element: Option<String>,
    redop: Option<String>,
    root: Option<u32>,
    iterations: u32,
    warm_up: u32,
    results: Vec<Measured>,
    wrong: Option<u64>,
    average_busbw_gbs: f64,
}

#[derive(Serialize)]
struct Measured {
    placement: &'static str,
    size_bytes: usize,
    count: usize,
    /// The rank with the greatest mean time; the times are that one's.
    slowest_rank: usize,
    time_us: f64,
    algbw_gbs: f64,
    busbw_gbs: f64,
    wrong: Option<u64>,
    min_us: f64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    samples_us: Vec<f64>,
}

/// The object, on one line.
pub(crate) fn document(report: &Report<'_>) -> String {
    let Report { cli, machine, ranks, rows } = report;
    let terms = cli.terms();
    let results = rows.iter().map(|row| Measured {
        placement: row.placement.name(),
        size_bytes: row.extent.size_bytes,
        count: row.extent.count,
        slowest_rank: row.slowest,
        time_us: row.time_us(),
        algbw_gbs: row.algbw(),
        busbw_gbs: report.busbw(row),
        wrong: row.wrong,
        min_us: row.percentile_us(0.0),
        p50_us: row.percentile_us(0.5),
        p99_us: row.percentile_us(0.99),
        max_us: row.percentile_us(1.0),
        samples_us: row.samples_us.clone(),
    });
    let document = Document {
        schema: SCHEMA,
        arguments: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        machine,
        collective: terms.collective.to_string(),
        ranks: *ranks,
        element: terms.element().map(|element| element.to_string()),
        redop: terms.reduction().map(|reduction| reduction.to_string()),
        root: terms.root(),
        iterations: cli.iterations,
        warm_up: cli.warm_up,
        results: results.collect(),
        wrong: report.wrong(),
        average_busbw_gbs: report.average_busbw(),
    };
    #[expect(clippy::expect_used, reason = "its keys are names, so there is nothing to refuse")]
    let mut text = serde_json::to_string(&document).expect("names and numbers");
    text.push('\n');
    text
}
