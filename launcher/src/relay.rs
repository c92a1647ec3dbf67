//! Processes that hold the output pipes of ranks where the launcher may not open so many files.
//!
//! A relay is the launcher's own program, started a second time. It is handed the read ends of
//! pipes over a socket and sends what comes out of them back, one packet for each read, so the
//! launcher holds one descriptor for hundreds of pipes. Packets of one pipe stay in order; the
//! socket's buffer is what lets a slow terminal slow the ranks down.
//!
//! A relay ends when the launcher's end of the socket is closed, however that comes about, and a
//! launcher that loses a relay ends the job. As a guard, it is no target for those who look for
//! processes of the job.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use lockstep_collectives::ProcessExit;

use crate::exit;
use crate::output::{Kind, Origin, Stream};

const NAME: &str = "job-relay";
/// The longest packet: the number of a pipe, and what came out of it; nothing if it has ended.
pub(crate) const PACKET_BYTES: usize = NUMBER_BYTES + 64 * 1024;
const NUMBER_BYTES: usize = 4;
/// The token of the launcher's socket among those of the pipes, which are 32 bits long.
const LAUNCHER: u64 = u64::MAX;
/// Descriptors of a relay besides the pipes.
const OWN_FILES: u64 = 16;
const PIPES_PER_RANK: u64 = 2;

/// What the launcher tells a relay, by the first byte of a packet: a pipe, which comes along, has
/// this number and kind; or nobody wants the pipes of this kind any more.
const TAKE: u8 = 1;
const CLOSE: u8 = 2;

/// The relays of a job: each holds the pipes of as many ranks as it may open.
#[derive(Debug)]
pub(crate) struct Relays {
    relays: Vec<Relay>,
    ranks_per_relay: usize,
}

#[derive(Debug)]
struct Relay {
    socket: Arc<OwnedFd>,
    child: Child,
}

impl Relays {
    /// How many relays the pipes of `ranks` need where a process may open `files`.
    pub(crate) fn needed(ranks: u32, files: u64) -> u64 {
        u64::from(ranks).div_ceil(ranks_per_relay(files))
    }

    /// Starts them.
    ///
    /// # Errors
    /// When a relay cannot be started.
    pub(crate) fn start(ranks: u32, files: u64) -> io::Result<Self> {
        let relays = (0..Self::needed(ranks, files)).map(|_| Relay::start());
        let ranks_per_relay = usize::try_from(ranks_per_relay(files)).unwrap_or(usize::MAX);
        Ok(Self { relays: relays.collect::<io::Result<_>>()?, ranks_per_relay })
    }

