//! Peers that hold the job's secret and break the protocol; networks that carry less than asked.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;

use quinn::{Connection, ConnectionError, SendStream, TransportConfig};

use super::reactor::{GIVEN_UP, KEPT_BYTES, SHORT_BYTES, STRANGER, STREAMS};
use super::*;
use crate::descriptor::{GroupId, OperationId};
use crate::transport::Tag;
use crate::transport::wire::{HEAD_BYTES, Head};
use crate::{
    Attempt, Call, CollectiveCause, Communicator, ElementType, HostId, Identity, JobId, JobSecret,
    PeerEndpoint, PeerName, Protocol, RankInfo,
};

const ME: Member = Member(0);
const PEER: Member = Member(1);
const MEMBERS: [Member; 2] = [ME, PEER];
/// Longer than anything takes unless it hangs.
const AMPLE: Duration = Duration::from_secs(60);

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Rank 0 as it is, and a connection to it from a rank 1 that writes what it likes.
struct Rogue {
    transport: QuicTransport,
    endpoint: PeerEndpoint,
    connection: Connection,
}

fn endpoint(secret: &JobSecret, name: PeerName) -> PeerEndpoint {
    PeerEndpoint::bind(Identity::new(secret, name).unwrap(), LOOPBACK).unwrap()
}

fn dial(from: &PeerEndpoint, to: SocketAddr) -> Connection {
    let name = PeerName::Rank(Rank(0));
    let config = Arc::new(TransportConfig::default());
    let connecting = from.connector().connect(Protocol::Transport, name, to, None, config);
    from.handle().block_on(connecting).unwrap().connection
}

impl Rogue {
    fn new() -> Self {
        let secret = JobSecret::generate().unwrap();
        let identity = Identity::new(&secret, PeerName::Rank(Rank(0))).unwrap();
        let socket = PeerSocket::bind(LOOPBACK).unwrap();
        let endpoint = endpoint(&secret, PeerName::Rank(Rank(1)));
        let address = socket.local_address();
        let places = [
            (address, identity.fingerprint()),
            (endpoint.local_address(), endpoint.identity().fingerprint()),
        ];
        let ranks = places.into_iter().zip(0..).map(|((address, fingerprint), rank)| RankInfo {
            rank: Rank(rank),
            host: HostId::of_this_host(),
            process_id: 1,
            devices: 1,
            address,
            fingerprint,
        });
        let job = JobId::new("test").unwrap();
        let topology = Arc::new(Topology::new(job, Attempt(0), ranks.collect()).unwrap());
        let transport = QuicTransport::new(identity, socket, Rank(0), topology).unwrap();
        let connection = dial(&endpoint, address);
        Self { transport, endpoint, connection }
    }

    /// Begins a stream with these pieces.
    fn begin(&self, pieces: &[&[u8]]) -> SendStream {
        self.endpoint.handle().block_on(async {
            let mut stream = self.connection.open_uni().await.unwrap();
            for piece in pieces {
                stream.write_all(piece).await.unwrap();
            }
            stream
        })
    }

    /// Writes a stream of these pieces.
    fn write(&self, pieces: &[&[u8]]) {
        self.begin(pieces).finish().unwrap();
    }

    /// Sends `bytes` for `operation`, announcing `announced`.
    fn send(&self, id: OperationId, announced: u64, bytes: &[u8]) {
        self.write(&[&head(id, announced), bytes]);
    }

    /// What rank 0 receives for `operation` where it expects four bytes.
    fn receive(&self, id: OperationId) -> Result<[u8; 4], TransportError> {
        let mut bytes = [0; 4];
        let operation = Operation { id, me: ME, members: &MEMBERS };
        let deadline = self.transport.now() + AMPLE;
        let step = Step { operation, index: 0, deadline, cancel: None };
        let receive = Incoming { from: PEER, bytes: &mut bytes };
        self.transport.exchange(&step, &[], &mut [receive])?;
        Ok(bytes)
    }
}

/// The head of the message that rank 0 waits for.
fn head(operation: OperationId, length_bytes: u64) -> [u8; HEAD_BYTES] {
    let tag = Tag { operation, step: 0, from: PEER, to: ME };
    Head::Message { tag, length_bytes }.encode().unwrap()
}

fn operation(sequence: u64) -> OperationId {
    OperationId { group: GroupId::of(&MEMBERS), sequence }
}

