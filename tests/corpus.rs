//! Programs that JAX wrote, run on inputs and compared with what XLA:CPU answered.
//!
//! tests/data/corpus/pack.py says what the files hold. A program over several devices is given the
//! parts of its inputs that it asks for, and its results are the parts of XLA's that it says they are.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    reason = "a test stops at what it did not expect, and counts few devices"
)]

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use half::{bf16, f16};

use lockstep::backend::cpu::CpuBackend;
use lockstep::backend::{
    Backend, Buffer, CollectiveContext, CollectiveSite, LocalDevice, Reduction,
};
use lockstep::ifrt::{DType, Result, Status};
use lockstep::spmd::{Localized, partition, shard_index};
use lockstep::stablehlo::op::Sharding;
use lockstep::stablehlo::{TensorType, parse, verify};

struct Case {
    name: String,
    devices: usize,
    tolerance: Tolerance,
}

#[derive(Clone, Copy, Debug)]
enum Tolerance {
    Exact,
    Relative(f64),
}

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus")
}

fn cases() -> Vec<Case> {
    let list = fs::read_to_string(corpus().join("cases.txt")).unwrap();
    list.lines()
        .map(|line| {
            let mut words = line.split(' ');
            let name = words.next().unwrap().to_owned();
            let devices = words.next().unwrap().parse().unwrap();
            let tolerance = match (words.next().unwrap(), words.next()) {
                ("rtol", Some(bound)) => Tolerance::Relative(bound.parse().unwrap()),
                ("bf16", None) => Tolerance::Relative(1e-2),
                ("f16", None) => Tolerance::Relative(1e-3),
                ("exact", _) => Tolerance::Exact,
                other => panic!("{name}: tolerance {other:?}"),
            };
            Case { name, devices, tolerance }
        })
        .collect()
}

/// Parses and, for several devices, cuts a program into that of one device.
fn program(case: &Case) -> Result<Localized> {
    let path = corpus().join(&case.name).join("program.stablehlo.mlir");
    let text = fs::read_to_string(path).unwrap();
    let module = parse(&text).map_err(|error| Status::unimplemented(error.to_string()))?;
    verify(&module).map_err(|error| Status::invalid_argument(error.to_string()))?;
    partition(&module).map_err(|error| Status::unimplemented(error.to_string()))
}

/// The part of an array of type `global` that is `piece`, counted in pieces of type `local`.
fn part(bytes: &[u8], global: &TensorType, piece: &[usize], local: &TensorType) -> Vec<u8> {
    let mut ranges: Vec<Range<usize>> = std::iter::once(0..bytes.len()).collect();
    let dims = global.shape.dims().iter().zip(local.shape.dims());
    for ((&whole, &cut), &piece) in dims.zip(piece) {
        // Each range so far is one index of the dimensions before.
        ranges = ranges
            .into_iter()
            .flat_map(|range| {
                let stride = range.len().checked_div(whole).unwrap_or(0);
                let start = range.start + piece * cut * stride;
                (0..cut).map(move |i| start + i * stride..start + (i + 1) * stride)
            })
            .collect();
    }
    ranges.into_iter().flat_map(|range| bytes[range].iter().copied()).collect()
}

