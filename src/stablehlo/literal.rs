//! Constant tensors.

use std::fmt;
use std::sync::Arc;

use super::TensorType;
use crate::ifrt::{DType, Shape};

/// A constant: a tensor type and its elements.
///
/// Elements are little-endian, row-major, one element every [`crate::ifrt::DType::size_bytes`]
/// bytes (sub-byte types unpacked, booleans 0 or 1). A splat stores one element.
#[derive(Clone, PartialEq)]
pub struct Literal {
    ty: TensorType,
    bytes: Arc<[u8]>,
    splat: bool,
}

impl Literal {
    /// A literal of one element repeated, or `None` when `element` is not one element long.
    pub fn splat(ty: TensorType, element: impl Into<Arc<[u8]>>) -> Option<Self> {
        let bytes = element.into();
        (bytes.len() == ty.dtype.size_bytes()).then_some(Self { ty, bytes, splat: true })
    }

    /// A literal of all its elements, or `None` when `bytes` has another length than `ty` asks for.
    ///
    /// A single element is stored as a splat, so that equal constants are equal literals.
    pub fn dense(ty: TensorType, bytes: impl Into<Arc<[u8]>>) -> Option<Self> {
        let bytes = bytes.into();
        let expected = ty.shape.num_elements() * ty.dtype.size_bytes();
        let splat = ty.shape.num_elements() == 1;
        (bytes.len() == expected).then_some(Self { ty, bytes, splat })
    }

    /// A literal of one dimension, or `None` when `bytes` are no whole number of elements.
    pub(super) fn list(dtype: DType, bytes: Vec<u8>) -> Option<Self> {
        let shape = Shape::new([bytes.len() / dtype.size_bytes()]).ok()?;
        Self::dense(TensorType::new(dtype, shape), bytes)
    }

    /// A literal of elements as MLIR stores them: all of them, or one of a splat. `None` when
    /// `bytes` has another length.
    ///
    /// Booleans are a bit each, least significant first, or in newer MLIR a byte each; a single
    /// byte that is all ones or all zeros is a splat.
    pub(super) fn from_storage(ty: &TensorType, bytes: &[u8]) -> Option<Self> {
        let count = ty.shape.num_elements();
        if ty.dtype != DType::Bool {
            let is_splat = bytes.len() == ty.dtype.size_bytes() && count != 1;
            let elements = elements(ty.dtype, bytes.into());
            if is_splat {
                return Self::splat(ty.clone(), elements);
            }
            return Self::dense(ty.clone(), elements);
        }
        if bytes.len() == count {
            return Self::dense(ty.clone(), elements(ty.dtype, bytes.into()));
        }
        if let &[byte @ (0 | 0xFF)] = bytes {
            return Self::splat(ty.clone(), vec![byte & 1]);
        }
        if bytes.len() != count.div_ceil(8) {
            return None;
        }
        let bits = bytes.iter().flat_map(|&byte| (0..8).map(move |bit| byte >> bit & 1));
        let elements: Vec<u8> = bits.take(count).collect();
        Self::dense(ty.clone(), elements)
    }

    /// A literal of all its elements as MLIR stores them in a resource: a byte for those that are
    /// narrower. `None` when `bytes` has another length.
    pub(super) fn from_resource(ty: &TensorType, bytes: Arc<[u8]>) -> Option<Self> {
        Self::dense(ty.clone(), elements(ty.dtype, bytes))
    }

    /// The type of the tensor.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The bytes of the single repeated element, if this literal is stored as a splat.
    pub fn splat_element(&self) -> Option<&[u8]> {
        self.splat.then_some(&*self.bytes)
    }

    /// The stored bytes: one element for a splat, all of them otherwise.
    pub fn stored_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All elements, row-major; repeats the element of a splat.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.splat {
            self.bytes.repeat(self.ty.shape.num_elements())
        } else {
            self.bytes.to_vec()
        }
    }
}

/// Elements of a byte each, of which only some bits count, as literals have them: booleans 0 or 1,
/// numbers with the sign in all bits above. Others are as they are.
fn elements(dtype: DType, bytes: Arc<[u8]>) -> Arc<[u8]> {
    let bits = dtype.bit_width();
    if dtype == DType::Bool {
        return bytes.iter().map(|&byte| u8::from(byte != 0)).collect();
    }
    if bits >= 8 {
        return bytes;
    }
    let unused = 8 - bits;
    let element = |&byte: &u8| {
        let high = byte << unused;
        if dtype.is_signed_integer() {
            (high.cast_signed() >> unused).cast_unsigned()
        } else {
            high >> unused
        }
    };
    bytes.iter().map(element).collect()
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.splat { "splat" } else { "dense" };
        write!(f, "{kind} {} ({} bytes)", self.ty, self.bytes.len())
    }
}
