//! Trains a classifier of handwritten digits, data-parallel over all processes of the job.
//!
//! ```text
//! lockstep run -n 4 train_mlp [--epochs N] [--data FOLDER]
//! ```
//!
//! The training step is a StableHLO program that JAX emitted (`scripts/export_examples.py`): each
//! device computes the gradients of its part of the batch, one all-reduce sums them, and every
//! device takes the same step. Every process runs this same file.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lockstep::client;
use lockstep::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, CompileOptions, ExecuteOptions, HostBuffer,
    HostBufferSemantics, LoadedExecutable, StableHloProgram,
};

const EPOCHS: usize = 15;
const BATCH: usize = 96;
const PIXELS: usize = 64;
const SEED: u64 = 42;
/// How long to wait for a result: collectives have deadlines of their own, and shorter ones.
const PATIENCE: Duration = Duration::from_secs(600);

fn main() -> Result<()> {
    let start = Instant::now();
    let options = Options::from_arguments(std::env::args().skip(1))?;
    let job = Job::open(&options)?;
    let digits = Digits::read(&options.data)?;

    let train = job.compile("train")?;
    let evaluate = job.compile("evaluate")?;
    let identical = job.compile("identical")?;

    // The first twelve arguments of a step are parameters and velocities, which it returns anew
    // behind the loss; the last two are the batch.
    let mut random = Random(SEED);
    let mut state = initial_state(&job, train.as_ref(), &mut random)?;
    let num_parameters = state.len() / 2;
    let mut order: Vec<usize> = (0..digits.train.labels.len()).collect();
    let training_start = Instant::now();
    let mut steps = 0;

    for epoch in 1..=options.epochs {
        random.shuffle(&mut order);
        let mut losses = Vec::new();
        for batch in order.chunks_exact(BATCH) {
            let mut arguments = state;
            arguments.extend(job.batch(train.as_ref(), &digits.train.choose(batch))?);
            let mut outputs = train.execute(&arguments, &ExecuteOptions::default())?.outputs;
            state = outputs.split_off(1);
            losses.push(outputs.swap_remove(0));
            steps += 1;
        }
        // Steps are launched ahead of their completion: only here does the epoch wait for them.
        let mut sum = 0.0;
        for loss in &losses {
            sum += read::<f32>(loss)?[0];
        }
        job.say(&format!("epoch {epoch:>2}  loss {:.7}", sum / losses.len() as f32));
    }
    let training = training_start.elapsed();

    let parameters = &state[..num_parameters];
    let mut arguments = parameters.to_vec();
    arguments.extend(job.batch(evaluate.as_ref(), &digits.held_out)?);
    let right = run_scalar(evaluate.as_ref(), &arguments)?;
    let held_out = digits.held_out.labels.len();
    job.say(&format!(
        "test accuracy {:.4} ({right} of {held_out} digits)",
        f64::from(right) / held_out as f64
    ));

    let spent = train.statistics();
    let launches = u32::try_from(spent.launches).unwrap_or(u32::MAX).max(1);
    job.say(&format!(
        "time per step {:.3} ms: {:.3} ms compute, {:.3} ms communication",
        training.as_secs_f64() * 1e3 / f64::from(steps.max(1)),
        (spent.compute_time / launches).as_secs_f64() * 1e3,
        (spent.communication_time / launches).as_secs_f64() * 1e3,
    ));

    let differing = run_scalar(identical.as_ref(), parameters)?;
    let processes = job.client.process_count();
    let noun = if processes == 1 { "process" } else { "processes" };
    let verdict = if differing == 0 { "yes" } else { "no" };
    job.say(&format!("parameters identical on {processes} {noun}: {verdict}"));
    ensure!(differing == 0, "{differing} parameters differ between processes");
    job.say(&format!("wall time {:.2} s", start.elapsed().as_secs_f64()));
    Ok(())
}

/// The client of this process, and what programs it can find for the devices of the job.
struct Job {
    client: Arc<dyn Client>,
    programs: PathBuf,
}

impl Job {
    fn open(options: &Options) -> Result<Self> {
        let client: Arc<dyn Client> = client::Client::from_environment()?;
        Ok(Self { client, programs: options.data.join("mlp") })
    }

