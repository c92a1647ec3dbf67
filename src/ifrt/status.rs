//! Errors as data: the sixteen canonical codes, a message and where it came from.

use std::fmt;
use std::sync::Arc;

use super::UserContext;

/// The canonical status codes, without `Ok`, which is Rust's `Ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// The operation was cancelled, typically by the caller.
    Cancelled = 1,
    /// An error of unknown origin.
    Unknown = 2,
    /// The caller passed something that is wrong whatever the state of the system.
    InvalidArgument = 3,
    /// A deadline passed before the operation finished.
    DeadlineExceeded = 4,
    /// Something asked for does not exist.
    NotFound = 5,
    /// Something to be created exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A resource such as memory is used up.
    ResourceExhausted = 8,
    /// The system is not in the state the operation needs.
    FailedPrecondition = 9,
    /// The operation was given up, typically because a peer failed or disagreed.
    Aborted = 10,
    /// An index or position is past the valid range.
    OutOfRange = 11,
    /// The operation is not implemented; the message names it.
    Unimplemented = 12,
    /// An invariant of Lockstep's own is broken: a defect to report.
    Internal = 13,
    /// A process or service cannot be reached or is gone.
    Unavailable = 14,
    /// Data is lost or corrupted.
    DataLoss = 15,
    /// The caller could not be authenticated.
    Unauthenticated = 16,
}

/// A failure: its [`Code`], a message that names the culprit, and the error beneath it.
///
/// Cheap to clone, since one failure poisons many arrays.
#[derive(Clone)]
pub struct Status {
    inner: Arc<Inner>,
    /// Beside the message, which is the same on every process.
    user_context: Option<UserContext>,
}

struct Inner {
    code: Code,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What fallible operations of the interface return.
pub type Result<T, E = Status> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($name:ident => $code:ident),* $(,)?) => {
        $(
            #[doc = concat!("A status with [`Code::", stringify!($code), "`].")]
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(Code::$code, message)
            }
        )*
    };
}

impl Status {
    /// A status from a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            inner: Arc::new(Inner { code, message: message.into(), source: None }),
            user_context: None,
        }
    }

    /// A status that wraps `source`; the message is the source's.
    pub fn wrap(code: Code, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        let message = source.to_string();
        let inner = Inner { code, message, source: Some(Box::new(source)) };
        Self { inner: Arc::new(inner), user_context: None }
    }

    /// The same failure seen from further out: `context` is put before the message.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        let message = format!("{context}: {}", self.inner.message);
        let user_context = self.user_context.clone();
        let inner = Inner { code: self.inner.code, message, source: Some(Box::new(self)) };
        Self { inner: Arc::new(inner), user_context }
    }

    /// The same failure, of an operation that was asked for in `context`; the first that a failure
    /// is told stays.
    #[must_use]
    pub fn in_user_context(mut self, context: Option<&UserContext>) -> Self {
        if self.user_context.is_none() {
            self.user_context = context.cloned();
        }
        self
    }

    /// The context in which the operation that failed was asked for, if its user had entered one.
    pub fn user_context(&self) -> Option<&UserContext> {
        self.user_context.as_ref()
    }

    constructors! {
        cancelled => Cancelled,
        data_loss => DataLoss,
        invalid_argument => InvalidArgument,
        deadline_exceeded => DeadlineExceeded,
        not_found => NotFound,
        already_exists => AlreadyExists,
        failed_precondition => FailedPrecondition,
        aborted => Aborted,
        out_of_range => OutOfRange,
        resource_exhausted => ResourceExhausted,
        unimplemented => Unimplemented,
        internal => Internal,
        unavailable => Unavailable,
    }

    /// The canonical code.
    pub fn code(&self) -> Code {
        self.inner.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.inner.message
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.inner.code, self.inner.message)
    }
}

impl std::error::Error for Status {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // A status's message already contains that of the error it holds, so the chain goes on
        // beneath that one, lest every printer repeat the text.
        self.inner.source.as_ref().and_then(|source| source.source())
    }
}
