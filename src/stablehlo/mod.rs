//! Programs: StableHLO modules in memory, read from text or bytecode, verified and printed.
//!
//! Owns the representation, its readers, its verifier and its printer. Executes nothing, knows no
//! devices. Bytes from outside never panic here, never recurse without a bound and never allocate
//! more than a small multiple of their own length (invariant I5).

pub mod attribute;
mod build;
mod bytecode;
mod composite;
pub mod entity;
mod literal;
mod module;
pub(crate) mod number;
pub mod op;
mod print;
mod quantized;
mod statistics;
mod text;
pub(crate) mod transform;
mod verify;
pub mod xla;

pub use bytecode::{BytecodeError, BytecodeErrorKind, Section, parse_bytecode};
pub use literal::Literal;
pub use module::{
    Block, BlockData, DynamicTensorType, Function, Location, Mesh, Module, Op, OpData, Param,
    Region, RegionData, ResultInfo, TensorType, Type, Value, ValueData, ValueDef,
};
pub use op::OpKind;
pub use print::Fingerprint;
pub(crate) use print::element;
pub use quantized::{Quantization, QuantizationParameters, QuantizedTensorType};
pub use statistics::{Statistics, Traffic};
pub use text::{Excerpt, ParseError, ParseErrorKind, parse, parse_all, parse_each};
pub use verify::{VerifyError, verify};

#[cfg(test)]
mod tests;
