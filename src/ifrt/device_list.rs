//! Ordered lists of devices, as values.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Device, DeviceId};

/// An ordered, immutable list of devices; cheap to clone. Shard `i` of an array lives on
/// device `i` of its list.
///
/// Equal when the same devices stand in the same order.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceList {
    devices: Arc<[Device]>,
}

impl DeviceList {
    /// The list of these devices, in this order.
    pub fn new(devices: impl Into<Arc<[Device]>>) -> Self {
        Self { devices: devices.into() }
    }

    /// The devices, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Device> {
        self.devices.iter()
    }

    /// The device at `position`.
    pub fn get(&self, position: usize) -> Option<&Device> {
        self.devices.get(position)
    }

    /// How many devices there are.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// The ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = DeviceId> {
        self.devices.iter().map(Device::id)
    }

    /// The addressable devices, in order: this list itself when all are.
    #[must_use]
    pub fn addressable(&self) -> Self {
        if self.is_fully_addressable() {
            self.clone()
        } else {
            Self {
                devices: self.iter().filter(|device| device.is_addressable()).cloned().collect(),
            }
        }
    }

    /// The positions of the addressable devices, ascending: addressable shard `k` of an array
    /// is shard number `addressable_positions()[k]`.
    pub fn addressable_positions(&self) -> Vec<usize> {
        (0..self.len()).filter(|&position| self.devices[position].is_addressable()).collect()
    }

    /// Whether every device is addressable.
    pub fn is_fully_addressable(&self) -> bool {
        self.iter().all(Device::is_addressable)
    }

    /// The indices of the processes that own a device here, ascending, each once.
    pub fn process_indices(&self) -> Vec<u32> {
        let mut processes: Vec<u32> = self.iter().map(Device::process_index).collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// A number that is the same for the same ids in the same order in every process: the
    /// [`fingerprint`](super::fingerprint()) of the ids as little-endian `u32`.
    pub fn fingerprint(&self) -> u64 {
        super::fingerprint(self.ids().flat_map(|id| id.0.to_le_bytes()))
    }
}

impl Hash for DeviceList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.devices.hash(state);
    }
}

impl<'a> IntoIterator for &'a DeviceList {
    type Item = &'a Device;
    type IntoIter = std::slice::Iter<'a, Device>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// `devices [7, 0-3]`: the ids in order, longer runs of consecutive ones joined.
impl fmt::Display for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("devices [")?;
        let ids: Vec<u32> = self.ids().map(|id| id.0).collect();
        let mut comma = "";
        for run in ids.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            match run {
                [first, _, _, .., last] => write!(f, "{comma}{first}-{last}")?,
                _ => {
                    for id in run {
                        write!(f, "{comma}{id}")?;
                        comma = ", ";
                    }
                }
            }
            comma = ", ";
        }
        f.write_str("]")
    }
}

impl fmt::Debug for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ifrt::{AttributeMap, DeviceDescription, Memory, MemoryId, MemoryKind};

    /// Devices 0, 1, …, `per_process` to a process, of which process `here` is this one.
    pub(crate) fn devices(count: u32, per_process: u32, here: u32) -> DeviceList {
        let device = |id: u32| {
            Device::new(DeviceDescription {
                id: DeviceId(id),
                kind: "test".into(),
                process_index: id / per_process,
                is_addressable: id / per_process == here,
                memories: vec![Memory {
                    id: MemoryId(id),
                    kind: MemoryKind::DEVICE,
                    devices: vec![DeviceId(id)],
                }],
                attributes: AttributeMap::default(),
            })
        };
        DeviceList::new((0..count).map(device).collect::<Vec<_>>())
    }

    #[test]
    fn equality_is_about_devices_and_order() {
        let list = devices(3, 1, 0);
        let reversed = DeviceList::new(list.iter().rev().cloned().collect::<Vec<_>>());
        assert_eq!(list, DeviceList::new(list.iter().cloned().collect::<Vec<_>>()));
        assert_ne!(list, reversed);
        assert_ne!(list, devices(3, 1, 0), "devices of another client");
    }

    #[test]
    fn fingerprints_depend_on_ids_and_order_only() {
        let list = devices(3, 1, 0);
        assert_eq!(list.fingerprint(), devices(3, 3, 0).fingerprint());
        let reversed = DeviceList::new(list.iter().rev().cloned().collect::<Vec<_>>());
        assert_ne!(list.fingerprint(), reversed.fingerprint());
        // The value is part of the contract: processes of one job compare it.
        assert_eq!(list.fingerprint(), 0x7562_41e1_be8c_9396);
    }

    #[test]
    fn the_addressable_part_keeps_order() {
        let list = devices(6, 2, 1);
        assert_eq!(list.addressable_positions(), [2, 3]);
        assert_eq!(list.addressable().ids().collect::<Vec<_>>(), [DeviceId(2), DeviceId(3)]);
        assert_eq!(list.process_indices(), [0, 1, 2]);
        assert!(!list.is_fully_addressable());
        assert_eq!(list.addressable().addressable(), list.addressable());
    }

    #[test]
    fn long_runs_are_shown_by_their_ends() {
        let list = devices(9, 9, 0);
        let show = |positions: &[usize]| {
            let chosen = positions.iter().map(|&position| list.get(position).unwrap().clone());
            DeviceList::new(chosen.collect::<Vec<_>>()).to_string()
        };
        assert_eq!(show(&[0, 1, 2]), "devices [0, 1, 2]");
        assert_eq!(show(&[7, 0, 1, 2, 3, 8]), "devices [7, 0-3, 8]");
        assert_eq!(show(&[2, 1, 0, 4, 4]), "devices [2, 1, 0, 4, 4]");
        assert_eq!(show(&[]), "devices []");
    }
}
