//! `PJRT_NamedValue`: named properties, to callers and from them.

use std::ffi::c_void;

use lockstep::ifrt::{Attribute, Result, Status};

use crate::abi::caller::{Caller, Items, Plain, Shared, Versioned};
use crate::abi::ffi::{PJRT_NamedValue, named_value};

/// Named properties as callers read them, for as long as this lives.
pub(crate) struct NamedValues {
    values: Shared<Vec<PJRT_NamedValue>>,
    /// What the pointers among the values point to.
    _attributes: Vec<(String, Attribute)>,
}

impl NamedValues {
    pub(crate) fn new(attributes: impl IntoIterator<Item = (String, Attribute)>) -> Self {
        // Collected first: texts and lists stay where they are from now on.
        let attributes: Vec<_> = attributes.into_iter().collect();
        let value = |(name, attribute): &(String, Attribute)| {
            let (kind, value, value_size) = match attribute {
                Attribute::String(text) => {
                    (named_value::STRING, address(text.as_ptr()), text.len())
                }
                Attribute::Bool(value) => (named_value::BOOL, u64::from(*value), 1),
                Attribute::Int64(value) => (named_value::INT64, value.cast_unsigned(), 1),
                Attribute::Int64List(list) => {
                    (named_value::INT64_LIST, address(list.as_ptr()), list.len())
                }
                Attribute::Float(value) => (named_value::FLOAT, u64::from(value.to_bits()), 1),
            };
            PJRT_NamedValue {
                struct_size: PJRT_NamedValue::STRUCT_SIZE,
                name: name.as_ptr().cast_mut().cast(),
                name_size: name.len(),
                r#type: kind,
                value,
                value_size,
                ..PJRT_NamedValue::ZERO
            }
        };
        let values = Shared(attributes.iter().map(value).collect());
        Self { values, _attributes: attributes }
    }

    /// Where they are, and how many.
    pub(crate) fn parts(&self) -> (*mut c_void, usize) {
        let values = &self.values.0;
        (values.as_ptr().cast_mut().cast(), values.len())
    }
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// Reads a caller's properties.
///
/// # Errors
/// `InvalidArgument` when they are malformed.
pub(crate) fn read(
    caller: &Caller,
    at: *mut c_void,
    count: usize,
) -> Result<Vec<(String, Attribute)>> {
    let values: Items<PJRT_NamedValue> = caller.items(at, count, "options")?;
    values.iter().map(|value| one(caller, value)).collect()
}

/// The part of a union's bits that a field of four bytes has.
fn low(bits: u64) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn one(caller: &Caller, value: &PJRT_NamedValue) -> Result<(String, Attribute)> {
    let name = caller.text(value.name, value.name_size, "the name of an option")?.to_owned();
    let pointer =
        || std::ptr::with_exposed_provenance_mut(usize::try_from(value.value).unwrap_or(0));
    let attribute = match value.r#type {
        named_value::STRING => {
            Attribute::String(caller.text(pointer(), value.value_size, &name)?.to_owned())
        }
        named_value::INT64 => Attribute::Int64(value.value.cast_signed()),
        named_value::INT64_LIST => {
            Attribute::Int64List(caller.items(pointer(), value.value_size, &name)?.into_vec())
        }
        named_value::FLOAT => Attribute::Float(f32::from_bits(low(value.value))),
        named_value::BOOL => Attribute::Bool(value.value & 0xff != 0),
        other => {
            return Err(Status::invalid_argument(format!(
                "the option {name:?} is of the type {other}, which is none"
            )));
        }
    };
    Ok((name, attribute))
}