    /// Compiles one of the exported programs for all devices of the job.
    fn compile(&self, name: &str) -> Result<Arc<dyn LoadedExecutable>> {
        let devices = self.client.devices().clone();
        let path = self.programs.join(format!("{name}_{}.mlir", devices.len()));
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("no program for {} devices (1, 2 and 4 have one): {path:?}", devices.len())
        })?;
        let executable = self
            .client
            .compiler()
            .compile_and_load(&StableHloProgram::Text(text), &CompileOptions::new(devices))
            .wait_timeout(PATIENCE)
            .with_context(|| format!("compiling {path:?}"))?;
        Ok(executable)
    }

    /// A global array from its whole contents, of which each process keeps its own shards.
    fn array<T: bytemuck::NoUninit>(&self, spec: &ArraySpec, elements: &[T]) -> Result<ArrayRef> {
        let buffer = HostBuffer::from_slice(elements, spec.dtype, spec.shape.clone())?;
        let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
        Ok(self.client.make_array_from_host_buffer(&buffer, &spec.sharding, semantics)?)
    }

    /// The last two arguments of a program: images and labels, cut over the devices.
    fn batch(&self, program: &dyn LoadedExecutable, samples: &Samples) -> Result<[ArrayRef; 2]> {
        let [.., images, labels] = program.parameter_specs() else {
            bail!("{} has too few parameters", program.name());
        };
        Ok([self.array(images, &samples.images)?, self.array(labels, &samples.labels)?])
    }

    /// Prints a line, once for the job.
    fn say(&self, line: &str) {
        if self.client.process_index() == 0 {
            println!("{line}");
        }
    }
}

/// Waits for the contents of an array.
fn read<T: bytemuck::AnyBitPattern>(array: &ArrayRef) -> Result<Vec<T>> {
    let contents = array.copy_to_host_buffer(ArrayCopySemantics::AlwaysCopy)?;
    Ok(contents.wait_timeout(PATIENCE)?.to_vec()?)
}

/// Runs a program whose one result is a number, and waits for it.
fn run_scalar(program: &dyn LoadedExecutable, arguments: &[ArrayRef]) -> Result<i32> {
    let outputs = program.execute(arguments, &ExecuteOptions::default())?.outputs;
    Ok(read(&outputs[0])?[0])
}

/// Random weights, zero biases and zero velocities, the same on every process.
fn initial_state(
    job: &Job,
    train: &dyn LoadedExecutable,
    random: &mut Random,
) -> Result<Vec<ArrayRef>> {
    let specs = train.parameter_specs();
    let state = &specs[..specs.len() - 2];
    let (parameters, velocities) = state.split_at(state.len() / 2);
    let mut arrays = Vec::new();
    for spec in parameters {
        let scale = match *spec.shape.dims() {
            [inputs, _] => (6.0 / inputs as f32).sqrt(),
            _ => 0.0,
        };
        let count = spec.shape.num_elements();
        let values: Vec<f32> = match scale {
            0.0 => vec![0.0; count],
            scale => (0..count).map(|_| (random.unit() * 2.0 - 1.0) * scale).collect(),
        };
        arrays.push(job.array(spec, &values)?);
    }
    for spec in velocities {
        arrays.push(job.array(spec, &vec![0.0_f32; spec.shape.num_elements()])?);
    }
    Ok(arrays)
}

/// Images of 8 x 8 pixels, scaled to 0..1, and the digits they show.
struct Samples {
    images: Vec<f32>,
    labels: Vec<i32>,
}

impl Samples {
    fn choose(&self, indices: &[usize]) -> Self {
        let image = |i: usize| &self.images[i * PIXELS..(i + 1) * PIXELS];
        Self {
            images: indices.iter().flat_map(|&i| image(i)).copied().collect(),
            labels: indices.iter().map(|&i| self.labels[i]).collect(),
        }
    }
}

/// The digits, every fifth of them held out of training.
struct Digits {
    train: Samples,
    held_out: Samples,
}

impl Digits {
    fn read(folder: &Path) -> Result<Self> {
        let pixels = read_npy(&folder.join("digits_images.npy"))?;
        let labels = read_npy(&folder.join("digits_labels.npy"))?;
        ensure!(pixels.len() == labels.len() * PIXELS, "images and labels differ in number");
        let all = Samples {
            images: pixels.iter().map(|&pixel| f32::from(pixel) / 16.0).collect(),
            labels: labels.iter().map(|&label| i32::from(label)).collect(),
        };
        let (held_out, train): (Vec<usize>, Vec<usize>) =
            (0..labels.len()).partition(|i| i % 5 == 0);
        Ok(Self { train: all.choose(&train), held_out: all.choose(&held_out) })
    }
}

fn read_npy(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {path:?}"))?;
    let file = npyz::NpyFile::new(&bytes[..]).with_context(|| format!("reading {path:?}"))?;
    Ok(file.into_vec()?)
}

/// SplitMix64: a random sequence that is the same on every process.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in 0..1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a remainder is less than its divisor")]
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

struct Options {
    epochs: usize,
    data: PathBuf,
}

impl Options {
    fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
        let mut options = Self { epochs: EPOCHS, data };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--epochs" => options.epochs = value.parse().context("--epochs")?,
                "--data" => options.data = value.into(),
                _ => bail!("unknown option {flag}; there are --epochs N and --data FOLDER"),
            }
        }
        Ok(options)
    }
}
