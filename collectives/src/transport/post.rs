//! Where messages meet the exchanges that wait for them, and news meets the exchanges it ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::news::News;
use super::{Operation, Tag, TransportError};
use crate::ids::{Member, Rank};

/// The messages and the news of a process. `M` is a message, or the promise of one.
#[derive(Debug)]
pub(super) struct Post<M> {
    state: Mutex<State<M>>,
}

#[derive(Debug)]
struct State<M> {
    arrived: HashMap<Tag, M>,
    receivers: HashMap<Tag, Waker>,
    news: News,
    /// The exchanges under way: woken by any news.
    readers: Vec<Waker>,
}

impl<M> Default for Post<M> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                arrived: HashMap::new(),
                receivers: HashMap::new(),
                news: News::default(),
                readers: Vec::new(),
            }),
        }
    }
}

impl<M> Post<M> {
    /// Hands a message to its receiver, now or when it asks; `message` comes back if its operation
    /// is over for the receiver, or if there is one under this tag already.
    pub(super) fn deliver(&self, tag: Tag, message: M) -> Result<(), M> {
        let mut state = self.state();
        if state.news.is_retired(tag.to, tag.operation) || state.arrived.contains_key(&tag) {
            return Err(message);
        }
        state.arrived.insert(tag, message);
        if let Some(waker) = state.receivers.remove(&tag) {
            waker.wake();
        }
        Ok(())
    }

    /// Takes the message under `tag`, or has `context` woken when it comes.
    pub(super) fn poll_take(&self, tag: Tag, context: &Context<'_>) -> Poll<M> {
        let mut state = self.state();
        if let Some(message) = state.arrived.remove(&tag) {
            return Poll::Ready(message);
        }
        state.receivers.insert(tag, context.waker().clone());
        Poll::Pending
    }

    /// Ready when news ends `operation` ([`News::interruption`]); until then any news wakes
    /// `context`.
    pub(super) fn poll_interrupted(
        &self,
        operation: &Operation<'_>,
        pending: &[Member],
        rank_of: impl Fn(Member) -> Option<Rank>,
        context: &Context<'_>,
    ) -> Poll<TransportError> {
        let mut state = self.state();
        if let Some(error) = state.news.interruption(operation, pending, rank_of) {
            return Poll::Ready(error);
        }
        state.watch(context);
        Poll::Pending
    }

    /// Changes the news and wakes every exchange to read them.
    pub(super) fn publish<R>(&self, change: impl FnOnce(&mut News) -> R) -> R {
        let mut state = self.state();
        let result = change(&mut state.news);
        state.readers.drain(..).for_each(Waker::wake);
        result
    }

    /// Ready when nothing more can be expected of `rank`; until then any news wakes `context`.
    pub(super) fn poll_gone(&self, rank: Rank, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.news.is_gone(rank) {
            return Poll::Ready(());
        }
        state.watch(context);
        Poll::Pending
    }

    /// Drops what arrived and what may come for the operation, or for an earlier one of its group.
    pub(super) fn retire(&self, operation: &Operation<'_>) {
        let mut state = self.state();
        state.news.retire(operation);
        let over = |tag: &Tag| {
            tag.to == operation.me
                && tag.operation.group == operation.id.group
                && tag.operation.sequence <= operation.id.sequence
        };
        state.arrived.retain(|tag, _| !over(tag));
        state.receivers.retain(|tag, _| !over(tag));
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> State<M> {
    fn watch(&mut self, context: &Context<'_>) {
        if !self.readers.iter().any(|waker| waker.will_wake(context.waker())) {
            self.readers.push(context.waker().clone());
        }
    }
}
