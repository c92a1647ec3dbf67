//! Members of one process: a message is a copy in memory. The transport of a world of one.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::drive::{Failure, Transfer, drive, instant};
use super::post::Post;
use super::{Incoming, Operation, Outgoing, Step, Tag, Transport, TransportError};
use crate::ids::{Member, Rank};
use crate::rendezvous::RankFailure;

/// Connects the members of one process, which is rank 0.
#[derive(Debug)]
pub struct LocalTransport {
    members: u32,
    start: Instant,
    post: Post<Vec<u8>>,
}

impl LocalTransport {
    /// A transport for members 0 to `members` - 1.
    pub fn new(members: u32) -> Self {
        Self { members, start: Instant::now(), post: Post::default() }
    }
}

impl Transport for LocalTransport {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn rank_of(&self, member: Member) -> Option<Rank> {
        (member.0 < self.members).then_some(Rank(0))
    }

    fn exchange(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError> {
        let me = step.operation.me;
        for send in sends {
            // A message that nobody waits for any more may be dropped.
            let _ = self.post.deliver(step.tag(me, send.to), send.bytes.to_vec());
        }
        let transfers = receives.iter_mut().map(|receive| {
            let tag = step.tag(receive.from, me);
            Transfer::receive(receive.from, take(&self.post, tag, receive.bytes))
        });
        let deadline = instant(self.start, step.deadline);
        drive(transfers.collect(), deadline, step.cancel, |pending, context| {
            let rank_of = |member| self.rank_of(member);
            self.post.poll_interrupted(&step.operation, pending, rank_of, context)
        })
    }

    fn poll_interrupted(
        &self,
        operation: &Operation<'_>,
        pending: &[Member],
        context: &Context<'_>,
    ) -> Poll<TransportError> {
        let rank_of = |member| self.rank_of(member);
        self.post.poll_interrupted(operation, pending, rank_of, context)
    }

    fn abort(&self, operation: &Operation<'_>, notice: &[u8]) {
        self.post.publish(|news| news.abort(operation.id, Rank(0), notice.to_vec()));
    }

    fn retire(&self, operation: &Operation<'_>) {
        self.post.retire(operation);
    }

    fn fail_rank(&self, failure: RankFailure) {
        self.post.publish(|news| news.fail(failure));
    }

    fn flush(&self, _timeout: Duration) {}
}

/// Receives the message under `tag` into `bytes`.
async fn take(post: &Post<Vec<u8>>, tag: Tag, bytes: &mut [u8]) -> Result<(), Failure> {
    let message = poll_fn(|context| post.poll_take(tag, context)).await;
    copy(&message, bytes)
}

/// Fills `bytes` with a message of the same length.
pub(super) fn copy(message: &[u8], bytes: &mut [u8]) -> Result<(), Failure> {
    if message.len() != bytes.len() {
        let detail = format!("sent {} bytes where {} are expected", message.len(), bytes.len());
        return Err(Failure::Breach(detail));
    }
    bytes.copy_from_slice(message);
    Ok(())
}
