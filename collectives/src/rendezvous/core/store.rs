//! The key-value store: what is set, and which calls wait for what is not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use bytes::Bytes;

use super::{CallId, CallRefusal};
use crate::rendezvous::message::{MAX_CALL_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// The most keys a job may have.
const MAX_KEYS: usize = 1 << 20;

/// The most bytes that all keys and values of a job may have together.
const MAX_STORE_BYTES: usize = 4 << 30;

/// What a listed entry may add to its reply beyond key and value.
const ENTRY_OVERHEAD_BYTES: usize = 16;

/// Keys in order, with their values.
#[derive(Default)]
pub(super) struct Store {
    values: BTreeMap<String, Bytes>,
    total_bytes: usize,
    waiting: HashMap<String, BTreeSet<CallId>>,
}

impl Store {
    /// Sets `key`, and returns the calls that waited for it.
    pub(super) fn set(
        &mut self,
        key: String,
        value: Bytes,
        overwrite: bool,
    ) -> Result<BTreeSet<CallId>, CallRefusal> {
        check_name("a key", &key)?;
        check("a value of bytes", value.len(), MAX_VALUE_BYTES)?;
        let replaced = match self.values.get(&key) {
            Some(_) if !overwrite => return Err(CallRefusal::AlreadySet),
            Some(old) => key.len().saturating_add(old.len()),
            None => {
                check("a number of keys", self.values.len().saturating_add(1), MAX_KEYS)?;
                0
            }
        };
        let added = key.len().saturating_add(value.len());
        let total = self.total_bytes.saturating_sub(replaced).saturating_add(added);
        check("a store of bytes", total, MAX_STORE_BYTES)?;
        self.total_bytes = total;
        let woken = self.waiting.remove(&key).unwrap_or_default();
        self.values.insert(key, value);
        Ok(woken)
    }

    pub(super) fn value(&self, key: &str) -> Option<Bytes> {
        self.values.get(key).cloned()
    }

    /// Removes `key`; whether it was set.
    pub(super) fn delete(&mut self, key: &str) -> bool {
        let Some(value) = self.values.remove(key) else { return false };
        self.total_bytes = self.total_bytes.saturating_sub(key.len().saturating_add(value.len()));
        true
    }

    /// The entries whose key begins with `prefix`, in the order of their keys.
    pub(super) fn list(&self, prefix: &str) -> Result<Vec<(String, Bytes)>, CallRefusal> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let mut entries = Vec::new();
        let mut bytes = 0_usize;
        for (key, value) in self.values.range::<str, _>(from) {
            if !key.starts_with(prefix) {
                break;
            }
            bytes = [key.len(), value.len(), ENTRY_OVERHEAD_BYTES]
                .into_iter()
                .fold(bytes, usize::saturating_add);
            check("a list of bytes (ask for a longer prefix)", bytes, MAX_CALL_BYTES)?;
            entries.push((key.clone(), value.clone()));
        }
        Ok(entries)
    }

    /// Lets `call` wait for `key`.
    pub(super) fn wait(&mut self, key: &str, call: CallId) -> Result<(), CallRefusal> {
        check_name("a key", key)?;
        self.waiting.entry(key.to_owned()).or_default().insert(call);
        Ok(())
    }

    /// Forgets that `call` waits for `key`.
    pub(super) fn stop_waiting(&mut self, key: &str, call: CallId) {
        if let Some(calls) = self.waiting.get_mut(key) {
            calls.remove(&call);
            if calls.is_empty() {
                self.waiting.remove(key);
            }
        }
    }

    /// Forgets all that wait, which have been answered.
    pub(super) fn clear_waiting(&mut self) {
        self.waiting.clear();
    }

    #[cfg(test)]
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.values().map(BTreeSet::len).sum()
    }
}

pub(super) fn check_name(what: &str, name: &str) -> Result<(), CallRefusal> {
    check(&format!("{what} of bytes"), name.len(), MAX_KEY_BYTES)
}

pub(super) fn check(what: &str, found: usize, limit: usize) -> Result<(), CallRefusal> {
    if found <= limit {
        return Ok(());
    }
    let number = |n| u64::try_from(n).unwrap_or(u64::MAX);
    Err(CallRefusal::TooLarge { what: what.to_owned(), found: number(found), limit: number(limit) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Store {
        let mut store = Store::default();
        for (key, value) in [("a", "1"), ("a/x", "2"), ("a/y", "3"), ("a0", "4"), ("b", "5")] {
            store.set(key.into(), value.into(), false).unwrap();
        }
        store
    }

    #[test]
    fn lists_exactly_the_prefix_in_order() {
        let keys = |prefix| -> Vec<String> {
            filled().list(prefix).unwrap().into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(keys("a/"), ["a/x", "a/y"]);
        assert_eq!(keys("a"), ["a", "a/x", "a/y", "a0"]);
        assert_eq!(keys(""), ["a", "a/x", "a/y", "a0", "b"]);
        assert_eq!(keys("c"), [""; 0]);
    }

    #[test]
    fn overwriting_and_deleting_keep_the_total_right() {
        let mut store = filled();
        assert_eq!(store.total_bytes, 5 + 1 + 3 + 3 + 2 + 1);
        assert_eq!(store.set("a".into(), "x".into(), false), Err(CallRefusal::AlreadySet));
        assert!(store.set("a".into(), "12345".into(), true).unwrap().is_empty());
        assert_eq!(store.value("a").unwrap(), "12345");
        assert_eq!(store.total_bytes, 19);
        assert!(store.delete("a") && !store.delete("a"));
        assert_eq!((store.value("a"), store.total_bytes), (None, 13));
    }

    #[test]
    fn bounds_hold_at_their_edges() {
        let mut store = Store::default();
        assert!(store.set("k".repeat(MAX_KEY_BYTES), Bytes::new(), false).is_ok());
        let long = store.set("k".repeat(MAX_KEY_BYTES + 1), Bytes::new(), false);
        assert!(matches!(long, Err(CallRefusal::TooLarge { found: 1025, limit: 1024, .. })));
        let large = Bytes::from(vec![0; MAX_VALUE_BYTES]);
        assert!(store.set("v".into(), large.clone(), true).is_ok());
        assert_eq!(store.list("v").unwrap().len(), 1);
        store.set("v2".into(), large, true).unwrap();
        assert!(matches!(store.list("v"), Err(CallRefusal::TooLarge { .. })));
        let larger = store.set("v".into(), vec![0; MAX_VALUE_BYTES + 1].into(), true);
        assert!(matches!(larger, Err(CallRefusal::TooLarge { .. })), "{larger:?}");
    }

    #[test]
    fn setting_wakes_those_that_wait_for_the_key() {
        let mut store = Store::default();
        for call in [3, 1, 2] {
            store.wait("a", CallId(call)).unwrap();
        }
        store.wait("b", CallId(4)).unwrap();
        store.stop_waiting("a", CallId(1));
        let woken = store.set("a".into(), "v".into(), false).unwrap();
        assert_eq!(woken, BTreeSet::from([CallId(2), CallId(3)]));
        assert_eq!(store.waiting_count(), 1);
    }
}
