//! From bytes as they arrive to lines as they are shown: pure, without files or threads.
//!
//! A line of up to [`LINE_LIMIT_BYTES`] is passed on whole. A longer one is passed on in pieces.
//! A line that another source's output would fall into is ended first, so that no line ever shows
//! bytes of two sources, and a prefix stands at line starts only.

/// The longest line, in bytes without its end, that is kept together whatever happens.
pub(crate) const LINE_LIMIT_BYTES: usize = 64 * 1024;

/// Whose output it is: sources with one number share a line without more ado.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(pub(crate) usize);

/// Collects the bytes of one stream until they are worth passing on.
#[derive(Debug)]
pub(crate) struct Lines {
    pending: Vec<u8>,
    limit_bytes: usize,
    /// The beginning of the pending line has been passed on.
    inside_line: bool,
}

/// Whole lines, or a piece of a long line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// False for the second and later pieces of a long line.
    pub(crate) starts_line: bool,
}

impl Piece {
    /// A whole line, its end included.
    pub(crate) fn line(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), starts_line: true }
    }

    /// Whether the cursor stands at a line start after it.
    pub(crate) fn ends_line(&self) -> bool {
        self.bytes.last() == Some(&b'\n')
    }
}

impl Lines {
    /// Keeps lines of up to `limit_bytes` together.
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { pending: Vec::new(), limit_bytes, inside_line: false }
    }

    /// Takes in `bytes`; returns what is to be passed on now, if anything.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Piece> {
        let whole = match bytes.iter().rposition(|&byte| byte == b'\n') {
            Some(newline) => self.pending.len() + newline + 1,
            None => 0,
        };
        self.pending.extend_from_slice(bytes);
        if self.pending.len() - whole > self.limit_bytes {
            return self.take(self.pending.len());
        }
        self.take(whole)
    }

    /// The stream has ended: what is left is its last line, which nothing ends.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        self.take(self.pending.len())
    }

    fn take(&mut self, length: usize) -> Option<Piece> {
        if length == 0 {
            return None;
        }
        let rest = self.pending.split_off(length);
        let bytes = std::mem::replace(&mut self.pending, rest);
        let starts_line = !self.inside_line;
        let piece = Piece { bytes, starts_line };
        self.inside_line = !piece.ends_line();
        Some(piece)
    }
}

/// Where the cursor of a destination stands: who, if anyone, has an unfinished line there.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    inside_line_of: Option<Source>,
}

