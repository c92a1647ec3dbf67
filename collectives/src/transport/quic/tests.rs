//! Peers that hold the job's secret and break the protocol.

use std::net::{Ipv4Addr, SocketAddr};

use super::*;
use crate::descriptor::{GroupId, OperationId};
use crate::{Attempt, HostId, Identity, JobId, JobSecret, RankInfo};

const ME: Member = Member(0);
const PEER: Member = Member(1);
const MEMBERS: [Member; 2] = [ME, PEER];
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
    let config = transport_config();
    let connecting = from.connector().connect(Protocol::Transport, name, to, None, config);
    from.handle().block_on(connecting).unwrap().connection
}

impl Rogue {
    fn new() -> Self {
        let secret = JobSecret::generate().unwrap();
        let endpoints = [0, 1].map(|rank| endpoint(&secret, PeerName::Rank(Rank(rank))));
        let ranks = endpoints.iter().zip(0..).map(|(endpoint, rank)| RankInfo {
            rank: Rank(rank),
            host: HostId::of_this_host(),
            process_id: 1,
            devices: 1,
            address: endpoint.local_address(),
            fingerprint: endpoint.identity().fingerprint(),
        });
        let job = JobId::new("test").unwrap();
        let topology = Arc::new(Topology::new(job, Attempt(0), ranks.collect()).unwrap());
        let [honest, endpoint] = endpoints;
        let incoming = honest.listen(Protocol::Transport, transport_config()).unwrap();
        let address = honest.local_address();
        let transport = QuicTransport::new(Arc::new(honest), incoming, Rank(0), topology);
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
        let deadline = self.transport.now() + Duration::from_secs(20);
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
    let honest = endpoint(&secret, PeerName::Rank(Rank(0)));
    let incoming = honest.listen(Protocol::Transport, transport_config()).unwrap();
    let address = honest.local_address();
    let job = JobId::new("test").unwrap();
    let topology = Arc::new(Topology::new(job, Attempt(0), Vec::new()).unwrap());
    let _transport = QuicTransport::new(Arc::new(honest), incoming, Rank(0), topology);
    let stranger = endpoint(&secret, PeerName::Rank(Rank(1)));
    let connection = dial(&stranger, address);
    match stranger.handle().block_on(connection.closed()) {
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code, STRANGER),
        other => panic!("{other}"),
    }
}
