//! The signature and the key of a descriptor as words, so that two are compared without decoding
//! either.
//!
//! Members of one host read each other's words where they lie; equal words are equal signatures
//! and keys. Which operation they are of is known from where they lie. What most operations lack
//! comes last, and a head without it has two words: the first says which it is.

use crate::algorithm::Algorithm;
use crate::code::{self, NONE};
use crate::descriptor::{CollectiveKey, Descriptor, OperationId, Signature};
use crate::element::OperatorName;
use crate::transport::shm::Head;

const VERSION: u8 = 2;

/// What of a descriptor is there, in the first word. If none of it is, there are two words.
const HAS_ROOT: u64 = 1 << 32;
const HAS_PAIRS: u64 = 1 << 33;
const HAS_KEY: u64 = 1 << 34;
const HAS_FINGERPRINT: u64 = 1 << 35;
const HAS_SIZE: u64 = 1 << 36;

/// Where the code of the algorithm begins in the same word.
const ALGORITHM_SHIFT: u32 = 40;

const FUNCTION: u8 = 255;
const SHARED: u8 = 255;

/// The words of `descriptor`: equal if and only if signatures, keys and algorithms are.
#[inline(always)]
pub(super) fn encode(descriptor: &Descriptor) -> Head {
    let Descriptor { signature, key, algorithm, .. } = descriptor;
    let Signature { kind, reduction, element, count, root, pairs } = *signature;
    let (element, size_bytes) = code::of_element(element);
    let (operator, fingerprint) = match reduction {
        Some(OperatorName::Named(reduction)) => (code::of_reduction(reduction), None),
        Some(OperatorName::Function { fingerprint }) => (FUNCTION, Some(fingerprint)),
        None => (NONE, None),
    };
    let present = root.map_or(0, |_| HAS_ROOT)
        | pairs.map_or(0, |_| HAS_PAIRS)
        | key.map_or(0, |_| HAS_KEY)
        | fingerprint.map_or(0, |_| HAS_FINGERPRINT)
        | size_bytes.map_or(0, |_| HAS_SIZE);
    let algorithm = u64::from(algorithm_code(*algorithm)) << ALGORITHM_SHIFT;
    let terms = u32::from_le_bytes([VERSION, code::of_kind(kind), operator, element]);
    let first = [u64::from(terms) | present | algorithm, count];
    if present == 0 {
        return Head { first, more: None };
    }
    let CollectiveKey { launch, program, ordinal, iteration } = key.unwrap_or(NO_KEY);
    let sizes = u64::from(root.unwrap_or(0)) | u64::from(size_bytes.unwrap_or(0)) << 32;
    let (pairs, fingerprint) = (pairs.unwrap_or(0), fingerprint.unwrap_or(0));
    let more = [sizes, pairs, launch, program, u64::from(ordinal), iteration, fingerprint];
    Head { first, more: Some(more) }
}

/// The descriptor of `operation` with these words, of which only those that its head has count.
pub(super) fn decode(head: &Head, operation: OperationId) -> Result<Descriptor, HeadError> {
    let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).map_err(|_| HeadError);
    let [terms, count] = head.first;
    let [sizes, pairs, launch, program, ordinal, iteration, fingerprint] =
        head.more.unwrap_or_default();
    let [version, kind, operator, element] = low(terms)?.to_le_bytes();
    let has = |part: u64| terms & part != 0;
    let [.., algorithm, _, _] = terms.to_le_bytes();
    let algorithm = match algorithm {
        SHARED => Algorithm::Shared,
        code => code::decode(Algorithm::ALL, algorithm_code, code).ok_or(HeadError)?,
    };
    let descriptor = Descriptor {
        signature: Signature {
            kind: code::kind(kind).ok_or(HeadError)?,
            reduction: match operator {
                NONE => None,
                FUNCTION => Some(OperatorName::Function { fingerprint }),
                code => Some(OperatorName::Named(code::reduction(code).ok_or(HeadError)?)),
            },
            element: code::element(element, low(sizes >> 32)?).ok_or(HeadError)?,
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
    let same = again.first == head.first && (again.more.is_none() || again.more == head.more);
    if version == VERSION && same { Ok(descriptor) } else { Err(HeadError) }
}

const NO_KEY: CollectiveKey = CollectiveKey { launch: 0, program: 0, ordinal: 0, iteration: 0 };

fn algorithm_code(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::Direct => 1,
        Algorithm::RecursiveDoubling => 2,
        Algorithm::Ring => 3,
        Algorithm::TwoLevel => 4,
        Algorithm::Shared => SHARED,
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
    use crate::descriptor::{CollectiveKind, GroupId};
    use crate::element::{ElementType, Reduction};

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
        let Head { first, more } = encode(descriptor);
        // What follows a head is anything.
        Head { first, more: more.or(Some([u64::MAX; _])) }
    }

    #[test]
    fn every_word_that_differs_is_another_descriptor_or_none() {
        let descriptor = descriptor();
        let head = words(&descriptor);
        assert_eq!(decode(&head, descriptor.operation), Ok(descriptor));
        let words = head.first.len() + head.more.map_or(0, |more| more.len());
        for (index, bit) in (0..words).flat_map(|index| (0..64).map(move |bit| (index, bit))) {
            let mut other = head;
            match index.checked_sub(head.first.len()) {
                None => other.first[index] ^= 1 << bit,
                Some(index) => other.more.as_mut().unwrap()[index] ^= 1 << bit,
            }
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
                    let Head { first, more } = encode(&descriptor);
                    heads.push([&first[..], more.as_ref().map_or(&[], |more| more)].concat());
                }
            }
        }
        heads.sort_unstable();
        assert!(heads.windows(2).all(|pair| !pair[1].starts_with(&pair[0])));
    }

    proptest! {
        #[test]
        fn random_words_never_panic(mut first: [u64; 2], more: [u64; 7], version in 0..=VERSION) {
            first[0] = first[0] & !0xff | u64::from(version);
            let _ = decode(&Head { first, more: Some(more) }, descriptor().operation);
        }
    }
}
