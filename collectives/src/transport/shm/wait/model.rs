//! The bell under every interleaving that the memory model allows.

use std::time::Duration;

use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::{Bell, Futex};

/// A futex as its manual describes it, on which no sleep ends by itself.
struct Model {
    word: AtomicU32,
    queue: Mutex<()>,
    woken: Condvar,
}

impl Model {
    fn new() -> Self {
        Self { word: AtomicU32::new(0), queue: Mutex::new(()), woken: Condvar::new() }
    }
}

impl Futex for Model {
    fn load(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }

    fn add(&self, addend: u32) -> u32 {
        self.word.fetch_add(addend, Ordering::AcqRel)
    }

    fn sleep(&self, seen: u32, _timeout: Duration) {
        let queue = self.queue.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == seen {
            drop(self.woken.wait(queue).unwrap());
        }
    }

    fn wake_all(&self) {
        let _queue = self.queue.lock().unwrap();
        self.woken.notify_all();
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Two post, two sleep until both have; the one that finds both posts rings. Loom finds a sleeper
/// that nobody wakes: it calls it a deadlock.
#[test]
fn nobody_oversleeps() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound.get_or_insert(3);
    model.check(|| {
        let shared =
            Arc::new(([Model::new(), Model::new()], [(); 2].map(|()| AtomicBool::new(false))));
        let members: Vec<_> = (0..2)
            .map(|me| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (words, posts) = &*shared;
                    let bell = Bell::new(words).unwrap();
                    let full = || posts.iter().all(|post| post.load(Ordering::Acquire));
                    posts[me].store(true, Ordering::Release);
                    fence(Ordering::SeqCst);
                    if full() {
                        return bell.ring();
                    }
                    while bell.sleep(|| full().then_some(()), Duration::MAX).is_none() {}
                })
            })
            .collect();
        for member in members {
            member.join().unwrap();
        }
    });
}
