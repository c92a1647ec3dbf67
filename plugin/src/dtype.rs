//! Element types by the API's numbers.

use lockstep::ifrt::{DType, Result, Status};

use crate::abi::ffi::buffer_type as abi;

const TYPES: [(DType, u32); 30] = [
    (DType::Bool, abi::PRED),
    (DType::S2, abi::S2),
    (DType::S4, abi::S4),
    (DType::S8, abi::S8),
    (DType::S16, abi::S16),
    (DType::S32, abi::S32),
    (DType::S64, abi::S64),
    (DType::U2, abi::U2),
    (DType::U4, abi::U4),
    (DType::U8, abi::U8),
    (DType::U16, abi::U16),
    (DType::U32, abi::U32),
    (DType::U64, abi::U64),
    (DType::F16, abi::F16),
    (DType::F32, abi::F32),
    (DType::F64, abi::F64),
    (DType::BF16, abi::BF16),
    (DType::C64, abi::C64),
    (DType::C128, abi::C128),
    (DType::F8E3M4, abi::F8E3M4),
    (DType::F8E4M3, abi::F8E4M3),
    (DType::F8E4M3FN, abi::F8E4M3FN),
    (DType::F8E4M3B11FNUZ, abi::F8E4M3B11FNUZ),
    (DType::F8E4M3FNUZ, abi::F8E4M3FNUZ),
    (DType::F8E5M2, abi::F8E5M2),
    (DType::F8E5M2FNUZ, abi::F8E5M2FNUZ),
    (DType::F8E8M0FNU, abi::F8E8M0FNU),
    (DType::F4E2M1FN, abi::F4E2M1FN),
    (DType::F6E2M3FN, abi::F6E2M3FN),
    (DType::F6E3M2FN, abi::F6E3M2FN),
];

/// The type with this number.
///
/// # Errors
/// `Unimplemented` when there is none.
pub(crate) fn from_abi(number: u32) -> Result<DType> {
    let found = TYPES.iter().find(|(_, other)| *other == number);
    found.map(|(dtype, _)| *dtype).ok_or_else(|| {
        Status::unimplemented(format!("arrays of the PJRT_Buffer_Type number {number}"))
    })
}

/// The number of this type.
pub(crate) fn to_abi(dtype: DType) -> u32 {
    let found = TYPES.iter().find(|(other, _)| *other == dtype);
    found.map_or(abi::INVALID, |(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_number_of_its_own() {
        for dtype in DType::ALL {
            assert_eq!(from_abi(to_abi(dtype)).unwrap(), dtype);
        }
        assert!(from_abi(abi::TOKEN).is_err());
    }
}
