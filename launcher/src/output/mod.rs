//! Carries what the ranks write to the launcher's own stdout and stderr.
//!
//! One thread reads every pipe and is the only one that writes, so lines cannot tear each other.
//! The launcher's own notes take the same way, as the lines of one more source: nothing else of
//! the launcher ever waits for a slow terminal. A rank whose output nobody can take any more (its
//! destination is closed or full) finds its pipe closed, as it would without a launcher.

mod console;
mod lines;
mod tail;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use lockstep_collectives::Rank;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use self::console::Console;
use self::lines::{LINE_LIMIT_BYTES, Lines, Piece, Source};
pub(crate) use self::tail::Tail;
use crate::relay::{PACKET_BYTES, RelaySocket};
use crate::run::Message;

/// How long others wait for the rest of a line too long to be kept together.
const HOLD: Duration = Duration::from_millis(500);
/// How long, when the job is over, an open pipe is still read from.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Which of the two outputs of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stdout,
    Stderr,
}

/// One output of a rank.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) rank: Rank,
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
}

impl Stream {
    /// Its place among the streams of a job: those of rank 0 come first, of each stdout.
    pub(crate) fn place(&self) -> usize {
        let rank = usize::try_from(self.rank.0).unwrap_or(usize::MAX);
        rank.saturating_mul(2).saturating_add(usize::from(self.kind == Kind::Stderr))
    }
}

/// Where its bytes come from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// The read end of the rank's pipe.
    Pipe(OwnedFd),
    /// The packets of this relay, which has the pipe.
    Relay(usize),
}

/// How lines are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    /// `[rank] ` before each line.
    Tagged,
    /// Whole lines as they are.
    Plain,
    /// Bytes as they come: right for a single rank, whose lines none can tear.
    Raw,
}

/// What is left when all has been shown.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The end of each rank's stderr, by rank.
    pub(crate) tails: Vec<Tail>,
    /// Some of stdout could not be written, though somebody wants it.
    pub(crate) is_incomplete: bool,
    console: Console,
}

impl Shown {
    /// Writes the last words of the launcher to stderr, from the start of a line.
    pub(crate) fn conclude(mut self, text: &[u8]) {
        // When stderr is gone there is nobody left to tell.
        let _ = self.console.show(Kind::Stderr, NOTES, b"", &Piece::line(text));
    }
}

/// The thread that carries output.
#[derive(Debug)]
pub(crate) struct Forwarder {
    notes: Notes,
    /// Closing it tells the thread that the job is over.
    job_runs: OwnedFd,
}

impl Forwarder {
    /// Starts carrying `streams`, in the order of their places, through `relays` where they say so, and `notes`.
    ///
    /// Sends [`Message::RelayLost`] when a relay ends before its streams have, [`Message::OutputEnded`] when the last of them has ended, and [`Message::Shown`] when
    /// the thread ends.
    ///
    /// # Errors
    /// When a descriptor or the thread cannot be made.
    pub(crate) fn start(
        world_size: u32,
        (streams, relays): (Vec<Stream>, Vec<RelaySocket>),
        style: Style,
        (notes, notes_pipe): (Notes, OwnedFd),
        messages: Sender<Message>,
    ) -> io::Result<Self> {
        let (job_over, job_runs) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut carrier = Carrier::new(world_size, streams, style, notes_pipe, job_over, messages)?;
        carrier.listen_to(relays)?;
        std::thread::Builder::new().name("output".into()).spawn(|| carrier.run())?;
        Ok(Self { notes, job_runs })
    }

    /// Where the launcher's own lines go.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The job is over: what the pipes hold is still shown, then [`Message::Shown`] is sent.
    pub(crate) fn finish(self) {
        drop(self.job_runs);
    }
}

/// The launcher's own lines on stderr. Never blocks: what finds no room is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Notes(Arc<OwnedFd>);

impl Notes {
    /// Notes, and the pipe that [`Forwarder::start`] reads them from.
    ///
    /// # Errors
    /// When no pipe can be made.
    pub(crate) fn pipe() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((Self(Arc::new(write)), read))
    }

    /// Says `text` in a line of its own.
    pub(crate) fn say(&self, text: &str) {
        let _ = rustix::io::write(&self.0, format!("lockstep: {text}\n").as_bytes());
    }
}

