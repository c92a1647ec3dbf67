//! What the runtime itself costs in one process: launches of an empty program, and large arrays
//! to and from the host, beside plain copies.
//!
//! ```text
//! $ cargo run --release --example overheads
//! ```

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use lockstep::client;
use lockstep::ifrt::{
    ArrayCopySemantics, ArrayRef, Client as _, CompileOptions, DType, ExecuteOptions, HostBuffer,
    HostBufferSemantics, HostBytes, Shape, Sharding, StableHloProgram,
};

const LAUNCHES: u32 = 20_000;
const BYTES: usize = 64 << 20;
const ROUNDS: usize = 15;

fn main() -> anyhow::Result<()> {
    let client = client::Client::solo(1)?;
    let devices = client.devices().clone();
    let sharding = Sharding::single_device(devices.clone())?;

    let text = "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }";
    let program = StableHloProgram::Text(text.to_owned());
    let empty =
        client.compiler().compile_and_load(&program, &CompileOptions::new(devices)).wait()?;
    let one = HostBuffer::from_slice(&[1.0_f32], DType::F32, Shape::scalar())?;
    let during_call = HostBufferSemantics::ImmutableOnlyDuringCall;
    let one = [client.make_array_from_host_buffer(&one, &sharding, during_call)?];
    let options = ExecuteOptions::default();
    let start = Instant::now();
    let mut last = None;
    for _ in 0..LAUNCHES {
        last = Some(empty.execute(&one, &options)?.status);
    }
    let launched = start.elapsed();
    last.context("it was launched")?.wait()?;
    let done = start.elapsed();
    let start = Instant::now();
    for _ in 0..LAUNCHES {
        empty.execute(&one, &options)?.status.wait()?;
    }
    println!("launch of an empty program:    {:?}", launched / LAUNCHES);
    println!("launched and run, in a stream: {:?}", done / LAUNCHES);
    println!("launched and waited for:       {:?}", start.elapsed() / LAUNCHES);

    let source = Arc::new(vec![1_u8; BYTES]);
    let mut target = vec![0_u8; BYTES];
    let copies = median(|| {
        // As often as an array copies: in and out.
        target.copy_from_slice(&source);
        black_box(&mut target).copy_from_slice(&source);
        Ok(())
    })?;
    let shape = Shape::new([BYTES])?;
    let mut round = |semantics| {
        median(|| {
            let bytes = HostBytes::Shared(source.clone());
            let buffer = HostBuffer::dense(bytes, DType::U8, shape.clone())?;
            let array: ArrayRef =
                client.make_array_from_host_buffer(&buffer, &sharding, semantics)?;
            let read = array.copy_to_host_buffer(ArrayCopySemantics::ReuseInput)?.wait()?;
            target.copy_from_slice(read.as_dense().context("it is dense")?);
            black_box(&mut target);
            Ok(())
        })
    };
    let (copied, kept) = (round(during_call)?, round(HostBufferSemantics::ImmutableZeroCopy)?);
    println!("64 MiB copied twice:           {copies:?}");
    println!(
        "to an array and back:          {copied:?}, {:.2} of that speed",
        copies.as_secs_f64() / copied.as_secs_f64()
    );
    println!("kept in place, and copied:     {kept:?}");
    Ok(())
}

fn median(mut round: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[ROUNDS / 2])
}
