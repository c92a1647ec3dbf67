"""JAX in a job of several processes: every process runs this file.

`lockstep run` starts them, or somebody who says where they meet, how many they are, and which one
this is:

    processes.py [lose | absent] [COORDINATOR PROCESSES PROCESS]

With `lose`, the last process ends in the middle, and the others must be told. With `absent`, the
last process comes to JAX's coordinator and does no more.
"""

import os
import sys

# Installed packages have a .pth file for this.
import jax_plugins.lockstep.startup  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np
from jax._src import distributed
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

if "LOCKSTEP_WORLD_SIZE" in os.environ:
    jax.distributed.initialize()
    place = int(os.environ["LOCKSTEP_WORLD_SIZE"]), int(os.environ["LOCKSTEP_RANK"])
else:
    coordinator, *place = sys.argv[-3:]
    place = tuple(map(int, place))
    jax.distributed.initialize(coordinator, *place)
if "absent" in sys.argv:
    if place[1] == place[0] - 1:
        # Until its standard input ends.
        sys.stdin.read()
        os._exit(0)
    try:
        jax.devices()
    except RuntimeError as error:
        print(f"told: {error}", flush=True)
        os._exit(0)
    sys.exit("devices without a process")
assert (jax.process_count(), jax.process_index()) == place, place
count = jax.process_count()
devices = jax.device_count()
assert devices == count * len(jax.local_devices())

mesh = jax.make_mesh((devices,), ("d",))
cut = NamedSharding(mesh, P("d"))
numbers = np.arange(devices * 3, dtype=np.float32)
array = jax.make_array_from_callback(numbers.shape, cut, lambda index: numbers[index])


def over_devices(function, out_specs):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P("d"), out_specs=out_specs))


total_of = over_devices(lambda part: jax.lax.psum(part, "d"), P())
total = total_of(array)
np.testing.assert_array_equal(np.asarray(total), numbers.reshape(devices, 3).sum(0))

gathered = over_devices(lambda part: jax.lax.all_gather(part, "d", tiled=True)[None], P("d"))(array)
for shard in gathered.addressable_shards:
    np.testing.assert_array_equal(np.asarray(shard.data)[0], numbers)

shift = [(i, (i + 1) % devices) for i in range(devices)]
shifted = over_devices(lambda part: jax.lax.ppermute(part, "d", shift), P("d"))(array)
for shard in shifted.addressable_shards:
    expected = np.roll(numbers, 3)[shard.index]
    np.testing.assert_array_equal(np.asarray(shard.data), expected)

# A call returns though the others have something else to do first: to hear of it.
store = distributed.global_state.client
if jax.process_index() > 0:
    store.blocking_key_value_get("called", 60_000)
again = total_of(array)
if jax.process_index() == 0:
    store.key_value_set("called", "yes")
np.testing.assert_array_equal(np.asarray(again), np.asarray(total))

squares = over_devices(lambda part: jax.lax.psum(jnp.sum(part**2), "d"), P())
gradient = jax.jit(jax.grad(squares))
for shard in gradient(array).addressable_shards:
    np.testing.assert_array_equal(np.asarray(shard.data), 2 * numbers[shard.index])

if "lose" in sys.argv:
    if jax.process_index() == count - 1:
        os._exit(7)
    try:
        jax.block_until_ready(over_devices(lambda part: jax.lax.psum(part, "d"), P())(array))
    except jax.errors.JaxRuntimeError as error:
        print(f"told: {error}", flush=True)
        # What the others wait for at the end does not come.
        os._exit(0)
    sys.exit("a sum without a process")
print("all equal", flush=True)
