//! Versions of StableHLO, and which of them are read.

use std::fmt;

use super::cursor::{Cursor, Read};

/// A version of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u32, u32, u32);

impl Version {
    /// The oldest version that is read: the first one that promises compatibility.
    const OLDEST: Self = Self(0, 9, 0);
    /// The newest version that is read; the table of properties is that of this version.
    const NEWEST: Self = Self(1, 17, 0);

    /// Refuses a file whose producer is not `StableHLO_v` and a version that is read.
    ///
    /// Only portable artifacts name their version there, so this is what tells them apart from
    /// bytecode of other dialects.
    pub(super) fn check_producer(file: &Cursor<'_>, producer: &[u8]) -> Read<()> {
        let producer = String::from_utf8_lossy(producer);
        let Some(version) = producer.strip_prefix("StableHLO_v") else {
            let producer: String = producer.chars().take(60).collect();
            let message =
                format!("this is bytecode written by {producer:?}, no StableHLO portable artifact");
            return Err(file.other_version(message));
        };
        match Self::parse(version) {
            Some(version) if (Self::OLDEST..=Self::NEWEST).contains(&version) => Ok(()),
            Some(version) => {
                Err(file.other_version(format!("this program is of StableHLO {version}")))
            }
            None => Err(file.malformed(
                file.offset(),
                format!("{:?} is not a version", version.chars().take(60).collect::<String>()),
            )),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let version = Self(numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}
