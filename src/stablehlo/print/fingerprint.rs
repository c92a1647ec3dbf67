//! What processes compare to know that they run the same program.

use std::fmt::{self, Write as _};

use sha2::digest::Output;
use sha2::{Digest as _, Sha256};

use super::{Constants, ModulePrinter};
use crate::stablehlo::Module;

/// The SHA-256 of a module's printed text: the same for equal modules, wherever and under
/// whatever names they were read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// All bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight bytes as a number, for places that have room for no more.
    pub fn short(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl From<Output<Sha256>> for Fingerprint {
    fn from(hash: Output<Sha256>) -> Self {
        Self(hash.into())
    }
}

impl fmt::Display for Fingerprint {
    /// The first eight bytes in hexadecimal: enough to tell programs apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.short())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Hashes what is written to it.
struct Hashing(Sha256);

impl fmt::Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

impl Module {
    /// The fingerprint of the program: functions, operations, types, attributes and the elements
    /// of constants count, locations and the names of values do not.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hashing = Hashing(Sha256::new());
        // Writing to a hash does not fail.
        _ = write!(hashing, "{self}");
        Fingerprint::from(hashing.0.finalize())
    }

    /// The program line by line, an operation a line, with long constants replaced by their hash.
    ///
    /// Two programs have the same fingerprint exactly when they have the same listing; the first
    /// line that differs is the first operation that does.
    pub fn listing(&self) -> Vec<String> {
        let text = ModulePrinter { module: self, constants: Constants::Hashed }.to_string();
        text.lines().map(str::to_owned).collect()
    }
}
