//! Meeting in a key-value store that processes have in common, where no launcher gave them a secret
//! and a place.
//!
//! Rank 0 makes the job: its secret, its name, its coordinator. Every other rank puts a public key,
//! made for this once, into the store; rank 0 answers each with its own, and with the job sealed by
//! what only the two can compute. So who reads the store learns nothing. Who writes to it could pass
//! for a rank: it is trusted that far.
//!
//! Each key is written once. A rank that is missing does not keep the others from their answers, so
//! that all of them can say who is missing, as the coordinator does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hkdf::Hkdf;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::error::Unspecified;
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::{JobId, JobSecret, Rank};

/// Domain separation of the keys that seal jobs.
const SEAL_INFO: &[u8] = b"lockstep job in a key-value store";

/// How long one question to the store takes at most: who asks may have to give up before.
const PATIENCE: Duration = Duration::from_millis(500);

/// The length of an X25519 public key.
const PUBLIC_KEY_BYTES: usize = 32;

/// A store in which each key is written once, by one process, and read by any.
pub trait KeyValueStore: Sync {
    /// Puts a value under a key that has none.
    ///
    /// # Errors
    /// When the store cannot be reached, or the key has a value.
    fn put(&self, key: &str, value: &[u8]) -> Result<(), StoreError>;

    /// The value of a key; waits for it, and then says `None` when there is none after `timeout`.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn value(&self, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>, StoreError>;
}

/// What a store fails with, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key-value store in which the processes meet: {0}")]
pub struct StoreError(pub String);

/// A process's part in a meeting.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// What no other meeting in the store is called: keys begin with it.
    pub name: String,
    /// This process.
    pub rank: Rank,
    /// All processes, at least 1.
    pub world_size: u32,
    /// A name or an address of the host of rank 0, as the others reach it; of interest to rank 0.
    pub host: String,
    /// The devices that this process shows.
    pub devices: u32,
}

/// Why a process did not learn which job it is in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeetingError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Rank 0 did not come.
    #[error("{rank} waited {waited:?} for rank 0, which makes the job: it has not come")]
    NoHost {
        /// This process.
        rank: Rank,
        /// The limit.
        waited: Duration,
    },
    /// What is in the store is not what rank 0 puts there.
    #[error("what is under {key:?} in the key-value store is not for {rank}: {detail}")]
    Malformed {
        /// Where it is.
        key: String,
        /// This process.
        rank: Rank,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// The cryptographic library refuses, which no input causes.
    #[error("a key for the key-value store cannot be made")]
    Cryptography,
}

/// What a process has to know to join a job.
#[derive(Clone, Debug)]
pub(crate) struct Invitation {
    pub(crate) coordinator: String,
    pub(crate) job: JobId,
    pub(crate) secret: JobSecret,
}

/// An invitation as bytes, to be sealed.
#[derive(Serialize, Deserialize)]
struct Content {
    coordinator: String,
    job: JobId,
    secret: [u8; 32],
}

impl Meeting {
    fn key_of(&self, rank: Rank) -> String {
        format!("{}/key/{}", self.name, rank.0)
    }

    fn job_of(&self, rank: Rank) -> String {
        format!("{}/job/{}", self.name, rank.0)
    }

    /// Asks rank 0 for the job, for `timeout`.
    pub(crate) fn ask(
        &self,
        store: &dyn KeyValueStore,
        timeout: Duration,
    ) -> Result<Invitation, MeetingError> {
        let (private, public) = key_pair()?;
        store.put(&self.key_of(self.rank), &public)?;
        let key = self.job_of(self.rank);
        let answer = wait(store, &key, Instant::now(), timeout, || false)?;
        let answer = answer.ok_or(MeetingError::NoHost { rank: self.rank, waited: timeout })?;
        let wrong = |detail| MeetingError::Malformed { key: key.clone(), rank: self.rank, detail };
        let (theirs, sealed) = answer
            .split_at_checked(PUBLIC_KEY_BYTES)
            .ok_or_else(|| wrong("it is shorter than a key"))?;
        let seal = seal(private, theirs, &[&public, theirs]).ok_or(MeetingError::Cryptography)?;
        let mut sealed = sealed.to_vec();
        let opened = seal
            .open_in_place(nonce(), Aad::from(key.as_bytes()), &mut sealed)
            .map_err(|Unspecified| wrong("it is sealed for another"))?;
        let Content { coordinator, job, secret } =
            postcard::from_bytes(opened).map_err(|_| wrong("it is no job"))?;
        Ok(Invitation { coordinator, job, secret: JobSecret::from_bytes(secret) })
    }