#[test]
fn streams_that_are_not_of_the_protocol_are_ignored() {
    let rogue = Rogue::new();
    let forged = |from, to| {
        let tag = Tag { operation: operation(1), step: 0, from, to };
        Head::Message { tag, length_bytes: 4 }.encode().unwrap()
    };
    let notice =
        |length_bytes| Head::Notice { operation: operation(1), length_bytes }.encode().unwrap();
    rogue.write(&[]);
    rogue.write(&[&[1; 10]]);
    rogue.write(&[&[0xff; 5000]]);
    rogue.write(&[&forged(ME, ME), &[1; 4]]);
    rogue.write(&[&forged(PEER, PEER), &[2; 4]]);
    rogue.write(&[&forged(Member(77), ME), &[3; 4]]);
    rogue.write(&[&notice(u32::MAX), &[4; 100]]);
    rogue.write(&[&notice(100), &[5; 50]]);
    rogue.send(operation(1), 4, &[6, 7, 8, 9]);
    assert_eq!(rogue.receive(operation(1)), Ok([6, 7, 8, 9]));
    // The same tag again, while the first is unread: the first counts.
    rogue.send(operation(2), 4, &[1, 2, 3, 4]);
    rogue.send(operation(2), 4, &[5; 4]);
    rogue.send(operation(3), 4, &[0; 4]);
    assert_eq!(rogue.receive(operation(3)), Ok([0; 4]));
    assert_eq!(rogue.receive(operation(2)), Ok([1, 2, 3, 4]));
}

#[test]
fn a_message_of_another_length_is_an_error_that_names_the_peer() {
    let rogue = Rogue::new();
    let refused = |sequence| match rogue.receive(operation(sequence)) {
        Err(TransportError::Peer { peer: PEER, detail }) => detail,
        other => panic!("{other:?}"),
    };
    rogue.send(operation(1), u64::MAX, &[1; 4]);
    assert_eq!(refused(1), format!("sent {} bytes where 4 are expected", u64::MAX));
    rogue.send(operation(2), 4, &[1; 3]);
    assert_eq!(refused(2), "announced 4 bytes and sent 3");
    rogue.send(operation(3), 4, &[1; 5]);
    assert_eq!(refused(3), "sent more than the 4 bytes announced");
}

#[test]
fn a_message_for_an_operation_that_is_over_is_stopped() {
    let rogue = Rogue::new();
    rogue.send(operation(1), 4, &[1; 4]);
    rogue.receive(operation(1)).unwrap();
    rogue.transport.retire(&Operation { id: operation(1), me: ME, members: &MEMBERS });
    let late = rogue.begin(&[&head(operation(1), 1 << 30), &[1; 4]]);
    let stopped = rogue.endpoint.handle().block_on(late.stopped());
    assert_eq!(stopped, Ok(Some(GIVEN_UP)));
}

#[test]
fn holders_of_the_secret_that_are_not_of_the_topology_are_turned_away() {
    let secret = JobSecret::generate().unwrap();
    let identity = Identity::new(&secret, PeerName::Rank(Rank(0))).unwrap();
    let socket = PeerSocket::bind(LOOPBACK).unwrap();
    let address = socket.local_address();
    let job = JobId::new("test").unwrap();
    let topology = Arc::new(Topology::new(job, Attempt(0), Vec::new()).unwrap());
    let _transport = QuicTransport::new(identity, socket, Rank(0), topology).unwrap();
    let stranger = endpoint(&secret, PeerName::Rank(Rank(1)));
    let connection = dial(&stranger, address);
    match stranger.handle().block_on(connection.closed()) {
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code, STRANGER),
        other => panic!("{other}"),
    }
}

#[test]
fn what_a_peer_sends_and_nobody_waits_for_is_bounded() {
    let rogue = Rogue::new();
    let message = [7; SHORT_BYTES];
    let connection = rogue.connection.clone();
    // It ends with its connection; until then it never has enough.
    rogue.endpoint.handle().spawn(async move {
        for sequence in 1.. {
            let Ok(mut stream) = connection.open_uni().await else { return };
            let head = head(operation(sequence), message.len() as u64);
            if stream.write_all(&[&head[..], &message].concat()).await.is_err() {
                return;
            }
            stream.finish().unwrap();
        }
    });
    let reactor = &rogue.transport.reactor;
    let until = |reached: &dyn Fn(usize) -> bool| {
        let start = Instant::now();
        while !reached(reactor.kept_bytes(Rank(1))) {
            assert!(start.elapsed() < AMPLE, "{} bytes are kept", reactor.kept_bytes(Rank(1)));
            std::thread::yield_now();
        }
    };
    until(&|kept| kept >= KEPT_BYTES);
    let stream_bytes = HEAD_BYTES + SHORT_BYTES;
    assert!(reactor.kept_bytes(Rank(1)) <= KEPT_BYTES + STREAMS as usize * stream_bytes);
    // What is over makes room, kept or still on its stream, and the sender goes on.
    let over = operation((KEPT_BYTES / stream_bytes + STREAMS as usize / 2) as u64);
    rogue.transport.retire(&Operation { id: over, me: ME, members: &MEMBERS });
    until(&|kept| kept < KEPT_BYTES);
    until(&|kept| kept >= KEPT_BYTES);
}

