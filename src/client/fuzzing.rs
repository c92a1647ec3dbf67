//! What fuzz targets do with what processes tell each other about their programs.

use super::agreement::{Record, Verdict};

/// A record or a verdict as a process may publish it: what is read of it is written so that it is
/// read again.
///
/// # Panics
/// When it is not.
pub fn agreement(bytes: &[u8]) {
    if let Some(record) = Record::decode(bytes) {
        assert!(Record::decode(&record.encode()) == Some(record));
    }
    let verdict = Verdict::decode(bytes);
    assert!(Verdict::decode(&verdict.encode()) == verdict);
}

/// What processes publish.
pub fn agreement_seeds() -> Vec<Vec<u8>> {
    let runtime = "0.1.0".to_owned();
    let records = [Ok(0xbeef), Err("it has no main".to_owned())];
    let records = records.map(|program| Record { runtime: runtime.clone(), program }.encode());
    let verdict = Verdict::Different("rank 1 differs".to_owned()).encode();
    records.into_iter().chain([verdict]).collect()
}
