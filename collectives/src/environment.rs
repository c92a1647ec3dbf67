//! The environment variables by which a launcher tells a process its place in the job.
//!
//! Owns the names, the reading and the writing of the variables, so that the launcher and the
//! processes cannot disagree about them. Opens no file and no socket. Reads the process's
//! environment only in the functions whose names end in `_process`.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU32;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::algorithm::Policy;
use crate::{Attempt, DEFAULT_HEARTBEAT_TIMEOUT, InvalidJobId, JobId, Rank};

/// This process's number among the processes of the job.
pub const RANK: &str = "LOCKSTEP_RANK";
/// How many processes the job has.
pub const WORLD_SIZE: &str = "LOCKSTEP_WORLD_SIZE";
/// This process's number among the job's processes on this host.
pub const LOCAL_RANK: &str = "LOCKSTEP_LOCAL_RANK";
/// How many processes of the job run on this host.
pub const LOCAL_SIZE: &str = "LOCKSTEP_LOCAL_SIZE";
/// How many processors those processes have together, where each is kept to some of its own.
pub const LOCAL_PROCESSORS: &str = "LOCKSTEP_LOCAL_PROCESSORS";
/// `host:port` of the rendezvous.
pub const COORDINATOR: &str = "LOCKSTEP_COORDINATOR";
/// `1` when the launcher hosts the coordinator; otherwise rank 0 does.
pub const COORDINATOR_HOSTED: &str = "LOCKSTEP_COORDINATOR_HOSTED";
/// The job's id.
pub const JOB: &str = "LOCKSTEP_JOB";
/// How often the job was restarted before.
pub const ATTEMPT: &str = "LOCKSTEP_ATTEMPT";
/// The file that holds the job's secret.
pub const KEY_FILE: &str = "LOCKSTEP_KEY_FILE";
/// The inherited descriptor that yields the job's secret.
pub const KEY_FD: &str = "LOCKSTEP_KEY_FD";
/// How many devices this process shows.
pub const DEVICES: &str = "LOCKSTEP_DEVICES";
/// How long to wait for the whole job to come together.
pub const INIT_TIMEOUT: &str = "LOCKSTEP_INIT_TIMEOUT";
/// How long a rank may be silent, where the coordinator is hosted.
pub const HEARTBEAT_TIMEOUT: &str = "LOCKSTEP_HEARTBEAT_TIMEOUT";
/// How long a collective waits for its members.
pub const COLLECTIVE_TIMEOUT: &str = "LOCKSTEP_COLLECTIVE_TIMEOUT";

/// By which means a process reaches the others of its host.
pub const TRANSPORT: &str = "LOCKSTEP_TRANSPORT";

/// The algorithm of those collectives that it serves, instead of the table's.
pub const ALGORITHM: &str = "LOCKSTEP_ALGORITHM";

/// `1` when reductions are to have the same bits wherever the ranks run.
pub const REPRODUCIBLE: &str = "LOCKSTEP_REPRODUCIBLE";

/// A process's place in a job, as its launcher states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// This process.
    pub rank: Rank,
    /// All processes of the job, at least 1.
    pub world_size: u32,
    /// This process among those on this host.
    pub local_rank: u32,
    /// The processes on this host.
    pub local_size: u32,
    /// The processors of those processes, if each is kept to some: else every one may use all that
    /// this process may.
    pub local_processors: Option<u32>,
    /// `host:port` of the rendezvous.
    pub coordinator: String,
    /// Whether the launcher hosts the coordinator. If not, rank 0 does, at
    /// [`coordinator`](Self::coordinator).
    pub coordinator_hosted: bool,
    /// The job.
    pub job: JobId,
    /// The job's restart count.
    pub attempt: Attempt,
    /// Where the job's secret is.
    pub key: KeySource,
    /// Devices this process shows.
    pub devices: u32,
}

/// Where a process finds the job's secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// An inherited descriptor.
    Fd(RawFd),
    /// A file that only its owner can access.
    File(PathBuf),
}

/// By which means a process reaches the others of its host (`LOCKSTEP_TRANSPORT`). Those of other
/// hosts it reaches over QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportChoice {
    /// Shared memory where it can be had, else QUIC.
    #[default]
    Auto,
    /// Shared memory; it is an error if it cannot be had.
    Shm,
    /// QUIC, though they could share memory.
    Quic,
}

/// Why a text names no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a transport: write auto, shm or quic")]
pub struct InvalidTransport(String);

