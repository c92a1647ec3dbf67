//! Functions of the host that a program calls while it runs.

use std::fmt;
use std::sync::Arc;

use super::Result;

/// The functions that the custom calls `lockstep.host_callback` of a program call, by the number
/// that the call's `callback` says.
#[derive(Clone)]
pub struct HostCallbacks {
    call: Arc<HostCallback>,
}

/// Given a number and the operands as dense bytes, fills the results.
type HostCallback = dyn Fn(u64, &[&[u8]], &mut [&mut [u8]]) -> Result<()> + Send + Sync;

impl HostCallbacks {
    /// Functions that are called by `call`, on the thread of the device that runs the program.
    pub fn new(
        call: impl Fn(u64, &[&[u8]], &mut [&mut [u8]]) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { call: Arc::new(call) }
    }

    /// Calls function `number`. For implementations.
    ///
    /// # Errors
    /// What the function fails with; it poisons the outputs of the launch.
    pub fn call(&self, number: u64, operands: &[&[u8]], results: &mut [&mut [u8]]) -> Result<()> {
        (self.call)(number, operands, results)
    }
}

impl fmt::Debug for HostCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostCallbacks")
    }
}
