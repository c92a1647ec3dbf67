//! Values that arrive later: [`Future`] and the [`Promise`] that fulfils it.
//!
//! A future is resolved exactly once, with a value or a [`Status`]. A promise that is dropped
//! unfulfilled resolves its future with an `Internal` status, so that nothing waits for a
//! producer that is gone (invariant I3).

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::{Result, Status};

/// The reading end of a value that arrives later; clones read the same value.
pub struct Future<T> {
    state: State<T>,
}

enum State<T> {
    /// Resolved from the beginning.
    Ready(Arc<Result<T>>),
    /// Resolved by a promise.
    Promised(Arc<Shared<T>>),
}

/// The writing end of a [`Future`]: fulfilled at most once, by consuming it.
pub struct Promise<T> {
    shared: Option<Arc<Shared<T>>>,
}

struct Shared<T> {
    value: OnceLock<Result<T>>,
    waiters: Mutex<Waiters<T>>,
    resolved: Condvar,
}

/// Who is told when the value arrives; nobody is added after that.
struct Waiters<T> {
    callbacks: Vec<Callback<T>>,
    wakers: Vec<Waker>,
    /// Threads that wait for `resolved`: to wake nobody takes a call of the system, too.
    sleepers: usize,
}

type Callback<T> = Box<dyn FnOnce(&Result<T>) + Send>;

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Waiters<T>> {
        // No code of a caller runs under this lock, so a poisoned one is still whole.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resolve(&self, value: Result<T>) {
        let (callbacks, wakers, sleepers) = {
            let mut waiters = self.lock();
            // A promise is consumed by its one use, so this is the only writer.
            let _ = self.value.set(value);
            let callbacks = std::mem::take(&mut waiters.callbacks);
            (callbacks, std::mem::take(&mut waiters.wakers), waiters.sleepers)
        };
        if sleepers > 0 {
            self.resolved.notify_all();
        }
        wakers.into_iter().for_each(Waker::wake);
        if let Some(value) = self.value.get() {
            for callback in callbacks {
                callback(value);
            }
        }
    }
}

impl<T> Promise<T> {
    /// A promise and the future it fulfils.
    pub fn new() -> (Self, Future<T>) {
        let shared = Arc::new(Shared {
            value: OnceLock::new(),
            waiters: Mutex::new(Waiters { callbacks: Vec::new(), wakers: Vec::new(), sleepers: 0 }),
            resolved: Condvar::new(),
        });
        (Self { shared: Some(Arc::clone(&shared)) }, Future { state: State::Promised(shared) })
    }

    /// Resolves the future; callbacks run on this thread before this returns.
    pub fn set(mut self, value: Result<T>) {
        if let Some(shared) = self.shared.take() {
            shared.resolve(value);
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.resolve(Err(Status::internal(
                "the producer of this value was dropped before it produced it",
            )));
        }
    }
}

impl<T> Future<T> {
    /// A future that is resolved already.
    pub fn ready(value: Result<T>) -> Self {
        Self { state: State::Ready(Arc::new(value)) }
    }

    /// Whether the value or error has arrived; never blocks.
    pub fn is_ready(&self) -> bool {
        self.peek().is_some()
    }

    /// The value or error if it has arrived; never blocks.
    pub fn peek(&self) -> Option<&Result<T>> {
        self.outcome().ok()
    }

    /// The value or error, or who will have it.
    fn outcome(&self) -> Result<&Result<T>, &Shared<T>> {
        match &self.state {
            State::Ready(value) => Ok(value),
            State::Promised(shared) => shared.value.get().ok_or(shared),
        }
    }

    /// Takes the value out if it has arrived and no other clone of this future is left.
    ///
    /// # Errors
    /// This future itself, when it is pending or shared.
    pub fn try_take(self) -> Result<Result<T>, Self> {
        if !self.is_ready() {
            return Err(self);
        }
        match self.state {
            State::Ready(value) => {
                Arc::try_unwrap(value).map_err(|value| Self { state: State::Ready(value) })
            }
            State::Promised(shared) => match Arc::try_unwrap(shared) {
                Ok(shared) => Ok(shared.value.into_inner().unwrap_or_else(|| {
                    Err(Status::internal("a resolved future lost its value: please report this"))
                })),
                Err(shared) => Err(Self { state: State::Promised(shared) }),
            },
        }
    }