/// The time limits a user may set for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a collective waits for its members (`LOCKSTEP_COLLECTIVE_TIMEOUT`, 300 s).
    pub collective: Duration,
    /// How long a rank may be silent before it counts as dead (`LOCKSTEP_HEARTBEAT_TIMEOUT`, 30 s);
    /// that of the process which hosts the coordinator counts.
    pub heartbeat: Duration,
    /// How long joining waits for the coordinator and all ranks (`LOCKSTEP_INIT_TIMEOUT`, 300 s).
    pub init: Duration,
}

/// Why the environment does not say what this process is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A launched process lacks a variable.
    #[error(
        "{RANK} is set but {variable} is not: start the process with `lockstep run`, or set both"
    )]
    Missing {
        /// The variable.
        variable: &'static str,
    },
    /// Two variables that exclude each other.
    #[error("{first} and {second} are both set: unset one")]
    Conflict {
        /// One variable.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A variable's text is not what it must be.
    #[error("{variable} is {found:?}, expected {expected}")]
    Invalid {
        /// The variable.
        variable: &'static str,
        /// Its text.
        found: OsString,
        /// What it must be.
        expected: String,
    },
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a duration: write a number of seconds, or a number and one of ms, s, m, h, \
     at most a year"
)]
pub struct InvalidDuration(String);

/// The longest duration a user may ask for: deadlines this far off are still points in time.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reads `"300"`, `"2.5s"`, `"500ms"`, `"2m"` or `"1h"`; a bare number is in seconds.
///
/// # Errors
/// When the text is anything else, negative, or more than a year.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration(text.chars().take(80).collect());
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: f64 = number.parse().map_err(|_| invalid())?;
    let seconds = match unit.trim_start() {
        "" | "s" => number,
        "ms" => number / 1e3,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(invalid()),
    };
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| invalid())?;
    if duration > LONGEST { Err(invalid()) } else { Ok(duration) }
}

/// How many devices a process without a launcher shows: what `LOCKSTEP_DEVICES` says, or 1.
///
/// # Errors
/// When the variable is not a number.
pub fn devices_of_process() -> Result<u32, EnvironmentError> {
    Variables(|name: &str| std::env::var_os(name)).devices()
}

impl Environment {
    /// What this process's environment says; `None` when no launcher set a rank: a world of one.
    ///
    /// # Errors
    /// When a variable is missing, contradicts another or cannot be read.
    pub fn from_process() -> Result<Option<Self>, EnvironmentError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// What the variables that `lookup` returns say.
    ///
    /// # Errors
    /// As [`Environment::from_process`].
    pub fn from_variables(
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, EnvironmentError> {
        let variables = Variables(lookup);
        let Some(rank) = variables.parsed::<u32>(RANK, "a rank: a number from 0")? else {
            return Ok(None);
        };
        let world_size = variables.counted(WORLD_SIZE)?;
        if rank >= world_size {
            let expected = format!("a rank below {WORLD_SIZE}, which is {world_size}");
            return Err(variables.invalid(RANK, expected));
        }
        let local_rank = variables.parsed(LOCAL_RANK, "a number from 0")?;
        let local_size = variables.parsed(LOCAL_SIZE, "a number from 1")?;
        let (local_rank, local_size) = match (local_rank, local_size) {
            (Some(local_rank), Some(local_size)) => (local_rank, local_size),
            (None, None) => (0, 1),
            (None, Some(_)) => return Err(EnvironmentError::Missing { variable: LOCAL_RANK }),
            (Some(_), None) => return Err(EnvironmentError::Missing { variable: LOCAL_SIZE }),
        };
        if local_rank >= local_size {
            let expected = format!("a number below {LOCAL_SIZE}, which is {local_size}");
            return Err(variables.invalid(LOCAL_RANK, expected));
        }
        let job = variables.required(JOB)?;
        let job = job.to_str().ok_or_else(|| "text in UTF-8".to_owned()).and_then(|text| {
            JobId::new(text).map_err(|_: InvalidJobId| "1 to 64 of A-Z a-z 0-9 . _ -".to_owned())
        });
        let coordinator = variables.required(COORDINATOR)?;
        Ok(Some(Self {
            rank: Rank(rank),
            world_size,
            local_rank,
            local_size,
            local_processors: variables
                .parsed(LOCAL_PROCESSORS, "a number from 1")?
                .map(NonZeroU32::get),
            coordinator: coordinator
                .to_str()
                .filter(|text| {
                    text.rsplit_once(':')
                        .is_some_and(|(_, p)| p.parse::<u16>().is_ok_and(|p| p != 0))
                })
                .ok_or_else(|| variables.invalid(COORDINATOR, "host:port"))?
                .to_owned(),
            coordinator_hosted: variables.switch(COORDINATOR_HOSTED)?,
            job: job.map_err(|expected| variables.invalid(JOB, expected))?,
            attempt: Attempt(variables.parsed(ATTEMPT, "a number from 0")?.unwrap_or(0)),
            key: variables.key()?,
            devices: variables.devices()?,
        }))
    }

    /// The variables that make [`Environment::from_process`] return this value in a child process.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let key = match &self.key {
            KeySource::Fd(descriptor) => (KEY_FD, descriptor.to_string().into()),
            KeySource::File(path) => (KEY_FILE, path.clone().into_os_string()),
        };
        let mut variables = vec![
            (RANK, self.rank.0.to_string().into()),
            (WORLD_SIZE, self.world_size.to_string().into()),
            (LOCAL_RANK, self.local_rank.to_string().into()),
            (LOCAL_SIZE, self.local_size.to_string().into()),
            (COORDINATOR, self.coordinator.clone().into()),
            (COORDINATOR_HOSTED, u32::from(self.coordinator_hosted).to_string().into()),
            (JOB, self.job.as_str().into()),
            (ATTEMPT, self.attempt.0.to_string().into()),
            key,
            (DEVICES, self.devices.to_string().into()),
        ];
        let processors = self.local_processors;
        variables.extend(processors.map(|count| (LOCAL_PROCESSORS, count.to_string().into())));
        variables
    }
}

