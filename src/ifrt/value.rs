//! What arrays and tuples have in common.

use std::any::Any;

use super::{Future, UserContext};

/// Something that lives on devices and arrives later.
///
/// Implementations are thread-safe.
pub trait Value: Any + Send + Sync {
    /// Resolves when all of it that is addressable has been computed, or to the error that
    /// poisons it.
    fn ready(&self) -> Future<()>;

    /// Gives its memory up as soon as pending uses allow; idempotent. Using it afterwards is an
    /// `InvalidArgument` error. The future resolves when the memory is given up.
    fn delete(&self) -> Future<()>;

    /// Whether deletion or donation has been asked for; memory may still be in use.
    fn is_deleted(&self) -> bool;

    /// The bytes of all that it holds, on whatever devices; `None` when that is not known.
    fn size_bytes(&self) -> Option<usize>;

    /// The context in which it was made, if its user had entered one.
    fn user_context(&self) -> Option<&UserContext> {
        None
    }
}
