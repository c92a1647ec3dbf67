//! `dense_resource<name> : tensor<…>` and the section at the end of the file that has the bytes:
//! `{-# dialect_resources: {builtin: {name: "0x04000000…"}} #-}`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::cursor::{Cursor, Parsed};
use super::literals::hex_bytes;
use crate::stablehlo::Literal;

/// The resources of a file, decoded when first used.
#[derive(Default)]
pub(super) struct Resources<'a> {
    /// Hexadecimal digits by name.
    digits: HashMap<&'a str, &'a str>,
    decoded: RefCell<HashMap<String, Arc<[u8]>>>,
}

/// Before the bytes, how they must be aligned.
const ALIGNMENT_BYTES: usize = 4;

impl<'a> Resources<'a> {
    /// Reads `{-# … #-}`, which `cursor` is at.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Parsed<Self> {
        let mut resources = Self::default();
        cursor.expect("{-#")?;
        if cursor.eat("#-}") {
            return Ok(resources);
        }
        loop {
            let section = cursor.word("`dialect_resources`")?;
            cursor.expect(":")?;
            if section == "dialect_resources" {
                resources.dialects(cursor)?;
            } else {
                // What other tools keep with a program, such as how to reproduce a crash.
                cursor.skip_balanced()?;
            }
            if !cursor.eat(",") {
                break;
            }
        }
        cursor.expect("#-}")?;
        Ok(resources)
    }

    /// `{builtin: {name: "0x…"}}`.
    fn dialects(&mut self, cursor: &mut Cursor<'a>) -> Parsed<()> {
        cursor.expect("{")?;
        cursor.list("}", |cursor| {
            let dialect = cursor.word("a dialect")?;
            cursor.expect(":")?;
            if dialect != "builtin" {
                return cursor.skip_balanced();
            }
            cursor.expect("{")?;
            cursor.list("}", |cursor| self.resource(cursor)).map(|_| ())
        })?;
        Ok(())
    }

    /// `name: "0x04000000…"`.
    fn resource(&mut self, cursor: &mut Cursor<'a>) -> Parsed<()> {
        let start = cursor.offset();
        let name = name(cursor)?;
        cursor.expect(":")?;
        let at = cursor.offset();
        if !cursor.eat("\"0x") {
            return cursor.error_at(at, "expected a string that starts with 0x");
        }
        let rest = cursor.raw();
        let Some(length) = rest.find('"') else {
            return cursor.error_at(at, "this string has no end");
        };
        cursor.advance(length + 1);
        if self.digits.insert(name, &rest[..length]).is_some() {
            return cursor.error_at(start, format!("the resource {name} is defined twice"));
        }
        Ok(())
    }

    /// `dense_resource<name> : tensor<…>`.
    pub(super) fn literal(&self, cursor: &mut Cursor<'_>) -> Parsed<Literal> {
        let start = cursor.offset();
        cursor.expect_word("dense_resource")?;
        cursor.expect("<")?;
        let name = name(cursor)?;
        cursor.expect(">")?;
        cursor.expect(":")?;
        let ty = cursor.tensor_type()?;
        let Some(&digits) = self.digits.get(name) else {
            return cursor.error_at(start, format!("there is no resource {name}"));
        };
        let known = self.decoded.borrow().get(name).cloned();
        let bytes = match known {
            Some(bytes) => bytes,
            None => {
                let Some(mut bytes) = hex_bytes(digits) else {
                    let message = format!("the resource {name} is not pairs of hexadecimal digits");
                    return cursor.error_at(start, message);
                };
                if bytes.len() < ALIGNMENT_BYTES {
                    return cursor.error_at(start, format!("the resource {name} has no alignment"));
                }
                bytes.drain(..ALIGNMENT_BYTES);
                let bytes: Arc<[u8]> = bytes.into();
                self.decoded.borrow_mut().insert(name.to_owned(), Arc::clone(&bytes));
                bytes
            }
        };
        let length = bytes.len();
        match Literal::from_resource(&ty, bytes) {
            Some(literal) => Ok(literal),
            None => cursor.error_at(
                start,
                format!("the {length} bytes of the resource {name} are not the elements of {ty}"),
            ),
        }
    }
}

/// The name of a resource.
fn name<'a>(cursor: &mut Cursor<'a>) -> Parsed<&'a str> {
    let start = cursor.offset();
    if cursor.peek() == Some(b'"') {
        return cursor.not_known(start, "a resource whose name is quoted");
    }
    cursor.word("the name of a resource")
}