impl TransportChoice {
    /// What this process's environment says; [`TransportChoice::Auto`] where it says nothing.
    ///
    /// # Errors
    /// When the variable is set but names no transport.
    pub fn from_process() -> Result<Self, EnvironmentError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// What the variables that `lookup` returns say.
    ///
    /// # Errors
    /// As [`TransportChoice::from_process`].
    pub fn from_variables(
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, EnvironmentError> {
        let variables = Variables(lookup);
        Ok(variables.parsed(TRANSPORT, "auto, shm or quic")?.unwrap_or_default())
    }
}

impl Policy {
    /// What this process's environment says; the table and the fastest order where it says nothing.
    ///
    /// # Errors
    /// When a variable is set but names no algorithm, or is neither 0 nor 1.
    pub fn from_process() -> Result<Self, EnvironmentError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// What the variables that `lookup` returns say.
    ///
    /// # Errors
    /// As [`Policy::from_process`].
    pub fn from_variables(
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, EnvironmentError> {
        let variables = Variables(lookup);
        let names = "direct, recursive_doubling, ring or two_level";
        let algorithm = variables.parsed(ALGORITHM, names)?;
        Ok(Self { algorithm, reproducible: variables.switch(REPRODUCIBLE)? })
    }
}

impl FromStr for TransportChoice {
    type Err = InvalidTransport;

