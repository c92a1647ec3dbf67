//! The caller's memory: the only place where it is read and written, and where its functions are
//! called.
//!
//! That an address and a length from the caller are what the API says they are cannot be checked;
//! that they are not null, not misaligned and not absurd, is.

#![allow(unsafe_code, reason = "memory and functions of the caller are known by address only")]

use std::ffi::c_void;

use lockstep::ifrt::{Result, Status};
use smallvec::SmallVec;

use super::ffi;

/// Types of which any bytes are a value, without padding that matters.
///
/// # Safety
/// Any bytes are a value.
pub(crate) unsafe trait Plain: Copy {
    /// All bytes zero.
    const ZERO: Self;
}

macro_rules! plain {
    ($($type:ty: $zero:expr),*) => {$(
        // SAFETY: any bytes are a value.
        unsafe impl Plain for $type {
            const ZERO: Self = $zero;
        }
    )*};
}
plain!(u8: 0, u32: 0, u64: 0, i32: 0, i64: 0, usize: 0, *mut c_void: std::ptr::null_mut());

/// A structure that starts with its size as its owner knows it: a newer version has more fields.
pub(crate) trait Versioned: Plain {
    /// The name; for arguments, that of their function and `_Args`.
    const NAME: &'static str;
    /// The size of this version: up to the end of the last field.
    const STRUCT_SIZE: usize;
}

/// The caller's memory for the time of one call.
pub(crate) struct Caller(());

/// Memory that the caller lends until an event has happened.
pub(crate) struct Destination {
    at: *mut u8,
    len: usize,
}

/// Copies of values, mostly few.
pub(crate) type Items<T> = SmallVec<[T; 6]>;

/// A function of the caller's that takes an error, or null, and `user_arg`.
pub(crate) struct Callback {
    function: unsafe extern "C" fn(*mut ffi::PJRT_Error, *mut c_void),
    user_arg: *mut c_void,
}

/// Pointers that C reads, into memory that lives as long as they do and does not change.
pub(crate) struct Shared<T>(pub(crate) T);

// SAFETY: see the type: what is behind the pointers is not written to.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

// SAFETY: the API lets any thread fill the memory.
unsafe impl Send for Destination {}
// SAFETY: the API lets any thread call it.
unsafe impl Send for Callback {}

#[expect(clippy::unused_self, reason = "that there is one says that the caller waits")]
impl Caller {
    /// The memory of who is calling.
    ///
    /// # Safety
    /// Must not be kept longer than the call.
    pub(super) unsafe fn for_call() -> Self {
        Self(())
    }

    /// A structure of which the caller's version may have fewer or more fields; what it does not
    /// have is zero.
    ///
    /// # Errors
    /// `InvalidArgument` when it is null, or smaller than any version's.
    pub(crate) fn structure<T: Versioned>(&self, at: *mut c_void, what: &str) -> Result<T> {
        let known = self.structure_size(at, what, T::STRUCT_SIZE)?.min(size_of::<T>());
        let mut own = T::ZERO;
        // SAFETY: the caller says that so many bytes are there; any bytes are a value of `T`.
        unsafe { at.cast::<u8>().copy_to_nonoverlapping((&raw mut own).cast(), known) };
        Ok(own)
    }

    /// What a structure says that its size is. One function for all of them: a call of the table
    /// that does little takes longer to be fetched than to run.
    fn structure_size(&self, at: *mut c_void, what: &str, own_size: usize) -> Result<usize> {
        const HEADER: usize = 2 * size_of::<usize>();
        let bytes = self.bytes(at, size_of::<usize>(), what)?;
        let size = bytes.first_chunk().map_or(0, |bytes| usize::from_ne_bytes(*bytes));
        if size < HEADER {
            return Err(Status::invalid_argument(format!(
                "{what} says that its struct_size is {size}; it is {own_size} here, and never \
                 below {HEADER}"
            )));
        }
        Ok(size)
    }

    /// Writes a structure back that was read with [`Caller::structure`]: what the caller has of it.
    pub(crate) fn write_structure<T: Versioned>(&self, at: *mut c_void, value: &T) {
        // SAFETY: it was read from there, so its size can be read again, and so many bytes are there.
        unsafe {
            let known = at.cast::<usize>().read_unaligned().min(T::STRUCT_SIZE);
            at.cast::<u8>().copy_from_nonoverlapping(std::ptr::from_ref(value).cast(), known);
        }
    }

    /// `len` bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such memory.
    pub(crate) fn bytes(&self, at: *const c_void, len: usize, what: &str) -> Result<&[u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        if at.is_null() {
            return Err(null(what));
        }
        if isize::try_from(len).is_err() {
            return Err(Status::invalid_argument(format!("{what} has {len} bytes, more than any")));
        }
        // SAFETY: the caller says that so many bytes are there, for the time of the call.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) })
    }

