//! A place in the source and the lexical forms of MLIR: words, numbers, strings, names.
//!
//! MLIR's text has no single token set: `4x8xf32` is dimensions inside a type and a number and a
//! word elsewhere, and operations define punctuation of their own. So the reader has no token
//! stream; it asks for the form that may come next. Blanks and `//` comments before a form are
//! skipped. Every method makes progress or answers without moving, so reading is linear.

use std::rc::Rc;

use super::error::{ParseError, ParseErrorKind, saturating};
use super::types::Types;
use crate::stablehlo::Location;
use crate::stablehlo::build::module::Meshes;

/// How deep regions, attributes and types may nest; bounds the reader's use of the stack.
const MAX_DEPTH: usize = 128;

/// What reading answers.
pub(super) type Parsed<T> = Result<T, ParseError>;

/// A place in the source text.
pub(super) struct Cursor<'a> {
    source: &'a str,
    at: usize,
    depth: usize,
    /// The deepest level since somebody asked.
    deepest: usize,
    line_starts: Rc<[usize]>,
    /// The meshes read so far.
    pub(super) meshes: Meshes,
    /// The types read so far.
    pub(super) types: Types<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let newlines = source.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self::at(source, 0, line_starts)
    }

    /// The part of the source from one offset to another, as a text of its own in which places
    /// are still those of the source.
    pub(super) fn part(&self, start: usize, end: usize) -> Self {
        let source = self.source.get(..end).unwrap_or(self.source);
        Self::at(source, start, Rc::clone(&self.line_starts))
    }

    fn at(source: &'a str, at: usize, line_starts: Rc<[usize]>) -> Self {
        let (meshes, types) = (Meshes::default(), Types::default());
        Self { source, at, depth: 0, deepest: 0, line_starts, meshes, types }
    }

    /// An error at byte `offset`.
    pub(super) fn error_at<T>(&self, offset: usize, message: impl Into<String>) -> Parsed<T> {
        Err(ParseError::new(ParseErrorKind::Malformed, message.into(), self.source, offset))
    }

    /// An error at the next form.
    pub(super) fn error<T>(&mut self, message: impl Into<String>) -> Parsed<T> {
        let offset = self.offset();
        self.error_at(offset, message)
    }

    /// An error about something that may be right but has no meaning here yet.
    pub(super) fn not_known<T>(&self, offset: usize, what: impl Into<String>) -> Parsed<T> {
        let message = format!("{} is not known yet", what.into());
        Err(ParseError::new(ParseErrorKind::NotKnown, message, self.source, offset))
    }

    /// An error at a line and column that [`Cursor::location`] has answered.
    pub(super) fn error_in<T>(
        &self,
        location: Location,
        message: String,
        not_known: bool,
    ) -> Parsed<T> {
        let line = (location.line as usize).saturating_sub(1);
        let start = self.line_starts.get(line).copied().unwrap_or(0);
        let offset = start + (location.column as usize).saturating_sub(1);
        let kind = if not_known { ParseErrorKind::NotKnown } else { ParseErrorKind::Malformed };
        Err(ParseError::new(kind, message, self.source, offset))
    }

    /// An error that says what was expected and what is there.
    pub(super) fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let offset = self.offset();
        let rest = self.rest();
        let found = match rest.chars().next() {
            None => "the end of the text".to_owned(),
            Some(first) if is_word(first) => {
                let word: String = rest.chars().take_while(|&c| is_word(c)).take(40).collect();
                format!("`{word}`")
            }
            Some(first) => format!("`{}`", first.escape_debug()),
        };
        self.error_at(offset, format!("expected {expected}, found {found}"))
    }

    /// Goes one level deeper; every `enter` has its [`Cursor::leave`] unless reading fails.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        self.reach(0)
    }

    /// Notes that something is `levels` deeper than here.
    pub(super) fn reach(&mut self, levels: usize) -> Parsed<()> {
        self.deepest = self.deepest.max(self.depth + levels);
        if self.deepest > MAX_DEPTH {
            return self.error(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        Ok(())
    }

    /// How many levels deeper than here `read` goes, and what it reads.
    pub(super) fn measured<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<(T, usize)> {
        let deepest = std::mem::replace(&mut self.deepest, self.depth);
        let value = read(self)?;
        let levels = self.deepest - self.depth;
        self.deepest = deepest.max(self.deepest);
        Ok((value, levels))
    }

    /// Comes back from one level deeper.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The one-based line and column of byte `offset`.
    pub(super) fn location(&self, offset: usize) -> Location {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        Location { line: saturating(line), column: saturating(offset - start + 1) }
    }

    /// The byte offset of the next form.
    pub(super) fn offset(&mut self) -> usize {
        self.skip_blanks();
        self.at
    }

    /// The byte offset right behind the last form.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes back (or forth) to a byte offset that [`Cursor::offset`] has answered.
    pub(super) fn seek(&mut self, offset: usize) {
        self.at = offset;
    }

    /// The text from here on, blanks included.
    pub(super) fn raw(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or("")
    }

    /// The text between two offsets.
    pub(super) fn text(&self, start: usize, end: usize) -> &'a str {
        self.source.get(start..end).unwrap_or("")
    }

    /// The text from the next form on.
    pub(super) fn rest(&mut self) -> &'a str {
        self.skip_blanks();
        self.raw()
    }

    /// The first byte of the next form.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.rest().bytes().next()
    }

    /// Whether nothing but blanks is left.
    pub(super) fn at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// Moves past `count` bytes of the current text.
    pub(super) fn advance(&mut self, count: usize) {
        self.at = (self.at + count).min(self.source.len());
    }

    fn skip_blanks(&mut self) {
        let bytes = self.source.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') if bytes.get(self.at + 1) == Some(&b'/') => {
                    while bytes.get(self.at).is_some_and(|&byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Takes the punctuation `token` if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Takes the punctuation `token`.
    pub(super) fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { self.unexpected(&format!("`{token}`")) }
    }

    /// The next word, without taking it; empty when something else comes next.
    ///
    /// Words are `[A-Za-z_][A-Za-z0-9_$.]*`, so operation names are words.
    pub(super) fn peek_word(&mut self) -> &'a str {
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return "";
        }
        let end = rest.bytes().position(|byte| !is_word(char::from(byte))).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes the next word, which must be there.
    pub(super) fn word(&mut self, what: &str) -> Parsed<&'a str> {
        let word = self.peek_word();
        if word.is_empty() {
            return self.unexpected(what);
        }
        self.at += word.len();
        Ok(word)
    }

    /// Takes the word `word` if it comes next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    /// Takes the word `word`.
    pub(super) fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { self.unexpected(&format!("`{word}`")) }
    }

    /// A sigil and a name: `%0`, `%arg_1`, `^bb0`, `#alias`. The name is what follows the sigil.
    pub(super) fn sigil_name(&mut self, sigil: char, what: &str) -> Parsed<&'a str> {
        let rest = self.rest();
        let Some(name) = rest.strip_prefix(sigil) else { return self.unexpected(what) };
        let is_name = |byte: u8| is_word(char::from(byte)) || byte == b'-';
        let mut end = name.bytes().position(|byte| !is_name(byte)).unwrap_or(name.len());
        // A `-` may stand inside a name but not end it: `%a->` is a name and an arrow.
        while name[..end].ends_with('-') {
            end -= 1;
        }
        if end == 0 {
            return self.unexpected(what);
        }
        self.at += sigil.len_utf8() + end;
        Ok(&name[..end])
    }

    /// `@name` or `@"any name"`.
    pub(super) fn symbol(&mut self) -> Parsed<String> {
        if self.rest().starts_with("@\"") {
            self.at += 1;
            return self.string();
        }
        self.sigil_name('@', "a symbol such as `@main`").map(str::to_owned)
    }

    /// A string in double quotes.
    pub(super) fn string(&mut self) -> Parsed<String> {
        let start = self.offset();
        if !self.eat("\"") {
            return self.unexpected("a string");
        }
        let mut bytes = Vec::new();
        let mut rest = self.raw().bytes();
        let unterminated = "this string has no end";
        loop {
            match rest.next() {
                None | Some(b'\n') => return self.error_at(start, unterminated),
                Some(b'"') => break,
                Some(b'\\') => {
                    let escape = rest.next();
                    bytes.push(match escape {
                        Some(b'n') => b'\n',
                        Some(b't') => b'\t',
                        Some(byte @ (b'"' | b'\\')) => byte,
                        Some(high) => match (hex_digit(high), rest.next().and_then(hex_digit)) {
                            (Some(high), Some(low)) => high * 16 + low,
                            _ => return self.error_at(start, "a string has a bad escape"),
                        },
                        None => return self.error_at(start, unterminated),
                    });
                }
                Some(byte) => bytes.push(byte),
            }
        }
        self.at = self.source.len() - rest.len();
        match String::from_utf8(bytes) {
            Ok(string) => Ok(string),
            Err(_) => self.not_known(start, "a string that is not UTF-8"),
        }
    }

    /// A whole number, decimal or hexadecimal, with an optional minus sign.
    pub(super) fn integer(&mut self) -> Parsed<i128> {
        let start = self.offset();
        let negative = self.eat("-");
        let rest = self.raw();
        let (digits, radix) = match rest.strip_prefix("0x") {
            Some(hex) => (leading(hex, |byte| byte.is_ascii_hexdigit()), 16),
            None => (leading(rest, |byte| byte.is_ascii_digit()), 10),
        };
        if digits.is_empty() {
            self.at = start;
            return self.unexpected("a whole number");
        }
        let Ok(magnitude) = i128::from_str_radix(digits, radix) else {
            return self.error_at(start, "this number has more than 128 bits");
        };
        self.at += digits.len() + if radix == 16 { 2 } else { 0 };
        Ok(if negative { -magnitude } else { magnitude })
    }

    /// A whole number that fits `T`.
    pub(super) fn number<T: TryFrom<i128>>(&mut self, what: &str) -> Parsed<T> {
        let start = self.offset();
        let value = self.integer()?;
        match T::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => self.error_at(start, format!("{value} cannot be {what}")),
        }
    }

    /// `item, item, …` up to and with `close`; the opening token is already taken.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(",") {
                return self.unexpected(&format!("`,` or `{close}`"));
            }
        }
    }

    /// Skips text from an opening bracket, which comes next, up to and with the one that closes
    /// it; strings count as one.
    pub(super) fn skip_balanced(&mut self) -> Parsed<()> {
        let start = self.offset();
        let mut expected = Vec::new();
        loop {
            let Some(byte) = self.peek() else {
                return self.error_at(start, "this bracket is never closed");
            };
            if byte == b'"' {
                self.string()?;
                continue;
            }
            let closing = match byte {
                b'(' => Some(b')'),
                b'[' => Some(b']'),
                b'{' => Some(b'}'),
                b'<' => Some(b'>'),
                _ => None,
            };
            if let Some(closing) = closing {
                expected.push(closing);
            } else if self.raw().starts_with("->") {
                // An arrow closes no bracket.
                self.at += 1;
            } else if matches!(byte, b')' | b']' | b'}' | b'>') && expected.pop() != Some(byte) {
                return self.error(format!("`{}` closes nothing", char::from(byte)));
            }
            self.at += self.raw().chars().next().map_or(1, char::len_utf8);
            if expected.is_empty() {
                return Ok(());
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.')
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The longest prefix of bytes that satisfy `is`.
pub(super) fn leading(text: &str, is: impl Fn(u8) -> bool) -> &str {
    let end = text.bytes().position(|byte| !is(byte)).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}
