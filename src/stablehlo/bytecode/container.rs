//! The sections of a file and the tables in them, before anything is given a meaning.

use super::cursor::{Cursor, Read};
use super::error::Section;
use super::resources::{self, Resource};
use super::version::Version;

/// The newest version of MLIR bytecode that is read.
const NEWEST: u64 = 6;

/// From this version on, dialects may carry versions.
pub(super) const DIALECT_VERSIONS: u64 = 1;
/// From this version on, the regions of isolated operations are sections of their own.
pub(super) const LAZY_REGIONS: u64 = 2;
/// From this version on, the order of uses is kept.
pub(super) const USE_LISTS: u64 = 3;
/// From this version on, block arguments at unknown locations say so in a bit.
pub(super) const OPTIONAL_ARGUMENT_LOCATIONS: u64 = 4;
/// From this version on, properties are encoded apart from attributes.
pub(super) const PROPERTIES: u64 = 5;

/// An operation name.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpName<'a> {
    pub(super) dialect: &'a str,
    pub(super) name: &'a str,
    /// Whether the writer knew the operation; properties of others are encoded otherwise.
    pub(super) is_registered: bool,
}

/// The encoding of an attribute or type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) dialect: &'a str,
    pub(super) bytes: Cursor<'a>,
    /// Whether the dialect's own encoding is used; otherwise it is text.
    pub(super) is_binary: bool,
}

/// A file taken apart.
#[derive(Debug)]
pub(super) struct Container<'a> {
    /// The version of the container.
    pub(super) version: u64,
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) op_names: Vec<OpName<'a>>,
    pub(super) attributes: Vec<Entry<'a>>,
    pub(super) types: Vec<Entry<'a>>,
    pub(super) properties: Vec<Cursor<'a>>,
    pub(super) resources: Vec<Resource<'a>>,
    /// The operations, not read yet.
    pub(super) operations: Cursor<'a>,
}

