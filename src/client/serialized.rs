//! Executables as bytes: a versioned protocol buffer around the program that was compiled.
//!
//! Compiling takes less than reading machine code would be worth here, so what travels is the
//! program, and loading compiles it. Bytes from outside end in a value or a status (I5).

use prost::Message as _;

use crate::ifrt::{Result, StableHloProgram, Status, fingerprint};

/// The form of the message below.
const FORMAT: u32 = 1;

#[derive(Clone, PartialEq, prost::Message)]
struct Message {
    #[prost(uint32, tag = "1")]
    format: u32,
    /// The version of the runtime.
    #[prost(string, tag = "2")]
    runtime: String,
    #[prost(string, tag = "3")]
    platform: String,
    /// Of the executable.
    #[prost(fixed64, tag = "4")]
    fingerprint: u64,
    /// Device ids, in the order of the device assignment.
    #[prost(uint32, repeated, tag = "5")]
    devices: Vec<u32>,
    #[prost(string, optional, tag = "6")]
    text: Option<String>,
    #[prost(bytes = "vec", optional, tag = "7")]
    bytecode: Option<Vec<u8>>,
    /// Of the program's bytes.
    #[prost(fixed64, tag = "8")]
    checksum: u64,
}

/// What an executable was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Serialized {
    pub(super) program: StableHloProgram,
    pub(super) fingerprint: u64,
    pub(super) devices: Vec<u32>,
}

pub(super) fn encode(
    platform: &str,
    fingerprint: u64,
    devices: Vec<u32>,
    program: &StableHloProgram,
) -> Vec<u8> {
    let (text, bytecode) = match program {
        StableHloProgram::Text(text) => (Some(text.clone()), None),
        StableHloProgram::Bytecode(bytes) => (None, Some(bytes.clone())),
    };
    let message = Message {
        format: FORMAT,
        runtime: env!("CARGO_PKG_VERSION").to_owned(),
        platform: platform.to_owned(),
        fingerprint,
        devices,
        text,
        bytecode,
        checksum: checksum(program),
    };
    message.encode_to_vec()
}

/// # Errors
/// `InvalidArgument` when the bytes are no executable, `FailedPrecondition` when another version or
/// platform made them, `DataLoss` when the program is not what it was.
pub(super) fn decode(platform: &str, bytes: &[u8]) -> Result<Serialized> {
    let message = Message::decode(bytes).map_err(|error| {
        Status::invalid_argument(format!("the bytes are no serialized executable: {error}"))
    })?;
    let Message { format, runtime, platform: made_for, fingerprint, devices, .. } = message;
    let own = (FORMAT, env!("CARGO_PKG_VERSION"), platform);
    if (format, runtime.as_str(), made_for.as_str()) != own {
        return Err(Status::failed_precondition(format!(
            "the executable is of format {format}, runtime {runtime} and platform {made_for}, this \
             is format {}, runtime {} and platform {}: compile the program again",
            own.0, own.1, own.2
        )));
    }
    let program = match (message.text, message.bytecode) {
        (Some(text), None) => StableHloProgram::Text(text),
        (None, Some(bytes)) => StableHloProgram::Bytecode(bytes),
        _ => return Err(Status::invalid_argument("a serialized executable has not one program")),
    };
    if checksum(&program) != message.checksum {
        return Err(Status::data_loss("the program of a serialized executable is damaged"));
    }
    Ok(Serialized { program, fingerprint, devices })
}

fn checksum(program: &StableHloProgram) -> u64 {
    let bytes = match program {
        StableHloProgram::Text(text) => text.as_bytes(),
        StableHloProgram::Bytecode(bytes) => bytes,
    };
    fingerprint(bytes.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::Code;

    #[test]
    fn what_is_written_is_read_and_what_is_not_is_refused() {
        let program = StableHloProgram::Bytecode((0..=255).collect());
        let bytes = encode("cpu", 7, vec![3, 1], &program);
        let read = decode("cpu", &bytes).unwrap();
        assert_eq!(read, Serialized { program, fingerprint: 7, devices: vec![3, 1] });
        let code = |platform: &str, bytes: &[u8]| decode(platform, bytes).unwrap_err().code();
        assert_eq!(code("gpu", &bytes), Code::FailedPrecondition);
        for end in 0..bytes.len() {
            decode("cpu", &bytes[..end]).unwrap_err();
        }
        // Each byte of the program is covered.
        let start = bytes.windows(4).position(|window| window == [0, 1, 2, 3]).unwrap();
        for place in start..start + 256 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert_eq!(code("cpu", &damaged), Code::DataLoss);
        }
        let mut other = Message::decode(bytes.as_slice()).unwrap();
        other.runtime = "0.0.0".to_owned();
        assert_eq!(code("cpu", &other.encode_to_vec()), Code::FailedPrecondition);
    }
}