/// Lets the log be written through it.
impl io::Write for Notes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = rustix::io::write(&self.0, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const NOTES: Source = Source(usize::MAX);
const JOB_OVER: u64 = u64::MAX;
/// The token of the first relay; below are those of the inputs.
const RELAYS: u64 = 1 << 32;

/// One stream being read.
#[derive(Debug)]
struct Input {
    origin: Origin,
    kind: Kind,
    source: Source,
    prefix: Vec<u8>,
    lines: Lines,
    /// Whose tail it fills.
    tail_of: Option<usize>,
    /// Whether others wait while a line of this input is passed on in pieces.
    may_hold: bool,
    /// They have waited for the present line.
    has_held: bool,
}

/// While an unfinished line is continued at once, others wait.
#[derive(Clone, Copy, Debug)]
struct Hold {
    input: usize,
    until: Instant,
}

/// What the thread does.
#[derive(Debug)]
struct Carrier {
    epoll: OwnedFd,
    /// The ranks' streams, and the notes last; `None` once ended.
    inputs: Vec<Option<Input>>,
    /// `None` once ended.
    relays: Vec<Option<RelaySocket>>,
    job_over: Option<OwnedFd>,
    hold: Option<Hold>,
    tails: Vec<Tail>,
    is_incomplete: bool,
    console: Console,
    messages: Sender<Message>,
    buffer: Vec<u8>,
}

impl Carrier {
    fn new(
        world_size: u32,
        streams: Vec<Stream>,
        style: Style,
        notes_pipe: OwnedFd,
        job_over: OwnedFd,
        messages: Sender<Message>,
    ) -> io::Result<Self> {
        let mut inputs = Vec::with_capacity(streams.len() + 1);
        for (index, Stream { rank, kind, origin }) in streams.into_iter().enumerate() {
            if let Origin::Pipe(pipe) = &origin {
                fcntl_setfl(pipe, OFlags::NONBLOCK)?;
            }
            let (source, prefix, limit_bytes) = match style {
                Style::Tagged => {
                    (Source(index), format!("[{}] ", rank.0).into_bytes(), LINE_LIMIT_BYTES)
                }
                Style::Plain => (Source(index), Vec::new(), LINE_LIMIT_BYTES),
                Style::Raw => (Source(0), Vec::new(), 0),
            };
            let tail_of =
                (kind == Kind::Stderr).then(|| usize::try_from(rank.0)).and_then(Result::ok);
            inputs.push(Some(Input {
                // The packets of a relay come as they come: others cannot wait.
                may_hold: !matches!(style, Style::Raw) && matches!(origin, Origin::Pipe(_)),
                origin,
                kind,
                source,
                prefix,
                lines: Lines::new(limit_bytes),
                tail_of,
                has_held: false,
            }));
        }
        inputs.push(Some(Input {
            origin: Origin::Pipe(notes_pipe),
            kind: Kind::Stderr,
            source: NOTES,
            prefix: Vec::new(),
            lines: Lines::new(LINE_LIMIT_BYTES),
            tail_of: None,
            may_hold: false,
            has_held: false,
        }));

        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |fd: &OwnedFd, token: u64| {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
        };
        for (input, token) in inputs.iter().flatten().zip(0..) {
            if let Origin::Pipe(pipe) = &input.origin {
                watch(pipe, token)?;
            }
        }
        watch(&job_over, JOB_OVER)?;
        Ok(Self {
            epoll,
            inputs,
            relays: Vec::new(),
            job_over: Some(job_over),
            hold: None,
            tails: (0..world_size).map(|_| Tail::default()).collect(),
            is_incomplete: false,
            console: Console::new(),
            messages,
            buffer: vec![0; PACKET_BYTES],
        })
    }

    fn listen_to(&mut self, relays: Vec<RelaySocket>) -> io::Result<()> {
        for (relay, token) in relays.iter().zip(RELAYS..) {
            let data = epoll::EventData::new_u64(token);
            epoll::add(&self.epoll, relay, data, epoll::EventFlags::IN)?;
        }
        self.relays = relays.into_iter().map(Some).collect();
        Ok(())
    }

    fn run(mut self) {
        let mut deadline = None;
        let mut ended = false;
        loop {
            if !ended && self.ranks_have_ended() {
                ended = true;
                let _ = self.messages.send(Message::OutputEnded);
            }
            if self.job_over.is_none() {
                let now = Instant::now();
                if ended || now >= *deadline.get_or_insert(now + LAST_WORDS) {
                    break;
                }
            }
            for token in self.wait(deadline) {
                match token {
                    // The descriptor leaves the epoll set as it is closed.
                    JOB_OVER => self.job_over = None,
                    RELAYS.. => self.listen(usize::try_from(token - RELAYS).unwrap_or(usize::MAX)),
                    _ => self.carry(usize::try_from(token).unwrap_or(usize::MAX)),
                }
                if self.hold.is_some() {
                    // What else is ready stays so.
                    break;
                }
            }
        }
        if let Some(notes) = self.inputs.len().checked_sub(1) {
            self.carry(notes);
        }
        for input in 0..self.inputs.len() {
            self.end(input);
        }
        let Self { tails, is_incomplete, console, .. } = self;
        let _ = self.messages.send(Message::Shown(Shown { tails, is_incomplete, console }));
    }

    fn ranks_have_ended(&self) -> bool {
        self.inputs.split_last().is_none_or(|(_, ranks)| ranks.iter().all(Option::is_none))
    }

    /// What can be read now, by token.
    fn wait(&mut self, deadline: Option<Instant>) -> Vec<u64> {
        if let Some(hold) = self.hold {
            if let Some(Some(Input { origin: Origin::Pipe(pipe), .. })) =
                self.inputs.get(hold.input)
                && is_readable(pipe.as_fd(), hold.until)
                && let Ok(token) = u64::try_from(hold.input)
            {
                return vec![token];
            }
            self.hold = None;
        }
        let timeout = deadline.map(timespec_until);
        let mut events = Vec::with_capacity(64);
        // An interrupted wait is one in which nothing became ready.
        let _ =
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref());
        events.iter().map(|event| event.data.u64()).collect()
    }

    /// Reads from an input once and passes on what it has.
    fn carry(&mut self, index: usize) {
        let Some(Some(Input { origin: Origin::Pipe(pipe), .. })) = self.inputs.get(index) else {
            return;
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        match rustix::io::read(pipe, &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => self.end(index),
            Ok(count) => self.pass_on(index, buffer.get(..count).unwrap_or_default()),
        }
        self.buffer = buffer;
    }

    /// Takes a packet of a relay and passes on what it has.
    fn listen(&mut self, relay: usize) {
        let Some(Some(socket)) = self.relays.get(relay) else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        match socket.receive(&mut buffer) {
            Some((index, [])) => self.end(index),
            Some((index, bytes)) => self.pass_on(index, bytes),
            None => self.lose(relay),
        }
        self.buffer = buffer;
    }

    /// A relay has ended, and with it the streams that it carried.
    fn lose(&mut self, relay: usize) {
        if let Some(socket) = self.relays.get_mut(relay) {
            *socket = None;
        }
        let is_of = |input: &Input| matches!(input.origin, Origin::Relay(of) if of == relay);
        let lost =
            self.inputs.iter().enumerate().filter(|(_, input)| input.as_ref().is_some_and(is_of));
        let lost: Vec<_> = lost.map(|(index, _)| index).collect();
        if !lost.is_empty() {
            let _ = self.messages.send(Message::RelayLost(relay));
        }
        for index in lost {
            self.end(index);
        }
    }

    /// Shows what an input has, as far as it makes lines.
    fn pass_on(&mut self, index: usize, bytes: &[u8]) {
        let Some(Some(input)) = self.inputs.get_mut(index) else { return };
        if let Some(tail) = input.tail_of.and_then(|rank| self.tails.get_mut(rank)) {
            tail.push(bytes);
        }
        if let Some(piece) = input.lines.push(bytes) {
            self.show(index, &piece);
        }
    }

    fn show(&mut self, index: usize, piece: &Piece) {
        let Some(Some(input)) = self.inputs.get_mut(index) else {
            return;
        };
        let (kind, source) = (input.kind, input.source);
        let shown = self.console.show(kind, source, &input.prefix, piece);
        if piece.ends_line() {
            input.has_held = false;
            self.hold = None;
        } else if input.may_hold && !input.has_held {
            input.has_held = true;
            self.hold = Some(Hold { input: index, until: Instant::now() + HOLD });
        }
        if let Err(error) = shown {
            self.give_up(kind, error);
        }
    }

    /// An input has ended: its last line may lack an end.
    fn end(&mut self, index: usize) {
        let Some(input) = self.inputs.get_mut(index) else {
            return;
        };
        let Some(mut input) = input.take() else {
            return;
        };
        if self.hold.is_some_and(|hold| hold.input == index) {
            self.hold = None;
        }
        let mut shown = Ok(());
        if let Some(piece) = input.lines.finish() {
            shown = self.console.show(input.kind, input.source, &input.prefix, &piece);
        }
        if !input.prefix.is_empty() && shown.is_ok() {
            shown = self.console.end_line_of(input.kind, input.source);
        }
        if let Err(error) = shown {
            self.give_up(input.kind, error);
        }
    }

    /// Nobody takes what is written to `kind`: whoever writes there is told so.
    fn give_up(&mut self, kind: Kind, error: Errno) {
        for input in &mut self.inputs {
            if input.as_ref().is_some_and(|input| input.kind == kind) {
                *input = None;
            }
        }
        for relay in self.relays.iter().flatten() {
            relay.close(kind);
        }
        // A closed pipe says that enough was read.
        if kind == Kind::Stdout && error != Errno::PIPE {
            self.is_incomplete = true;
            let text = format!("lockstep: cannot write to stdout: {error}\n");
            let _ = self.console.show(Kind::Stderr, NOTES, b"", &Piece::line(text.as_bytes()));
        }
    }
}

fn is_readable(fd: BorrowedFd<'_>, until: Instant) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&timespec_until(until))), Ok(1..))
}

fn timespec_until(deadline: Instant) -> Timespec {
    let rest = deadline.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: rest.subsec_nanos().into(),
    }
}
