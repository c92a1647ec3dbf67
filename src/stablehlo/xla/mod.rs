//! What XLA's frontends say about a program besides its text: how arrays are spread, as strings
//! and as protocol buffers, on which devices it runs, and what is asked of the compiler.
//!
//! Owns these formats. What a sharding means for a program is `spmd`'s. Whatever the bytes,
//! reading ends in a value or in a [`FormatError`]; nothing takes more memory than a small
//! multiple of its text, except the devices of a short range, of which there is a bound.

mod messages;
mod options;
mod sharding;

pub use options::{CompileOptions, DeviceAssignment};
pub use sharding::{HloSharding, HloTiling, Subgroup, TileDevices};

/// Why bytes or a string are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes are no protocol buffer of this message.
    #[error("this is no {message}: {reason}")]
    Protobuf {
        /// The message.
        message: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The parts do not fit each other.
    #[error("{what} is malformed: {reason}")]
    Malformed {
        /// What is.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// An option that XLA does not have either.
    #[error("No such compile option: '{name}'")]
    NoOption {
        /// Its name.
        name: String,
    },
    /// It may well be right, but Lockstep does not know it yet.
    #[error("{what} is not known yet; express the program without it")]
    NotKnown {
        /// What is not known.
        what: String,
    },
}

/// Reads a message.
fn decode<M: prost::Message + Default>(
    bytes: &[u8],
    message: &'static str,
) -> Result<M, FormatError> {
    M::decode(bytes).map_err(|error| FormatError::Protobuf { message, reason: error.to_string() })
}
