//! A descriptor as words, so that two are compared without decoding either.
//!
//! Members of one host read each other's words where they lie; equal words are equal descriptors.

use crate::algorithm::Algorithm;
use crate::descriptor::{
    CollectiveKey, CollectiveKind, Descriptor, GroupId, OperationId, Signature,
};
use crate::element::{ElementType, OperatorName, Reduction};
use crate::transport::shm::Head;

const VERSION: u8 = 2;

/// What of a descriptor is there.
const HAS_ROOT: u64 = 1 << 32;
const HAS_PAIRS: u64 = 1 << 33;
const HAS_KEY: u64 = 1 << 34;

/// Where the code of the algorithm begins in the same word.
const ALGORITHM_SHIFT: u32 = 40;

/// The code of what is not there; all others are the place among all of a kind, from 1.
const NONE: u8 = 0;
const OPAQUE: u8 = 255;
const FUNCTION: u8 = 255;
const SHARED: u8 = 255;

/// The words of `descriptor`: equal if and only if the descriptors are.
pub(super) fn encode(descriptor: &Descriptor) -> Head {
    let Descriptor { signature, key, operation, algorithm } = descriptor;
    let Signature { kind, reduction, element, count, root, pairs } = *signature;
    let (element, element_bytes) = match element {
        Some(ElementType::Opaque { size_bytes }) => (OPAQUE, size_bytes),
        Some(element) => (element_code(element), 0),
        None => (NONE, 0),
    };
    let (operator, fingerprint) = match reduction {
        Some(OperatorName::Named(reduction)) => (reduction_code(reduction), 0),
        Some(OperatorName::Function { fingerprint }) => (FUNCTION, fingerprint),
        None => (NONE, 0),
    };
    let terms = [VERSION, kind_code(kind), operator, element];
    let terms = u64::from(u32::from_le_bytes(terms)) | u64::from(element_bytes) << 32;
    let present =
        root.map_or(0, |_| HAS_ROOT) | pairs.map_or(0, |_| HAS_PAIRS) | key.map_or(0, |_| HAS_KEY);
    let key = key.unwrap_or(NO_KEY);
    let CollectiveKey { launch, program, ordinal, iteration } = key;
    let [group, more_group] = bytemuck::cast::<[u8; 16], [[u8; 8]; 2]>(operation.group.0);
    let mut head = [0; _];
    head[0] = terms;
    let algorithm = u64::from(algorithm_code(*algorithm)) << ALGORITHM_SHIFT;
    head[1] = present | algorithm | u64::from(root.unwrap_or(0));
    head[2] = count;
    head[3] = pairs.unwrap_or(0);
    head[4] = launch;
    head[5] = program;
    head[6] = u64::from(ordinal);
    head[7] = iteration;
    head[8] = u64::from_le_bytes(group);
    head[9] = u64::from_le_bytes(more_group);
    head[10] = operation.sequence;
    head[11] = fingerprint;
    head
}

/// The descriptor with these words.
pub(super) fn decode(head: &Head) -> Result<Descriptor, HeadError> {
    let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).map_err(|_| HeadError);
    let [
        terms,
        root,
        count,
        pairs,
        launch,
        program,
        ordinal,
        iteration,
        group,
        more_group,
        sequence,
        fingerprint,
        ..,
    ] = *head;
    let [version, kind, operator, element] = low(terms)?.to_le_bytes();
    let present = root & !u64::from(u32::MAX);
    let element = match element {
        NONE => None,
        OPAQUE => Some(ElementType::Opaque { size_bytes: low(terms >> 32)? }),
        code => Some(of_code(ElementType::ARITHMETIC, element_code, code)?),
    };
    let [.., algorithm, _, _] = root.to_le_bytes();
    let algorithm = match algorithm {
        SHARED => Algorithm::Shared,
        code => of_code(Algorithm::ALL, algorithm_code, code)?,
    };
    let has = |part: u64| present & part != 0;
    let descriptor = Descriptor {
        signature: Signature {
            kind: of_code(CollectiveKind::ALL, kind_code, kind)?,
            reduction: match operator {
                NONE => None,
                FUNCTION => Some(OperatorName::Function { fingerprint }),
                code => Some(OperatorName::Named(of_code(Reduction::ALL, reduction_code, code)?)),
            },
            element,
            count,
            root: if has(HAS_ROOT) { Some(low(root)?) } else { None },
            pairs: has(HAS_PAIRS).then_some(pairs),
        },
        key: if has(HAS_KEY) {
            Some(CollectiveKey { launch, program, ordinal: low(ordinal)?, iteration })
        } else {
            None
        },
        operation: OperationId {
            group: GroupId(bytemuck::cast([group.to_le_bytes(), more_group.to_le_bytes()])),
            sequence,
        },
        algorithm,
    };
    // Words that say the same in another way are of another version, or of nobody.
    if version == VERSION && encode(&descriptor) == *head { Ok(descriptor) } else { Err(HeadError) }
}

const NO_KEY: CollectiveKey = CollectiveKey { launch: 0, program: 0, ordinal: 0, iteration: 0 };

