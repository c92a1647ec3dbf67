//! Where in a user's program a value comes from, for errors that come late.

use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::marker::PhantomData;
use std::sync::Arc;

/// A place in a user's program, such as a line and a function; cheap to clone.
///
/// Values remember the context in which they were made, and statuses the one in which the
/// operation that failed was asked for, however late and on whichever thread it fails.
#[derive(Clone)]
pub struct UserContext {
    inner: Arc<Inner>,
}

struct Inner {
    id: u64,
    description: String,
}

/// While it lives, its context is the current one of its thread.
#[must_use = "the context is left when the scope is dropped"]
pub struct UserContextScope {
    outer: Option<UserContext>,
    /// It belongs to the thread that made it.
    not_send: PhantomData<*const ()>,
}

thread_local! {
    static CURRENT: RefCell<Option<UserContext>> = const { RefCell::new(None) };
}

impl UserContext {
    /// A new context, with an id of its own.
    pub fn new(description: impl Into<String>) -> Self {
        // Seeded from the system's randomness: unique among processes, without a count of them.
        let id = RandomState::new().build_hasher().finish();
        Self { inner: Arc::new(Inner { id, description: description.into() }) }
    }

    /// The innermost context that this thread has entered.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Makes this the current context of this thread until the scope is dropped.
    pub fn enter(&self) -> UserContextScope {
        let outer = CURRENT.with_borrow_mut(|current| current.replace(self.clone()));
        UserContextScope { outer, not_send: PhantomData }
    }

    /// The id, which no other context of any process has.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// What the user said.
    pub fn description(&self) -> &str {
        &self.inner.description
    }
}

impl Drop for UserContextScope {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| *current = self.outer.take());
    }
}

impl PartialEq for UserContext {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for UserContext {}

impl fmt::Debug for UserContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user context {:016x} ({})", self.id(), self.description())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_belong_to_a_thread() {
        assert_eq!(UserContext::current(), None);
        let (outer, inner) = (UserContext::new("outer"), UserContext::new("inner"));
        let scope = outer.enter();
        {
            let _scope = inner.enter();
            assert_eq!(UserContext::current(), Some(inner.clone()));
            let elsewhere = std::thread::spawn(UserContext::current).join().unwrap();
            assert_eq!(elsewhere, None);
        }
        assert_eq!(UserContext::current().unwrap().description(), "outer");
        drop(scope);
        assert_eq!(UserContext::current(), None);
        assert_ne!(outer, inner);
    }
}
