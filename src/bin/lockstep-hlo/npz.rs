//! Arrays in NumPy's archives: `arr_0`, `arr_1`, …, as `numpy.savez(file, *arrays)` names them.
//!
//! Types that NumPy lacks (`bf16`, 8-bit floats, narrow integers) travel as raw bytes, `|V1` and
//! `|V2`, one element each as in device memory. Archives are read uncompressed, which is what
//! `numpy.savez` writes.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use lockstep::ifrt::DType;
use lockstep::stablehlo::TensorType;
use npyz::{NpyHeader, Order};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Reads one array for each of `types`, dense and row-major.
pub(crate) fn read(file: &Path, types: &[TensorType]) -> Result<Vec<Vec<u8>>> {
    let reader = BufReader::new(File::open(file)?);
    let mut archive = ZipArchive::new(reader).context("this is no archive of numpy.savez")?;
    ensure!(
        archive.len() == types.len(),
        "the program has {} parameters, the archive has {} arrays",
        types.len(),
        archive.len()
    );
    let mut arrays = Vec::with_capacity(types.len());
    for (index, ty) in types.iter().enumerate() {
        let name = name(index);
        let entry = archive.by_name(&name).with_context(|| format!("there is no {name}"))?;
        arrays.push(read_array(entry, ty).with_context(|| format!("{name} is for a {ty}"))?);
    }
    Ok(arrays)
}

/// The dimensions of the arrays in an archive.
pub(crate) fn dims(file: &Path) -> Result<Vec<Vec<usize>>> {
    let reader = BufReader::new(File::open(file)?);
    let mut archive = ZipArchive::new(reader).context("this is no archive of numpy.savez")?;
    let mut arrays = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let name = name(index);
        let mut entry = archive.by_name(&name).with_context(|| format!("there is no {name}"))?;
        let header = NpyHeader::from_reader(&mut entry)?;
        let dims = header.shape().iter().map(|&dim| usize::try_from(dim));
        arrays
            .push(dims.collect::<Result<_, _>>().with_context(|| format!("{name} is too large"))?);
    }
    Ok(arrays)
}

fn read_array(mut entry: impl Read, ty: &TensorType) -> Result<Vec<u8>> {
    let header = NpyHeader::from_reader(&mut entry)?;
    let (found, expected) = (header.dtype().descr(), format!("'{}'", descriptor(ty.dtype)));
    let raw = [format!("'|V{}'", ty.dtype.size_bytes()), format!("'<V{}'", ty.dtype.size_bytes())];
    if found != expected && !raw.contains(&found) {
        bail!("its elements are {found}, not {expected}");
    }
    let dims: Vec<u64> = ty.shape.dims().iter().map(|&dim| dim as u64).collect();
    ensure!(header.shape() == dims, "its shape is {:?}", header.shape());
    let row_major = header.order() == Order::C || dims.len() < 2;
    ensure!(row_major, "it is in Fortran's order; save numpy.ascontiguousarray of it");
    let mut bytes = Vec::new();
    let size = ty.size_bytes();
    entry.take(size as u64 + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() == size, "it holds {} bytes instead of {size}", bytes.len());
    Ok(bytes)
}

/// Writes dense row-major arrays.
pub(crate) fn write(file: &Path, arrays: &[(TensorType, &[u8])]) -> Result<()> {
    let mut archive = ZipWriter::new(BufWriter::new(File::create(file)?));
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (index, (ty, bytes)) in arrays.iter().enumerate() {
        archive.start_file(name(index), options)?;
        write_header(&mut archive, ty)?;
        archive.write_all(bytes)?;
    }
    archive.finish()?.flush()?;
    Ok(())
}

/// The header of format version 2.0, padded so that the data after it is aligned to 64 bytes.
fn write_header(mut out: impl Write, ty: &TensorType) -> io::Result<()> {
    const BEFORE_TEXT: usize = 12;
    let dims: Vec<String> = ty.shape.dims().iter().map(|dim| format!("{dim},")).collect();
    let text = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
        descriptor(ty.dtype),
        dims.concat()
    );
    let total = (BEFORE_TEXT + text.len() + 1).next_multiple_of(64);
    let length = u32::try_from(total - BEFORE_TEXT).map_err(io::Error::other)?;
    out.write_all(b"\x93NUMPY\x02\x00")?;
    out.write_all(&length.to_le_bytes())?;
    writeln!(out, "{text:width$}", width = total - BEFORE_TEXT - 1)
}

fn name(index: usize) -> String {
    format!("arr_{index}.npy")
}

/// NumPy's name of an element type.
fn descriptor(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::S8 => "|i1",
        DType::S16 => "<i2",
        DType::S32 => "<i4",
        DType::S64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        DType::BF16 => "|V2",
        DType::S2
        | DType::S4
        | DType::U2
        | DType::U4
        | DType::F8E3M4
        | DType::F8E4M3
        | DType::F8E4M3FN
        | DType::F8E4M3B11FNUZ
        | DType::F8E4M3FNUZ
        | DType::F8E5M2
        | DType::F8E5M2FNUZ
        | DType::F8E8M0FNU
        | DType::F4E2M1FN
        | DType::F6E2M3FN
        | DType::F6E3M2FN => "|V1",
    }
}
