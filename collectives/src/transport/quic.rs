//! Members of different processes: QUIC, one stream per message.
//!
//! A process has one UDP socket for all its peers. Of each pair one dials, pinned to the
//! certificate of the topology; a connection that comes in is known by its certificate. A message
//! is a unidirectional stream (module `wire`), so one that nobody waits for yet holds up no other,
//! and one that its sender gives up takes nothing with it. Its head is read when it arrives; if it
//! is short, so is the rest, and else its bytes when the receive that wants them is there, straight
//! into that receive's slice. Until then flow control holds the sender: a peer can make a process
//! keep 512 windows of 1 MiB and 16 MiB of short messages, no more.
//!
//! No runtime is involved. The thread that waits in an exchange works the socket itself
//! (`reactor`), and a thread of the transport does when none waits (`idle`).
//!
//! Nothing here runs into a timeout while a peer is merely slow or stopped: who is dead is the
//! rendezvous' to say, who is late the caller's.

mod bell;
mod idle;
mod link;
mod pool;
mod reactor;
mod socket;
mod transfer;
mod window;

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

pub use socket::PeerSocket;

use self::bell::Rings;
use self::idle::Idle;
use self::reactor::{Arrival, Reactor};
use self::transfer::{Pipeline, feed, receive, send};
use super::clock::Clock;
use super::drive::{Transfer, Waiting, drive_by, instant};
use super::{Incoming, MAX_NOTICE_BYTES, Operation, Outgoing, Step, Transport, TransportError};
use crate::ids::{Member, Rank};
use crate::rendezvous::RankFailure;
use crate::{EndpointError, Identity, Topology};

/// How long a process that leaves waits for its peers to have what it sent.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects the members of this process with those of all others.
///
/// Dropping it waits up to 5 s until the peers have what was sent to them.
pub struct QuicTransport {
    clock: Clock,
    reactor: Arc<Reactor>,
    idle: Idle,
}

impl QuicTransport {
    /// The transport of `rank` of the job `topology`, whose peers reach it at `socket`.
    ///
    /// # Errors
    /// When the identity cannot serve, or the transport's thread cannot start.
    pub fn new(
        identity: Identity,
        socket: PeerSocket,
        rank: Rank,
        topology: Arc<Topology>,
    ) -> Result<Self, EndpointError> {
        let reactor = Arc::new(Reactor::new(identity, socket, rank, topology)?);
        let idle = Idle::start(Arc::clone(&reactor))?;
        Ok(Self { clock: Clock::start(), reactor, idle })
    }

    /// Begins to send; what is for members of this process has arrived at once.
    fn sending<'a>(
        &'a self,
        step: &Step<'_>,
        sends: &[Outgoing<'a>],
    ) -> Result<Vec<Transfer<'a>>, TransportError> {
        let reactor = &*self.reactor;
        let mut transfers = Vec::with_capacity(sends.len());
        for &Outgoing { to, bytes } in sends {
            let tag = step.tag(step.operation.me, to);
            match self.rank_of(to) {
                Some(rank) if rank == reactor.rank => {
                    // A message that nobody waits for any more may be dropped.
                    let _ = reactor.post.deliver(tag, Arrival::Local(bytes.to_vec()));
                }
                Some(rank) => transfers.push(Transfer::send(to, send(reactor, rank, tag, bytes))),
                None => {
                    let detail = "the job has no such device".to_owned();
                    return Err(TransportError::Peer { peer: to, detail });
                }
            }
        }
        Ok(transfers)
    }

    fn drive(&self, step: &Step<'_>, transfers: Vec<Transfer<'_>>) -> Result<(), TransportError> {
        let reactor = &*self.reactor;
        let deadline = instant(self.clock.started(), step.deadline);
        let result = drive_by(
            &mut AtSocket::new(reactor),
            transfers,
            deadline,
            step.cancel,
            |pending, context| {
                let rank_of = |member| self.rank_of(member);
                reactor.post.poll_interrupted(&step.operation, pending, rank_of, context)
            },
        );
        reactor.lock().send_all();
        // Who waits elsewhere may have to take this thread's place at the socket.
        reactor.bell.ring();
        result
    }
}

