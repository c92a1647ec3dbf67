//! Objects that callers look into: known by their address, as long as they are there.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError, RwLock};

/// Objects of one type, by address.
pub(crate) struct Objects<T> {
    by_address: RwLock<BTreeMap<usize, Arc<T>>>,
}

impl<T> Objects<T> {
    pub(crate) const fn new() -> Self {
        Self { by_address: RwLock::new(BTreeMap::new()) }
    }

    /// Keeps an object, and says where it is.
    pub(crate) fn insert(&self, object: Arc<T>) -> *mut c_void {
        let at = Arc::as_ptr(&object).cast_mut();
        let mut objects = self.by_address.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(at.addr(), object);
        at.cast()
    }

    /// The object at this address, if there is one.
    pub(crate) fn find(&self, at: *const c_void) -> Option<Arc<T>> {
        let objects = self.by_address.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(&at.addr()).cloned()
    }

    /// Gives an object up.
    pub(crate) fn remove(&self, at: *const c_void) -> Option<Arc<T>> {
        let mut objects = self.by_address.write().unwrap_or_else(PoisonError::into_inner);
        objects.remove(&at.addr())
    }
}
