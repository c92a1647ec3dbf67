//! Where on a device an array's bytes live.

use std::borrow::Cow;
use std::fmt;

use super::DeviceId;

/// The name of a kind of memory, such as `device` or `pinned_host`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryKind(Cow<'static, str>);

impl MemoryKind {
    /// The memory a device computes from; the default.
    pub const DEVICE: Self = Self(Cow::Borrowed("device"));
    /// Host memory that devices reach directly.
    pub const PINNED_HOST: Self = Self(Cow::Borrowed("pinned_host"));
    /// Ordinary host memory.
    pub const UNPINNED_HOST: Self = Self(Cow::Borrowed("unpinned_host"));

    /// The kind called `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for MemoryKind {
    fn default() -> Self {
        Self::DEVICE
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A memory's id, unique across processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryId(pub u32);

/// A memory and the devices that can use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its id.
    pub id: MemoryId,
    /// Its kind.
    pub kind: MemoryKind,
    /// The devices attached to it.
    pub devices: Vec<DeviceId>,
}
