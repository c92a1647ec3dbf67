"""Times a jitted psum over all devices there are, by size.

    JAX_PLATFORMS=lockstep LOCKSTEP_DEVICES=4 python examples/jax/psum_benchmark.py
    lockstep run -n 4 -x JAX_PLATFORMS=lockstep python examples/jax/psum_benchmark.py
    JAX_PLATFORMS=cpu python examples/jax/psum_benchmark.py

A time is the median of calls until their result is ready, as process 0 sees it. The bandwidth is
that of NCCL's tests: what each device would have to send over a link of that speed if all did so at
once. Every result is checked.
"""

import argparse
import os
import time

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SIZES = [8, 1 << 10, 1 << 15, 1 << 20, 1 << 24]


def median_time(function, array, calls):
    function(array).block_until_ready()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        function(array).block_until_ready()
        times.append(time.perf_counter() - start)
    return np.median(times)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--calls", type=int, default=20)
    arguments.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="in bytes")
    options = arguments.parse_args()
    if int(os.environ.get("LOCKSTEP_WORLD_SIZE", "1")) > 1:
        jax.distributed.initialize()

    devices = jax.device_count()
    mesh = jax.make_mesh((devices,), ("devices",))
    cut = NamedSharding(mesh, P("devices"))
    psum = jax.jit(
        jax.shard_map(
            lambda part: jax.lax.psum(part, "devices"),
            mesh=mesh, in_specs=P("devices"), out_specs=P(),
        )
    )
    say = print if jax.process_index() == 0 else lambda *_: None
    say(f"{devices} devices of {jax.process_count()} processes, {jax.default_backend()}")
    say(f"{'bytes':>10} {'microseconds':>14} {'GB/s':>8}")
    for size in options.sizes:
        # Small integers, whose sums are exact in any order.
        rows = np.add.outer(np.arange(devices) * 17, np.arange(size // 4) * 31) % 1021
        rows = rows.astype(np.float32)
        array = jax.make_array_from_callback(
            (rows.size,), cut, lambda index: rows.reshape(-1)[index]
        )
        found = psum(array).addressable_data(0)
        np.testing.assert_array_equal(np.asarray(found), rows.sum(0))
        took = median_time(psum, array, options.calls)
        bandwidth = size / took * 2 * (devices - 1) / devices
        say(f"{size:10} {took * 1e6:14.1f} {bandwidth / 1e9:8.2f}")
    say("all sums are right")


if __name__ == "__main__":
    main()
