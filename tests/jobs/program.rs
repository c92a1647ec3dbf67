//! The program of the jobs under test: it misbehaves on request.
//!
//! ```text
//! job_under_test steps COUNT [sleep RANK STEP | leave-first RANK | wait-for FILE]
//! job_under_test variant same|shape|constant|fewer RANK
//! ```

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

mod processes;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use lockstep::client;
use lockstep::ifrt::{
    ArrayCopySemantics, Client, CompileOptions, DeviceId, ExecuteOptions, HostBuffer,
    HostBufferSemantics, LoadedExecutable, StableHloProgram,
};
use processes::process_of;

const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client: Arc<dyn Client> = client::Client::from_environment()?;
    let devices: Vec<u32> = client.devices().ids().map(|id| id.0).collect();
    match *words.as_slice() {
        ["steps", count] => {
            let program = sum_program(devices.len(), 3, "1.0", 2);
            steps(&*client, &devices, &program, 0..count.parse()?)
        }
        ["steps", count, "sleep", rank, step] => {
            let program = sum_program(devices.len(), 3, "1.0", 2);
            let (count, step): (usize, usize) = (count.parse()?, step.parse()?);
            if client.process_index() == rank.parse::<u32>()? {
                steps(&*client, &devices, &program, 0..step)?;
                // The fault under test: alive, heartbeats and all, but stuck.
                std::thread::sleep(PATIENCE);
                steps(&*client, &devices, &program, step..count)
            } else {
                steps(&*client, &devices, &program, 0..count)
            }
        }
        ["steps", count, "leave-first", rank] => {
            let program = sum_program(devices.len(), 3, "1.0", 2);
            steps(&*client, &devices, &program, 0..count.parse()?)?;
            let leaver: u32 = rank.parse()?;
            if client.process_index() == leaver {
                return Ok(());
            }
            let job = std::env::var("LOCKSTEP_JOB")?;
            wait_until("the leaver is gone", || process_of(&job, leaver).is_none())?;
            let rest: Vec<u32> = devices.into_iter().filter(|&id| id != leaver).collect();
            let program = sum_program(rest.len(), 3, "1.0", 2);
            steps(&*client, &rest, &program, 0..count.parse()?)
        }
        ["steps", count, "wait-for", file] => {
            let program = sum_program(devices.len(), 3, "1.0", 2);
            let count: usize = count.parse()?;
            steps(&*client, &devices, &program, 0..count / 2)?;
            wait_until("the file is there", || Path::new(file).exists())?;
            steps(&*client, &devices, &program, count / 2..count)
        }
        ["variant", kind, rank] => {
            let odd_one = client.process_index() == rank.parse::<u32>()?;
            let n = devices.len();
            let program = match kind {
                "shape" if odd_one => sum_program(n, 4, "1.0", 2),
                "constant" if odd_one => sum_program(n, 3, "2.0", 2),
                "fewer" if odd_one => sum_program(n, 3, "1.0", 1),
                "same" | "shape" | "constant" | "fewer" => sum_program(n, 3, "1.0", 2),
                _ => bail!("there is no variant {kind}"),
            };
            steps(&*client, &devices, &program, 0..1)
        }
        _ => bail!("not understood: {words:?}"),
    }
}

/// Each of `devices` devices holds `columns` numbers; adds `constant`, then sums `sums` times.
fn sum_program(devices: usize, columns: usize, constant: &str, sums: usize) -> String {
    let local = format!("tensor<1x{columns}xf32>");
    let global = format!("tensor<{devices}x{columns}xf32>");
    let members: Vec<String> = (0..devices).map(|device| device.to_string()).collect();
    let members = members.join(", ");
    let mut body = format!(
        "      %c = stablehlo.constant dense<{constant}> : {local}\n      \
         %s0 = stablehlo.add %x, %c : {local}\n"
    );
    for i in 0..sums {
        body.push_str(&format!(
            r#"      %s{next} = "stablehlo.all_reduce"(%s{i}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[{members}]]> : tensor<1x{devices}xi64>, use_global_device_ids}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }}) : ({local}) -> {local}
"#,
            next = i + 1
        ));
    }
    format!(
        r#"module @sum attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["data"={devices}]>
  func.func public @main(%arg0: {global} {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}}) -> {local} {{
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{"data"}}, {{}}]>] out_shardings=[<@mesh, [{{}}, {{}}]>] manual_axes={{"data"}} (%x: {local}) {{
{body}      sdy.return %s{sums} : {local}
    }} : ({global}) -> {local}
    return %0 : {local}
  }}
}}
"#
    )
}

/// Compiles for `devices`, then runs the steps, printing and checking the result of each.
fn steps(
    client: &dyn Client,
    devices: &[u32],
    program: &str,
    range: std::ops::Range<usize>,
) -> Result<()> {
    let ids: Vec<DeviceId> = devices.iter().map(|&id| DeviceId(id)).collect();
    let options = CompileOptions::new(client.make_device_list(&ids)?);
    let executable: Arc<dyn LoadedExecutable> = client
        .compiler()
        .compile_and_load(&StableHloProgram::Text(program.to_owned()), &options)
        .wait_timeout(PATIENCE)?;
    let spec = &executable.parameter_specs()[0];
    for step in range {
        let count = spec.shape.num_elements();
        let values: Vec<f32> = (0..count).map(|i| (i * 7 + step % 11) as f32).collect();
        let buffer = HostBuffer::from_slice(&values, spec.dtype, spec.shape.clone())?;
        let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
        let array = client.make_array_from_host_buffer(&buffer, &spec.sharding, semantics)?;
        let outputs = executable.execute(&[array], &ExecuteOptions::default())?.outputs;
        let sums = outputs[0].copy_to_host_buffer(ArrayCopySemantics::AlwaysCopy)?;
        let sums: Vec<f32> = sums.wait_timeout(PATIENCE)?.to_vec()?;
        let n = devices.len();
        let expected: Vec<f32> = (0..3)
            .map(|column| (0..n).map(|row| values[row * 3 + column] + 1.0).sum::<f32>() * n as f32)
            .collect();
        ensure!(sums == expected, "step {step}: expected {expected:?}, found {sums:?}");
        println!("process {} step {step} sums {sums:?}", client.process_index());
    }
    Ok(())
}

/// Returns when `condition` holds; `what` is what then happens.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !condition() {
        ensure!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::yield_now();
    }
    Ok(())
}