    /// The same stream through a relay.
    ///
    /// # Errors
    /// When the relay does not take it.
    pub(crate) fn carry(&self, stream: Stream) -> io::Result<Stream> {
        let number = u32::try_from(stream.place()).map_err(io::Error::other)?;
        let Stream { rank, kind, origin } = stream;
        let relay = usize::try_from(rank.0).unwrap_or(usize::MAX) / self.ranks_per_relay;
        let (Some(Relay { socket, .. }), Origin::Pipe(pipe)) = (self.relays.get(relay), origin)
        else {
            return Err(io::Error::other("no relay is there for it"));
        };
        let [a, b, c, d] = number.to_le_bytes();
        let files = [pipe.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let packet = [TAKE, kind_byte(kind), a, b, c, d];
        let packet = [IoSlice::new(&packet)];
        rustix::net::sendmsg(socket, &packet, &mut control, SendFlags::NOSIGNAL)?;
        Ok(Stream { rank, kind, origin: Origin::Relay(relay) })
    }

    /// What the launcher reads packets from, by relay.
    pub(crate) fn sockets(&self) -> Vec<RelaySocket> {
        self.relays.iter().map(|relay| RelaySocket(Arc::clone(&relay.socket))).collect()
    }

    /// A relay that is lost; waits for `patience` until one is.
    pub(crate) fn lost(&self, patience: Duration) -> Option<usize> {
        let sockets = self.relays.iter().map(|relay| &relay.socket);
        let mut sockets: Vec<PollFd<'_>> =
            sockets.map(|socket| PollFd::new(socket, PollFlags::empty())).collect();
        poll(&mut sockets, Some(&Timespec::try_from(patience).ok()?)).ok()?;
        sockets.iter().position(|socket| socket.revents().contains(PollFlags::HUP))
    }

    /// How a relay ended; `None` if it has not.
    pub(crate) fn end_of(&mut self, relay: usize) -> Option<String> {
        let Relay { child, .. } = self.relays.get_mut(relay)?;
        let status = child.wait().ok()?;
        Some(match (status.code(), status.signal()) {
            (_, Some(signal)) => exit::words(ProcessExit::Signalled { signal }),
            (code, None) => exit::words(ProcessExit::Exited { code: code.unwrap_or(0) }),
        })
    }

    /// Ends them; nobody listens to them any more.
    pub(crate) fn end(self) {
        for Relay { mut child, .. } in self.relays {
            // It may have ended by itself, for the same reason.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ranks_per_relay(files: u64) -> u64 {
    (files.saturating_sub(OWN_FILES) / PIPES_PER_RANK).max(1)
}

fn kind_byte(kind: Kind) -> u8 {
    match kind {
        Kind::Stdout => 1,
        Kind::Stderr => 2,
    }
}

impl Relay {
    fn start() -> io::Result<Self> {
        let (socket, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .arg("__relay")
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { socket: Arc::new(socket), child })
    }
}

/// The launcher's end of a relay's socket.
#[derive(Debug)]
pub(crate) struct RelaySocket(Arc<OwnedFd>);

impl RelaySocket {
    /// Waits for a packet and puts it into `buffer`, which has [`PACKET_BYTES`]: the place of a
    /// stream, and what came out of it, nothing if it has ended. `None` when the relay is gone.
    pub(crate) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Option<(usize, &'a [u8])> {
        let received = rustix::io::retry_on_intr(|| {
            rustix::net::recv(&self.0, &mut *buffer, RecvFlags::empty())
        });
        let length = received.map_or(0, |(length, _)| length);
        let (number, bytes) = buffer.get(..length)?.split_first_chunk()?;
        Some((usize::try_from(u32::from_le_bytes(*number)).ok()?, bytes))
    }

    /// Nobody wants what is written to `kind`: the pipes are closed.
    pub(crate) fn close(&self, kind: Kind) {
        // A relay that is gone has closed them.
        let _ = rustix::net::send(&self.0, &[CLOSE, kind_byte(kind)], SendFlags::NOSIGNAL);
    }
}

impl AsFd for RelaySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The life of a relay.
///
/// # Errors
/// When it was not started by a launcher, or its launcher is gone.
pub(crate) fn serve() -> anyhow::Result<()> {
    // Whoever ends the launcher politely may address the relay too; the ranks still have to write
    // their last words.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // What a shell shows for this process; the default would be the `exe` of `/proc/self/exe`.
    let _ = std::fs::write("/proc/self/comm", NAME);
    let mut relaying = Relaying {
        launcher: rustix::stdio::stdin(),
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        pipes: HashMap::new(),
        packet: vec![0; PACKET_BYTES],
        unsent: None,
    };
    let launcher = epoll::EventData::new_u64(LAUNCHER);
    epoll::add(&relaying.epoll, relaying.launcher, launcher, epoll::EventFlags::IN)?;
    while relaying.turn()? {}
    Ok(())
}

struct Relaying {
    launcher: BorrowedFd<'static>,
    epoll: OwnedFd,
    /// By number, with the byte of the kind.
    pipes: HashMap<u32, (u8, OwnedFd)>,
    packet: Vec<u8>,
    /// The length of a packet for which the socket had no room. Nothing more is read from pipes
    /// before it is sent, and nothing ever blocks: the launcher may be about to hand over a pipe,
    /// and does not read meanwhile.
    unsent: Option<usize>,
}

impl Relaying {
    /// Waits for something to do and does it; whether the launcher is still there.
    fn turn(&mut self) -> io::Result<bool> {
        if let Some(length) = self.unsent {
            let mut fds = [PollFd::new(&self.launcher, PollFlags::IN | PollFlags::OUT)];
            rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
            let ready = fds[0].revents();
            if ready.contains(PollFlags::OUT) {
                self.send(length)?;
            }
            return if ready.contains(PollFlags::IN) || ready.contains(PollFlags::HUP) {
                self.obey()
            } else {
                Ok(true)
            };
        }
        let mut events = Vec::with_capacity(64);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            match u32::try_from(event.data.u64()) {
                Ok(number) => self.relay(number)?,
                Err(_) if !self.obey()? => return Ok(false),
                Err(_) => {}
            }
            if self.unsent.is_some() {
                // What else is ready stays so.
                break;
            }
        }
        Ok(true)
    }

    /// Passes on what a pipe holds, or that it has ended.
    fn relay(&mut self, number: u32) -> io::Result<()> {
        let Some((_, pipe)) = self.pipes.get(&number) else { return Ok(()) };
        let Some((head, body)) = self.packet.split_at_mut_checked(NUMBER_BYTES) else {
            return Ok(());
        };
        head.copy_from_slice(&number.to_le_bytes());
        let length = match rustix::io::read(pipe, body) {
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            Ok(0) | Err(_) => {
                // The descriptor leaves the epoll set as it is closed.
                self.pipes.remove(&number);
                0
            }
            Ok(length) => length,
        };
        self.send(NUMBER_BYTES + length)
    }

    fn send(&mut self, length: usize) -> io::Result<()> {
        let packet = self.packet.get(..length).unwrap_or_default();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        self.unsent = match rustix::net::send(self.launcher, packet, flags) {
            Ok(_) => None,
            Err(Errno::AGAIN | Errno::INTR) => Some(length),
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    /// Does what the launcher says; whether it is still there.
    fn obey(&mut self) -> io::Result<bool> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut packet = [0; 6];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let message = rustix::net::recvmsg(
            self.launcher,
            &mut [IoSliceMut::new(&mut packet)],
            &mut control,
            flags,
        );
        let length = match message {
            Ok(message) => message.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let pipes = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut pipes) => pipes.next(),
            _ => None,
        });
        match (packet.get(..length), pipes.last()) {
            (Some([TAKE, kind, a, b, c, d]), Some(pipe)) => {
                let number = u32::from_le_bytes([*a, *b, *c, *d]);
                let data = epoll::EventData::new_u64(number.into());
                epoll::add(&self.epoll, &pipe, data, epoll::EventFlags::IN)?;
                self.pipes.insert(number, (*kind, pipe));
                Ok(true)
            }
            (Some([CLOSE, kind]), _) => {
                self.pipes.retain(|_, (of_kind, _)| of_kind != kind);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
