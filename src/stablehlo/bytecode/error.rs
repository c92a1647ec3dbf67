//! What the bytecode reader says when it stops, and where.

use std::fmt;

/// Why bytes are not a program this reader takes, with the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (byte {offset} of the bytecode, in {section}); {}", self.remedy())]
pub struct BytecodeError {
    /// What kind of refusal this is.
    pub kind: BytecodeErrorKind,
    /// What is wrong.
    pub message: String,
    /// The part of the file.
    pub section: Section,
    /// Bytes before the place.
    pub offset: usize,
}

/// The reasons to refuse a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BytecodeErrorKind {
    /// The bytes are not MLIR bytecode, or not a well-formed program.
    Malformed,
    /// The bytes may well be right, but use something Lockstep does not know yet.
    NotKnown,
    /// The bytes are of another version than those Lockstep reads.
    Version,
}

impl BytecodeError {
    fn remedy(&self) -> &'static str {
        match self.kind {
            BytecodeErrorKind::Malformed => {
                "the file is damaged or no StableHLO portable artifact: write it anew"
            }
            BytecodeErrorKind::NotKnown => "express the program without it",
            BytecodeErrorKind::Version => {
                "serialize the program for a StableHLO version from 0.9.0 to 1.17.0"
            }
        }
    }
}

/// A part of MLIR bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is what the format calls by the same name")]
pub enum Section {
    Header,
    Strings,
    Dialects,
    AttributesAndTypes,
    Offsets,
    Operations,
    Resources,
    ResourceOffsets,
    DialectVersions,
    Properties,
}

impl Section {
    /// The section whose identifier in the file is `id`.
    pub(super) fn from_id(id: u8) -> Option<Self> {
        Some(match id {
            0 => Self::Strings,
            1 => Self::Dialects,
            2 => Self::AttributesAndTypes,
            3 => Self::Offsets,
            4 => Self::Operations,
            5 => Self::Resources,
            6 => Self::ResourceOffsets,
            7 => Self::DialectVersions,
            8 => Self::Properties,
            _ => return None,
        })
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "the header",
            Self::Strings => "the strings",
            Self::Dialects => "the dialects",
            Self::AttributesAndTypes => "the attributes and types",
            Self::Offsets => "the offsets of attributes and types",
            Self::Operations => "the operations",
            Self::Resources => "the resources",
            Self::ResourceOffsets => "the offsets of resources",
            Self::DialectVersions => "the versions of dialects",
            Self::Properties => "the properties",
        })
    }
}
