//! What virtual devices take from and give to the host, and send to each other by channels.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::Transfer;
use crate::ifrt::{Result, Status};

/// Arrays as bytes.
pub(super) type Arrays = Vec<Vec<u8>>;

/// The other end of every infeed, outfeed and channel of a launch.
pub(super) struct Exchange {
    state: Mutex<State>,
    sent: Condvar,
    timeout: Duration,
}

#[derive(Default)]
struct State {
    infeed: VecDeque<Arrays>,
    channels: HashMap<i64, VecDeque<Arrays>>,
}

impl Exchange {
    /// An exchange in which infeeds take `infeed` one after the other, and who receives waits for
    /// `timeout`.
    pub(super) fn new(infeed: Vec<Arrays>, timeout: Duration) -> Self {
        let state = State { infeed: infeed.into(), channels: HashMap::new() };
        Self { state: Mutex::new(state), sent: Condvar::new(), timeout }
    }

    /// Runs one transfer; what is fed out is dropped.
    pub(super) fn transfer(
        &self,
        transfer: Transfer,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let arrays = match transfer {
            Transfer::Outfeed => return Ok(()),
            Transfer::Send(channel) => {
                let arrays = inputs.iter().map(|input| input.to_vec()).collect();
                self.lock().channels.entry(channel).or_default().push_back(arrays);
                self.sent.notify_all();
                return Ok(());
            }
            Transfer::Infeed => self.lock().infeed.pop_front().ok_or_else(|| {
                Status::failed_precondition("an infeed, but the host has nothing more to feed")
            })?,
            Transfer::Receive(channel) => self.receive(channel)?,
            Transfer::Callback(number) => {
                return Err(Status::unimplemented(format!("function {number} of the host")));
            }
        };
        let sizes = |lengths: &mut dyn Iterator<Item = usize>| lengths.collect::<Vec<_>>();
        let arrived = sizes(&mut arrays.iter().map(Vec::len));
        let expected = sizes(&mut outputs.iter().map(|output| output.len()));
        if arrived != expected {
            return Err(Status::invalid_argument(format!(
                "{transfer:?}: arrays of {arrived:?} bytes arrived, {expected:?} are expected"
            )));
        }
        for (output, array) in outputs.iter_mut().zip(arrays) {
            output.copy_from_slice(&array);
        }
        Ok(())
    }

    /// Waits for what is sent to a channel.
    fn receive(&self, channel: i64) -> Result<Arrays> {
        let deadline = Instant::now().checked_add(self.timeout);
        let mut state = self.lock();
        loop {
            let arrived = state.channels.get_mut(&channel).and_then(VecDeque::pop_front);
            if let Some(arrays) = arrived {
                return Ok(arrays);
            }
            let left = deadline.map_or(self.timeout, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Err(Status::deadline_exceeded(format!(
                    "nobody has sent to channel {channel} in {:?}",
                    self.timeout
                )));
            }
            state = self.sent.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Arrays are put in and taken out whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::Code;

    #[test]
    fn arrays_arrive_in_order_or_not_at_all() {
        let exchange = Exchange::new(vec![vec![vec![1, 2]]], Duration::from_millis(1));
        let mut first = [0; 2];
        exchange.transfer(Transfer::Infeed, &[], &mut [&mut first]).unwrap();
        assert_eq!(first, [1, 2]);
        let error = exchange.transfer(Transfer::Infeed, &[], &mut [&mut first]).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        for sent in [[3, 4], [5, 6]] {
            exchange.transfer(Transfer::Send(7), &[&sent], &mut []).unwrap();
        }
        exchange.transfer(Transfer::Receive(7), &[], &mut [&mut first]).unwrap();
        assert_eq!(first, [3, 4]);
        let mut short = [0; 1];
        let error = exchange.transfer(Transfer::Receive(7), &[], &mut [&mut short]).unwrap_err();
        assert!(error.message().contains("[2] bytes arrived, [1] are expected"), "{error}");
        let error = exchange.transfer(Transfer::Receive(8), &[], &mut [&mut first]).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
    }
}
