//! Passing a segment's file from the process that made it to the others of its host.
//!
//! The file has no name. Its maker listens on a Unix socket in the abstract namespace, under a
//! random name that it publishes among the job's processes. The name is no secret: everyone on the
//! host can list it. So both sides check that the other runs as the same user, and prove to each
//! other that they hold the job's secret, before the descriptor passes.
//!
//! The exchange, in packets: the taker sends its rank and a nonce; the maker answers with a nonce
//! and its proof; the taker sends its proof; the maker sends the descriptor. A proof is HKDF of the
//! job's secret over the side's role, the socket's name and all that was said before.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hkdf::Hkdf;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::process::{Uid, geteuid};
use sha2::Sha256;

use crate::secret::random_bytes;
use crate::{JobSecret, Rank, SecretError};

/// Separates this use of the secret from any other, and this version from later ones.
const PROOF_INFO: &[u8] = b"lockstep segment handover, version 1, ";

/// How long the maker waits for each packet of a taker, while others wait their turn.
const PACKET_TIMEOUT: Duration = Duration::from_secs(2);

/// How many takers may wait for their turn.
const BACKLOG: i32 = 4096;

const NONCE_BYTES: usize = 32;
const HELLO_BYTES: usize = size_of::<u32>() + NONCE_BYTES;
const CHALLENGE_BYTES: usize = NONCE_BYTES + PROOF_BYTES;
const PROOF_BYTES: usize = 32;

/// Why a file did not pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HandoverError {
    /// The system refuses a call.
    #[error("cannot {action} the socket for the shared segment: {source}")]
    Socket { action: &'static str, source: io::Error },
    /// The other side runs as another user.
    #[error(
        "the other side of the socket for the shared segment has user id {found}, not {expected}"
    )]
    OtherUser { expected: u32, found: u32 },
    /// The other side does not hold the job's secret.
    #[error("the other side of the socket for the shared segment does not know the job's secret")]
    OtherSecret,
    /// The other side does not speak the protocol.
    #[error("{expected} bytes expected on the socket for the shared segment, {found} received")]
    Malformed { expected: usize, found: usize },
    /// The last packet came without its descriptor.
    #[error("no descriptor came over the socket for the shared segment")]
    NoDescriptor,
    /// There is no randomness.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// A file on offer. Dropping it ends the offer.
pub(crate) struct Offer {
    name: String,
    socket: Arc<OwnedFd>,
    server: Option<JoinHandle<()>>,
}

impl Offer {
    /// Offers `file` to all processes of this user that hold `secret`.
    pub(crate) fn new(file: OwnedFd, secret: &JobSecret) -> Result<Self, HandoverError> {
        Self::to_user(file, secret, geteuid())
    }

    fn to_user(file: OwnedFd, secret: &JobSecret, user: Uid) -> Result<Self, HandoverError> {
        let name = format!("lockstep-{:032x}", u128::from_le_bytes(random_bytes()?));
        let socket = Arc::new(socket()?);
        address(&name)
            .and_then(|address| rustix::net::bind(&socket, &address))
            .map_err(failed("bind"))?;
        rustix::net::listen(&socket, BACKLOG).map_err(failed("listen on"))?;
        let serving = Serving {
            socket: Arc::clone(&socket),
            name: name.clone(),
            file,
            secret: secret.clone(),
            user,
        };
        let server = std::thread::Builder::new()
            .name("lockstep-handover".to_owned())
            .spawn(move || serving.run())
            .map_err(|source| HandoverError::Socket { action: "serve", source })?;
        Ok(Self { name, socket, server: Some(server) })
    }

    /// What [`take`] asks for.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        // It wakes the server. A server that is amid a handover ends after it.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// What the maker's thread needs.
pub(super) struct Serving {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) name: String,
    pub(super) file: OwnedFd,
    pub(super) secret: JobSecret,
    pub(super) user: Uid,
}

