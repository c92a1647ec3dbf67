//! Handles: what a caller holds instead of an address.
//!
//! A handle is a number that was never used before, in the shape of a pointer: the kind of object,
//! how often its place was used, and the place. So one that was destroyed, or belongs to another
//! kind of object, is told from a good one, whatever the caller does. The tables are the process's, as
//! those of file descriptors are; what is in them belongs to the client that put it there.

use std::ffi::c_void;
use std::ptr::without_provenance_mut;
use std::sync::{Arc, PoisonError, RwLock};

use lockstep::ifrt::{Result, Status};

/// A kind of object that callers have handles to.
pub(crate) trait Handled: Send + Sync + Sized + 'static {
    /// The kind, to people.
    const WHAT: &'static str;
    /// The kind in handles: not 0, and no two alike.
    const KIND: u8;

    /// All objects of this kind.
    fn table() -> &'static Table<Self>;
}

/// Declares kinds of objects.
macro_rules! handled {
    ($($kind:literal $what:literal $type:ty;)*) => {$(
        impl $crate::handle::Handled for $type {
            const WHAT: &'static str = $what;
            const KIND: u8 = $kind;

            fn table() -> &'static $crate::handle::Table<Self> {
                static TABLE: $crate::handle::Table<$type> = $crate::handle::Table::new();
                &TABLE
            }
        }
    )*};
}

handled! {
    1 "a client" crate::client::Client;
    2 "a device" crate::device::Device;
    3 "a topology" crate::topology::Topology;
    4 "a buffer" crate::buffer::Buffer;
    5 "an event" crate::event::Event;
    6 "an executable" crate::executable::Executable;
    7 "a loaded executable" crate::executable::Loaded;
    8 "a layout" crate::extension::layouts::MemoryLayout;
    9 "serialized data" crate::serialized::Serialized;
}

/// All objects of one kind.
pub(crate) struct Table<T> {
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    /// How often the place was used before.
    generation: usize,
    object: Option<Arc<T>>,
}

/// Bits of a handle for the place, and for how often it was used.
const PLACE_BITS: u32 = 28;
const GENERATION_BITS: u32 = 28;
const MAX_GENERATION: usize = (1 << GENERATION_BITS) - 1;

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: RwLock::new(Slots { slots: Vec::new(), free: Vec::new() }) }
    }
}

/// A handle to `object`, which lives until it is removed.
pub(crate) fn insert<T: Handled>(object: Arc<T>) -> *mut c_void {
    let mut table = T::table().slots.write().unwrap_or_else(PoisonError::into_inner);
    let place = table.free.pop().unwrap_or_else(|| {
        table.slots.push(Slot { generation: 0, object: None });
        table.slots.len() - 1
    });
    let slot = &mut table.slots[place];
    slot.object = Some(object);
    let kind = usize::from(T::KIND) << (PLACE_BITS + GENERATION_BITS);
    without_provenance_mut(kind | slot.generation << PLACE_BITS | place)
}

/// The object behind a handle.
///
/// # Errors
/// `InvalidArgument` when the handle is null, of another kind, or its object was destroyed.
pub(crate) fn find<T: Handled>(handle: *mut c_void) -> Result<Arc<T>> {
    with(handle, Arc::clone)
}

/// What `look` sees of the object behind a handle. Nobody destroys a handle of its kind meanwhile.
///
/// # Errors
/// As [`find`].
pub(crate) fn with<T: Handled, R>(
    handle: *mut c_void,
    look: impl FnOnce(&Arc<T>) -> R,
) -> Result<R> {
    let (generation, place) = parts::<T>(handle)?;
    let table = T::table().slots.read().unwrap_or_else(PoisonError::into_inner);
    let slot = table.slots.get(place).filter(|slot| slot.generation == generation);
    slot.and_then(|slot| slot.object.as_ref()).map(look).ok_or_else(destroyed::<T>)
}

/// Takes the object from its handle, which is none from now on.
///
/// # Errors
/// As [`find`].
pub(crate) fn remove<T: Handled>(handle: *mut c_void) -> Result<Arc<T>> {
    let (generation, place) = parts::<T>(handle)?;
    let mut table = T::table().slots.write().unwrap_or_else(PoisonError::into_inner);
    let slot = table.slots.get_mut(place).filter(|slot| slot.generation == generation);
    let slot = slot.ok_or_else(destroyed::<T>)?;
    let object = slot.object.take().ok_or_else(destroyed::<T>)?;
    slot.generation += 1;
    // A place whose every number was used is not used again.
    if slot.generation <= MAX_GENERATION {
        table.free.push(place);
    }
    Ok(object)
}

/// How often the place was used, and the place.
fn parts<T: Handled>(handle: *mut c_void) -> Result<(usize, usize)> {
    let bits = handle.addr();
    if bits == 0 {
        return Err(Status::invalid_argument(format!("{} is expected, this is null", T::WHAT)));
    }
    if bits >> (PLACE_BITS + GENERATION_BITS) != usize::from(T::KIND) {
        return Err(Status::invalid_argument(format!(
            "{} is expected, {bits:#x} is something else",
            T::WHAT
        )));
    }
    let place = bits & ((1 << PLACE_BITS) - 1);
    Ok((bits >> PLACE_BITS & MAX_GENERATION, place))
}

fn destroyed<T: Handled>() -> Status {
    Status::invalid_argument(format!("{} is used that was destroyed", T::WHAT))
}
