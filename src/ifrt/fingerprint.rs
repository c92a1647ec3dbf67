//! A hash that processes can compare.

/// A number that is the same for the same bytes in every process, run and version: FNV-1a, 64
/// bits. It tells programs and device lists apart; it does not resist somebody who looks for
/// collisions.
pub fn fingerprint(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
