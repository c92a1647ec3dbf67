//! Resources: large constants, kept apart from the attributes that name them by number.

use super::cursor::{Cursor, Read};

/// A resource of a dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource<'a> {
    kind: u8,
    /// Its encoding; empty when the writer has left it out.
    bytes: Cursor<'a>,
}

/// What a resource can be: bytes, or else a truth value or a string.
const BLOB: u8 = 0;

/// The resources of dialects, in the order of their numbers.
///
/// `offsets` has groups of them, those of other tools first; each resource has a name, the length of
/// its encoding in `data`, and what it is.
pub(super) fn read<'a>(
    mut offsets: Cursor<'a>,
    mut data: Cursor<'a>,
    strings: usize,
    dialects: usize,
) -> Read<Vec<Resource<'a>>> {
    let mut resources = Vec::new();
    for _ in 0..offsets.count()? {
        offsets.index(strings, "string")?;
        group(&mut offsets, &mut data, strings)?;
    }
    while !offsets.is_empty() {
        offsets.index(dialects, "dialect")?;
        resources.extend(group(&mut offsets, &mut data, strings)?);
    }
    data.finish("the resources")?;
    Ok(resources)
}

fn group<'a>(
    offsets: &mut Cursor<'a>,
    data: &mut Cursor<'a>,
    strings: usize,
) -> Read<Vec<Resource<'a>>> {
    offsets.list(|offsets| {
        offsets.index(strings, "string")?;
        let length = usize::try_from(offsets.varint()?).unwrap_or(usize::MAX);
        let kind = offsets.byte()?;
        Ok(Resource { kind, bytes: data.part(length)? })
    })
}

impl<'a> Resource<'a> {
    /// The bytes that it is, which stand behind their alignment and number.
    pub(super) fn blob(mut self) -> Read<&'a [u8]> {
        let at = self.bytes.offset();
        if self.kind != BLOB {
            return Err(self.bytes.not_known(at, format!("a resource of kind {}", self.kind)));
        }
        if self.bytes.is_empty() {
            return Err(self.bytes.malformed(at, "this resource has been left out"));
        }
        let alignment = self.bytes.varint()?;
        let length = usize::try_from(self.bytes.varint()?).unwrap_or(usize::MAX);
        self.bytes.align(at, alignment)?;
        let blob = self.bytes.take(length)?;
        self.bytes.finish("a resource")?;
        Ok(blob)
    }
}