impl Cursor {
    /// Appends to `out` what shows `piece` at this cursor.
    pub(crate) fn show(&mut self, source: Source, prefix: &[u8], piece: &Piece, out: &mut Vec<u8>) {
        let resumes = self.inside_line_of == Some(source) && !piece.starts_line;
        if self.inside_line_of.is_some_and(|other| other != source) {
            out.push(b'\n');
        }
        if prefix.is_empty() {
            out.extend_from_slice(&piece.bytes);
        } else {
            for (index, line) in piece.bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
                if index > 0 || !resumes {
                    out.extend_from_slice(prefix);
                }
                out.extend_from_slice(line);
            }
        }
        self.inside_line_of = (!piece.ends_line()).then_some(source);
    }

    /// Whether `source` has an unfinished line here.
    pub(crate) fn is_inside_line_of(&self, source: Source) -> bool {
        self.inside_line_of == Some(source)
    }

    /// Ends an unfinished line, whosever it is.
    pub(crate) fn end_line(&mut self, out: &mut Vec<u8>) {
        if self.inside_line_of.take().is_some() {
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 8;

    fn texts(pieces: &[Piece]) -> Vec<(&str, bool)> {
        let text =
            |piece: &Piece| (str::from_utf8(&piece.bytes).unwrap().to_owned(), piece.starts_line);
        let owned: Vec<_> = pieces.iter().map(text).collect();
        owned.into_iter().map(|(text, starts)| (&*text.leak(), starts)).collect()
    }

    fn pieces(chunks: &[&str]) -> Vec<Piece> {
        let mut lines = Lines::new(LIMIT);
        let mut pieces: Vec<_> = chunks.iter().filter_map(|c| lines.push(c.as_bytes())).collect();
        pieces.extend(lines.finish());
        pieces
    }

    #[test]
    fn lines_are_passed_on_whole() {
        assert_eq!(texts(&pieces(&["ab", "c\nde\nf", "\n"])), [("abc\nde\n", true), ("f\n", true)]);
    }

    #[test]
    fn a_last_line_without_an_end_is_kept() {
        assert_eq!(texts(&pieces(&["ab\nc"])), [("ab\n", true), ("c", true)]);
        assert_eq!(texts(&pieces(&[])), []);
    }

    #[test]
    fn a_line_at_the_limit_is_whole_and_one_above_comes_in_pieces() {
        assert_eq!(texts(&pieces(&["12345678", "\nx\n"])), [("12345678\nx\n", true)]);
        assert_eq!(
            texts(&pieces(&["x\n1234", "56789", "abc\ny\n"])),
            [("x\n", true), ("123456789", true), ("abc\ny\n", false)]
        );
    }

    fn shown(prefixed: bool, pieces: &[(usize, &str, bool)]) -> String {
        let (mut cursor, mut out) = (Cursor::default(), Vec::new());
        for &(source, bytes, starts_line) in pieces {
            let prefix = if prefixed { format!("[{source}] ") } else { String::new() };
            let piece = Piece { bytes: bytes.into(), starts_line };
            cursor.show(Source(source), prefix.as_bytes(), &piece, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_line_has_its_prefix_once() {
        let pieces = [(0, "a\nb\n", true), (1, "long", true), (1, "er\nc\n", false)];
        assert_eq!(shown(true, &pieces), "[0] a\n[0] b\n[1] longer\n[1] c\n");
        assert_eq!(shown(false, &pieces), "a\nb\nlonger\nc\n");
    }

    #[test]
    fn a_line_that_another_source_falls_into_is_ended_first() {
        let pieces = [(0, "long", true), (1, "b\n", true), (0, "er\n", false), (1, "c", true)];
        assert_eq!(shown(true, &pieces), "[0] long\n[1] b\n[0] er\n[1] c");
        assert_eq!(shown(false, &pieces), "long\nb\ner\nc");
    }

    proptest! {
        /// However the bytes of several sources arrive, every line shown is of one source, and
        /// the lines of each source, taken together, are what it wrote.
        #[test]
        fn nothing_is_lost_torn_or_mixed(
            chunks in proptest::collection::vec((0..3_usize, "[a-z\n]{0,12}"), 0..60),
        ) {
            let mut streams: Vec<_> = (0..3).map(|_| (Lines::new(LIMIT), String::new())).collect();
            let (mut cursor, mut out) = (Cursor::default(), Vec::new());
            for (source, chunk) in &chunks {
                let (lines, written) = &mut streams[*source];
                written.push_str(chunk);
                let prefix = format!("[{source}] ");
                if let Some(piece) = lines.push(chunk.as_bytes()) {
                    cursor.show(Source(*source), prefix.as_bytes(), &piece, &mut out);
                }
            }
            for (source, (lines, _)) in streams.iter_mut().enumerate() {
                if let Some(piece) = lines.finish() {
                    cursor.show(Source(source), format!("[{source}] ").as_bytes(), &piece, &mut out);
                }
                cursor.end_line(&mut out);
            }
            let out = String::from_utf8(out).unwrap();
            for (source, (_, written)) in streams.iter().enumerate() {
                let prefix = format!("[{source}] ");
                let seen: Vec<_> = out.lines().filter_map(|line| line.strip_prefix(&*prefix)).collect();
                prop_assert_eq!(seen.concat(), written.replace('\n', ""));
                if written.lines().all(|line| line.len() <= LIMIT) {
                    prop_assert_eq!(seen, written.lines().collect::<Vec<_>>());
                }
            }
            prop_assert!(out.lines().all(|line| line.starts_with('[')));
            prop_assert_eq!(out.matches('[').count(), out.lines().count());
        }
    }
}
