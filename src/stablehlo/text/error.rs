//! What a reader says when it stops, and where.

use std::fmt;

use crate::stablehlo::Location;

/// Longest part of a source line that is shown; constants can make lines of megabytes.
const SHOWN_BYTES: usize = 120;

/// Why text is not a program this reader takes, with the place.
///
/// Displays in the style of `rustc`: the message, `--> name:line:column`, the line and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What kind of refusal this is.
    pub kind: ParseErrorKind,
    /// What is wrong and what would be right.
    pub message: String,
    /// The name of the source, a file name for instance.
    pub name: String,
    /// One-based line.
    pub line: u32,
    /// One-based column, in bytes.
    pub column: u32,
    excerpt: Excerpt,
}

/// A line of a source and a place in it.
///
/// Displays as the line, numbered, and a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    line: u32,
    text: String,
    /// How many characters of `text` stand before the place.
    caret: usize,
}

/// The two reasons to refuse a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseErrorKind {
    /// The text is not MLIR, or not a well-formed program.
    Malformed,
    /// The text may well be right, but uses something Lockstep does not know yet.
    NotKnown,
}

impl ParseError {
    /// An error at `offset` bytes into `source`.
    pub(super) fn new(kind: ParseErrorKind, message: String, source: &str, offset: usize) -> Self {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let (before, after) = source.split_at(offset);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = after.find('\n').map_or(source.len(), |newline| offset + newline);
        let Location { line, column } = Location {
            line: saturating(before.bytes().filter(|&byte| byte == b'\n').count() + 1),
            column: saturating(offset - start + 1),
        };
        let (text, caret) = excerpt(&source[start..end], offset - start);
        let excerpt = Excerpt { line, text, caret };
        Self { kind, message, name: "program".to_owned(), line, column, excerpt }
    }

    /// The same error with the name of its source.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = self.excerpt.gutter();
        writeln!(f, "{}", self.message)?;
        writeln!(f, "{:gutter$}--> {}:{}:{}", "", self.name, self.line, self.column)?;
        self.excerpt.fmt(f)
    }
}

impl Excerpt {
    /// What stands at `location` of `source`; `None` when there is no such line.
    pub fn new(source: &str, location: Location) -> Option<Self> {
        let number = usize::try_from(location.line).ok()?.checked_sub(1)?;
        let line = source.split('\n').nth(number)?;
        let at = usize::try_from(location.column).unwrap_or(usize::MAX).saturating_sub(1);
        let mut at = at.min(line.len());
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        let (text, caret) = excerpt(line, at);
        Some(Self { line: location.line, text, caret })
    }

    /// The width of the line's number, by which what belongs to the line is indented.
    pub fn gutter(&self) -> usize {
        self.line.to_string().len()
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = self.gutter();
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{} | {}", self.line, self.text)?;
        write!(f, "{:gutter$} | {:caret$}^", "", "", caret = self.caret)
    }
}

impl std::error::Error for ParseError {}

/// A readable part of `line` around byte `at`, and how many characters precede `at` in it.
fn excerpt(line: &str, at: usize) -> (String, usize) {
    let boundary = |mut offset: usize| {
        while !line.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    };
    let start = if line.len() <= SHOWN_BYTES { 0 } else { boundary(at.saturating_sub(40)) };
    let end = boundary(start.saturating_add(SHOWN_BYTES).min(line.len()));
    let mut text = String::new();
    if start > 0 {
        text.push('…');
    }
    let printable = |part: &str| -> String {
        part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    };
    text.push_str(&printable(&line[start..at.clamp(start, end)]));
    let caret = text.chars().count();
    text.push_str(&printable(&line[at.clamp(start, end)..end]));
    if end < line.len() {
        text.push('…');
    }
    (text, caret)
}

/// A line or column as the `u32` that locations hold.
pub(super) fn saturating(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_line_and_a_caret() {
        let source = "module {\n  stablehlo.fft %0\n}";
        let error = ParseError::new(ParseErrorKind::NotKnown, "no fft".into(), source, 11)
            .with_name("a.mlir");
        assert_eq!((error.line, error.column), (2, 3));
        let expected = "no fft\n --> a.mlir:2:3\n  |\n2 |   stablehlo.fft %0\n  |   ^".to_owned();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let source = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let error = ParseError::new(ParseErrorKind::Malformed, "here".into(), &source, 1000);
        let shown = error.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[3].chars().count(), "1 | ".len() + 1 + SHOWN_BYTES + 1);
        let caret = lines[4].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[3].chars().nth(caret), Some('x'));
    }

    #[test]
    fn an_excerpt_is_where_the_location_says() {
        let source = "a\n  é = b\n";
        let at = |line, column| Excerpt::new(source, Location { line, column });
        let shown = at(2, 8).map(|excerpt| excerpt.to_string());
        assert_eq!(shown.as_deref(), Some("  |\n2 |   é = b\n  |       ^"));
        assert_eq!(at(2, 4), at(2, 3), "a column inside a character is the character's");
        assert_eq!(at(1, 99).map(|excerpt| excerpt.caret), Some(1));
        assert_eq!((at(0, 0), at(4, 1)), (None, None));
    }

    #[test]
    fn any_offset_of_any_text_is_a_place() {
        for source in ["", "\n", "é\nü", "a\r\nb\n"] {
            for offset in 0..=source.len() + 2 {
                let error =
                    ParseError::new(ParseErrorKind::Malformed, String::new(), source, offset);
                assert!(error.line >= 1 && error.column >= 1);
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