impl Serving {
    fn run(&self) {
        let mut said = None::<Instant>;
        loop {
            let accept = || rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC);
            let taker = match retry_on_intr(accept) {
                Ok(taker) => taker,
                Err(Errno::CONNABORTED) => continue,
                // It was shut down.
                Err(Errno::INVAL) => return,
                Err(error) => {
                    tracing::warn!("no longer hands out the shared segment: {error}");
                    return;
                }
            };
            match self.hand_over(&taker) {
                Ok(rank) => tracing::debug!("{rank} has the shared segment"),
                Err(error) if said.is_none_or(|at| at.elapsed() >= Duration::from_secs(1)) => {
                    said = Some(Instant::now());
                    tracing::warn!("refused the shared segment to a process: {error}");
                }
                Err(_) => {}
            }
        }
    }

    /// The maker's side of the exchange over a socket that is connected.
    pub(super) fn hand_over(&self, taker: &OwnedFd) -> Result<Rank, HandoverError> {
        require_user(taker, self.user)?;
        limit(taker, PACKET_TIMEOUT)?;
        let hello = receive::<HELLO_BYTES>(taker)?;
        let nonce = random_bytes::<NONCE_BYTES>()?;
        let said = [self.name.as_bytes(), &hello, &nonce];
        send(taker, &[&nonce, &proof(&self.secret, Side::Maker, said)?])?;
        require_proof(&receive::<PROOF_BYTES>(taker)?, proof(&self.secret, Side::Taker, said)?)?;
        send_descriptor(taker, &self.file)?;
        let [a, b, c, d, ..] = hello;
        Ok(Rank(u32::from_le_bytes([a, b, c, d])))
    }
}

/// Takes the file that is on offer under `name`, as `rank`, within `timeout` for each packet.
pub(crate) fn take(
    name: &str,
    rank: Rank,
    secret: &JobSecret,
    timeout: Duration,
) -> Result<OwnedFd, HandoverError> {
    take_from_user(name, rank, secret, timeout, geteuid())
}

fn take_from_user(
    name: &str,
    rank: Rank,
    secret: &JobSecret,
    timeout: Duration,
    user: Uid,
) -> Result<OwnedFd, HandoverError> {
    let maker = socket()?;
    limit(&maker, timeout)?;
    let address = address(name).map_err(failed("name"))?;
    retry_on_intr(|| rustix::net::connect(&maker, &address)).map_err(failed("connect to"))?;
    ask_for(name, rank, secret, &maker, user)
}

/// The taker's side of the exchange over a socket that is connected.
pub(super) fn ask_for(
    name: &str,
    rank: Rank,
    secret: &JobSecret,
    maker: &OwnedFd,
    user: Uid,
) -> Result<OwnedFd, HandoverError> {
    require_user(maker, user)?;
    let mut hello = [0; HELLO_BYTES];
    let (number, nonce) = hello.split_at_mut(size_of::<u32>());
    number.copy_from_slice(&rank.0.to_le_bytes());
    nonce.copy_from_slice(&random_bytes::<NONCE_BYTES>()?);
    send(maker, &[&hello])?;
    let challenge = receive::<CHALLENGE_BYTES>(maker)?;
    let (nonce, makers_proof) = challenge.split_at(NONCE_BYTES);
    let said = [name.as_bytes(), &hello, nonce];
    require_proof(makers_proof, proof(secret, Side::Maker, said)?)?;
    send(maker, &[&proof(secret, Side::Taker, said)?])?;
    receive_descriptor(maker)
}

#[derive(Clone, Copy)]
enum Side {
    Maker,
    Taker,
}

/// What only a holder of the secret can say about what was `said`, whose parts have fixed lengths.
fn proof(
    secret: &JobSecret,
    side: Side,
    [name, hello, nonce]: [&[u8]; 3],
) -> Result<[u8; PROOF_BYTES], HandoverError> {
    let side: &[u8] = match side {
        Side::Maker => b"maker",
        Side::Taker => b"taker",
    };
    let mut proof = [0; PROOF_BYTES];
    Hkdf::<Sha256>::new(None, secret.as_bytes())
        .expand_multi_info(&[PROOF_INFO, side, name, hello, nonce], &mut proof)
        .map_err(|_| HandoverError::OtherSecret)?;
    Ok(proof)
}

fn require_proof(found: &[u8], expected: [u8; PROOF_BYTES]) -> Result<(), HandoverError> {
    // All bytes are looked at, so that the time tells nothing.
    let differing = found.iter().zip(expected).fold(0, |bits, (a, b)| bits | (a ^ b));
    if differing == 0 && found.len() == PROOF_BYTES {
        Ok(())
    } else {
        Err(HandoverError::OtherSecret)
    }
}

