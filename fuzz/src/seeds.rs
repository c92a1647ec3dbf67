//! Writes to `corpus/` what the targets begin with: messages as the program sends them, and the
//! programs in `tests/data` and in the folders that are named as arguments.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lockstep::fuzzing::client;
use lockstep_collectives::fuzzing::{communicator, rendezvous, shared_memory, transport};

fn main() -> io::Result<()> {
    let environment = b"1\n4\n0\n2\nlocalhost:7000\n1\njob\n0\n/run/key\n2\n30s\n5s\n100ms".to_vec();
    let key = "0123456789abcdef".repeat(4) + "\n";
    let shardings = [
        "{replicated}",
        "{maximal device=3}",
        "{devices=[2,2]<=[4] last_tile_dim_replicate}",
        "{devices=[2,1,3]<=[2,3]T(1,0) last_tile_dims={replicated, manual}}",
        "{{devices=[4]0,1,2,3}, {replicated}}",
    ];
    for (target, seeds) in [
        ("opening", communicator::seeds()),
        ("notice", communicator::seeds()),
        ("words", communicator::word_seeds()),
        ("sharing", shared_memory::sharing_seeds()),
        ("handover", shared_memory::handover_seeds()),
        ("key", vec![key.into_bytes()]),
        ("stream_head", transport::seeds()),
        ("rendezvous_message", rendezvous::seeds()),
        ("environment", vec![environment]),
        ("agreement", client::agreement_seeds()),
        ("hlo_frontend", shardings.map(|text| text.as_bytes().to_vec()).to_vec()),
    ] {
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder(target)?.join(format!("seed-{number}")), seed)?;
        }
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    let folders = std::iter::once(data).chain(std::env::args_os().skip(1).map(PathBuf::from));
    for (number, file) in folders.flat_map(|folder| files(&folder)).enumerate() {
        let target = match file.extension().and_then(|extension| extension.to_str()) {
            Some("mlir") => "hlo_text",
            Some("mlirbc") => "hlo_bytecode",
            Some("pb") => "hlo_frontend",
            _ => continue,
        };
        fs::copy(&file, folder(target)?.join(format!("file-{number}")))?;
    }
    Ok(())
}

fn folder(target: &str) -> io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() { files(&path) } else { vec![path] }
        })
        .collect()
}