/// A job of one member a rank, over loopback; `open` changes the sockets before they are used.
fn job(ranks: u32, open: impl Fn(&PeerSocket)) -> Vec<Arc<QuicTransport>> {
    let secret = JobSecret::generate().unwrap();
    let mut places = Vec::new();
    let mut infos = Vec::new();
    for rank in (0..ranks).map(Rank) {
        let identity = Identity::new(&secret, PeerName::Rank(rank)).unwrap();
        let socket = PeerSocket::bind(LOOPBACK).unwrap();
        open(&socket);
        infos.push(RankInfo {
            rank,
            host: HostId::of_this_host(),
            process_id: 1,
            devices: 1,
            address: socket.local_address(),
            fingerprint: identity.fingerprint(),
        });
        places.push((identity, socket));
    }
    let topology = Topology::new(JobId::new("test").unwrap(), Attempt(0), infos).unwrap();
    let topology = Arc::new(topology);
    let transports = places.into_iter().zip((0..).map(Rank)).map(|((identity, socket), rank)| {
        let topology = Arc::clone(&topology);
        Arc::new(QuicTransport::new(identity, socket, rank, topology).unwrap())
    });
    transports.collect()
}

/// Runs `body` for each member at once.
fn run(transports: &[Arc<QuicTransport>], body: impl Fn(Communicator) + Sync) {
    std::thread::scope(|scope| {
        for (transport, member) in transports.iter().zip((0..).map(Member)) {
            let transport: Arc<dyn Transport> = Arc::<QuicTransport>::clone(transport);
            let communicator = Communicator::new(member, transport, AMPLE);
            scope.spawn(|| body(communicator));
        }
    });
}

/// What member `from` has for member `to`: no two alike.
fn piece(from: usize, to: usize, length: usize) -> impl Iterator<Item = u8> {
    (0..length).map(move |index| u8::try_from((index + 31 * from + 17 * to) % 251).unwrap())
}

/// An all-to-all of `length` bytes from each to each, checked.
fn all_to_all(transports: &[Arc<QuicTransport>], length: usize) {
    let count = transports.len();
    let members: Vec<Member> = (0..).map(Member).take(count).collect();
    run(transports, |communicator| {
        let group = communicator.group(&members).unwrap();
        let me = group.position();
        let input: Vec<u8> = (0..count).flat_map(|to| piece(me, to, length)).collect();
        let mut output = vec![0; input.len()];
        let call = Call::on(&group);
        communicator.all_to_all(&call, ElementType::U8, &input, &mut output).unwrap();
        let expected: Vec<u8> = (0..count).flat_map(|from| piece(from, me, length)).collect();
        assert!(output == expected, "member {me}");
    });
}

#[test]
fn a_path_without_segmentation_offload_gets_packets_one_by_one() {
    let transports = job(2, |socket| {
        // Loopback's own packets fill a batch each.
        socket.largest_packet_bytes.store(1472, Ordering::Relaxed);
        socket.refuse_batches.store(true, Ordering::Relaxed);
    });
    all_to_all(&transports, 1_000_000);
    assert_eq!(transports[0].reactor.socket().batch(1472), 1);
}

#[test]
fn many_peers_with_small_receive_buffers_lose_packets_and_nothing_else() {
    let transports = job(16, |socket| {
        // The kernel doubles it: what Linux grants when nobody asks.
        socket2::SockRef::from(socket).set_recv_buffer_size(212_992 / 2).unwrap();
    });
    all_to_all(&transports, 256 << 10);
}

#[test]
fn a_receiver_that_is_gone_after_the_last_byte_is_no_success() {
    let mut transports = job(2, |_| {});
    let members = [Member(0), Member(1)];
    let receiver = transports.pop().unwrap();
    let sender: Arc<dyn Transport> = Arc::<QuicTransport>::clone(&transports[0]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let communicator = Communicator::new(Member(1), receiver, AMPLE);
            let group = communicator.group(&members).unwrap();
            let mut output = vec![0; 100_000];
            let call = Call::on(&group);
            communicator.broadcast(&call, ElementType::U8, 0, &[1; 100_000], &mut output).unwrap();
            assert!(output.iter().all(|byte| *byte == 9));
            // Its transport leaves with it.
        });
        let communicator = Communicator::new(Member(0), sender, AMPLE);
        let group = communicator.group(&members).unwrap();
        let call = Call::on(&group);
        // All of it may be on its way before the receiver goes; that it went is known at the next.
        let (input, mut output) = (vec![9; 100_000], vec![0; 100_000]);
        communicator.broadcast(&call, ElementType::U8, 0, &input, &mut output).unwrap();
        let error = communicator.barrier(&call).unwrap_err();
        assert!(
            matches!(&error.cause, CollectiveCause::RankFailed(failure) if failure.rank == Rank(1)),
            "{error}"
        );
    });
}