impl Transport for QuicTransport {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn last_tick(&self) -> Duration {
        self.clock.last_tick()
    }

    fn rank_of(&self, member: Member) -> Option<Rank> {
        self.reactor.topology.rank_of(member)
    }

    fn host_of(&self, member: Member) -> Option<Rank> {
        self.reactor.topology.host_of(self.rank_of(member)?)
    }

    fn exchange(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError> {
        let _exchanging = self.idle.exchange();
        let mut transfers = self.sending(step, sends)?;
        for Incoming { from, bytes } in receives {
            let tag = step.tag(*from, step.operation.me);
            transfers.push(Transfer::receive(*from, receive(&self.reactor, tag, bytes)));
        }
        self.drive(step, transfers)
    }

    fn exchange_views(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        sources: &[Member],
        length_bytes: usize,
        read: &mut dyn FnMut(usize, &[&[u8]]),
    ) -> Result<(), TransportError> {
        let _exchanging = self.idle.exchange();
        let pipeline = RefCell::new(Pipeline::new(sources.len(), length_bytes, read));
        let mut transfers = self.sending(step, sends)?;
        for (index, &from) in sources.iter().enumerate() {
            let tag = step.tag(from, step.operation.me);
            transfers.push(Transfer::receive(from, feed(&self.reactor, tag, &pipeline, index)));
        }
        self.drive(step, transfers)
    }

    fn poll_interrupted(
        &self,
        operation: &Operation<'_>,
        pending: &[Member],
        context: &Context<'_>,
    ) -> Poll<TransportError> {
        let rank_of = |member| self.rank_of(member);
        self.reactor.post.poll_interrupted(operation, pending, rank_of, context)
    }

    fn abort(&self, operation: &Operation<'_>, notice: &[u8]) {
        let reactor = &self.reactor;
        let notice = &notice[..notice.len().min(MAX_NOTICE_BYTES)];
        reactor.post.publish(|news| news.abort(operation.id, reactor.rank, notice.to_vec()));
        let mut ranks: Vec<Rank> =
            operation.members.iter().filter_map(|&member| self.rank_of(member)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.retain(|rank| *rank != reactor.rank);
        reactor.notify(&ranks, operation.id, notice);
        self.idle.look_again();
    }

    fn retire(&self, operation: &Operation<'_>) {
        self.reactor.post.retire(operation);
        self.reactor.sweep();
    }

    fn fail_rank(&self, failure: RankFailure) {
        self.reactor.post.publish(|news| news.fail(failure));
    }

    fn flush(&self, timeout: Duration) {
        let _exchanging = self.idle.exchange();
        let reactor = &*self.reactor;
        let ranks = reactor.topology.ranks().iter().map(|info| info.rank);
        let transfers = ranks.filter(|rank| *rank != reactor.rank).map(|rank| {
            let member = Member(reactor.topology.members_of(rank).start);
            let acknowledged =
                poll_fn(move |context| reactor.poll_acknowledged(rank, context).map(Ok));
            Transfer::send(member, acknowledged)
        });
        let deadline = instant(self.clock.started(), self.now().saturating_add(timeout));
        let mut waiting = AtSocket::new(reactor);
        // Who has not taken everything by now will not be waited for.
        let _ = drive_by(&mut waiting, transfers.collect(), deadline, None, |_, _| Poll::Pending);
    }
}

impl Drop for QuicTransport {
    fn drop(&mut self) {
        self.flush(LEAVE_TIMEOUT);
        self.reactor.close();
    }
}

/// Waiting by working the socket.
struct AtSocket<'a> {
    reactor: &'a Reactor,
    heard: Rings,
}

impl<'a> AtSocket<'a> {
    fn new(reactor: &'a Reactor) -> Self {
        Self { reactor, heard: reactor.bell.heard() }
    }
}

impl Waiting for AtSocket<'_> {
    fn waker(&self) -> &Waker {
        &self.reactor.waker
    }

    fn listen(&mut self) {
        self.heard = self.reactor.bell.heard();
    }

    fn wait(&mut self, until: Instant) {
        self.reactor.wait(self.heard, until);
    }
}

impl fmt::Debug for QuicTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicTransport").field("rank", &self.reactor.rank).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
