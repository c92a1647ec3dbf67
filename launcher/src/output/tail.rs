//! The last lines of a stream, kept for the failure summary.

use std::collections::VecDeque;

/// How many lines are kept.
pub(crate) const LINES: usize = 20;
/// How much of each line is kept, so that no stream can make the launcher grow.
const LINE_BYTES: usize = 2048;

/// The last [`LINES`] lines that went by.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    lines: VecDeque<Vec<u8>>,
    inside_line: bool,
}

impl Tail {
    /// Takes in the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = match part {
                [text @ .., b'\n'] => (text, true),
                text => (text, false),
            };
            match self.lines.back_mut() {
                Some(line) if self.inside_line => append(line, text),
                _ => {
                    if self.lines.len() == LINES {
                        self.lines.pop_front();
                    }
                    let mut line = Vec::new();
                    append(&mut line, text);
                    self.lines.push_back(line);
                }
            }
            self.inside_line = !ends;
        }
    }

    /// The lines, oldest first, without their ends.
    pub(crate) fn lines(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.lines.iter().map(Vec::as_slice)
    }
}

fn append(line: &mut Vec<u8>, text: &[u8]) {
    let room = LINE_BYTES.saturating_sub(line.len());
    line.extend_from_slice(text.get(..room).unwrap_or(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut tail = Tail::default();
        for chunk in chunks {
            tail.push(chunk);
        }
        tail.lines().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn lines_are_put_together_from_chunks() {
        assert_eq!(tail(&[b"a", b"b\n\nc", b"", b"d"]), [&b"ab"[..], b"", b"cd"]);
        assert_eq!(tail(&[]), [[0; 0]; 0]);
    }

    #[test]
    fn the_last_twenty_are_kept() {
        let text: String = (0..25).map(|line| format!("line {line}\n")).collect();
        let kept: Vec<_> = (5..25).map(|line| format!("line {line}").into_bytes()).collect();
        assert_eq!(tail(&[text.as_bytes()]), kept);
    }

    #[test]
    fn a_long_line_is_cut() {
        let (head, rest) = ([b'x'; 2000], [b'y'; 2000]);
        let kept = tail(&[&head, &rest, &rest, b"\nz"]);
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0], [&head[..], &rest[..48]].concat());
        assert_eq!(kept[1], b"z");
    }
}
