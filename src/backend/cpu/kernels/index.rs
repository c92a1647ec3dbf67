//! Reading the indices of `dynamic_slice`, `gather` and `scatter`.

use crate::ifrt::DType;

/// Reads indices of any integer type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexReader {
    read: fn(&[u8], usize) -> i64,
}

impl IndexReader {
    /// A reader of `dtype`, if that is an integer type.
    pub(crate) fn new(dtype: DType) -> Option<Self> {
        let read: fn(&[u8], usize) -> i64 = match dtype {
            DType::S8 => |bytes, i| read(bytes, i).map_or(0, |[x]| x.cast_signed().into()),
            DType::U8 => |bytes, i| read(bytes, i).map_or(0, |[x]| x.into()),
            DType::S16 => |bytes, i| read(bytes, i).map_or(0, |x| i16::from_ne_bytes(x).into()),
            DType::U16 => |bytes, i| read(bytes, i).map_or(0, |x| u16::from_ne_bytes(x).into()),
            DType::S32 => |bytes, i| read(bytes, i).map_or(0, |x| i32::from_ne_bytes(x).into()),
            DType::U32 => |bytes, i| read(bytes, i).map_or(0, |x| u32::from_ne_bytes(x).into()),
            DType::S64 => |bytes, i| read(bytes, i).map_or(0, i64::from_ne_bytes),
            // No dimension is longer, so such an index is as far out of bounds as any.
            DType::U64 => |bytes, i| {
                read(bytes, i)
                    .map_or(0, |x| i64::try_from(u64::from_ne_bytes(x)).unwrap_or(i64::MAX))
            },
            _ => return None,
        };
        Some(Self { read })
    }

    /// The `position`th index of a dense array.
    pub(crate) fn read(self, indices: &[u8], position: usize) -> i64 {
        (self.read)(indices, position)
    }

    /// The `position`th index, clamped to `0..=last`.
    pub(crate) fn clamped(self, indices: &[u8], position: usize, last: usize) -> usize {
        usize::try_from(self.read(indices, position)).unwrap_or(0).min(last)
    }
}

fn read<const N: usize>(bytes: &[u8], position: usize) -> Option<[u8; N]> {
    bytes.get(position * N..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integer_type_reads_its_extremes() {
        let read = |dtype, bytes: &[u8], i| IndexReader::new(dtype).unwrap().read(bytes, i);
        assert_eq!(read(DType::S8, &[5, 0x80], 1), -128);
        assert_eq!(read(DType::U8, &[5, 0xff], 1), 255);
        assert_eq!(read(DType::S32, bytemuck::cast_slice(&[3, i32::MIN]), 1), i64::from(i32::MIN));
        assert_eq!(read(DType::U32, bytemuck::cast_slice(&[u32::MAX]), 0), 4_294_967_295);
        assert_eq!(read(DType::U64, bytemuck::cast_slice(&[u64::MAX]), 0), i64::MAX);
        assert!(IndexReader::new(DType::F32).is_none());
    }

    #[test]
    fn clamping_handles_both_ends() {
        let reader = IndexReader::new(DType::S32).unwrap();
        let indices = bytemuck::cast_slice(&[-3, 2, 100]);
        assert_eq!([0, 1, 2].map(|i| reader.clamped(indices, i, 7)), [0, 2, 7]);
    }
}
