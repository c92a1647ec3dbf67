"""Measures JAX's collectives as lockstep-perf measures ours: on its own CPU devices by Gloo, or on
Lockstep's in a job of `lockstep run`, by what JAX_PLATFORMS says.

    jax_collectives.py [--coordinator HOST:PORT --rank RANK --ranks RANKS]
        COLLECTIVE:SIZE:ITERATIONS:WARM_UP...

One device in each process. A measurement is one call of the jitted collective under shard_map,
until its result is ready; the array is made and the program compiled before. What would take
longer than BUDGET_S runs fewer iterations, at least LEAST_ITERATIONS. Rank 0 prints one JSON list.
"""

import argparse
import json
import os
import time

ON_LOCKSTEP = os.environ.get("JAX_PLATFORMS") == "lockstep"
if ON_LOCKSTEP:
    # Installed packages have a .pth file for this.
    import jax_plugins.lockstep.startup  # noqa: F401

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

BUDGET_S = 0.25
LEAST_ITERATIONS = 5


def values(rank, count):
    """Small integers, so that sums are exact in any order; they differ by rank and by element."""
    return ((np.arange(count) * 31 + rank * 17) % 1021).astype(np.float32)


def expected(collective, rank, ranks, count):
    if collective == "all_reduce":
        return sum(values(i, count) for i in range(ranks))
    if collective == "all_gather":
        return np.concatenate([values(i, count) for i in range(ranks)])
    part = slice(rank * count, (rank + 1) * count)
    return np.concatenate([values(i, count * ranks)[part] for i in range(ranks)])


def jitted(collective, mesh, sharded):
    body = {
        "all_reduce": lambda x: jax.lax.psum(x, "ranks"),
        "all_gather": lambda x: jax.lax.all_gather(x, "ranks", tiled=True),
        "all_to_all": lambda x: jax.lax.all_to_all(x, "ranks", 0, 0, tiled=True),
    }[collective]
    # Every process has its own result; that all_reduce's are equal need not be known.
    spec = PartitionSpec("ranks")
    mapped = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(mapped, in_shardings=sharded, out_shardings=sharded)


def measure(collective, size, warm_up, iterations, mesh, sharded):
    rank, ranks = jax.process_index(), jax.process_count()
    elements = size // 4
    count = elements if collective == "all_reduce" else elements // ranks
    inputs = count if collective == "all_gather" else elements
    local = values(rank, inputs)
    array = jax.make_array_from_process_local_data(sharded, local, (inputs * ranks,))
    function = jitted(collective, mesh, sharded)
    once = lambda: function(array).block_until_ready()

    once()
    start = time.perf_counter()
    for _ in range(warm_up):
        once()
    affordable = BUDGET_S / ((time.perf_counter() - start) / warm_up)
    iterations = min(iterations, max(LEAST_ITERATIONS, int(affordable)))
    iterations = int(multihost_utils.broadcast_one_to_all(np.int32(iterations)))

    multihost_utils.sync_global_devices("start")
    samples = []
    last = time.perf_counter()
    for _ in range(iterations):
        once()
        now = time.perf_counter()
        samples.append(now - last)
        last = now

    found = np.asarray(once().addressable_data(0))
    wrong = int(np.sum(found != expected(collective, rank, ranks, count)))
    mine = np.array([np.mean(samples) * 1e6, np.median(samples) * 1e6, wrong], np.float32)
    everyone = multihost_utils.process_allgather(mine)
    slowest = int(np.argmax(everyone[:, 0]))
    return {
        "collective": collective,
        "size_bytes": size,
        "iterations": iterations,
        "time_us": float(everyone[slowest, 0]),
        "p50_us": float(everyone[slowest, 1]),
        "wrong": int(everyone[:, 2].sum()),
    }


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--coordinator")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("measurements", nargs="+")
    return parser.parse_args()


def main():
    options = arguments()
    if not ON_LOCKSTEP:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", 1)
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(options.coordinator, options.ranks, options.rank)
    mesh = jax.make_mesh((jax.process_count(),), ("ranks",))
    sharded = NamedSharding(mesh, PartitionSpec("ranks"))
    found = []
    for measurement in options.measurements:
        collective, *numbers = measurement.split(":")
        size, iterations, warm_up = map(int, numbers)
        found.append(measure(collective, size, warm_up, iterations, mesh, sharded))
    if jax.process_index() == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
