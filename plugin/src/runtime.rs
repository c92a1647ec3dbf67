//! The one place that knows which [`ifrt::Client`] is behind the plugin.

use std::sync::{Arc, Once};

use lockstep::client;
use lockstep::ifrt::{self, Attribute, Client as _, Code, Result, Status};
use tracing_subscriber::EnvFilter;

/// The name under which frameworks know the platform.
pub(crate) const PLATFORM: &str = "lockstep";

/// The client that the options, and where they say nothing the environment, ask for.
///
/// | option | type | meaning |
/// |---|---|---|
/// | `num_devices` | integer | devices of this process, instead of `LOCKSTEP_DEVICES` |
///
/// A framework that has processes of its own numbers them as the job does, and there are as many.
///
/// # Errors
/// `InvalidArgument` for an option that there is not, or of the wrong type;
/// `FailedPrecondition` when the framework describes another job than that which started this
/// process; what joining a job fails with.
pub(crate) fn open(options: &[(String, Attribute)]) -> Result<Arc<dyn ifrt::Client>> {
    log_as_asked();
    let (mut num_devices, mut process, mut processes) = (None, None, None);
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
