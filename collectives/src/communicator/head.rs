//! The signature and the key of a descriptor as words, so that two are compared without decoding
//! either.
//!
//! Members of one host read each other's words where they lie; equal words are equal signatures
//! and keys. Which operation they are of is known from where they lie. What most operations lack
//! comes last, and a head without it has two words: the first says which it is.

use crate::algorithm::Algorithm;
use crate::descriptor::{CollectiveKey, CollectiveKind, Descriptor, OperationId, Signature};
use crate::element::{ElementType, OperatorName, Reduction};
use crate::transport::shm::Head;

const VERSION: u8 = 2;

/// What of a descriptor is there, in the first word. If none of it is, there are two words.
const HAS_ROOT: u64 = 1 << 32;
const HAS_PAIRS: u64 = 1 << 33;
const HAS_KEY: u64 = 1 << 34;
const HAS_FINGERPRINT: u64 = 1 << 35;
const HAS_SIZE: u64 = 1 << 36;

/// Words of a head in which none of it is there.
const SHORT: usize = 2;

/// Where the code of the algorithm begins in the same word.
const ALGORITHM_SHIFT: u32 = 40;

/// The code of what is not there; all others are the place among all of a kind, from 1.
const NONE: u8 = 0;
const OPAQUE: u8 = 255;
const FUNCTION: u8 = 255;
const SHARED: u8 = 255;

/// The words of a head.
pub(super) struct Words {
    words: Head,
    length: usize,
}

impl Words {
    pub(super) fn as_slice(&self) -> &[u64] {
        &self.words[..self.length]
    }
}

/// The words of `descriptor`: equal if and only if signatures, keys and algorithms are.
pub(super) fn encode(descriptor: &Descriptor) -> Words {
    let Descriptor { signature, key, algorithm, .. } = descriptor;
    let Signature { kind, reduction, element, count, root, pairs } = *signature;
    let (element, size_bytes) = match element {
        Some(ElementType::Opaque { size_bytes }) => (OPAQUE, Some(size_bytes)),
        Some(element) => (element_code(element), None),
        None => (NONE, None),
    };
    let (operator, fingerprint) = match reduction {
        Some(OperatorName::Named(reduction)) => (reduction_code(reduction), None),
        Some(OperatorName::Function { fingerprint }) => (FUNCTION, Some(fingerprint)),
        None => (NONE, None),
    };
    let present = root.map_or(0, |_| HAS_ROOT)
        | pairs.map_or(0, |_| HAS_PAIRS)
        | key.map_or(0, |_| HAS_KEY)
        | fingerprint.map_or(0, |_| HAS_FINGERPRINT)
        | size_bytes.map_or(0, |_| HAS_SIZE);
    let algorithm = u64::from(algorithm_code(*algorithm)) << ALGORITHM_SHIFT;
    let terms = u32::from_le_bytes([VERSION, kind_code(kind), operator, element]);
    let mut words = [0; _];
    words[0] = u64::from(terms) | present | algorithm;
    words[1] = count;
    if present == 0 {
        return Words { words, length: SHORT };
    }
    let CollectiveKey { launch, program, ordinal, iteration } = key.unwrap_or(NO_KEY);
    words[2] = u64::from(root.unwrap_or(0)) | u64::from(size_bytes.unwrap_or(0)) << 32;
    words[3] = pairs.unwrap_or(0);
    words[4] = launch;
    words[5] = program;
    words[6] = u64::from(ordinal);
    words[7] = iteration;
    words[8] = fingerprint.unwrap_or(0);
    Words { words, length: words.len() }
}

/// The descriptor of `operation` with these words, of which only those that its head has count.
pub(super) fn decode(head: &Head, operation: OperationId) -> Result<Descriptor, HeadError> {
    let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).map_err(|_| HeadError);
    let [terms, count, sizes, pairs, launch, program, ordinal, iteration, fingerprint] = *head;
    let [version, kind, operator, element] = low(terms)?.to_le_bytes();
    let has = |part: u64| terms & part != 0;
    let element = match element {
        NONE => None,
        OPAQUE => Some(ElementType::Opaque { size_bytes: low(sizes >> 32)? }),
        code => Some(of_code(ElementType::ARITHMETIC, element_code, code)?),
    };
    let [.., algorithm, _, _] = terms.to_le_bytes();
    let algorithm = match algorithm {
        SHARED => Algorithm::Shared,
        code => of_code(Algorithm::ALL, algorithm_code, code)?,
    };
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
            root: if has(HAS_ROOT) { Some(low(sizes)?) } else { None },
            pairs: has(HAS_PAIRS).then_some(pairs),
        },
        key: if has(HAS_KEY) {
            Some(CollectiveKey { launch, program, ordinal: low(ordinal)?, iteration })
        } else {
            None
        },
        operation,
        algorithm,
    };
    // Words that say the same in another way are of another version, or of nobody.
    let again = encode(&descriptor);
    if version == VERSION && head.starts_with(again.as_slice()) {
        Ok(descriptor)
    } else {
        Err(HeadError)
    }
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
    use crate::descriptor::GroupId;

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

    fn words(descriptor: &Descriptor) -> Head {
        // What follows a head is anything.
        let mut words = [u64::MAX; _];
        let head = encode(descriptor);
        words[..head.as_slice().len()].copy_from_slice(head.as_slice());
        words
    }

    #[test]
    fn every_word_that_differs_is_another_descriptor_or_none() {
        let descriptor = descriptor();
        let head = words(&descriptor);
        assert_eq!(decode(&head, descriptor.operation), Ok(descriptor));
        for (index, bit) in (0..head.len()).flat_map(|index| (0..64).map(move |bit| (index, bit))) {
            let mut other = head;
            other[index] ^= 1 << bit;
            let found = decode(&other, descriptor.operation);
            assert_ne!(found, Ok(descriptor), "bit {bit} of word {index}");
        }
    }

    /// Each way to lack a part, and each kind, reduction and type.
    #[test]
    fn descriptors_come_back_as_they_were_and_none_begins_another() {
        let elements = ElementType::ARITHMETIC.into_iter().map(Some);
        let elements = elements.chain([None, Some(ElementType::Opaque { size_bytes: 12 })]);
        let reductions = || {
            let named = Reduction::ALL.into_iter().map(|r| Some(OperatorName::Named(r)));
            named.chain([None, Some(OperatorName::Function { fingerprint: 0 })])
        };
        let mut heads = Vec::new();
        for element in elements {
            for (kind, reduction) in CollectiveKind::ALL
                .into_iter()
                .flat_map(|kind| reductions().map(move |r| (kind, r)))
            {
                for lacks in 0..8 {
                    let has = |part: u32| lacks >> part & 1 == 0;
                    let (root, pairs) = (has(0).then_some(0), has(1).then_some(0));
                    let key = has(2).then_some(NO_KEY);
                    let signature = Signature { kind, reduction, element, count: 5, root, pairs };
                    let descriptor = Descriptor { signature, key, ..descriptor() };
                    assert_eq!(decode(&words(&descriptor), descriptor.operation), Ok(descriptor));
                    heads.push(encode(&descriptor).as_slice().to_vec());
                }
            }
        }
        heads.sort_unstable();
        assert!(heads.windows(2).all(|pair| !pair[1].starts_with(&pair[0])));
    }

    proptest! {
        #[test]
        fn random_words_never_panic(mut head: Head, version in 0..=VERSION) {
            head[0] = head[0] & !0xff | u64::from(version);
            let _ = decode(&head, descriptor().operation);
        }
    }
}