fn require_user(socket: &OwnedFd, expected: Uid) -> Result<(), HandoverError> {
    let found = socket_peercred(socket).map_err(failed("look at"))?.uid;
    if found == expected {
        Ok(())
    } else {
        Err(HandoverError::OtherUser { expected: expected.as_raw(), found: found.as_raw() })
    }
}

fn failed(action: &'static str) -> impl Fn(Errno) -> HandoverError {
    move |errno| HandoverError::Socket { action, source: errno.into() }
}

fn socket() -> Result<OwnedFd, HandoverError> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(failed("make"))
}

fn address(name: &str) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(name.as_bytes())
}

/// Bounds how long each later call on `socket` waits.
fn limit(socket: &OwnedFd, timeout: Duration) -> Result<(), HandoverError> {
    // The system takes zero for no bound.
    let timeout = Some(timeout.max(Duration::from_millis(1)));
    set_socket_timeout(socket, Timeout::Recv, timeout)
        .and_then(|()| set_socket_timeout(socket, Timeout::Send, timeout))
        .map_err(failed("bound"))
}

fn send(socket: &OwnedFd, parts: &[&[u8]]) -> Result<(), HandoverError> {
    let packet = parts.concat();
    retry_on_intr(|| rustix::net::send(socket, &packet, SendFlags::NOSIGNAL))
        .map_err(failed("write to"))?;
    Ok(())
}

/// A packet of exactly `N` bytes.
fn receive<const N: usize>(socket: &OwnedFd) -> Result<[u8; N], HandoverError> {
    let mut bytes = [0; N];
    // The length of the packet rather than of what fits.
    let (_, found) = retry_on_intr(|| rustix::net::recv(socket, &mut bytes[..], RecvFlags::TRUNC))
        .map_err(failed("read from"))?;
    if found == N { Ok(bytes) } else { Err(HandoverError::Malformed { expected: N, found }) }
}

fn send_descriptor(socket: &OwnedFd, file: &OwnedFd) -> Result<(), HandoverError> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let byte = [IoSlice::new(&[1])];
    rustix::net::sendmsg(socket, &byte, &mut control, SendFlags::NOSIGNAL)
        .map_err(failed("write to"))?;
    Ok(())
}