    /// Calls `callback` with the result: on this thread if it has arrived, else on the thread
    /// that fulfils the promise. Callbacks must not block.
    pub fn on_ready(&self, callback: impl FnOnce(&Result<T>) + Send + 'static) {
        let shared = match self.outcome() {
            Ok(value) => return callback(value),
            Err(shared) => shared,
        };
        let mut waiters = shared.lock();
        match shared.value.get() {
            None => waiters.callbacks.push(Box::new(callback)),
            Some(value) => {
                drop(waiters);
                callback(value);
            }
        }
    }

    /// The future of `f` of this value; an error passes through unchanged.
    ///
    /// `f` runs where [`Future::on_ready`] says.
    pub fn map<U: Send + Sync + 'static>(
        &self,
        f: impl FnOnce(&T) -> Result<U> + Send + 'static,
    ) -> Future<U> {
        let of = |value: &Result<T>| match value {
            Ok(value) => f(value),
            Err(status) => Err(status.clone()),
        };
        if let Some(value) = self.peek() {
            return Future::ready(of(value));
        }
        let (promise, mapped) = Promise::new();
        self.on_ready(move |value| promise.set(of(value)));
        mapped
    }

    /// A future that resolves when this one does, without its value.
    pub fn map_done(&self) -> Future<()> {
        match self.peek() {
            Some(Ok(_)) => Future::done(),
            _ => self.map(|_| Ok(())),
        }
    }
}

impl Future<()> {
    /// A future that is resolved already, successfully.
    pub fn done() -> Self {
        static DONE: LazyLock<Future<()>> = LazyLock::new(|| Future::ready(Ok(())));
        DONE.clone()
    }
}

impl<T: Clone> Future<T> {
    /// Blocks until the value or error arrives.
    ///
    /// The wait is bounded by the producer: every operation beneath has a deadline of its own
    /// (invariant I3), and a producer that is dropped resolves its future.
    ///
    /// # Errors
    /// What the producer reports.
    pub fn wait(&self) -> Result<T> {
        let shared = match self.outcome() {
            Ok(value) => return value.clone(),
            Err(shared) => shared,
        };
        let mut waiters = shared.lock();
        loop {
            if let Some(value) = shared.value.get() {
                return value.clone();
            }
            waiters.sleepers += 1;
            waiters = shared.resolved.wait(waiters).unwrap_or_else(PoisonError::into_inner);
            waiters.sleepers -= 1;
        }
    }

    /// Blocks until the value or error arrives, at most for `timeout`.
    ///
    /// # Errors
    /// What the producer reports; `DeadlineExceeded` when `timeout` passes first, after which
    /// the future may be waited for again.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<T> {
        let shared = match self.outcome() {
            Ok(value) => return value.clone(),
            Err(shared) => shared,
        };
        let start = Instant::now();
        let mut waiters = shared.lock();
        loop {
            if let Some(value) = shared.value.get() {
                return value.clone();
            }
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
            else {
                return Err(Status::deadline_exceeded(format!(
                    "the value was not ready after {timeout:?}"
                )));
            };
            waiters.sleepers += 1;
            waiters = shared
                .resolved
                .wait_timeout(waiters, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            waiters.sleepers -= 1;
        }
    }

    /// A future that resolves when all of `futures` have: to their values, or to the error of
    /// the first in order that failed. It never resolves early on an error.
    pub fn join(futures: impl IntoIterator<Item = Self>) -> Future<Vec<T>>
    where
        T: Send + Sync + 'static,
    {
        let futures: Vec<Self> = futures.into_iter().collect();
        let (promise, joined) = Promise::new();
        if futures.is_empty() {
            promise.set(Ok(Vec::new()));
            return joined;
        }
        let join = Arc::new(Join {
            remaining: AtomicUsize::new(futures.len()),
            promise: Mutex::new(Some(promise)),
            futures,
        });
        for future in &join.futures {
            let join = Arc::clone(&join);
            future.on_ready(move |_| join.one_is_ready());
        }
        joined
    }
}

