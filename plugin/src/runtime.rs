//! The one place that knows which [`ifrt::Client`] is behind the plugin.

use std::sync::{Arc, Once};

use lockstep::client;
use lockstep::ifrt::{self, Attribute, Result, Status};
use tracing_subscriber::EnvFilter;

/// The name under which frameworks know the platform.
pub(crate) const PLATFORM: &str = "lockstep";

/// The client that the options, and where they say nothing the environment, ask for.
///
/// | option | type | meaning |
/// |---|---|---|
/// | `num_devices` | integer | devices of this process, instead of `LOCKSTEP_DEVICES` |
///
/// # Errors
/// `InvalidArgument` for an option that there is not, or of the wrong type; `Unimplemented` for a
/// job of several processes that the framework describes; what joining a job fails with.
pub(crate) fn open(options: &[(String, Attribute)]) -> Result<Arc<dyn ifrt::Client>> {
    log_as_asked();
    let mut num_devices = None;
    for (name, value) in options {
        match name.as_str() {
            "num_devices" => {
                let count = integer(name, value)?;
                num_devices =
                    Some(u32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(
                        || Status::invalid_argument(format!("num_devices is {count}: at least 1")),
                    )?);
            }
            // What JAX says of its own job; alone, there is nothing in it.
            "num_nodes" if integer(name, value)? <= 1 => {}
            "node_id" | "partition_index" => {}
            "num_nodes" => {
                return Err(Status::unimplemented(
                    "processes that meet through jax.distributed alone; start them with \
                     `lockstep run`",
                ));
            }
            _ => {
                return Err(Status::invalid_argument(format!(
                    "there is no option {name:?}; there is num_devices"
                )));
            }
        }
    }
    match num_devices {
        Some(devices) => Ok(client::Client::solo(devices)?),
        None => Ok(client::Client::from_environment()?),
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
