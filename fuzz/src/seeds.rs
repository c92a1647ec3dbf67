//! Writes messages as the program sends them to `corpus/`, for the targets to begin with.

use std::fs;
use std::io;
use std::path::Path;

use lockstep_collectives::fuzzing::{communicator, rendezvous, shared_memory, transport};

fn main() -> io::Result<()> {
    let environment = b"1\n4\n0\n2\nlocalhost:7000\n1\njob\n0\n/run/key\n2\n30s\n5s\n100ms".to_vec();
    let key = "0123456789abcdef".repeat(4) + "\n";
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
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
