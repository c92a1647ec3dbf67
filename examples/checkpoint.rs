//! A checkpoint that each process writes its own shards of, read back under another sharding.
//!
//! Each process writes `shards-P.npz`, for NumPy, and `shards-P.safetensors`; a shard is named by
//! the part of the array that it is, such as `[0..3, 0..4]`. Reading, a process takes from all
//! files what its new shards need. No process ever holds the whole array.
//!
//! ```text
//! $ lockstep run -n 2 checkpoint /tmp/checkpoint
//! process 0 wrote [0..5, 0..4]
//! process 1 wrote [5..9, 0..4]
//! process 0: both files hold the array, hash …
//! ```

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use lockstep::client;
use lockstep::ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, DType, HashMode, HostBuffer,
    HostBufferSemantics, HostBufferShards, IndexDomain, Mesh, Shape, Sharding,
    SingleDeviceShardSemantics,
};
use npyz::WriterBuilder as _;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

const PATIENCE: Duration = Duration::from_secs(60);
const OWN: SingleDeviceShardSemantics = SingleDeviceShardSemantics::AddressableShards;
const DURING_CALL: HostBufferSemantics = HostBufferSemantics::ImmutableOnlyDuringCall;

/// A part of the array, and its numbers, row-major.
type Part = (IndexDomain, Vec<f32>);

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).context("usage: checkpoint FOLDER")?;
    let folder = PathBuf::from(folder);
    fs::create_dir_all(&folder)?;
    let client = client::Client::from_environment()?;
    let (devices, process) = (client.devices().clone(), client.process_index());
    let mesh = Mesh::new([("x", devices.len())])?;
    let rows = Sharding::tiled(devices.clone(), mesh.tiling(&[&["x"], &[]])?)?;
    let columns = Sharding::tiled(devices, mesh.tiling(&[&[], &["x"]])?)?;

    let numbers: Vec<f32> = (0..36).map(|number| number as f32 / 3.0).collect();
    let buffer = HostBuffer::from_slice(&numbers, DType::F32, Shape::new([9, 4])?)?;
    let array = client.make_array_from_host_buffer(&buffer, &rows, DURING_CALL)?;
    let parts = parts_of(&array)?;
    write_npz(&folder.join(format!("shards-{process}.npz")), &parts)?;
    write_safetensors(&folder.join(format!("shards-{process}.safetensors")), &parts)?;
    for (domain, _) in &parts {
        println!("process {process} wrote {domain}");
    }

    // All processes are through with writing when they have agreed on this.
    let expected = hash(&*client, &array)?;
    let spec = ArraySpec { sharding: columns, ..array.spec().clone() };
    for read in [read_npz, read_safetensors] {
        let mut parts = Vec::new();
        for other in 0..client.process_count() {
            parts.extend(read(&folder, other)?);
        }
        let restored = assemble(&*client, &spec, &parts)?;
        let found = hash(&*client, &restored)?;
        ensure!(found == expected, "read {found:016x}, wrote {expected:016x}");
    }
    println!("process {process}: both files hold the array, hash {expected:016x}");
    Ok(())
}

fn hash(client: &dyn Client, array: &ArrayRef) -> anyhow::Result<u64> {
    let hashes = client.hash_arrays(std::slice::from_ref(array), HashMode::Logical)?;
    hashes.wait_timeout(PATIENCE)?.pop().context("one array has one hash")
}

/// The shards of this process that have elements.
fn parts_of(array: &ArrayRef) -> anyhow::Result<Vec<Part>> {
    let domains = array.sharding().index_domains(array.shape(), OWN)?;
    let shards =
        array.disassemble_into_single_device_arrays(ArrayCopySemantics::ReuseInput, OWN)?;
    let mut parts = Vec::new();
    for (domain, shard) in domains.into_iter().zip(shards) {
        let numbers = shard.copy_to_host_buffer(ArrayCopySemantics::ReuseInput)?;
        let numbers: Vec<f32> = numbers.wait_timeout(PATIENCE)?.to_vec()?;
        if !numbers.is_empty() {
            parts.push((domain, numbers));
        }
    }
    Ok(parts)
}