impl<'a> Container<'a> {
    /// Takes a file apart.
    pub(super) fn read(bytes: &'a [u8]) -> Read<Self> {
        let mut file = Cursor::new(bytes);
        if file.take(4).ok() != Some(b"ML\xEFR") {
            return Err(Cursor::new(bytes).malformed(0, "this does not start as MLIR bytecode"));
        }
        let version = file.varint()?;
        if version > NEWEST {
            let message = format!("this is MLIR bytecode {version}; the newest known is {NEWEST}");
            return Err(file.other_version(message));
        }
        let producer = Cursor::zero_terminated(&mut file)?;
        Version::check_producer(&file, producer)?;

        let mut sections: [Option<Cursor<'a>>; 9] = [None; 9];
        while !file.is_empty() {
            let start = file.offset();
            let (section, part) = file.section()?;
            let slot = sections.get_mut(section as usize - 1);
            if slot.and_then(|slot| slot.replace(part)).is_some() {
                return Err(file.malformed(start, format!("{section} occur twice")));
            }
        }
        let end = file.offset();
        let optional = |section: Section| sections.get(section as usize - 1).copied().flatten();
        let required = |section: Section| {
            optional(section).ok_or_else(|| file.malformed(end, format!("{section} are missing")))
        };
        let strings = strings(required(Section::Strings)?)?;
        let (dialects, op_names) = dialects(required(Section::Dialects)?, version, &strings)?;
        let (attributes, types) = entries(
            required(Section::Offsets)?,
            required(Section::AttributesAndTypes)?,
            &dialects,
        )?;
        let properties = match optional(Section::Properties) {
            Some(part) => properties(part)?,
            None => Vec::new(),
        };
        let resources = match (optional(Section::ResourceOffsets), optional(Section::Resources)) {
            (Some(offsets), Some(data)) => {
                resources::read(offsets, data, strings.len(), dialects.len())?
            }
            (None, None) => Vec::new(),
            _ => return Err(file.malformed(end, "resources and their offsets need each other")),
        };
        let operations = required(Section::Operations)?;
        Ok(Self {
            version,
            strings,
            op_names,
            attributes,
            types,
            properties,
            resources,
            operations,
        })
    }
}

/// The strings: all lengths, last string first, then all bytes, first string first; each string
/// ends in a zero.
fn strings(mut part: Cursor<'_>) -> Read<Vec<&[u8]>> {
    let mut lengths = part.list(|part| Ok((part.offset(), part.varint()?)))?;
    lengths.reverse();
    let mut strings = Vec::new();
    for (at, length) in lengths {
        let bytes = part.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        let Some((&0, string)) = bytes.split_last() else {
            return Err(part.malformed(at, "a string has no end"));
        };
        strings.push(string);
    }
    part.finish("the strings")?;
    Ok(strings)
}

/// The text that `index`, read at `at`, names.
fn name<'a>(part: &Cursor<'a>, at: usize, index: u64, strings: &[&'a [u8]]) -> Read<&'a str> {
    let index = part.checked_index(at, index, strings.len(), "string")?;
    let bytes = strings.get(index).copied().unwrap_or_default();
    std::str::from_utf8(bytes).map_err(|_| part.malformed(at, "this name is not UTF-8"))
}

/// The dialects and the names of operations.
fn dialects<'a>(
    mut part: Cursor<'a>,
    version: u64,
    strings: &[&'a [u8]],
) -> Read<(Vec<&'a str>, Vec<OpName<'a>>)> {
    let dialects = part.list(|part| {
        let at = part.offset();
        if version < DIALECT_VERSIONS {
            let index = part.varint()?;
            return name(part, at, index, strings);
        }
        let (index, is_versioned) = part.flagged()?;
        if is_versioned {
            part.section()?;
        }
        name(part, at, index, strings)
    })?;
    if version >= OPTIONAL_ARGUMENT_LOCATIONS {
        part.count()?;
    }
    let mut op_names = Vec::new();
    while !part.is_empty() {
        let dialect = part.index(dialects.len(), "dialect")?;
        let dialect = dialects.get(dialect).copied().unwrap_or_default();
        for _ in 0..part.count()? {
            let at = part.offset();
            let (index, is_registered) =
                if version >= PROPERTIES { part.flagged()? } else { (part.varint()?, true) };
            let name = name(&part, at, index, strings)?;
            op_names.push(OpName { dialect, name, is_registered });
        }
    }
    Ok((dialects, op_names))
}

/// Where each attribute and each type is encoded.
fn entries<'a>(
    mut offsets: Cursor<'a>,
    mut data: Cursor<'a>,
    dialects: &[&'a str],
) -> Read<(Vec<Entry<'a>>, Vec<Entry<'a>>)> {
    let attributes = offsets.count()?;
    let types = offsets.count()?;
    let mut entries = Vec::new();
    while !offsets.is_empty() {
        let dialect = offsets.index(dialects.len(), "dialect")?;
        let dialect = dialects.get(dialect).copied().unwrap_or_default();
        for _ in 0..offsets.count()? {
            let (length, is_binary) = offsets.flagged()?;
            let bytes = data.part(usize::try_from(length).unwrap_or(usize::MAX))?;
            entries.push(Entry { dialect, bytes, is_binary });
        }
    }
    if entries.len() != attributes + types {
        let message = format!(
            "{attributes} attributes and {types} types are announced, {} found",
            entries.len()
        );
        return Err(offsets.malformed(offsets.offset(), message));
    }
    let types = entries.split_off(attributes);
    Ok((entries, types))
}

/// The properties of operations, each a run of bytes.
fn properties(mut part: Cursor<'_>) -> Read<Vec<Cursor<'_>>> {
    let properties = part.list(|part| {
        let length = part.varint()?;
        part.part(usize::try_from(length).unwrap_or(usize::MAX))
    })?;
    part.finish("the properties")?;
    Ok(properties)
}
