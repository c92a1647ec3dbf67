//! `lockstep-hlo run` and `bench`: one program on devices of the CPU backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use lockstep::backend::cpu::CpuBackend;
use lockstep::backend::{Backend, Buffer, Executable, LocalDevice};
use lockstep::client::{VirtualDevices, VirtualLaunch};
use lockstep::ifrt::{DType, Status};
use lockstep::stablehlo::{Module, Statistics, TensorType};
use lockstep::trace::Trace;
use tracing_subscriber::prelude::*;

use super::{Failure, Source, npz};

const DEVICE: LocalDevice = LocalDevice(0);

/// How long devices wait for each other in a collective.
const COLLECTIVE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Run {
    #[command(flatten)]
    source: Source,
    /// The arguments: an archive as `numpy.savez(file, *arrays)` writes it. A program without
    /// parameters needs none; one whose parameters leave dimensions open gets them from here.
    #[arg(long)]
    input: Option<PathBuf>,
    /// Where the results go, as `numpy.load` reads them: all of the first device, then those of the
    /// next.
    #[arg(long)]
    output: Option<PathBuf>,
    /// On how many virtual devices to run the program at once, each on the same arguments. They are
    /// the program's replicas and partitions where it says how many it has, else replicas.
    #[arg(long)]
    devices: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    source: Source,
    /// The arguments; without them, numbers made up from their positions.
    #[arg(long)]
    input: Option<PathBuf>,
    /// How long to run the program again and again, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Run it once more and write what happens when, one slice a step, for Perfetto.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

impl Run {
    /// Runs the program once and says what it returned.
    pub(crate) fn answer(&self) -> Result<String, Failure> {
        let program = Loaded::new(&self.source, self.devices, self.input.as_deref())?;
        let arguments = program.arguments(self.input.as_deref())?;
        let results = program.launch(&arguments)?;
        let types = program.executable.result_types();
        if let Some(file) = &self.output {
            let buffers = results.iter().flatten().map(Buffer::bytes);
            let arrays: Vec<(TensorType, &[u8])> =
                types.iter().cycle().cloned().zip(buffers).collect();
            npz::write(file, &arrays)
                .with_context(|| format!("cannot write {}", file.display()))
                .map_err(Failure::Usage)?;
        }
        Ok(types.iter().fold(String::new(), |text, ty| text + &ty.to_string() + "\n"))
    }
}

impl Bench {
    /// Runs the program repeatedly and says how long it takes.
    pub(crate) fn answer(&self) -> Result<String, Failure> {
        let program = Loaded::new(&self.source, None, self.input.as_deref())?;
        let arguments = program.arguments(self.input.as_deref())?;
        let mut times = Vec::new();
        let limit = Duration::try_from_secs_f64(self.seconds).unwrap_or(Duration::MAX);
        let started = Instant::now();
        // The first launch allocates what the later ones reuse: it is not counted.
        program.launch(&arguments)?;
        while times.is_empty() || started.elapsed() < limit {
            let launched = Instant::now();
            program.launch(&arguments)?;
            times.push(launched.elapsed());
        }
        times.sort_unstable();
        let median = times[times.len() / 2];
        let Statistics { flops, bytes_accessed, .. } = program.statistics;
        let per_second = |count: u64| count as f64 / median.as_secs_f64() / 1e9;
        if let Some(file) = &self.trace {
            traced(file, || program.launch(&arguments))?;
        }
        let seconds = |name, time: Duration| (name, time.as_secs_f64() * 1e6, "us");
        let figures = [
            seconds("read", program.read_time),
            seconds("compile", program.compile_time),
            seconds("run_least", times[0]),
            seconds("run_median", median),
            ("memory", program.executable.memory_bytes() as f64 / 1e6, "MB"),
            ("launches", times.len() as f64, ""),
            ("arithmetic", per_second(flops), "GFLOP/s"),
            ("operands_and_results", per_second(bytes_accessed), "GB/s"),
        ];
        Ok(if self.json { to_json(&figures) } else { to_table(&figures) })
    }
}

/// Runs something and writes a trace of it.
fn traced<T>(file: &Path, run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let unwritten = || format!("cannot write {}", file.display());
    let trace = Trace::create(file, 0).with_context(unwritten).map_err(Failure::Usage)?;
    // Devices run on threads of their own: the subscriber is the whole process's.
    tracing_subscriber::registry()
        .with(trace.clone())
        .try_init()
        .with_context(unwritten)
        .map_err(Failure::Usage)?;
    let result = run()?;
    trace.flush().with_context(unwritten).map_err(Failure::Usage)?;
    Ok(result)
}

/// What was measured, how much it is, and of what.
type Figure = (&'static str, f64, &'static str);

fn to_table(figures: &[Figure]) -> String {
    let line = |&(name, number, unit): &Figure| {
        format!("{number:>14.3} {unit:8} {}\n", name.replace('_', " "))
    };
    figures.iter().map(line).collect()
}

/// An object with the number and the unit of each figure by its name.
fn to_json(figures: &[Figure]) -> String {
    let member = |&(name, number, unit): &Figure| {
        format!("\"{name}\": {{\"value\": {number}, \"unit\": \"{unit}\"}}")
    };
    let members: Vec<String> = figures.iter().map(member).collect();
    format!("{{{}}}\n", members.join(", "))
}

/// A program ready to run.
struct Loaded {
    module: Module,
    backend: CpuBackend,
    devices: VirtualDevices,
    device_count: usize,
    executable: Arc<dyn Executable>,
    /// From the file's bytes to a verified module.
    read_time: Duration,
    compile_time: Duration,
    statistics: Statistics,
}

impl Loaded {
    fn new(source: &Source, devices: Option<usize>, input: Option<&Path>) -> Result<Self, Failure> {
        let started = Instant::now();
        let modules: [Module; 1] =
            source.verified()?.modules.try_into().map_err(|modules: Vec<Module>| {
                let count = modules.len();
                Failure::Program(format!("this is {count} programs: one at a time can be run"))
            })?;
        let [mut module] = modules;
        if module.has_open_parameters()
            && let Some(file) = input
        {
            let dims = npz::dims(file)
                .with_context(|| format!("cannot use {}", file.display()))
                .map_err(Failure::Usage)?;
            module.specialise(&dims)?;
        }
        let read_time = started.elapsed();
        let statistics = module.statistics();
        let said = (module.num_replicas, module.num_partitions);
        let device_count = devices.unwrap_or(1);
        let (replicas, partitions) =
            if said.0.saturating_mul(said.1) == device_count { said } else { (device_count, 1) };
        let devices = VirtualDevices::new(replicas, partitions, COLLECTIVE_TIMEOUT)?;
        let backend = CpuBackend::new(1);
        let started = Instant::now();
        let executable = backend.compile(&module)?;
        let compile_time = started.elapsed();
        Ok(Self {
            module,
            backend,
            devices,
            device_count,
            executable,
            read_time,
            compile_time,
            statistics,
        })
    }

    fn arguments(&self, file: Option<&Path>) -> Result<Vec<Buffer>, Failure> {
        let types = self.executable.parameter_types();
        let arrays = match file {
            Some(file) => npz::read(file, types)
                .with_context(|| format!("cannot use {}", file.display()))
                .map_err(Failure::Usage)?,
            None => types.iter().map(made_up).collect(),
        };
        let to_device = |(ty, bytes): (&TensorType, &Vec<u8>)| {
            Ok(self.backend.buffer_from_host(DEVICE, ty, bytes)?)
        };
        types.iter().zip(&arrays).map(to_device).collect()
    }

    /// The results of each device.
    fn launch(&self, arguments: &[Buffer]) -> Result<Vec<Vec<Buffer>>, Failure> {
        let launch = || VirtualLaunch {
            module: &self.module,
            executable: Arc::clone(&self.executable),
            arguments: arguments.to_vec(),
        };
        let launches = (0..self.device_count).map(|_| launch()).collect();
        Ok(self.devices.run(launches)?)
    }
}

impl From<Status> for Failure {
    /// What the compiler or a launch has against a program that was read.
    fn from(status: Status) -> Self {
        Self::Program(status.message().to_owned())
    }
}

/// Numbers to run on when none are given: floats around one, other types small bit patterns.
#[expect(clippy::cast_possible_truncation, reason = "rounding a made-up number is harmless")]
fn made_up(ty: &TensorType) -> Vec<u8> {
    let wave = |i: usize| 1.0 + (i * 7919 % 2003) as f64 / 4006.0;
    let count = ty.shape.num_elements();
    let floats = |per_element: usize| (0..count * per_element).map(wave);
    match ty.dtype {
        DType::F32 => floats(1).flat_map(|x| (x as f32).to_le_bytes()).collect(),
        DType::F64 => floats(1).flat_map(f64::to_le_bytes).collect(),
        DType::C64 => floats(2).flat_map(|x| (x as f32).to_le_bytes()).collect(),
        DType::C128 => floats(2).flat_map(f64::to_le_bytes).collect(),
        other => {
            let mut element = vec![0; other.size_bytes()];
            let mut bytes = Vec::with_capacity(ty.size_bytes());
            for i in 0..count {
                element[0] = u8::from(i % 3 == 0);
                bytes.extend_from_slice(&element);
            }
            bytes
        }
    }
}
