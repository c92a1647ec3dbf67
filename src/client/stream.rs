//! One thread per addressable device, which runs launches in the order they were made.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
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
    launches: mpsc::Sender<Launch>,
    thread: JoinHandle<()>,
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
            let _ = stream.launches.send(Box::new(launch));
        }
    }
}

impl Stream {
    fn start(device: DeviceId) -> Result<Self> {
        let (launches, receiver) = mpsc::channel::<Launch>();
        let run = move || {
            for launch in receiver {
                // What a panicking launch promised resolves to an error as it unwinds, and the
                // next launch starts from nothing that it could have left half done.
                let _ = catch_unwind(AssertUnwindSafe(launch));
            }
        };
        let name = format!("lockstep-dev-{}", device.0);
        let thread = thread::Builder::new().name(name).spawn(run).map_err(|error| {
            Status::resource_exhausted(format!(
                "cannot start the executor thread of {device}: {error}"
            ))
        })?;
        Ok(Self { launches, thread })
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let current = thread::current().id();
        let mut threads = Vec::with_capacity(self.streams.len());
        // All channels close before any thread is waited for: their launches need each other.
        for Stream { launches, thread } in self.streams.drain(..) {
            drop(launches);
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
    use std::sync::{Arc, Mutex};

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
