//! One thread per addressable device, which runs launches in the order they were made.
//!
//! A caller may run a launch itself, in its turn: see [`Streams::turn`].

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::backend::LocalDevice;
use crate::ifrt::{DeviceId, Result, Status};

type Launch = Box<dyn FnOnce() + Send>;

/// The executor threads of this process's devices.
///
/// Dropping them waits until the launches they were given are over. Where that could be for ever,
/// it does not wait: on one of these threads itself, which a callback on a future may drop the
/// last reference from, and in a panic, which may have ended what the launches wait for.
pub(super) struct Streams {
    streams: Vec<Stream>,
}

struct Stream {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

/// The launches of one device that nobody has begun.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    launches: VecDeque<Launch>,
    /// Somebody has the turn: the device's thread, or a caller.
    is_taken: bool,
    is_closed: bool,
}

/// The right to run the next launch of a device; those submitted meanwhile wait until it is dropped.
pub(super) struct Turn {
    queue: Arc<Queue>,
}

impl Streams {
    /// Starts a thread for each device.
    ///
    /// # Errors
    /// `ResourceExhausted` when the system grants no thread.
    pub(super) fn start(devices: impl Iterator<Item = DeviceId>) -> Result<Self> {
        Ok(Self { streams: devices.map(Stream::start).collect::<Result<_>>()? })
    }

    /// Runs `launch` on `device`, after all launches submitted to it before.
    pub(super) fn submit(&self, device: LocalDevice, launch: impl FnOnce() + Send + 'static) {
        // A launch without a stream is dropped, and what it promised resolves to an error.
        if let Some(stream) = self.streams.get(device.0) {
            stream.queue.lock().launches.push_back(Box::new(launch));
            stream.queue.changed.notify_one();
        }
    }

    /// The turn of `device`, if all launches submitted to it before are over.
    pub(super) fn turn(&self, device: LocalDevice) -> Option<Turn> {
        let queue = &self.streams.get(device.0)?.queue;
        let mut state = queue.lock();
        if state.is_taken || !state.launches.is_empty() {
            return None;
        }
        state.is_taken = true;
        Some(Turn { queue: Arc::clone(queue) })
    }
}

impl Turn {
    /// Leaves a launch to the device's thread, before all that were submitted meanwhile.
    pub(super) fn pass_on(self, launch: impl FnOnce() + Send + 'static) {
        self.queue.lock().launches.push_front(Box::new(launch));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_taken = false;
        if state.is_closed || !state.launches.is_empty() {
            self.queue.changed.notify_one();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No launch runs under this lock, so the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next launch and its turn, once there are; `None` when there will be no more.
    fn next(self: &Arc<Self>) -> Option<(Launch, Turn)> {
        let mut state = self.lock();
        loop {
            if !state.is_taken {
                if let Some(launch) = state.launches.pop_front() {
                    state.is_taken = true;
                    return Some((launch, Turn { queue: Arc::clone(self) }));
                }
                if state.is_closed {
                    return None;
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Stream {
    fn start(device: DeviceId) -> Result<Self> {
        let queue = Arc::new(Queue::default());
        let launches = Arc::clone(&queue);
        let run = move || {
            while let Some((launch, turn)) = launches.next() {
                // What a panicking launch promised resolves to an error as it unwinds, and the
                // next launch starts from nothing that it could have left half done.
                let _ = catch_unwind(AssertUnwindSafe(launch));
                drop(turn);
            }
        };
        let name = format!("lockstep-dev-{}", device.0);
        let thread = thread::Builder::new().name(name).spawn(run).map_err(|error| {
            Status::resource_exhausted(format!(
                "cannot start the executor thread of {device}: {error}"
            ))
        })?;
        Ok(Self { queue, thread })
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let current = thread::current().id();
        let mut threads = Vec::with_capacity(self.streams.len());
        // All queues close before any thread is waited for: their launches need each other.
        for Stream { queue, thread } in self.streams.drain(..) {
            queue.lock().is_closed = true;
            queue.changed.notify_one();
            threads.push(thread);
        }
        if thread::panicking() || threads.iter().any(|thread| thread.thread().id() == current) {
            return;
        }
        for thread in threads {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::{Code, Promise};
    use std::sync::mpsc;

    const FIRST: LocalDevice = LocalDevice(0);

    fn streams(ids: &[u32]) -> Streams {
        Streams::start(ids.iter().copied().map(DeviceId)).unwrap()
    }

    #[test]
    fn launches_run_in_order_and_are_over_after_drop() {
        let streams = streams(&[7]);
        let order = Arc::new(Mutex::new(Vec::new()));
        for i in 0..100 {
            let order = Arc::clone(&order);
            streams.submit(FIRST, move || order.lock().unwrap().push(i));
        }
        let (promise, name) = Promise::new();
        let report = move || promise.set(Ok(thread::current().name().map(str::to_owned)));
        streams.submit(FIRST, report);
        drop(streams);
        assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
        assert_eq!(name.wait().unwrap().as_deref(), Some("lockstep-dev-7"));
    }

    #[test]
    fn a_panic_fails_its_own_launch_only() {
        let streams = streams(&[0]);
        let (broken, first) = Promise::<u32>::new();
        streams.submit(FIRST, move || {
            let _broken = broken;
            panic!("on purpose");
        });
        let (promise, second) = Promise::new();
        streams.submit(FIRST, move || promise.set(Ok(2)));
        assert_eq!(first.wait().unwrap_err().code(), Code::Internal);
        assert_eq!(second.wait().unwrap(), 2);
    }

    #[test]
    fn a_turn_is_had_between_launches_and_holds_up_the_next() {
        let streams = streams(&[0]);
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().unwrap().push(what)
        };
        let (open, gate) = mpsc::channel::<()>();
        streams.submit(FIRST, move || gate.recv().unwrap());
        assert!(streams.turn(FIRST).is_none(), "a launch is under way");
        open.send(()).unwrap();
        let turn = std::iter::repeat_with(|| streams.turn(FIRST)).find_map(|turn| turn).unwrap();
        assert!(streams.turn(FIRST).is_none(), "somebody has it");
        streams.submit(FIRST, note("after"));
        note("here")();
        drop(turn);
        let turn = std::iter::repeat_with(|| streams.turn(FIRST)).find_map(|turn| turn).unwrap();
        streams.submit(FIRST, note("last"));
        turn.pass_on(note("passed on"));
        drop(streams);
        assert_eq!(*order.lock().unwrap(), ["here", "after", "passed on", "last"]);
    }

    #[test]
    fn a_device_without_a_stream_is_an_error() {
        let (promise, nothing) = Promise::<u32>::new();
        streams(&[0]).submit(LocalDevice(1), move || promise.set(Ok(1)));
        assert_eq!(nothing.wait().unwrap_err().code(), Code::Internal);
    }

    #[test]
    fn the_last_reference_may_go_on_one_of_the_threads() {
        let streams = Arc::new(streams(&[0, 1]));
        let (go, gone) = mpsc::channel();
        let (first_is_through, wait_for_first) = mpsc::channel();
        let (promise, dropped) = Promise::new();
        let clone = Arc::clone(&streams);
        streams.submit(FIRST, move || {
            gone.recv().unwrap();
            drop(clone);
            promise.set(Ok(()));
        });
        // What runs on the other thread waits for what comes after on this one.
        streams.submit(LocalDevice(1), move || wait_for_first.recv().unwrap());
        streams.submit(FIRST, move || first_is_through.send(()).unwrap());
        drop(streams);
        go.send(()).unwrap();
        dropped.wait().unwrap();
    }
}
