//! The launcher's own stdout and stderr.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::fstat;
use rustix::io::Errno;

use super::Kind;
use super::lines::{Cursor, Piece, Source};

/// The launcher's stdout and stderr, and where their cursors stand.
#[derive(Debug)]
pub(super) struct Console {
    stdout: Cursor,
    /// `None`: stderr is the same file as stdout, and so is its cursor.
    stderr: Option<Cursor>,
}

impl Console {
    pub(super) fn new() -> Self {
        let identity = |fd: BorrowedFd<'_>| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        let out = identity(rustix::stdio::stdout());
        let shared = out.is_some() && out == identity(rustix::stdio::stderr());
        Self { stdout: Cursor::default(), stderr: (!shared).then(Cursor::default) }
    }

    /// Shows `piece`, which is `source`'s.
    ///
    /// # Errors
    /// When nobody takes it.
    pub(super) fn show(
        &mut self,
        kind: Kind,
        source: Source,
        prefix: &[u8],
        piece: &Piece,
    ) -> Result<(), Errno> {
        let mut out = Vec::with_capacity(piece.bytes.len() + prefix.len() + 1);
        self.cursor(kind).show(source, prefix, piece, &mut out);
        write_all(kind, &out)
    }

    /// Ends the line of `source`, if it has an unfinished one.
    ///
    /// # Errors
    /// When nobody takes it.
    pub(super) fn end_line_of(&mut self, kind: Kind, source: Source) -> Result<(), Errno> {
        let mut out = Vec::new();
        if self.cursor(kind).is_inside_line_of(source) {
            self.cursor(kind).end_line(&mut out);
        }
        write_all(kind, &out)
    }

    fn cursor(&mut self, kind: Kind) -> &mut Cursor {
        match (kind, &mut self.stderr) {
            (Kind::Stderr, Some(cursor)) => cursor,
            _ => &mut self.stdout,
        }
    }
}

fn write_all(kind: Kind, mut bytes: &[u8]) -> Result<(), Errno> {
    let fd = match kind {
        Kind::Stdout => rustix::stdio::stdout(),
        Kind::Stderr => rustix::stdio::stderr(),
    };
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Whoever shares the terminal or pipe may have made it non-blocking.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
