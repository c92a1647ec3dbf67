//! What a compiler compiles.

use std::any::Any;

/// Anything that a [`super::Compiler`] may understand. The set is open: a compiler answers
/// `Unimplemented`, with [`Program::type_name`], to a kind that it does not know.
pub trait Program: Any + Send + Sync {
    /// The name of this kind of program, such as `stablehlo`.
    fn type_name(&self) -> &str;
}

/// A StableHLO module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StableHloProgram {
    /// MLIR text.
    Text(String),
    /// A portable artifact: MLIR bytecode of the versioned dialect.
    Bytecode(Vec<u8>),
}

impl Program for StableHloProgram {
    fn type_name(&self) -> &'static str {
        "stablehlo"
    }
}