    /// A copy of a value.
    ///
    /// # Errors
    /// As [`Caller::bytes`].
    pub(crate) fn item<T: Plain>(&self, at: *const c_void, what: &str) -> Result<T> {
        let bytes = self.bytes(at, size_of::<T>(), what)?;
        // SAFETY: there are as many bytes, and any bytes are a value of `T`.
        Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Copies of `count` values, one after the other.
    ///
    /// # Errors
    /// As [`Caller::bytes`].
    pub(crate) fn each<T: Plain>(
        &self,
        at: *const c_void,
        count: usize,
        what: &str,
    ) -> Result<impl Iterator<Item = T>> {
        let bytes = self.bytes(at, count.saturating_mul(size_of::<T>()), what)?;
        let first = bytes.as_ptr().cast::<T>();
        // SAFETY: there are as many bytes, and any bytes are a value of `T`.
        Ok((0..count).map(move |index| unsafe { first.add(index).read_unaligned() }))
    }

    /// A copy of `count` values.
    ///
    /// # Errors
    /// As [`Caller::bytes`].
    pub(crate) fn items<T: Plain>(
        &self,
        at: *const c_void,
        count: usize,
        what: &str,
    ) -> Result<Items<T>> {
        Ok(self.each(at, count, what)?.collect())
    }

    /// Text.
    ///
    /// # Errors
    /// As [`Caller::bytes`]; `InvalidArgument` when it is no UTF-8.
    pub(crate) fn text(&self, at: *const c_void, len: usize, what: &str) -> Result<&str> {
        std::str::from_utf8(self.bytes(at, len, what)?)
            .map_err(|error| Status::invalid_argument(format!("{what} is no UTF-8: {error}")))
    }

    /// Writes values where the caller wants them.
    ///
    /// # Errors
    /// `InvalidArgument` when that is nowhere.
    pub(crate) fn fill<T: Plain>(&self, at: *mut c_void, values: &[T], what: &str) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        if at.is_null() {
            return Err(null(what));
        }
        // SAFETY: the caller says that there is room for so many.
        unsafe {
            at.cast::<u8>().copy_from_nonoverlapping(values.as_ptr().cast(), size_of_val(values));
        }
        Ok(())
    }

    /// Memory that may be filled after the call, until the event that goes with it.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none.
    pub(crate) fn destination(
        &self,
        at: *mut c_void,
        len: usize,
        what: &str,
    ) -> Result<Destination> {
        self.bytes(at, len, what)?;
        Ok(Destination { at: at.cast(), len })
    }

    /// A function to be called once, during the call or later.
    ///
    /// # Errors
    /// `InvalidArgument` when it is null.
    pub(crate) fn callback(
        &self,
        function: *mut c_void,
        user_arg: *mut c_void,
    ) -> Result<Callback> {
        if function.is_null() {
            return Err(null("callback"));
        }
        type Function = unsafe extern "C" fn(*mut ffi::PJRT_Error, *mut c_void);
        // SAFETY: the API says that it is such a function.
        let function = unsafe { std::mem::transmute::<*mut c_void, Function>(function) };
        Ok(Callback { function, user_arg })
    }
}

impl Destination {
    /// Fills it, if the length is right.
    ///
    /// # Errors
    /// `Internal` when it is not.
    pub(crate) fn fill(self, with: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        if self.len == 0 {
            return with(&mut []);
        }
        // SAFETY: the caller lends so many bytes to nobody else, until the event has happened.
        with(unsafe { std::slice::from_raw_parts_mut(self.at, self.len) })
    }
}

impl Callback {
    /// Calls it. The error is its own.
    pub(crate) fn call(self, error: *mut ffi::PJRT_Error) {
        // SAFETY: the caller said that it may be called with what it gave.
        unsafe { (self.function)(error, self.user_arg) }
    }
}

fn null(what: &str) -> Status {
    Status::invalid_argument(format!("{what} is null"))
}

/// Writes one value where a function of an object's table is told to; nothing if that is nowhere.
pub(super) fn write<T: Plain>(at: *mut c_void, value: T) {
    if !at.is_null() {
        // SAFETY: the caller says that there is room for one.
        unsafe { at.cast::<T>().write_unaligned(value) };
    }
}

/// Data of the caller's that we destroy for it.
pub(crate) struct Owned {
    at: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the API lets any thread destroy it, and nothing else is done with it.
unsafe impl Send for Owned {}

impl Owned {
    /// What the caller gives away, and the function that destroys it, which may be null.
    pub(crate) fn new(at: *mut c_void, destructor: *mut c_void) -> Self {
        type Function = Option<unsafe extern "C" fn(*mut c_void)>;
        // SAFETY: the API says that it is such a function, or null, which is `None`.
        let destructor = unsafe { std::mem::transmute::<*mut c_void, Function>(destructor) };
        Self { at, destructor }
    }

    /// Where it is.
    pub(crate) fn at(&self) -> *mut c_void {
        self.at
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the caller gave both away together, and this is the only use.
            unsafe { destructor(self.at) }
        }
    }
}
