//! The job's secret: 32 random bytes that every process of the job holds and nobody else.
//!
//! Owns how the secret is made, stored and read. What is derived from it is `identity`'s. The
//! secret travels in a file that only its owner can access or through an inherited descriptor,
//! never in arguments or the environment, where other users of the host could see it.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::RawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::environment::KeySource;

const SECRET_BYTES: usize = 32;
const TEXT_BYTES: usize = 2 * SECRET_BYTES;

/// What authenticates the processes of one job to each other.
///
/// Stored as 64 hexadecimal digits and a newline.
#[derive(Clone)]
pub struct JobSecret([u8; SECRET_BYTES]);

/// Why a secret could not be made, stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file or descriptor could not be used.
    #[error("cannot {action} the job's key {place}: {source}")]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file or descriptor.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// Others than the owner can access the file.
    #[error(
        "the job's key {path:?} has mode {mode:04o}: others could read it; run `chmod 600` on it"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The content is not a secret.
    #[error("the job's key {place} is not 64 hexadecimal digits")]
    Malformed {
        /// The file or descriptor.
        place: String,
    },
    /// The system has no randomness.
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(io::Error),
}

impl JobSecret {
    /// A new secret from the system's generator.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Self, SecretError> {
        random_bytes().map(Self)
    }

    /// Stores the secret in a file that does not exist yet, with mode 0600.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn write_new(&self, path: &Path) -> Result<(), SecretError> {
        File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(self.to_text().as_bytes()))
            .map_err(|source| SecretError::Io {
                action: "write",
                place: format!("{path:?}"),
                source,
            })
    }

    /// Reads the secret from a file that only its owner can access.
    ///
    /// # Errors
    /// When group or others have any access to the file, when it cannot be read, or holds no
    /// secret.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let place = format!("{path:?}");
        let io_error = |source| SecretError::Io { action: "read", place: place.clone(), source };
        let file = File::open(path).map_err(io_error)?;
        // The mode of the opened file, so that it cannot be swapped between check and use.
        let mode = file.metadata().map_err(io_error)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(SecretError::Exposed { path: path.to_owned(), mode });
        }
        Self::parse(file, place)
    }

    /// Reads the secret from an inherited descriptor; a pipe is emptied by it.
    ///
    /// # Errors
    /// When the descriptor is not open for reading or yields no secret.
    pub fn from_descriptor(descriptor: RawFd) -> Result<Self, SecretError> {
        let place = format!("in descriptor {descriptor}");
        match File::open(format!("/proc/self/fd/{descriptor}")) {
            Ok(file) => Self::parse(file, place),
            Err(source) => Err(SecretError::Io { action: "read", place, source }),
        }
    }

    /// Reads the secret from where the environment says it is.
    ///
    /// # Errors
    /// As [`JobSecret::read`] and [`JobSecret::from_descriptor`].
    pub fn from_source(source: &KeySource) -> Result<Self, SecretError> {
        match source {
            KeySource::Fd(descriptor) => Self::from_descriptor(*descriptor),
            KeySource::File(path) => Self::read(path),
        }
    }

    /// The stored form, for a launcher that passes it through a pipe.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(TEXT_BYTES + 1);
        for byte in self.0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
        text
    }

    /// The secret that consists of these bytes.
    pub(crate) fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, to derive keys from.
    pub(crate) fn as_bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    fn parse(mut from: impl Read, place: String) -> Result<Self, SecretError> {
        // Exactly the digits: a pipe whose writer is still open has no end of file.
        let mut text = [0; TEXT_BYTES];
        match from.read_exact(&mut text) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(SecretError::Malformed { place });
            }
            Err(source) => return Err(SecretError::Io { action: "read", place, source }),
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let mut bytes = [0; SECRET_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = match pair {
                [high, low] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
                _ => None,
            }
            .ok_or_else(|| SecretError::Malformed { place: place.clone() })?;
        }
        Ok(Self(bytes))
    }
}

/// Bytes from the system's generator.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], SecretError> {
    let mut bytes = [0; N];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| SecretError::NoRandomness(errno.into()))?;
    if filled == N {
        Ok(bytes)
    } else {
        Err(SecretError::NoRandomness(io::ErrorKind::UnexpectedEof.into()))
    }
}

impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobSecret(..)")
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fd(descriptor) => write!(f, "descriptor {descriptor}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_keeps_the_secret_and_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let secret = JobSecret::generate().unwrap();
        secret.write_new(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(JobSecret::read(&path).unwrap().0, secret.0);
        assert!(matches!(secret.write_new(&path), Err(SecretError::Io { action: "write", .. })));
    }

    #[test]
    fn refuses_a_file_that_others_can_access() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        JobSecret::generate().unwrap().write_new(&path).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match JobSecret::read(&path) {
                Err(SecretError::Exposed { mode: found, .. }) => assert_eq!(found, mode),
                other => panic!("mode {mode:o}: {other:?}"),
            }
        }
    }

    #[test]
    fn refuses_what_is_no_secret() {
        let digits = "0123456789abcdef".repeat(4);
        assert!(JobSecret::parse(digits.as_bytes(), String::new()).is_ok());
        for text in ["", &digits[1..], &digits.replace('7', "g"), &digits.replace('7', "é")] {
            let found = JobSecret::parse(text.as_bytes(), "here".into());
            assert!(matches!(found, Err(SecretError::Malformed { .. })), "{text:?}");
        }
    }

    #[test]
    fn a_pipe_with_an_open_writer_yields_the_secret() {
        let (reader, mut writer) = io::pipe().unwrap();
        let secret = JobSecret::generate().unwrap();
        writer.write_all(secret.to_text().as_bytes()).unwrap();
        assert_eq!(JobSecret::from_descriptor(reader.as_raw_fd()).unwrap().0, secret.0);
        assert!(JobSecret::from_descriptor(-1).is_err());
    }

    #[test]
    fn two_secrets_differ_and_neither_is_printed() {
        let (one, other) = (JobSecret::generate().unwrap(), JobSecret::generate().unwrap());
        assert_ne!(one.0, other.0);
        assert_eq!(format!("{one:?}"), "JobSecret(..)");
    }
}