fn receive_descriptor(socket: &OwnedFd) -> Result<OwnedFd, HandoverError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(failed("read from"))?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    descriptors.last().ok_or(HandoverError::NoDescriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMPLE: Duration = Duration::from_secs(30);
    const ME: Rank = Rank(3);

    /// A file that can be told from others, and what tells it.
    fn file() -> (OwnedFd, u64) {
        let file = rustix::fs::memfd_create(c"test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let inode = rustix::fs::fstat(&file).unwrap().st_ino;
        (file, inode)
    }

    fn inode(file: &OwnedFd) -> u64 {
        rustix::fs::fstat(file).unwrap().st_ino
    }

    #[test]
    fn holders_of_the_secret_get_the_file_itself() {
        let secret = JobSecret::generate().unwrap();
        let (file, expected) = file();
        let offer = Offer::new(file, &secret).unwrap();
        std::thread::scope(|scope| {
            for rank in 0..8 {
                let (name, secret) = (offer.name(), &secret);
                scope.spawn(move || {
                    let taken = take(name, Rank(rank), secret, AMPLE).unwrap();
                    assert_eq!(inode(&taken), expected);
                });
            }
        });
    }

    #[test]
    fn another_secret_gets_nothing_and_gives_nothing() {
        let secret = JobSecret::generate().unwrap();
        let offer = Offer::new(file().0, &secret).unwrap();
        let other = JobSecret::generate().unwrap();
        // The taker refuses the maker first.
        let refused = take(offer.name(), ME, &other, AMPLE).unwrap_err();
        assert!(matches!(refused, HandoverError::OtherSecret), "{refused}");
        // A taker that does not check: the maker refuses it.
        let maker = socket().unwrap();
        limit(&maker, AMPLE).unwrap();
        rustix::net::connect(&maker, &address(offer.name()).unwrap()).unwrap();
        let hello = [7; HELLO_BYTES];
        send(&maker, &[&hello]).unwrap();
        let challenge = receive::<CHALLENGE_BYTES>(&maker).unwrap();
        let said = [offer.name().as_bytes(), &hello, &challenge[..NONCE_BYTES]];
        // Neither the right words with the wrong secret, nor the maker's own proof, sent back.
        send(&maker, &[&proof(&other, Side::Taker, said).unwrap()]).unwrap();
        let refused = receive_descriptor(&maker).unwrap_err();
        assert!(matches!(refused, HandoverError::NoDescriptor), "{refused}");
        assert!(take(offer.name(), ME, &secret, AMPLE).is_ok());
    }

    #[test]
    fn a_proof_holds_for_one_side_of_one_exchange() {
        let secret = JobSecret::generate().unwrap();
        let said: [&[u8]; 3] = [b"name", &[1; HELLO_BYTES], &[2; NONCE_BYTES]];
        let expected = proof(&secret, Side::Maker, said).unwrap();
        assert!(require_proof(&expected, proof(&secret, Side::Maker, said).unwrap()).is_ok());
        for (side, said) in [
            (Side::Taker, said),
            (Side::Maker, [b"eman", said[1], said[2]]),
            (Side::Maker, [said[0], &[3; HELLO_BYTES], said[2]]),
            (Side::Maker, [said[0], said[1], &[1; NONCE_BYTES]]),
        ] {
            let other = proof(&secret, side, said).unwrap();
            assert!(require_proof(&other, expected).is_err(), "{said:?}");
        }
        assert!(require_proof(&expected[..31], expected).is_err());
        assert!(require_proof(&[], expected).is_err());
    }

    #[test]
    fn another_user_is_refused_on_both_sides() {
        let secret = JobSecret::generate().unwrap();
        let me = geteuid();
        let other = Uid::from_raw(me.as_raw() + 1);
        let offer = Offer::to_user(file().0, &secret, other).unwrap();
        // The maker hangs up at once; what the taker sees of it depends on how far it is.
        assert!(take(offer.name(), ME, &secret, AMPLE).is_err());
        let offer = Offer::new(file().0, &secret).unwrap();
        let refused = take_from_user(offer.name(), ME, &secret, AMPLE, other).unwrap_err();
        let (expected, found) = (other.as_raw(), me.as_raw());
        assert!(
            matches!(refused, HandoverError::OtherUser { expected: e, found: f } if (e, f) == (expected, found)),
            "{refused}"
        );
    }

    #[test]
    fn neither_silence_nor_nonsense_keeps_others_from_their_turn() {
        let secret = JobSecret::generate().unwrap();
        let (file, expected) = file();
        let offer = Offer::new(file, &secret).unwrap();
        let strangers: Vec<_> = [0, 1, HELLO_BYTES - 1, HELLO_BYTES + 1, 60_000]
            .into_iter()
            .map(|length| {
                let stranger = socket().unwrap();
                rustix::net::connect(&stranger, &address(offer.name()).unwrap()).unwrap();
                if length > 0 {
                    send(&stranger, &[&vec![0; length]]).unwrap();
                }
                stranger
            })
            .collect();
        assert_eq!(inode(&take(offer.name(), ME, &secret, AMPLE).unwrap()), expected);
        drop(strangers);
    }

    #[test]
    fn taking_what_is_not_or_no_longer_on_offer_fails_at_once() {
        let secret = JobSecret::generate().unwrap();
        let offer = Offer::new(file().0, &secret).unwrap();
        let name = offer.name().to_owned();
        drop(offer);
        for name in [name.as_str(), "lockstep-none", &"long".repeat(100)] {
            let error = take(name, ME, &secret, AMPLE).unwrap_err();
            assert!(matches!(error, HandoverError::Socket { .. }), "{error}");
        }
    }

    #[test]
    fn a_maker_that_does_not_answer_is_given_up() {
        let secret = JobSecret::generate().unwrap();
        let silent = socket().unwrap();
        let name = format!("lockstep-{:032x}", u128::from_le_bytes(random_bytes().unwrap()));
        rustix::net::bind(&silent, &address(&name).unwrap()).unwrap();
        rustix::net::listen(&silent, 1).unwrap();
        let error = take(&name, ME, &secret, Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, HandoverError::Socket { action: "read from", .. }), "{error}");
    }
}
