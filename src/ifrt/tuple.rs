//! Values that are passed as one: tuples, and bundles of arrays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, DeviceList, Future, MemoryKind, Result,
    Status, Value,
};

/// A shared value.
pub type ValueRef = Arc<dyn Value>;

/// An ordered list of values that is a value itself. It is deleted when it or one of its elements
/// is.
pub struct Tuple {
    elements: Vec<ValueRef>,
    is_deleted: AtomicBool,
}

impl Tuple {
    /// The tuple of these.
    pub fn new(elements: Vec<ValueRef>) -> Self {
        Self { elements, is_deleted: AtomicBool::new(false) }
    }

    /// How many elements it has.
    pub fn arity(&self) -> usize {
        self.elements.len()
    }

    /// The elements.
    ///
    /// # Errors
    /// `InvalidArgument` when the tuple is deleted.
    pub fn unpack(&self) -> Result<Vec<ValueRef>> {
        if self.is_deleted() {
            return Err(Status::invalid_argument(format!(
                "a tuple of {} values is deleted",
                self.arity()
            )));
        }
        Ok(self.elements.clone())
    }
}

impl Value for Tuple {
    fn ready(&self) -> Future<()> {
        match self.unpack() {
            Ok(elements) => Future::join(elements.iter().map(|value| value.ready())).map_done(),
            Err(status) => Future::ready(Err(status)),
        }
    }

    fn delete(&self) -> Future<()> {
        self.is_deleted.store(true, Ordering::Release);
        Future::join(self.elements.iter().map(|value| value.delete())).map_done()
    }

    fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
            || self.elements.iter().any(|value| value.is_deleted())
    }

    fn size_bytes(&self) -> Option<usize> {
        self.elements.iter().map(|value| value.size_bytes()).sum()
    }
}

/// Arrays that are handled together, by the thousand, as one.
///
/// The arrays of a bundle stay arrays of their own: deleting them leaves the bundle as it is, and
/// deleting the bundle deletes them.
#[derive(Clone, Debug)]
pub struct Bundle {
    arrays: Vec<ArrayRef>,
}

/// What [`Bundle::copy_arrays`] changes of some arrays; `None` keeps what is.
#[derive(Clone, Debug, Default)]
pub struct BundleCopy {
    /// Other devices.
    pub devices: Option<DeviceList>,
    /// Another memory.
    pub memory_kind: Option<MemoryKind>,
}

impl Bundle {
    /// The bundle of these arrays.
    pub fn new(arrays: Vec<ArrayRef>) -> Self {
        Self { arrays }
    }

    /// The arrays of several bundles, in order, as one.
    pub fn concat<'a>(bundles: impl IntoIterator<Item = &'a Self>) -> Self {
        Self { arrays: bundles.into_iter().flat_map(|bundle| bundle.arrays.clone()).collect() }
    }

    /// The arrays.
    pub fn arrays(&self) -> &[ArrayRef] {
        &self.arrays
    }

    /// What the arrays are.
    pub fn specs(&self) -> Vec<ArraySpec> {
        self.arrays.iter().map(|array| array.spec().clone()).collect()
    }

    /// Resolves when all arrays are ready, to the error of the first in order that is poisoned.
    pub fn ready(&self) -> Future<()> {
        Future::join(self.arrays.iter().map(|array| array.ready())).map_done()
    }

    /// Deletes all arrays; resolves when their memory is given up.
    pub fn delete(&self) -> Future<()> {
        Future::join(self.arrays.iter().map(|array| array.delete())).map_done()
    }

    /// Consecutive arrays as bundles of these sizes.
    ///
    /// # Errors
    /// `InvalidArgument` when the sizes do not add up to the number of arrays.
    pub fn slice(&self, sizes: &[usize]) -> Result<Vec<Self>> {
        let total = sizes.iter().try_fold(0_usize, |total, &size| total.checked_add(size));
        if total != Some(self.arrays.len()) {
            return Err(Status::invalid_argument(format!(
                "a bundle of {} arrays cannot be cut into {sizes:?}",
                self.arrays.len()
            )));
        }
        let mut rest = self.arrays.iter();
        let slice = |&size: &usize| Self { arrays: rest.by_ref().take(size).cloned().collect() };
        Ok(sizes.iter().map(slice).collect())
    }

    /// [`Client::copy_arrays`] for consecutive arrays: `sizes[i]` of them as `copies[i]` says.
    ///
    /// # Errors
    /// As [`Bundle::slice`] and [`Client::copy_arrays`]; arrays before those that fail may have
    /// been copied, or donated.
    pub fn copy_arrays(
        &self,
        client: &dyn Client,
        sizes: &[usize],
        copies: &[BundleCopy],
        copy: ArrayCopySemantics,
    ) -> Result<Self> {
        if sizes.len() != copies.len() {
            return Err(Status::invalid_argument(format!(
                "{} slices of a bundle cannot be copied in {} ways",
                sizes.len(),
                copies.len()
            )));
        }
        let mut copied = Vec::with_capacity(self.arrays.len());
        for (slice, BundleCopy { devices, memory_kind }) in self.slice(sizes)?.iter().zip(copies) {
            let (devices, memory_kind) = (devices.as_ref(), memory_kind.as_ref());
            copied.extend(client.copy_arrays(&slice.arrays, devices, memory_kind, copy)?);
        }
        Ok(Self { arrays: copied })
    }

    /// [`Client::reshard_arrays`] for all arrays.
    ///
    /// # Errors
    /// As [`Client::reshard_arrays`].
    pub fn reshard_arrays(
        &self,
        client: &dyn Client,
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Self> {
        Ok(Self { arrays: client.reshard_arrays(&self.arrays, specs, copy)? })
    }
}
