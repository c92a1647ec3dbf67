"""A jitted psum over two processes: on Lockstep, and on JAX's own CPU devices over Gloo."""

import json
import pathlib
import subprocess
import sys

from jobs import Failed, finish, free_port
from tables import KIB, MIB

OURS, THEIRS = "JAX on Lockstep", "JAX + Gloo"
PEERS = [THEIRS, OURS]
RANKS, ROUNDS, WARM_UP = 2, 5, 5
# How often, by size in bytes.
CALLS = {8: 1000, 4 * KIB: 1000, 64 * KIB: 200, MIB: 100, 16 * MIB: 20}

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "bench_collectives" / "jax_collectives.py"


def version(release):
    words = [str(release / "lockstep"), "--version"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1]


def environment(release, platform="lockstep"):
    """What makes JAX run on a platform, of which Lockstep's is the build in `release`."""
    library = release / "liblockstep_pjrt.so"
    # That a platform is experimental is no news here.
    return {"JAX_PLATFORMS": platform, "LOCKSTEP_PJRT_LIBRARY": str(library),
            "JAX_LOGGING_LEVEL": "ERROR"}


def measure(peer, release):
    """For each size, what the rank says whose mean is greatest."""
    calls = [f"all_reduce:{size}:{count}:{WARM_UP}" for size, count in CALLS.items()]
    words = [sys.executable, str(PROGRAM), *calls]
    if peer == OURS:
        job = [str(release / "lockstep"), "run", "-n", str(RANKS), "--no-tag", *words]
        said = finish([job], lambda _: environment(release))
    else:
        meeting = ["--coordinator", f"127.0.0.1:{free_port()}", "--ranks", str(RANKS)]
        said = finish([[*words, *meeting, "--rank", str(rank)] for rank in range(RANKS)],
                      lambda _: environment(release, "cpu"))
    try:
        # What greets comes before.
        samples = json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed(f"unreadable output {said[:200]!r}") from None
    if wrong := sum(sample["wrong"] for sample in samples):
        raise Failed(f"{wrong} wrong elements")
    return samples