fn of_code<T: Copy, const N: usize>(
    all: [T; N],
    code_of: impl Fn(T) -> u8,
    code: u8,
) -> Result<T, HeadError> {
    all.into_iter().find(|value| code_of(*value) == code).ok_or(HeadError)
}

fn algorithm_code(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::Direct => 1,
        Algorithm::RecursiveDoubling => 2,
        Algorithm::Ring => 3,
        Algorithm::TwoLevel => 4,
        Algorithm::Shared => SHARED,
    }
}

fn kind_code(kind: CollectiveKind) -> u8 {
    match kind {
        CollectiveKind::AllGather => 1,
        CollectiveKind::AllReduce => 2,
        CollectiveKind::AllToAll => 3,
        CollectiveKind::AllToAllV => 4,
        CollectiveKind::Barrier => 5,
        CollectiveKind::Broadcast => 6,
        CollectiveKind::CollectivePermute => 7,
        CollectiveKind::Gather => 8,
        CollectiveKind::Reduce => 9,
        CollectiveKind::ReduceScatter => 10,
        CollectiveKind::Scatter => 11,
        CollectiveKind::Send => 12,
        CollectiveKind::SendRecv => 13,
    }
}

fn reduction_code(reduction: Reduction) -> u8 {
    match reduction {
        Reduction::Sum => 1,
        Reduction::Product => 2,
        Reduction::Min => 3,
        Reduction::Max => 4,
        Reduction::And => 5,
        Reduction::Or => 6,
        Reduction::Xor => 7,
        Reduction::Mean => 8,
    }
}

fn element_code(element: ElementType) -> u8 {
    match element {
        ElementType::Bool => 1,
        ElementType::I8 => 2,
        ElementType::I16 => 3,
        ElementType::I32 => 4,
        ElementType::I64 => 5,
        ElementType::U8 => 6,
        ElementType::U16 => 7,
        ElementType::U32 => 8,
        ElementType::U64 => 9,
        ElementType::I2 => 10,
        ElementType::I4 => 11,
        ElementType::U2 => 12,
        ElementType::U4 => 13,
        ElementType::F16 => 14,
        ElementType::BF16 => 15,
        ElementType::F32 => 16,
        ElementType::F64 => 17,
        ElementType::F8E3M4 => 18,
        ElementType::F8E4M3 => 19,
        ElementType::F8E4M3FN => 20,
        ElementType::F8E4M3B11FNUZ => 21,
        ElementType::F8E4M3FNUZ => 22,
        ElementType::F8E5M2 => 23,
        ElementType::F8E5M2FNUZ => 24,
        ElementType::C64 => 25,
        ElementType::C128 => 26,
        ElementType::Opaque { .. } => OPAQUE,
    }
}

/// Words that are no descriptor of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a descriptor of version {VERSION}")]
pub(super) struct HeadError;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn descriptor() -> Descriptor {
        Descriptor {
            signature: Signature {
                kind: CollectiveKind::ReduceScatter,
                reduction: Some(OperatorName::Function { fingerprint: u64::MAX }),
                element: Some(ElementType::Opaque { size_bytes: u32::MAX }),
                count: u64::MAX,
                root: Some(u32::MAX),
                pairs: Some(u64::MAX),
            },
            key: Some(CollectiveKey {
                launch: u64::MAX,
                program: u64::MAX,
                ordinal: u32::MAX,
                iteration: u64::MAX,
            }),
            operation: OperationId { group: GroupId([0xff; 16]), sequence: u64::MAX },
            algorithm: Algorithm::Shared,
        }
    }

    #[test]
    fn every_word_that_differs_is_another_descriptor_or_none() {
        let descriptor = descriptor();
        let head = encode(&descriptor);
        assert_eq!(decode(&head), Ok(descriptor));
        for (index, bit) in (0..head.len()).flat_map(|index| (0..64).map(move |bit| (index, bit))) {
            let mut other = head;
            other[index] ^= 1 << bit;
            assert_ne!(decode(&other), Ok(descriptor), "bit {bit} of word {index}");
        }
    }

    #[test]
    fn descriptors_come_back_as_they_were() {
        let elements = ElementType::ARITHMETIC.into_iter().map(Some);
        let elements = elements.chain([None, Some(ElementType::Opaque { size_bytes: 12 })]);
        let reductions =
            || Reduction::ALL.into_iter().map(|r| Some(OperatorName::Named(r))).chain([None]);
        for element in elements {
            for (kind, reduction) in CollectiveKind::ALL
                .into_iter()
                .flat_map(|kind| reductions().map(move |r| (kind, r)))
            {
                let signature =
                    Signature { kind, reduction, element, count: 5, root: None, pairs: None };
                let descriptor = Descriptor { signature, key: None, ..descriptor() };
                assert_eq!(decode(&encode(&descriptor)), Ok(descriptor));
            }
        }
    }

    proptest! {
        #[test]
        fn random_words_never_panic(mut head: Head, version in 0..=VERSION) {
            head[0] = head[0] & !0xff | u64::from(version);
            let _ = decode(&head);
        }
    }
}
