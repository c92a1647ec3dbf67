//! What a compiler compiles.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{ArraySpec, Device, HostBuffer, Result};

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

/// A function of the host that runs next to the data: once for each device, on the shards there.
///
/// It is this process's own code, so nothing but its name, parameters and outputs can be compared
/// with the other processes'.
#[derive(Clone)]
pub struct HostFunctionProgram {
    /// The name, to people.
    pub name: String,
    /// What arguments must be. All parameters and outputs are on the devices of the compilation.
    pub parameters: Vec<ArraySpec>,
    /// What outputs will be.
    pub outputs: Vec<ArraySpec>,
    /// The function.
    pub function: Arc<HostFunction>,
}

/// Makes the shards of the outputs on one device, in their true shapes. Runs on that device's
/// thread; a failure poisons the outputs that its process holds.
pub type HostFunction = dyn Fn(&HostCall) -> Result<Vec<HostBuffer<'static>>> + Send + Sync;

/// What a host function is given.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// The device it runs for.
    pub device: Device,
    /// The shard's number, in all arrays alike.
    pub shard: usize,
    /// The shards of the arguments, in their true shapes.
    pub arguments: Vec<HostBuffer<'static>>,
}

impl Program for HostFunctionProgram {
    fn type_name(&self) -> &'static str {
        "host_function"
    }
}

impl fmt::Debug for HostFunctionProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFunctionProgram")
            .field("name", &self.name)
            .field("parameters", &self.parameters)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}
