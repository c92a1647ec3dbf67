//! Which algorithm each size would take, and at what cost: nothing is measured.

use std::fmt::Write as _;

use lockstep_collectives::{Algorithm, Communicator, Group, OperatorName, Signature};

use crate::cli::Cli;

/// The table of algorithms, and a line for each size.
pub(crate) fn explain(cli: &Cli, communicator: &Communicator, group: &Group) -> String {
    let mut text = "# The first row that fits counts:\n".to_owned();
    for row in Algorithm::table() {
        let _ = writeln!(text, "#   {row}");
    }
    let _ = writeln!(text, "#\n#       size              algorithm    steps         sent");
    let _ = writeln!(text, "#        (B)                              (B, who sends most)");
    let terms = cli.terms();
    for size_bytes in cli.sizes() {
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let extent = terms.extent(size, group.members().len());
        let root = terms.root().unwrap_or(0) as usize;
        let signature = Signature {
            kind: terms.collective,
            reduction: terms.reduction().map(OperatorName::Named),
            element: terms.element(),
            count: terms.input_count(extent, root) as u64,
            root: terms.root(),
            pairs: None,
        };
        let (algorithm, cost) = communicator.plan(group, &signature);
        let [steps, sent] = match cost {
            Some(cost) => [cost.steps, cost.sent_bytes].map(|number| number.to_string()),
            None => ["-", "-"].map(str::to_owned),
        };
        let (size, algorithm) = (extent.size_bytes, algorithm.to_string());
        let _ = writeln!(text, "{size:>12} {algorithm:>22} {steps:>8} {sent:>12}");
    }
    text
}