/// Shared by the callbacks of [`Future::join`]; the last one to run fulfils the promise.
struct Join<T> {
    remaining: AtomicUsize,
    promise: Mutex<Option<Promise<Vec<T>>>>,
    futures: Vec<Future<T>>,
}

impl<T: Clone> Join<T> {
    fn one_is_ready(&self) {
        if self.remaining.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let promise = self.promise.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(promise) = promise {
            promise.set(self.futures.iter().filter_map(|future| future.peek().cloned()).collect());
        }
    }
}

impl<T> Clone for Future<T> {
    fn clone(&self) -> Self {
        let state = match &self.state {
            State::Ready(value) => State::Ready(Arc::clone(value)),
            State::Promised(shared) => State::Promised(Arc::clone(shared)),
        };
        Self { state }
    }
}

impl<T: Clone> std::future::Future for Future<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let shared = match self.outcome() {
            Ok(value) => return Poll::Ready(value.clone()),
            Err(shared) => shared,
        };
        let mut waiters = shared.lock();
        if let Some(value) = shared.value.get() {
            return Poll::Ready(value.clone());
        }
        if !waiters.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            waiters.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<T: fmt::Debug> fmt::Debug for Future<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peek() {
            None => f.write_str("Future(pending)"),
            Some(value) => write!(f, "Future({value:?})"),
        }
    }
}

impl<T> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Promise")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::Code;

    #[test]
    fn a_value_reaches_every_clone() {
        let (promise, future) = Promise::new();
        let clone = future.clone();
        let waiter = std::thread::spawn(move || clone.wait());
        assert!(!future.is_ready());
        promise.set(Ok(7));
        assert_eq!(waiter.join().unwrap().unwrap(), 7);
        assert_eq!(future.wait().unwrap(), 7);
    }

    #[test]
    fn a_dropped_promise_is_an_internal_error() {
        let (promise, future) = Promise::<u32>::new();
        drop(promise);
        assert_eq!(future.wait().unwrap_err().code(), Code::Internal);
    }

    #[test]
    fn a_wait_that_times_out_can_be_repeated() {
        let (promise, future) = Promise::new();
        let late = future.wait_timeout(Duration::from_millis(1)).unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded);
        promise.set(Ok(1));
        assert_eq!(future.wait_timeout(Duration::ZERO).unwrap(), 1);
    }

    #[test]
    fn map_passes_errors_through_and_runs_on_values() {
        assert_eq!(Future::ready(Ok(2)).map(|v| Ok(v * 10)).wait().unwrap(), 20);
        let failed = Future::<u32>::ready(Err(Status::not_found("gone")));
        assert_eq!(failed.map(|v| Ok(v * 10)).wait().unwrap_err().message(), "gone");
    }

    #[test]
    fn join_waits_for_all_and_reports_the_first_error_in_order() {
        let (first, a) = Promise::<u32>::new();
        let (second, b) = Promise::<u32>::new();
        let joined = Future::join([a, b]);
        second.set(Err(Status::aborted("second")));
        assert!(!joined.is_ready(), "an early error does not end the wait");
        first.set(Err(Status::aborted("first")));
        assert_eq!(joined.wait().unwrap_err().message(), "first");
        assert_eq!(Future::join([3, 4].map(|v| Future::ready(Ok(v)))).wait().unwrap(), [3, 4]);
        assert_eq!(Future::<u32>::join([]).wait().unwrap(), [0_u32; 0]);
    }

    #[test]
    fn only_the_last_clone_takes_the_value() {
        let future = Future::ready(Ok(String::from("x")));
        let clone = future.clone();
        let future = future.try_take().unwrap_err();
        drop(clone);
        assert_eq!(future.try_take().unwrap().unwrap(), "x");
    }

    #[test]
    fn it_can_be_awaited() {
        struct Count(AtomicUsize);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let wakes = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        let (promise, mut future) = Promise::new();
        for _ in 0..3 {
            assert!(std::future::Future::poll(Pin::new(&mut future), &mut context).is_pending());
        }
        promise.set(Ok(5));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1, "one task is woken once");
        let Poll::Ready(value) = std::future::Future::poll(Pin::new(&mut future), &mut context)
        else {
            panic!("resolved futures are ready");
        };
        assert_eq!(value.unwrap(), 5);
    }
}
