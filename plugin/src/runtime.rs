//! The one place that knows which [`ifrt::Client`] is behind the plugin.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once};

use lockstep::client::{self, Meeting, Rank};
use lockstep::ifrt::{self, Attribute, Client as _, Code, Result, Status};
use tracing_subscriber::EnvFilter;

use crate::abi::key_value::Store;

/// The name under which frameworks know the platform.
pub(crate) const PLATFORM: &str = "lockstep";

/// The client that the options, and where they say nothing the environment, ask for.
///
/// | option | type | meaning |
/// |---|---|---|
/// | `num_devices` | integer | devices of this process, instead of `LOCKSTEP_DEVICES` |
/// | `node_id`, `num_nodes` | integers | this process, and how many there are |
/// | `coordinator_address` | text | `host:port` on the host of process 0, as the others reach it |
///
/// Processes that `lockstep run` started are a job, and the framework numbers them as that does.
/// Others meet in the framework's key-value store, and become one.
///
/// # Errors
/// `InvalidArgument` for an option that there is not, or of the wrong type, or missing;
/// `FailedPrecondition` when the framework describes another job than that which started this
/// process; what meeting and joining a job fails with.
pub(crate) fn open<'a>(
    options: &[(String, Attribute)],
    store: &dyn Fn() -> Result<Store<'a>>,
) -> Result<Arc<dyn ifrt::Client>> {
    log_as_asked();
    let (mut num_devices, mut process, mut processes) = (None, None, None);
    let mut coordinator = None;
    for (name, value) in options {
        match name.as_str() {
            "num_devices" => {
                let count = integer(name, value)?;
                num_devices =
                    Some(u32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(
                        || Status::invalid_argument(format!("num_devices is {count}: at least 1")),
                    )?);
            }
            "node_id" => process = Some(integer(name, value)?),
            "num_nodes" => processes = Some(integer(name, value)?),
            "coordinator_address" => coordinator = Some(text(name, value)?),
            "partition_index" => {}
            _ => {
                return Err(Status::invalid_argument(format!(
                    "there is no option {name:?}; there is num_devices"
                )));
            }
        }
    }
    let client = match num_devices {
        Some(devices) if processes.is_none_or(|count| count <= 1) => client::Client::solo(devices)?,
        Some(_) => {
            return Err(Status::invalid_argument(
                "num_devices is for a process alone; processes of a job say LOCKSTEP_DEVICES",
            ));
        }
        None if processes.is_some_and(|count| count > 1) && !client::is_launched() => {
            let meeting = meeting(process, processes, coordinator)?;
            client::Client::meet(&store()?, &meeting)?
        }
        None => client::Client::from_environment()?,
    };
    let own = (i64::from(client.process_index()), i64::from(client.process_count()));
    let described = (process.unwrap_or(own.0), processes.unwrap_or(own.1));
    if described != own {
        return Err(Status::new(
            Code::FailedPrecondition,
            format!(
                "the framework says that this is process {} of {}, the environment that it is \
                 process {} of {}: start the processes with `lockstep run -n {}`",
                described.0, described.1, own.0, own.1, described.1
            ),
        ));
    }
    Ok(client)
}

/// The meeting of processes that nobody launched as a job.
fn meeting(
    process: Option<i64>,
    processes: Option<i64>,
    coordinator: Option<&str>,
) -> Result<Meeting> {
    /// Clients that this process has made so: the processes make them in step.
    static MEETINGS: AtomicU32 = AtomicU32::new(0);

    let coordinator = coordinator.ok_or_else(|| {
        Status::invalid_argument(
            "num_nodes is above 1: coordinator_address must say where the host of process 0 is, \
             as JAX's package of Lockstep does",
        )
    })?;
    let host = coordinator.rsplit_once(':').map_or(coordinator, |(host, _)| host);
    let number = |name: &str, value: Option<i64>| {
        value.and_then(|value| u32::try_from(value).ok()).ok_or_else(|| {
            Status::invalid_argument(format!("the option {name} is {value:?}, expected a number"))
        })
    };
    let (rank, world_size) = (number("node_id", process)?, number("num_nodes", processes)?);
    if rank >= world_size {
        return Err(Status::invalid_argument(format!(
            "node_id is {rank}, expected a number below num_nodes, which is {world_size}"
        )));
    }
    Ok(Meeting {
        name: format!("{PLATFORM}/{}", MEETINGS.fetch_add(1, Ordering::Relaxed)),
        rank: Rank(rank),
        world_size,
        host: host.to_owned(),
        devices: client::devices_of_process()?,
    })
}

/// An option's text.
fn text<'a>(name: &str, value: &'a Attribute) -> Result<&'a str> {
    match value {
        Attribute::String(text) => Ok(text),
        _ => Err(Status::invalid_argument(format!(
            "the option {name} is {value:?}, expected a text"
        ))),
    }
}

/// An option's value; numbers also come as text, from environment variables.
fn integer(name: &str, value: &Attribute) -> Result<i64> {
    let number = match value {
        Attribute::Int64(number) => Some(*number),
        Attribute::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| {
        Status::invalid_argument(format!("the option {name} is {value:?}, expected a number"))
    })
}

/// Sends what the runtime says to stderr, as far as `LOCKSTEP_LOG` asks for it: warnings if it is
/// not set. A host that has its own subscriber keeps it.
fn log_as_asked() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter = EnvFilter::builder()
            .with_default_directive(tracing::level_filters::LevelFilter::WARN.into())
            .with_env_var("LOCKSTEP_LOG")
            .from_env_lossy();
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .try_init();
    });
}
