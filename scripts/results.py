"""Results of programs as files, and how far two of them are apart."""

import jax
import numpy as np


def array(value):
    """A NumPy array that numpy.savez can keep: keys as their words, 16-bit floats as bytes."""
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    value = np.asarray(value)
    return value if value.dtype.isbuiltin == 1 else value.view(f"V{value.dtype.itemsize}")


def difference(theirs, ours):
    """The greatest between two lists of arrays, as a share of the greatest number of each array."""
    if [(a.shape, a.dtype) for a in theirs] != [(a.shape, a.dtype) for a in ours]:
        return float("inf")
    return max((_share(_wide(a), _wide(b)) for a, b in zip(theirs, ours)), default=0.0)


def tolerance(arrays):
    """What of that is no error: sums in another order and functions within 2 units of the last
    place stay far below; bf16 keeps eight bits."""
    return 2e-2 if any(a.dtype == np.dtype("V2") for a in arrays) else 2e-4


def _wide(value):
    if value.dtype == np.dtype("V2"):
        return value.view(jax.numpy.bfloat16).astype(np.float64)
    return value.astype(np.complex128 if np.iscomplexobj(value) else np.float64)


def _share(expected, found):
    greatest = np.abs(expected).max(initial=0.0)
    apart = np.abs(expected - found).max(initial=0.0)
    return float(apart / greatest) if greatest else float(apart)