/// The array of `spec`, each shard put together of what the parts have of it.
fn assemble(client: &dyn Client, spec: &ArraySpec, parts: &[Part]) -> anyhow::Result<ArrayRef> {
    let domains = spec.sharding.index_domains(&spec.shape, OWN)?;
    let place = |domain: &IndexDomain, row: usize, column: usize| {
        let (origin, width) = (domain.origin(), domain.shape().dims()[1]);
        (row - origin[0]) * width + column - origin[1]
    };
    let mut shards = Vec::with_capacity(domains.len());
    for domain in &domains {
        let mut shard = vec![f32::NAN; domain.shape().num_elements()];
        for (part, numbers) in parts {
            let Some(common) = part.intersection(domain) else { continue };
            let ranges: Vec<(usize, usize)> = common.ranges().collect();
            for row in ranges[0].0..ranges[0].1 {
                for column in ranges[1].0..ranges[1].1 {
                    shard[place(domain, row, column)] = numbers[place(part, row, column)];
                }
            }
        }
        shards.push(shard);
    }
    let buffers = domains.iter().zip(&shards).enumerate().map(|(index, (domain, shard))| {
        Ok((vec![index], HostBuffer::from_slice(shard, DType::F32, domain.shape().clone())?))
    });
    let buffers = buffers.collect::<anyhow::Result<_>>()?;
    let shards = HostBufferShards { spec: spec.clone(), buffers };
    let mut made = client.make_arrays_from_host_buffer_shards(&[shards], DURING_CALL)?;
    made.pop().context("one array is made")
}

fn write_npz(file: &Path, parts: &[Part]) -> anyhow::Result<()> {
    let mut archive = zip::ZipWriter::new(File::create(file)?);
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (domain, numbers) in parts {
        archive.start_file(format!("{domain}.npy"), stored)?;
        let dims: Vec<u64> = domain.shape().dims().iter().map(|&dim| dim as u64).collect();
        let mut entry = Vec::new();
        let options = npyz::WriteOptions::<f32>::new().default_dtype().shape(&dims);
        let mut writer = options.writer(&mut entry).begin_nd()?;
        writer.extend(numbers.iter().copied())?;
        writer.finish()?;
        archive.write_all(&entry)?;
    }
    archive.finish()?;
    Ok(())
}

fn read_npz(folder: &Path, process: u32) -> anyhow::Result<Vec<Part>> {
    let file = File::open(folder.join(format!("shards-{process}.npz")))?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file))?;
    let mut parts = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        let name = entry.name()?.trim_end_matches(".npy").to_owned();
        let numbers = npyz::NpyFile::new(entry)?.into_vec::<f32>()?;
        parts.push((domain_named(&name)?, numbers));
    }
    Ok(parts)
}

fn write_safetensors(file: &Path, parts: &[Part]) -> anyhow::Result<()> {
    let bytes: Vec<Vec<u8>> = parts
        .iter()
        .map(|(_, numbers)| numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
        .collect();
    let mut tensors = Vec::with_capacity(parts.len());
    for ((domain, _), bytes) in parts.iter().zip(&bytes) {
        let dims = domain.shape().dims().to_vec();
        tensors.push((domain.to_string(), TensorView::new(Dtype::F32, dims, bytes)?));
    }
    fs::write(file, safetensors::serialize(tensors, None)?)?;
    Ok(())
}

fn read_safetensors(folder: &Path, process: u32) -> anyhow::Result<Vec<Part>> {
    let bytes = fs::read(folder.join(format!("shards-{process}.safetensors")))?;
    let mut parts = Vec::new();
    for (name, tensor) in SafeTensors::deserialize(&bytes)?.tensors() {
        ensure!(tensor.dtype() == Dtype::F32, "{name} is {:?}", tensor.dtype());
        let (numbers, _) = tensor.data().as_chunks();
        let numbers = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        parts.push((domain_named(&name)?, numbers));
    }
    Ok(parts)
}

/// The part called `[0..3, 0..4]`.
fn domain_named(name: &str) -> anyhow::Result<IndexDomain> {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let (mut origin, mut extent) = (Vec::new(), Vec::new());
    for range in inner.with_context(|| format!("{name} names no part"))?.split(", ") {
        let (from, to) = range.split_once("..").with_context(|| format!("{range} is no range"))?;
        let (from, to): (usize, usize) = (from.parse()?, to.parse()?);
        origin.push(from);
        extent.push(to.checked_sub(from).with_context(|| format!("{range} is no range"))?);
    }
    if origin.len() != 2 {
        bail!("{name} is no part of a matrix");
    }
    IndexDomain::new(origin, Shape::new(extent)?).with_context(|| format!("{name} is too large"))
}
