//! One array under one sharding after another, checked on every process.
//!
//! ```text
//! $ lockstep run -n 4 -d 2 reshard /tmp
//! process 0: rows, 3 of 21 in a shard at most, hash 8d62…
//! …
//! process 0: the first numbers are [0.0, 1.0, 2.0, 3.0]
//! $ lockstep trace merge -o /tmp/trace.json /tmp/trace-*.json
//! ```
//!
//! Given a folder, each process writes what it did when to a file there, for <https://ui.perfetto.dev>.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use lockstep::client;
use lockstep::ifrt::{
    Client as _, DType, HashMode, HostBuffer, HostBufferSemantics, Mesh, Shape, Sharding,
    SingleDeviceShardSemantics,
};
use lockstep::trace::Trace;
use tracing_subscriber::prelude::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let client = client::Client::from_environment()?;
    let devices = client.devices().clone();
    let process = client.process_index();
    let folder = std::env::args().nth(1);
    let file = folder.map(|folder| Path::new(&folder).join(format!("trace-{process}.json")));
    let trace = file.map(|file| Trace::create(&file, process)).transpose()?;
    tracing_subscriber::registry().with(trace.clone()).try_init()?;

    // 21 rows are cut unevenly by most numbers of devices: the last shards are smaller.
    let shape = Shape::new([21, 10])?;
    let numbers: Vec<f32> = (0..210).map(|number| number as f32).collect();
    let mesh = Mesh::new([("x", devices.len())])?;
    let rows = Sharding::tiled(devices.clone(), mesh.tiling(&[&["x"], &[]])?)?;
    let columns = Sharding::tiled(devices.clone(), mesh.tiling(&[&[], &["x"]])?)?;
    let everywhere = Sharding::replicated(devices)?;

    let buffer = HostBuffer::from_slice(&numbers, DType::F32, shape)?;
    let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
    let mut array = client.make_array_from_host_buffer(&buffer, &rows, semantics)?;
    let hash = |array: &_| -> anyhow::Result<u64> {
        let hashes = client.hash_arrays(std::slice::from_ref(array), HashMode::Logical)?;
        hashes.wait_timeout(PATIENCE)?.pop().context("one array has one hash")
    };
    let expected = hash(&array)?;

    for (name, sharding) in
        [("rows", &rows), ("columns", &columns), ("everywhere", &everywhere), ("rows again", &rows)]
    {
        array = client.resharded(&array, sharding.clone())?;
        let own = SingleDeviceShardSemantics::AddressableShards;
        let largest = (sharding.shard_shapes(array.shape(), own)?.iter())
            .map(Shape::num_elements)
            .max()
            .unwrap_or_default();
        let found = hash(&array)?;
        println!(
            "process {process}: {name}, shards of up to {largest} elements, hash {found:016x}"
        );
        ensure!(found == expected, "the array is {found:016x}, it was {expected:016x}");
    }

    // Only process 0 gets all of it.
    if let Some(whole) = client.fetch_to(&array, 0)? {
        let whole: Vec<f32> = whole.wait_timeout(PATIENCE)?.to_vec()?;
        ensure!(whole == numbers);
        println!("process {process}: the first numbers are {:?}", &whole[..4]);
    }
    if let Some(trace) = trace {
        trace.flush()?;
    }
    Ok(())
}
