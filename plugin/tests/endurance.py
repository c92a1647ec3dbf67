"""A loop of steps as training makes them, which must not take more memory the longer it runs.

    endurance.py STEPS

On all devices there are: arrays from the host, a step that is donated its own last results, a sum
over the devices, a result that is looked at in place, one that is copied, one that is never looked
at, an error.
"""

import pathlib
import sys

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

WARM_UP = 200
# What a step keeps if it keeps any of its arrays is a multiple of this.
ELEMENTS = 8192
# Of allocators that need not give back what they were given.
SLACK_BYTES = 16 << 20


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def main():
    steps = int(sys.argv[1])
    mesh = jax.make_mesh((jax.device_count(),), ("d",))
    cut = NamedSharding(mesh, P("d"))
    total = jax.jit(
        jax.shard_map(lambda x: jax.lax.psum(x.sum(), "d"), mesh=mesh, in_specs=P("d"), out_specs=P())
    )
    step = jax.jit(lambda state, batch: (state * 0.5 + batch, state - batch), donate_argnums=0)
    state = jax.device_put(np.zeros(ELEMENTS, np.float32), cut)
    expected = 0.0
    for number in range(WARM_UP + steps):
        if number == WARM_UP:
            start = resident_bytes()
        batch = jax.device_put(np.full(ELEMENTS, number % 7, np.float32), cut)
        before = state
        state, difference = step(state, batch)
        expected = expected * 0.5 + number % 7
        assert before.is_deleted()
        try:
            before + 1
        except RuntimeError as error:
            assert "deleted" in str(error), error
        view = np.asarray(state)
        np.testing.assert_allclose(view[[0, -1]], expected, rtol=1e-5)
        np.testing.assert_allclose(float(total(batch)), ELEMENTS * (number % 7), rtol=1e-5)
        copy = jax.device_put(state, jax.devices()[-1])
        del view, difference, copy
    grown = resident_bytes() - start
    print(f"{steps} steps, {grown} bytes more")
    assert grown < SLACK_BYTES, grown


if __name__ == "__main__":
    main()
