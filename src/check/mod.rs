//! Programs that say what they expect of their values, in the `check` dialect of StableHLO's own
//! tests: run, compared, and reported by function.
//!
//! Owns what an expectation means and how several programs run at once
//! (`interpreter.run_parallel`). How an operation is computed is the backend's; a module given to
//! [`run`] has passed the verifier.

mod compare;
mod expectation;
mod program;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::time::Duration;

use crate::stablehlo::op::Interpretation;
use crate::stablehlo::{Function, Location, Module, OpKind};

/// How programs are run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long programs that run at once may wait for each other.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10) }
    }
}

/// What became of one function.
#[derive(Clone, Debug)]
pub struct Report {
    /// The function, without `@`.
    pub function: String,
    /// How many expectations were met, or the first thing that went wrong.
    pub outcome: Result<usize, Failure>,
    /// What `interpreter.print` showed, in order.
    pub printed: Vec<String>,
}

/// An expectation that was not met, or why there was nothing to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What was found, what was expected.
    pub message: String,
    /// The operation; the function when it is none in particular.
    pub location: Location,
}

/// The functions of a module to run by themselves: public, without parameters, and used by no
/// other function.
pub fn functions(module: &Module) -> Vec<&Function> {
    let used: HashSet<&str> = module.functions.iter().flat_map(used_by).collect();
    let runs = |function: &&Function| {
        function.public && function.params.is_empty() && !used.contains(function.name.as_str())
    };
    module.functions.iter().filter(runs).collect()
}

/// The functions that a function calls or runs.
fn used_by(function: &Function) -> impl Iterator<Item = &str> {
    function.ops.values().flat_map(|data| -> Vec<&str> {
        match &data.kind {
            OpKind::Call { callee } => vec![callee],
            OpKind::Composite(composite) => vec![&composite.decomposition],
            OpKind::CustomCall { called_computations, .. } => {
                called_computations.iter().map(String::as_str).collect()
            }
            OpKind::Interpret(Interpretation::RunParallel { programs, infeed }) => {
                programs.iter().flatten().chain(infeed).map(String::as_str).collect()
            }
            _ => Vec::new(),
        }
    })
}

/// Runs a function without parameters of a verified module and compares what it expects.
///
/// Names in `check.expect_…` custom calls mean what they do to StableHLO's interpreter: 3 units in
/// the last place for `check.expect_close`, a difference of 1e-3 for `check.expect_almost_eq`.
pub fn run(module: &Module, function: &str, options: Options) -> Report {
    let mut printed = Vec::new();
    let outcome = program::run(module, function, options, &mut printed);
    Report { function: function.to_owned(), outcome, printed }
}