    /// Answers all other ranks as they ask, each on a thread of `scope`, until `timeout` has passed
    /// or `is_over`.
    pub(crate) fn answer<'scope>(
        &'scope self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        store: &'scope dyn KeyValueStore,
        invitation: &'scope Invitation,
        timeout: Duration,
        is_over: &'scope AtomicBool,
    ) {
        let start = Instant::now();
        for rank in (1..self.world_size).map(Rank) {
            scope.spawn(move || {
                let is_over = || is_over.load(Ordering::Relaxed);
                let asked = wait(store, &self.key_of(rank), start, timeout, is_over);
                let answered = asked.and_then(|public| match public {
                    Some(public) => self.answer_one(store, invitation, rank, &public),
                    None => Ok(()),
                });
                // The coordinator will say that the rank has not joined; why, only we know.
                if let Err(error) = answered {
                    tracing::warn!("{rank} cannot be told which job it is in: {error}");
                }
            });
        }
    }

    fn answer_one(
        &self,
        store: &dyn KeyValueStore,
        invitation: &Invitation,
        rank: Rank,
        theirs: &[u8],
    ) -> Result<(), MeetingError> {
        let (private, public) = key_pair()?;
        let wrong = || MeetingError::Malformed {
            key: self.key_of(rank),
            rank: self.rank,
            detail: "it is no public key",
        };
        let seal = seal(private, theirs, &[theirs, &public]).ok_or_else(wrong)?;
        let Invitation { coordinator, job, secret } = invitation.clone();
        let content = Content { coordinator, job, secret: *secret.as_bytes() };
        let mut sealed = postcard::to_stdvec(&content).map_err(|_| MeetingError::Cryptography)?;
        let key = self.job_of(rank);
        seal.seal_in_place_append_tag(nonce(), Aad::from(key.as_bytes()), &mut sealed)
            .map_err(|Unspecified| MeetingError::Cryptography)?;
        Ok(store.put(&key, &[&public[..], &sealed].concat())?)
    }
}

/// Waits for a key's value until `timeout` after `start`, or until somebody gives up.
fn wait(
    store: &dyn KeyValueStore,
    key: &str,
    start: Instant,
    timeout: Duration,
    is_over: impl Fn() -> bool,
) -> Result<Option<Vec<u8>>, MeetingError> {
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        if let Some(value) = store.value(key, left.min(PATIENCE))? {
            return Ok(Some(value));
        }
        if left <= PATIENCE || is_over() {
            return Ok(None);
        }
    }
}

/// A key for one agreement, and its public half.
fn key_pair() -> Result<(EphemeralPrivateKey, Vec<u8>), MeetingError> {
    let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new());
    let private = private.map_err(|Unspecified| MeetingError::Cryptography)?;
    let public = private.compute_public_key().map_err(|Unspecified| MeetingError::Cryptography)?;
    Ok((private, public.as_ref().to_vec()))
}

/// What two ranks seal with, who know one private key each and both `publics`, in this order.
fn seal(own: EphemeralPrivateKey, theirs: &[u8], publics: &[&[u8]]) -> Option<LessSafeKey> {
    let theirs = UnparsedPublicKey::new(&X25519, theirs);
    let mut key = [0; 32];
    agree_ephemeral(own, &theirs, |shared| {
        let info = [SEAL_INFO, &publics.concat()].concat();
        Hkdf::<Sha256>::new(None, shared).expand(&info, &mut key)
    })
    .ok()?
    .ok()?;
    Some(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?))
}

