//! A place in the bytes, and the numbers MLIR bytecode is made of.

use super::error::{BytecodeError, BytecodeErrorKind, Section};

/// What reading answers.
pub(super) type Read<T> = Result<T, BytecodeError>;

/// A place in one part of the file; never leaves that part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
    section: Section,
}

impl<'a> Cursor<'a> {
    /// The beginning of the file.
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self { file, at: 0, end: file.len(), section: Section::Header }
    }

    /// Bytes of the file before this place.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Bytes of the part after this place.
    pub(super) fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// Whether the part ends here.
    pub(super) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    fn refusal(&self, offset: usize, kind: BytecodeErrorKind, message: String) -> BytecodeError {
        let offset = offset.min(self.file.len());
        BytecodeError { kind, message, section: self.section, offset }
    }

    /// The error that the bytes at `offset` are wrong.
    pub(super) fn malformed(&self, offset: usize, message: impl Into<String>) -> BytecodeError {
        self.refusal(offset, BytecodeErrorKind::Malformed, message.into())
    }

    /// The error that `what` at `offset` has no meaning here yet.
    pub(super) fn not_known(&self, offset: usize, what: impl AsRef<str>) -> BytecodeError {
        let message = format!("{} is not known yet", what.as_ref());
        self.refusal(offset, BytecodeErrorKind::NotKnown, message)
    }

    /// The error that the file is of another version.
    pub(super) fn other_version(&self, message: impl Into<String>) -> BytecodeError {
        self.refusal(self.at, BytecodeErrorKind::Version, message.into())
    }

    /// An error of `kind` at `offset` with the whole of its message.
    pub(super) fn error(
        &self,
        offset: usize,
        kind: BytecodeErrorKind,
        message: String,
    ) -> BytecodeError {
        self.refusal(offset, kind, message)
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let bytes = self.at.checked_add(count).filter(|&end| end <= self.end);
        let Some((end, bytes)) = bytes.and_then(|end| Some((end, self.file.get(self.at..end)?)))
        else {
            let message = format!("{count} bytes are announced, {} are left", self.remaining());
            return Err(self.malformed(self.at, message));
        };
        self.at = end;
        Ok(bytes)
    }

    /// A byte.
    pub(super) fn byte(&mut self) -> Read<u8> {
        match self.take(1)? {
            &[byte] => Ok(byte),
            _ => Err(self.malformed(self.at, "a byte is missing")),
        }
    }

    /// A whole number: the zero bits at the end of the first byte count the bytes that follow.
    pub(super) fn varint(&mut self) -> Read<u64> {
        let first = self.byte()?;
        let extra = first.trailing_zeros().min(8) as usize;
        let mut bytes = [0; 16];
        bytes[0] = first;
        let following = self.take(extra)?;
        bytes[1..=extra].copy_from_slice(following);
        #[expect(clippy::cast_possible_truncation, reason = "64 bits are left after the shift")]
        let value = (u128::from_le_bytes(bytes) >> (extra + 1).min(8)) as u64;
        Ok(value)
    }

    /// A whole number with a sign.
    pub(super) fn signed_varint(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A whole number and a flag in its lowest bit.
    pub(super) fn flagged(&mut self) -> Read<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// The length of something whose every element takes a byte at least.
    pub(super) fn count(&mut self) -> Read<usize> {
        let at = self.at;
        let count = self.varint()?;
        self.checked_count(at, count)
    }

    /// `count`, read at `at`, as the length of something whose every element takes a byte.
    pub(super) fn checked_count(&self, at: usize, count: u64) -> Read<usize> {
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() => Ok(count),
            _ => {
                let left = self.remaining();
                Err(self.malformed(at, format!("{count} elements are announced in {left} bytes")))
            }
        }
    }

    /// The index of one of `length` things called `what`.
    pub(super) fn index(&mut self, length: usize, what: &str) -> Read<usize> {
        let at = self.at;
        let index = self.varint()?;
        self.checked_index(at, index, length, what)
    }

    /// `index`, read at `at`, as the index of one of `length` things called `what`.
    pub(super) fn checked_index(
        &self,
        at: usize,
        index: u64,
        length: usize,
        what: &str,
    ) -> Read<usize> {
        match usize::try_from(index) {
            Ok(index) if index < length => Ok(index),
            _ => Err(self.malformed(at, format!("{what} {index} is named, there are {length}"))),
        }
    }

    /// As many of what `read` reads as a count before them says.
    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = self.count()?;
        // No reservation: an element may be larger than the byte that pays for it.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// The bytes up to a zero, without it.
    pub(super) fn zero_terminated(&mut self) -> Read<&'a [u8]> {
        let rest = self.file.get(self.at..self.end).unwrap_or_default();
        let Some(length) = rest.iter().position(|&byte| byte == 0) else {
            return Err(self.malformed(self.at, "a string has no end"));
        };
        let text = self.take(length)?;
        self.take(1)?;
        Ok(text)
    }

    /// The next `length` bytes as a part of their own; this place moves behind them.
    pub(super) fn part(&mut self, length: usize) -> Read<Self> {
        let at = self.at;
        self.take(length)?;
        Ok(Self { at, end: self.at, ..*self })
    }

    /// A nested section; this place moves behind it.
    pub(super) fn section(&mut self) -> Read<(Section, Self)> {
        let start = self.at;
        let id = self.byte()?;
        let length = self.varint()?;
        if id & 0x80 != 0 {
            let alignment = self.varint()?;
            self.align(start, alignment)?;
        }
        let Some(section) = Section::from_id(id & 0x7F) else {
            return Err(self.malformed(start, format!("there is no section {}", id & 0x7F)));
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let part = self.part(length)?;
        Ok((section, Self { section, ..part }))
    }

    /// Moves past what fills the space before something that is aligned and begins at `start`.
    pub(super) fn align(&mut self, start: usize, alignment: u64) -> Read<()> {
        const PADDING: u8 = 0xCB;
        let at = self.at as u64;
        let Some(aligned) = at.checked_next_multiple_of(alignment) else {
            return Err(self.malformed(start, format!("no byte is aligned to {alignment}")));
        };
        let padding = usize::try_from(aligned - at).unwrap_or(usize::MAX);
        if self.take(padding)?.iter().any(|&byte| byte != PADDING) {
            return Err(self.malformed(start, "the padding before it is damaged"));
        }
        Ok(())
    }

    /// Refuses what is left of the part.
    pub(super) fn finish(&self, what: &str) -> Read<()> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.malformed(self.at, format!("{} bytes follow {what}", self.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &[u8]) -> (u64, usize) {
        let mut cursor = Cursor::new(bytes);
        (cursor.varint().unwrap(), cursor.remaining())
    }

    #[test]
    fn varints_of_every_length() {
        assert_eq!(varint(&[0x01, 9]), (0, 1));
        assert_eq!(varint(&[0xFF, 9]), (127, 1));
        assert_eq!(varint(&[0x02, 0x02, 9]), (128, 1));
        assert_eq!(varint(&[0x04, 0x00, 0x02, 9]), (1 << 14, 1));
        assert_eq!(varint(&[0x80, 1, 2, 3, 4, 5, 6, 7, 9]), (0x07_0605_0403_0201, 1));
        assert_eq!(varint(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (0x0807_0605_0403_0201, 1));
        assert_eq!(varint(&[0, 255, 255, 255, 255, 255, 255, 255, 255]), (u64::MAX, 0));
    }

    #[test]
    fn signed_varints() {
        let read = |bytes: &[u8]| Cursor::new(bytes).signed_varint().unwrap();
        assert_eq!([read(&[0x01]), read(&[0x03]), read(&[0x05]), read(&[0x07])], [0, -1, 1, -2]);
        assert_eq!(read(&[0, 255, 255, 255, 255, 255, 255, 255, 255]), i64::MIN);
        assert_eq!(read(&[0, 254, 255, 255, 255, 255, 255, 255, 255]), i64::MAX);
    }

    #[test]
    fn lengths_beyond_the_end_are_refused_with_the_place() {
        let mut cursor = Cursor::new(&[0x04, 0x00]);
        let error = cursor.varint().unwrap_err();
        assert_eq!((error.offset, error.section), (1, Section::Header));
        assert_eq!(error.message, "2 bytes are announced, 1 are left");
        let huge = [0, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(Cursor::new(&huge).count().unwrap_err().offset, 0);
        assert!(Cursor::new(&huge).index(3, "string").unwrap_err().message.starts_with("string 1"));
    }

    #[test]
    fn sections_may_be_aligned() {
        let bytes = [0x82, 0x05, 0x11, 0xCB, 0xCB, 0xCB, 0xCB, 0xCB, 7, 8, 9];
        let mut cursor = Cursor::new(&bytes);
        let (section, mut part) = cursor.section().unwrap();
        assert_eq!(section, Section::AttributesAndTypes);
        assert_eq!((part.take(2).unwrap(), part.is_empty()), (&[7, 8][..], true));
        assert_eq!(cursor.byte().unwrap(), 9);
        let mut damaged = bytes;
        damaged[5] = 0;
        assert!(Cursor::new(&damaged).section().is_err());
        damaged[2] = 0x01;
        assert!(Cursor::new(&damaged).section().is_err());
    }
}
