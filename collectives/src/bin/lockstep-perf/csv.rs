//! Comma-separated values, a line for each size: every value is a name or a number.

use crate::measure::Row;
use crate::report::Report;

/// The names of the columns.
pub(crate) const HEADER: &str = "collective,placement,ranks,size_bytes,count,type,redop,root,\
    time_us,algbw_gbs,busbw_gbs,wrong,min_us,p50_us,p99_us,max_us\n";

/// One size. What does not apply is left empty.
pub(crate) fn line(report: &Report<'_>, row: &Row) -> String {
    let terms = report.cli.terms();
    let [min, p50, p99, max] = [0.0, 0.5, 0.99, 1.0].map(|share| row.percentile_us(share));
    format!(
        "{},{},{},{},{},{},{},{},{},{},{},{},{min},{p50},{p99},{max}\n",
        terms.collective,
        row.placement.name(),
        report.ranks,
        row.extent.size_bytes,
        row.extent.count,
        or_empty(terms.element()),
        or_empty(terms.reduction()),
        or_empty(terms.root()),
        row.time_us(),
        row.algbw(),
        report.busbw(row),
        or_empty(row.wrong),
    )
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