    fn from_str(text: &str) -> Result<Self, InvalidTransport> {
        match text {
            "auto" => Ok(Self::Auto),
            "shm" => Ok(Self::Shm),
            "quic" => Ok(Self::Quic),
            _ => Err(InvalidTransport(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Shm => "shm",
            Self::Quic => "quic",
        })
    }
}

impl Limits {
    /// What this process's environment says, with the defaults where it says nothing.
    ///
    /// # Errors
    /// When a variable is set but is not a duration above zero.
    pub fn from_process() -> Result<Self, EnvironmentError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// What the variables that `lookup` returns say.
    ///
    /// # Errors
    /// As [`Limits::from_process`].
    pub fn from_variables(
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, EnvironmentError> {
        let variables = Variables(lookup);
        let limits = Self::default();
        Ok(Self {
            collective: variables.duration(COLLECTIVE_TIMEOUT)?.unwrap_or(limits.collective),
            heartbeat: variables.duration(HEARTBEAT_TIMEOUT)?.unwrap_or(limits.heartbeat),
            init: variables.duration(INIT_TIMEOUT)?.unwrap_or(limits.init),
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            collective: Duration::from_secs(300),
            heartbeat: DEFAULT_HEARTBEAT_TIMEOUT,
            init: Duration::from_secs(300),
        }
    }
}

/// A way to look up variables; an empty text counts as not set.
struct Variables<L>(L);

impl<L: Fn(&str) -> Option<OsString>> Variables<L> {
    fn text(&self, variable: &'static str) -> Option<OsString> {
        (self.0)(variable).filter(|text| !text.is_empty())
    }

    fn required(&self, variable: &'static str) -> Result<OsString, EnvironmentError> {
        self.text(variable).ok_or(EnvironmentError::Missing { variable })
    }

    fn invalid(&self, variable: &'static str, expected: impl Into<String>) -> EnvironmentError {
        let found = self.text(variable).unwrap_or_default();
        EnvironmentError::Invalid { variable, found, expected: expected.into() }
    }

    fn parsed<T: FromStr>(
        &self,
        variable: &'static str,
        expected: &str,
    ) -> Result<Option<T>, EnvironmentError> {
        let Some(text) = self.text(variable) else { return Ok(None) };
        match text.to_str().and_then(|text| text.parse().ok()) {
            Some(value) => Ok(Some(value)),
            None => Err(self.invalid(variable, expected)),
        }
    }

    /// Whether the variable is 1; that it is 0 and that it is not there are the same.
    fn switch(&self, variable: &'static str) -> Result<bool, EnvironmentError> {
        match self.text(variable).as_deref() {
            None => Ok(false),
            Some(text) if text == "0" => Ok(false),
            Some(text) if text == "1" => Ok(true),
            Some(_) => Err(self.invalid(variable, "0 or 1")),
        }
    }

    fn counted(&self, variable: &'static str) -> Result<u32, EnvironmentError> {
        match self.parsed(variable, "a number from 1")? {
            Some(0) => Err(self.invalid(variable, "a number from 1")),
            Some(count) => Ok(count),
            None => Err(EnvironmentError::Missing { variable }),
        }
    }

    fn devices(&self) -> Result<u32, EnvironmentError> {
        Ok(self.parsed(DEVICES, "a number from 0")?.unwrap_or(1))
    }

    fn duration(&self, variable: &'static str) -> Result<Option<Duration>, EnvironmentError> {
        let Some(text) = self.text(variable) else { return Ok(None) };
        match text.to_str().and_then(|text| parse_duration(text).ok()) {
            Some(duration) if !duration.is_zero() => Ok(Some(duration)),
            _ => Err(self.invalid(variable, "a duration above zero such as 300, 5s, 500ms, 2m")),
        }
    }

    fn key(&self) -> Result<KeySource, EnvironmentError> {
        match (self.text(KEY_FILE), self.parsed(KEY_FD, "a descriptor number")?) {
            (Some(path), None) => Ok(KeySource::File(path.into())),
            (None, Some(descriptor)) => Ok(KeySource::Fd(descriptor)),
            (Some(_), Some(_)) => {
                Err(EnvironmentError::Conflict { first: KEY_FILE, second: KEY_FD })
            }
            (None, None) => Err(EnvironmentError::Missing { variable: KEY_FILE }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::Algorithm;

    fn example() -> Environment {
        Environment {
            rank: Rank(5),
            world_size: 8,
            local_rank: 1,
            local_size: 4,
            local_processors: Some(8),
            coordinator: "[fe80::1]:4321".into(),
            coordinator_hosted: true,
            job: JobId::new("train-7").unwrap(),
            attempt: Attempt(3),
            key: KeySource::File("/tmp/a key".into()),
            devices: 2,
        }
    }

    fn read(variables: &HashMap<&str, OsString>) -> Result<Option<Environment>, EnvironmentError> {
        Environment::from_variables(|name| variables.get(name).cloned())
    }

    #[test]
    fn reads_back_what_it_writes() {
        for environment in [
            example(),
            Environment { key: KeySource::Fd(7), coordinator_hosted: false, ..example() },
            Environment { local_processors: None, ..example() },
        ] {
            let variables = environment.variables().into_iter().collect();
            assert_eq!(read(&variables).unwrap(), Some(environment));
        }
    }

    #[test]
    fn no_rank_is_a_world_of_one() {
        assert_eq!(read(&HashMap::new()).unwrap(), None);
        assert_eq!(read(&HashMap::from([(RANK, "".into())])).unwrap(), None);
    }

    #[test]
    fn says_which_variable_is_wrong_and_why() {
        let complete: HashMap<_, _> = example().variables().into_iter().collect();
        for (variable, text, expected) in [
            (
                RANK,
                "8",
                "LOCKSTEP_RANK is \"8\", expected a rank below LOCKSTEP_WORLD_SIZE, which is 8",
            ),
            (RANK, "-1", "LOCKSTEP_RANK is \"-1\", expected a rank: a number from 0"),
            (WORLD_SIZE, "0", "LOCKSTEP_WORLD_SIZE is \"0\", expected a number from 1"),
            (WORLD_SIZE, "", "LOCKSTEP_RANK is set but LOCKSTEP_WORLD_SIZE is not"),
            (LOCAL_RANK, "4", "expected a number below LOCKSTEP_LOCAL_SIZE, which is 4"),
            (LOCAL_PROCESSORS, "0", "LOCKSTEP_LOCAL_PROCESSORS is \"0\", expected a number from 1"),
            (COORDINATOR, "localhost", "LOCKSTEP_COORDINATOR is \"localhost\", expected host:port"),
            (COORDINATOR, "localhost:70000", "expected host:port"),
            (COORDINATOR, "localhost:0", "expected host:port"),
            (COORDINATOR_HOSTED, "yes", "expected 0 or 1"),
            (JOB, "a b", "LOCKSTEP_JOB is \"a b\", expected 1 to 64 of"),
            (KEY_FD, "3", "LOCKSTEP_KEY_FILE and LOCKSTEP_KEY_FD are both set"),
            (KEY_FILE, "", "LOCKSTEP_KEY_FILE is not"),
            (DEVICES, "two", "LOCKSTEP_DEVICES is \"two\", expected a number"),
        ] {
            let mut variables = complete.clone();
            variables.insert(variable, text.into());
            let error = read(&variables).unwrap_err().to_string();
            assert!(error.contains(expected), "{variable}={text}: {error}");
        }
    }

    #[test]
    fn durations() {
        for (text, milliseconds) in [
            ("300", 300_000),
            ("5s", 5_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1.5s", 1_500),
            (" 7 s ", 7_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text:?}");
        }
        assert!(parse_duration("8760h").is_ok() && parse_duration("8761h").is_err());
        for text in ["", "s", "-1", "5 parsecs", "1e9", "1..2", "99999999999999999999999h", "inf"] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_transport_is_read_back_as_it_is_written() {
        let choice = |text: &str| {
            TransportChoice::from_variables(|name| (name == TRANSPORT).then(|| text.into()))
        };
        for expected in [TransportChoice::Auto, TransportChoice::Shm, TransportChoice::Quic] {
            assert_eq!(choice(&expected.to_string()).unwrap(), expected);
        }
        assert_eq!(choice("").unwrap(), TransportChoice::Auto);
        let error = choice("tcp").unwrap_err().to_string();
        assert_eq!(error, "LOCKSTEP_TRANSPORT is \"tcp\", expected auto, shm or quic");
    }

    #[test]
    fn limits_have_defaults_and_refuse_zero() {
        let limits = |text: Option<&str>| {
            Limits::from_variables(|name| {
                text.filter(|_| name == COLLECTIVE_TIMEOUT).map(Into::into)
            })
        };
        assert_eq!(limits(None).unwrap(), Limits::default());
        assert_eq!(limits(Some("5s")).unwrap().collective, Duration::from_secs(5));
        assert_eq!(limits(Some("5s")).unwrap().init, Duration::from_secs(300));
        assert!(limits(Some("0")).is_err());
    }

    #[test]
    fn a_policy_is_the_tables_unless_the_environment_has_another() {
        let policy = |algorithm: &'static str, reproducible: &'static str| {
            Policy::from_variables(move |name| match name {
                ALGORITHM => Some(algorithm.into()),
                REPRODUCIBLE => Some(reproducible.into()),
                _ => None,
            })
        };
        assert_eq!(Policy::from_variables(|_| None).unwrap(), Policy::default());
        for algorithm in Algorithm::ALL {
            let text: &'static str = algorithm.to_string().leak();
            let expected = Policy { algorithm: Some(algorithm), reproducible: true };
            assert_eq!(policy(text, "1").unwrap(), expected);
        }
        for (algorithm, reproducible, culprit) in
            [("shared", "0", "LOCKSTEP_ALGORITHM"), ("ring", "yes", "LOCKSTEP_REPRODUCIBLE")]
        {
            let error = policy(algorithm, reproducible).unwrap_err().to_string();
            assert!(error.contains(culprit), "{error}");
        }
    }
}