/// A key seals one message, so that any nonce is new.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Condvar, Mutex};

    use super::*;

    #[derive(Default)]
    struct Store {
        values: Mutex<HashMap<String, Vec<u8>>>,
        changed: Condvar,
    }

    impl KeyValueStore for Store {
        fn put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
            if self.values.lock().unwrap().insert(key.to_owned(), value.to_vec()).is_some() {
                return Err(StoreError(format!("{key} has a value")));
            }
            self.changed.notify_all();
            Ok(())
        }

        fn value(&self, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>, StoreError> {
            let values = self.values.lock().unwrap();
            let missing = |values: &mut HashMap<String, Vec<u8>>| !values.contains_key(key);
            let (values, _) = self.changed.wait_timeout_while(values, timeout, missing).unwrap();
            Ok(values.get(key).cloned())
        }
    }

    fn meeting(rank: u32) -> Meeting {
        Meeting {
            name: "m".into(),
            rank: Rank(rank),
            world_size: 3,
            host: "localhost".into(),
            devices: 1,
        }
    }

    fn invitation() -> Invitation {
        Invitation {
            coordinator: "localhost:1234".into(),
            job: JobId::new("job").unwrap(),
            secret: JobSecret::generate().unwrap(),
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn every_rank_that_comes_learns_the_job_and_the_store_does_not() {
        let (store, host, invitation) = (Store::default(), meeting(0), invitation());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            host.answer(scope, &store, &invitation, LONG, &is_over);
            for rank in [2, 1] {
                let found = meeting(rank).ask(&store, LONG).unwrap();
                assert_eq!(found.coordinator, invitation.coordinator);
                assert_eq!(found.job, invitation.job);
                assert_eq!(found.secret.as_bytes(), invitation.secret.as_bytes());
            }
        });
        let values = store.values.lock().unwrap();
        assert_eq!(values.len(), 4);
        let holds = |value: &Vec<u8>, part: &[u8]| value.windows(part.len()).any(|w| w == part);
        for value in values.values() {
            assert!(!holds(value, &invitation.secret.as_bytes()[..8]));
            assert!(!holds(value, b"localhost"));
        }
    }

    #[test]
    fn a_rank_is_answered_though_another_does_not_come() {
        let (store, host, invitation) = (Store::default(), meeting(0), invitation());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            host.answer(scope, &store, &invitation, LONG, &is_over);
            meeting(2).ask(&store, LONG).unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn without_rank_0_the_error_names_it() {
        let error = meeting(1).ask(&Store::default(), Duration::from_millis(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "rank 1 waited 1ms for rank 0, which makes the job: it has not come"
        );
    }

    #[test]
    fn what_rank_0_did_not_seal_for_this_rank_is_refused() {
        for (answer, detail) in [
            (vec![1; 31], "it is shorter than a key"),
            (vec![1; 32], "it is sealed for another"),
            (vec![7; 200], "it is sealed for another"),
        ] {
            let store = Store::default();
            store.put("m/job/1", &answer).unwrap();
            let error = meeting(1).ask(&store, LONG).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "what is under \"m/job/1\" in the key-value store is not for rank 1: {detail}"
                )
            );
        }
        // A low point, of which the agreement is known to all.
        let store = Store::default();
        store.put("m/job/1", &[0; 100]).unwrap();
        assert!(meeting(1).ask(&store, LONG).is_err());
    }

    #[test]
    fn an_answer_to_another_rank_is_refused() {
        let (store, host, invitation) = (Store::default(), meeting(0), invitation());
        let (_, public) = key_pair().unwrap();
        host.answer_one(&store, &invitation, Rank(2), &public).unwrap();
        let stolen = store.value("m/job/2", LONG).unwrap().unwrap();
        store.put("m/job/1", &stolen).unwrap();
        assert!(matches!(
            meeting(1).ask(&store, LONG).unwrap_err(),
            MeetingError::Malformed { .. }
        ));
    }
}
