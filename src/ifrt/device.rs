//! Devices, of this process and of others.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{AttributeMap, Memory, MemoryKind, Result, Status};

/// A device's id: unique across the processes of a job and the same on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u32);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.0)
    }
}

/// What a client says about a device when it creates it.
#[derive(Clone, Debug)]
pub struct DeviceDescription {
    /// See [`Device::id`].
    pub id: DeviceId,
    /// See [`Device::kind`].
    pub kind: String,
    /// See [`Device::process_index`].
    pub process_index: u32,
    /// See [`Device::is_addressable`].
    pub is_addressable: bool,
    /// See [`Device::memories`]; the default one first, and at least that.
    pub memories: Vec<Memory>,
    /// See [`Device::attributes`].
    pub attributes: AttributeMap,
}

/// A device of one client; cheap to clone.
///
/// Two devices are equal when they are the same device of the same client: ids of two clients
/// in one process may coincide without meaning the same thing (invariant I6).
#[derive(Clone)]
pub struct Device {
    description: Arc<DeviceDescription>,
}

impl Device {
    /// A new device, equal to its clones only. For implementations of [`super::Client`].
    pub fn new(description: DeviceDescription) -> Self {
        Self { description: Arc::new(description) }
    }

    /// The id, unique across processes.
    pub fn id(&self) -> DeviceId {
        self.description.id
    }

    /// What the platform calls this model of device; programs compiled for one kind run on all
    /// devices of that kind.
    pub fn kind(&self) -> &str {
        &self.description.kind
    }

    /// The process that the device belongs to.
    pub fn process_index(&self) -> u32 {
        self.description.process_index
    }

    /// Whether this client can read and write the device's memory and run programs on it.
    pub fn is_addressable(&self) -> bool {
        self.description.is_addressable
    }

    /// The memory that arrays live in unless something else is asked for.
    ///
    /// # Errors
    /// `NotFound` when the device has no memory.
    pub fn default_memory(&self) -> Result<&Memory> {
        let first = self.memories().first();
        first.ok_or_else(|| Status::not_found(format!("{self:?} has no memory")))
    }

    /// The memories that arrays on the device can live in.
    pub fn memories(&self) -> &[Memory] {
        &self.description.memories
    }

    /// The memory of this kind.
    ///
    /// # Errors
    /// `NotFound` when the device has none.
    pub fn memory(&self, kind: &MemoryKind) -> Result<&Memory> {
        let found = self.memories().iter().find(|memory| memory.kind == *kind);
        found.ok_or_else(|| Status::not_found(format!("{self:?} has no {kind} memory")))
    }

    /// Further properties, fixed for the life of the device.
    pub fn attributes(&self) -> &AttributeMap {
        &self.description.attributes
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.description, &other.description)
    }
}

impl Eq for Device {}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remote = if self.is_addressable() { "" } else { ", remote" };
        write!(f, "{} ({}, process {}{remote})", self.id(), self.kind(), self.process_index())
    }
}
