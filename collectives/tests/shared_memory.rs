//! A segment seen from two processes, one of which may die.
//!
//! The other process is this test binary again, at the test [`peer`], which does nothing otherwise.
//! It opens the segment by way of `/proc`, in place of the handover.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, Stdio};

use lockstep_collectives::shared_memory::{Location, Segment, SharedBytes};

const SEGMENT: &str = "LOCKSTEP_TEST_SEGMENT";
const LENGTH: usize = 1 << 20;

/// What tells the bytes of one process from another's, and each from its neighbour.
fn pattern(seed: usize, index: usize) -> u8 {
    u8::try_from((index * 31 + index / 4096 + seed * 101) % 251).unwrap()
}

fn filled(segment: &Segment, seed: usize) -> SharedBytes {
    let mut bytes = segment.arena().allocate(LENGTH).unwrap();
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = pattern(seed, index);
    }
    bytes
}

fn holds(bytes: &[u8], seed: usize) -> bool {
    bytes.len() == LENGTH && (0..).zip(bytes).all(|(index, byte)| *byte == pattern(seed, index))
}

fn parse(line: &str) -> Location {
    let (offset, length) = line.trim().split_once(' ').unwrap();
    Location { offset: offset.parse().unwrap(), length: length.parse().unwrap() }
}

/// At place 1: it says where its bytes are, and whether the bytes that it is told of are the
/// other's; then it waits to be killed.
#[test]
fn peer() {
    let Some(path) = std::env::var_os(SEGMENT) else { return };
    let file = File::options().read(true).write(true).open(path).unwrap();
    let segment = Segment::open(file.into(), 1).unwrap();
    let bytes = filled(&segment, 1);
    let Location { offset, length } = segment.locate(&bytes).unwrap();
    println!("\n> {offset} {length}");
    for line in std::io::stdin().lines() {
        let view = segment.view(parse(&line.unwrap())).unwrap();
        println!("\n> {}", holds(view, 0));
    }
}

struct Peer {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Peer {
    fn start(segment: &Segment) -> Self {
        let descriptor = segment.file().as_raw_fd();
        let path = format!("/proc/{}/fd/{descriptor}", std::process::id());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "peer", "--nocapture"])
            .env(SEGMENT, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn says(&mut self) -> String {
        let said =
            |line: std::io::Result<String>| Some(line.unwrap().strip_prefix("> ")?.to_owned());
        self.lines.by_ref().find_map(said).unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn processes_see_each_others_bytes_and_those_of_the_dead() {
    let segment = Segment::create(2).unwrap();
    let mut peer = Peer::start(&segment);
    let theirs = parse(&peer.says());
    assert!(holds(segment.view(theirs).unwrap(), 1));
    assert!(segment.locate(segment.view(theirs).unwrap()).is_none());

    let mine = filled(&segment, 0);
    let Location { offset, length } = segment.locate(&mine).unwrap();
    writeln!(peer.child.stdin.as_mut().unwrap(), "{offset} {length}").unwrap();
    assert_eq!(peer.says(), "true");

    let view = segment.view(theirs).unwrap();
    peer.kill();
    assert!(holds(view, 1), "what was mapped when its owner died");
    // Nobody takes the dead one's place: what others allocate and free lies elsewhere.
    for round in 2..34 {
        assert!(holds(&filled(&segment, round), round));
    }
    assert!(holds(segment.view(theirs).unwrap(), 1), "what is mapped after its owner's death");
    assert!(holds(&mine, 0));
}
