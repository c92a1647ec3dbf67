//! The names of things: job, attempt, rank, member.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::SecretError;
use crate::secret::random_bytes;

/// A process of the job, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rank(pub u32);

/// A participant of collectives: the global index of a device, dense in rank order.
///
/// A job in which every process shows one device has a member per rank, with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member(pub u32);

/// A job's name, unique among the jobs that could meet on a network.
///
/// At most 64 characters of `A-Z a-z 0-9 . _ -`, so that it can stand in file names, certificate
/// names and log lines as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

/// How often the job was restarted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt(pub u32);

/// Why a text is not a [`JobId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a job id: 1 to 64 characters of A-Z a-z 0-9 . _ - are")]
pub struct InvalidJobId(String);

impl JobId {
    /// The job id spelled `text`.
    ///
    /// # Errors
    /// When it is empty, too long or has another character.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidJobId> {
        let text = text.into();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text))
        } else {
            Err(InvalidJobId(text.chars().take(80).collect()))
        }
    }

    /// One that no other job has.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn random() -> Result<Self, SecretError> {
        Ok(Self(format!("{:032x}", u128::from_le_bytes(random_bytes()?))))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JobId {
    type Error = InvalidJobId;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(text)
    }
}

impl From<JobId> for String {
    fn from(job: JobId) -> Self {
        job.0
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.0)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {}", self.0)
    }
}
