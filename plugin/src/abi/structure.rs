//! How the structures of `ffi` are declared: with the offsets that C gives their fields.

#![allow(unsafe_code, reason = "it says which structures any bytes are values of")]

/// An address of the caller's, or of ours for the caller.
pub(crate) type Pointer = *mut std::ffi::c_void;

/// A structure of this size in bytes.
macro_rules! plain {
    ($name:ident, $size:literal => $($field:ident: $type:ty = $offset:literal),*) => {
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }
        const _: () = assert!(size_of::<$name>() == $size);
        $(const _: () = assert!(std::mem::offset_of!($name, $field) == $offset);)*
        // SAFETY: any bytes are a value of a structure if they are of its fields.
        #[allow(unsafe_code, reason = "see above")]
        unsafe impl $crate::abi::caller::Plain for $name {
            const ZERO: Self =
                Self { $($field: <$type as $crate::abi::caller::Plain>::ZERO,)* };
        }
    };
}
pub(crate) use plain;

/// A structure of this size that starts with its size, in which the last field's end is what counts.
macro_rules! versioned {
    ($name:ident, $size:literal, $end:literal => $($fields:tt)*) => {
        $crate::abi::structure::plain!($name, $size => $($fields)*);
        impl $crate::abi::caller::Versioned for $name {
            const NAME: &'static str = stringify!($name);
            const STRUCT_SIZE: usize = $end;
        }
    };
}
pub(crate) use versioned;
