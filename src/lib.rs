//! Lockstep: a multi-controller SPMD runtime.
//!
//! One process runs per host, every process runs the same program, and arrays span the devices
//! of all of them. The layers, bottom up:
//!
//! - [`backend`]: one process's devices, their memory and one compiled program at a time.
//! - [`ifrt`]: the runtime interface. Arrays, shardings, device lists, programs, executables.
//! - [`client`]: the implementation of [`ifrt`] for a job of one or many processes.
//!
//! # Quick start
//!
//! The same on one process or, under `lockstep run -n 4`, on four:
//!
//! ```
//! use std::time::Duration;
//!
//! use lockstep::client;
//! use lockstep::ifrt::{
//!     Client as _, CompileOptions, DType, ExecuteOptions, HostBuffer, HostBufferSemantics, Mesh,
//!     Shape, Sharding, StableHloProgram,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The job that the launcher describes; without one, this process alone.
//! let client = client::Client::from_environment()?;
//! let devices = client.devices().clone();
//!
//! // One array over the devices of all processes, cut by rows; each process makes its own shards.
//! let rows = Mesh::new([("x", devices.len())])?.tiling(&[&["x"], &[]])?;
//! let numbers: Vec<f32> = (0..6).map(|number| number as f32).collect();
//! let buffer = HostBuffer::from_slice(&numbers, DType::F32, Shape::new([2, 3])?)?;
//! let sharding = Sharding::tiled(devices.clone(), rows)?;
//! let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
//! let array = client.make_array_from_host_buffer(&buffer, &sharding, semantics)?;
//!
//! // Another sharding: nobody is sent more than it lacks.
//! let array = client.resharded(&array, Sharding::replicated(devices.clone())?)?;
//!
//! // A program, compared between the processes before it runs.
//! let text = format!(
//!     "module attributes {{mhlo.num_partitions = {} : i32}} {{
//!        func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {{
//!          %0 = stablehlo.add %a, %a : tensor<2x3xf32>
//!          return %0 : tensor<2x3xf32>
//!        }}
//!      }}",
//!     devices.len()
//! );
//! let program = StableHloProgram::Text(text);
//! let options = CompileOptions::new(devices);
//! let doubled = client.compiler().compile_and_load(&program, &options).wait()?;
//! let outputs = doubled.execute(&[array], &ExecuteOptions::default())?.outputs;
//!
//! // The contents, on every process; whatever is waited for ends, in a value or in an error.
//! let read = client.gather(&outputs[0])?.wait_timeout(Duration::from_secs(60))?;
//! assert_eq!(read.to_vec::<f32>()?, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
//! # Ok(())
//! # }
//! ```
//!
//! [`check`] runs programs that say what they expect.
//! [`trace`] shows what a process did when. [`stablehlo`] holds programs, [`spmd`] turns a global program into a per-device one.
//! ARCHITECTURE.md has the code map and the numbered invariants.

#![deny(unsafe_code)]

pub mod backend;
pub mod check;
pub mod client;
pub mod ifrt;
pub mod spmd;
pub mod stablehlo;
pub mod trace;

/// What the fuzz targets of `fuzz/` call; in their builds only.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::client::fuzzing as client;
}
