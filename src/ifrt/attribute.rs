//! Named properties of devices, clients and executables.

use std::collections::BTreeMap;

use super::{Result, Status};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// Text.
    String(String),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int64(i64),
    /// Integers.
    Int64List(Vec<i64>),
    /// A real number.
    Float(f32),
}

/// Attributes by name, in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributeMap {
    entries: BTreeMap<String, Attribute>,
}

impl AttributeMap {
    /// The attribute called `name`.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn get(&self, name: &str) -> Result<&Attribute> {
        self.entries
            .get(name)
            .ok_or_else(|| Status::not_found(format!("there is no attribute {name:?}")))
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<N: Into<String>> FromIterator<(N, Attribute)> for AttributeMap {
    fn from_iter<I: IntoIterator<Item = (N, Attribute)>>(entries: I) -> Self {
        Self { entries: entries.into_iter().map(|(name, value)| (name.into(), value)).collect() }
    }
}