fn run(case: &Case) -> Result<()> {
    let backend = CpuBackend::new(case.devices);
    let local = program(case)?;
    let executable = backend.compile(&local.module)?;
    let data = fs::read(corpus().join(&case.name).join("data.bin")).unwrap();
    let mut rest = data.as_slice();
    // Per device, its parts of the arrays of `globals`.
    let mut take = |globals: &[TensorType], shardings: &[Sharding], types: &[TensorType]| {
        let mut devices = vec![Vec::new(); case.devices];
        for ((global, sharding), ty) in globals.iter().zip(shardings).zip(types) {
            let (now, later) = rest.split_at(global.size_bytes());
            rest = later;
            for (device, parts) in devices.iter_mut().enumerate() {
                let piece = shard_index(&local.mesh, sharding, device).unwrap();
                parts.push(part(now, global, &piece, ty));
            }
        }
        devices
    };
    let parameters = executable.parameter_types();
    let inputs = take(&local.global_parameters, &local.parameter_shardings, parameters);
    let results = executable.result_types();
    let expected = take(&local.global_results, &local.result_shardings, results);
    assert!(rest.is_empty(), "{}: {} bytes of data are left", case.name, rest.len());

    let exchange = Arc::new(Exchange::new(case.devices));
    let results: Vec<Result<Vec<Buffer>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = inputs
            .iter()
            .enumerate()
            .map(|(device, inputs)| {
                let (backend, executable) = (&backend, &executable);
                let context = Member { device, exchange: Arc::clone(&exchange) };
                scope.spawn(move || {
                    let local = LocalDevice(device);
                    let arguments = inputs
                        .iter()
                        .zip(executable.parameter_types())
                        .map(|(bytes, ty)| backend.buffer_from_host(local, ty, bytes))
                        .collect::<Result<Vec<_>>>()?;
                    // Twice: the second launch finds the memory of the first.
                    executable.execute(local, arguments.clone(), &context)?;
                    executable.execute(local, arguments, &context)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (device, (results, expected)) in results.into_iter().zip(&expected).enumerate() {
        let results = results?;
        for (index, ((result, expected), ty)) in
            results.iter().zip(expected).zip(executable.result_types()).enumerate()
        {
            let what = format!("{} device {device} result {index} {ty}", case.name);
            compare(&what, ty.dtype, result.bytes(), expected, case.tolerance);
        }
    }
    Ok(())
}

fn compare(what: &str, dtype: DType, result: &[u8], expected: &[u8], tolerance: Tolerance) {
    assert_eq!(result.len(), expected.len(), "{what}");
    // Complex numbers are compared part by part.
    let dtype = match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    };
    let Tolerance::Relative(bound) = tolerance else {
        if dtype.is_float() && dtype.size_bytes() > 1 {
            // Two NaNs are equal whatever their payload.
            let (result, expected) = (numbers(dtype, result), numbers(dtype, expected));
            let same =
                |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            assert!(result.iter().zip(&expected).all(same), "{what}: {result:?}, XLA {expected:?}");
        } else {
            assert_eq!(result, expected, "{what}");
        }
        return;
    };
    if !dtype.is_float() {
        assert_eq!(result, expected, "{what}");
        return;
    }
    let (result, expected) = (numbers(dtype, result), numbers(dtype, expected));
    let scale =
        expected.iter().filter(|x| x.is_finite()).fold(0.0_f64, |scale, x| scale.max(x.abs()));
    for (&a, &b) in result.iter().zip(&expected) {
        // Sums of terms of both signs are only as exact as their terms.
        let close = (a - b).abs() <= bound * b.abs() + 0.1 * bound * scale;
        let same = a == b || (a.is_nan() && b.is_nan());
        assert!(close || same, "{what}: {a} instead of {b}: {result:?}, XLA {expected:?}");
    }
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.chunks_exact(N).map(|chunk| f(chunk.try_into().unwrap())).collect()
    }
    match dtype {
        DType::F16 => each(bytes, |x| f16::from_le_bytes(x).to_f64()),
        DType::BF16 => each(bytes, |x| bf16::from_le_bytes(x).to_f64()),
        DType::F32 => each(bytes, |x| f32::from_le_bytes(x).into()),
        DType::F64 => each(bytes, f64::from_le_bytes),
        other => panic!("{other} is not compared by value"),
    }
}

/// Where the devices of a test meet: everybody's input of the collective under way.
struct Exchange {
    state: Mutex<Rounds>,
    changed: Condvar,
    members: usize,
}

#[derive(Default)]
struct Rounds {
    inputs: Vec<Option<Vec<u8>>>,
    readers: usize,
}

impl Exchange {
    fn new(members: usize) -> Self {
        let rounds = Rounds { inputs: vec![None; members], readers: 0 };
        Self { state: Mutex::new(rounds), changed: Condvar::new(), members }
    }

    /// Gives `input` and takes everybody's, in order of devices.
    fn all(&self, device: usize, input: &[u8]) -> Result<Vec<Vec<u8>>> {
        let patience = Duration::from_secs(20);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut state, late) = self
            .changed
            .wait_timeout_while(state, patience, |state| state.inputs[device].is_some())
            .unwrap();
        if late.timed_out() {
            return Err(Status::deadline_exceeded("the previous collective has not ended"));
        }
        state.inputs[device] = Some(input.to_vec());
        self.changed.notify_all();
        let (mut state, late) = self
            .changed
            .wait_timeout_while(state, patience, |state| state.inputs.iter().any(Option::is_none))
            .unwrap();
        if late.timed_out() {
            return Err(Status::deadline_exceeded("a device has not come to the collective"));
        }
        let all = state.inputs.iter().flatten().cloned().collect();
        state.readers += 1;
        if state.readers == self.members {
            state.readers = 0;
            state.inputs.fill(None);
            self.changed.notify_all();
        }
        Ok(all)
    }
}

struct Member {
    device: usize,
    exchange: Arc<Exchange>,
}

impl Member {
    /// The inputs of this device's group, in order, and this device's position in it.
    fn group(&self, site: &CollectiveSite<'_>, input: &[u8]) -> Result<(Vec<Vec<u8>>, usize)> {
        let all = self.exchange.all(self.device, input)?;
        let me = self.device as i64;
        let everybody: Vec<i64> = (0..all.len() as i64).collect();
        let group = site.replica_groups.iter().find(|group| group.contains(&me));
        let group = group.unwrap_or(&everybody);
        let position = group.iter().position(|&id| id == me).unwrap();
        let inputs = group.iter().map(|&id| all[usize::try_from(id).unwrap()].clone()).collect();
        Ok((inputs, position))
    }
}

fn fold(reduction: Reduction, dtype: DType, inputs: &[Vec<u8>]) -> Vec<u8> {
    assert_eq!(dtype, DType::F32, "the corpus reduces nothing else");
    let combine = match reduction {
        Reduction::Sum => |a: f32, b: f32| a + b,
        Reduction::Max => f32::max,
        Reduction::Min => f32::min,
        other => panic!("the corpus has no {other:?}"),
    };
    let values = |bytes: &Vec<u8>| -> Vec<f32> {
        bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
    };
    let mut total = values(&inputs[0]);
    for input in &inputs[1..] {
        for (total, x) in total.iter_mut().zip(values(input)) {
            *total = combine(*total, x);
        }
    }
    total.into_iter().flat_map(f32::to_le_bytes).collect()
}

impl CollectiveContext for Member {
    fn partition_id(&self) -> u32 {
        u32::try_from(self.device).unwrap()
    }

    fn replica_id(&self) -> u32 {
        0
    }

    fn all_reduce(
        &self,
        site: &CollectiveSite<'_>,
        reduction: Reduction,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let (inputs, _) = self.group(site, input)?;
        output.copy_from_slice(&fold(reduction, dtype, &inputs));
        Ok(())
    }

    fn all_gather(
        &self,
        site: &CollectiveSite<'_>,
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let (inputs, _) = self.group(site, input)?;
        output.copy_from_slice(&inputs.concat());
        Ok(())
    }

    fn reduce_scatter(
        &self,
        site: &CollectiveSite<'_>,
        reduction: Reduction,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let (inputs, position) = self.group(site, input)?;
        let total = fold(reduction, dtype, &inputs);
        output.copy_from_slice(&total[position * output.len()..][..output.len()]);
        Ok(())
    }

    fn all_to_all(
        &self,
        site: &CollectiveSite<'_>,
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let (inputs, position) = self.group(site, input)?;
        let piece = output.len() / inputs.len();
        for (input, out) in inputs.iter().zip(output.chunks_exact_mut(piece)) {
            out.copy_from_slice(&input[position * piece..][..piece]);
        }
        Ok(())
    }

    fn collective_permute(
        &self,
        _: &CollectiveSite<'_>,
        source_target_pairs: &[(i64, i64)],
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let all = self.exchange.all(self.device, input)?;
        let source = source_target_pairs.iter().find(|(_, target)| *target == self.device as i64);
        match source {
            Some(&(source, _)) => output.copy_from_slice(&all[usize::try_from(source).unwrap()]),
            None => output.fill(0),
        }
        Ok(())
    }

    fn collective_broadcast(
        &self,
        site: &CollectiveSite<'_>,
        _: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let (inputs, _) = self.group(site, input)?;
        output.copy_from_slice(&inputs[0]);
        Ok(())
    }
}

#[test]
fn the_corpus_runs_as_on_xla() {
    let mut surprises = Vec::new();
    for case in cases() {
        match std::panic::catch_unwind(|| run(&case)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => surprises.push(format!("{}: {error:?}", case.name)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                surprises.push(format!("{}: {text}", case.name));
            }
        }
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}
