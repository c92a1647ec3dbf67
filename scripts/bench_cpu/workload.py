"""One program: as JAX runs it on XLA:CPU, and exported for Lockstep."""

import contextlib
import io
import pathlib
import runpy
import sys
import time
from unittest import mock

import jax
import numpy as np
from jax import export


def functions(path):
    """The programs in a file of workloads by name, each a maker of a function and its arguments.

    The file is a command: given a name that it does not have, it measures nothing.
    """
    with mock.patch.object(sys, "argv", [str(path), "-"]), contextlib.redirect_stdout(io.StringIO()):
        return runpy.run_path(str(path))["W"]


class Workload:
    def __init__(self, name, make, folder):
        self.name = name
        function, arguments = make()
        self.arguments = jax.device_put(arguments)
        self.function = jax.jit(function)
        self.program = folder / f"{name}.mlirbc"
        self.input = folder / f"{name}.npz"
        self.export()

    def export(self):
        """Writes the program as JAX lowers it for a platform that it does not know."""
        exported = export.export(
            self.function, platforms=("lockstep",),
            disabled_checks=[export.DisabledSafetyCheck.platform()])(*self.arguments)
        self.program.write_bytes(exported.mlir_module_serialized)
        leaves = jax.tree.leaves(self.arguments)
        np.savez(self.input, *(array(leaves[i]) for i in exported.module_kept_var_idx))

    def compile_us(self):
        jax.clear_caches()
        lowered = self.function.lower(*self.arguments)
        start = time.perf_counter()
        lowered.compile()
        return (time.perf_counter() - start) * 1e6

    def memory_mb(self):
        """What XLA says that a step takes: arguments, results and what is between them."""
        sizes = self.function.lower(*self.arguments).compile().memory_analysis()
        return (sizes.argument_size_in_bytes + sizes.output_size_in_bytes
                + sizes.temp_size_in_bytes - sizes.alias_size_in_bytes) / 1e6

    def step_us(self, seconds):
        """The least time of a call, after one that is not counted."""
        jax.block_until_ready(self.function(*self.arguments))
        times = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            jax.block_until_ready(self.function(*self.arguments))
            times.append(time.perf_counter() - start)
        return min(times) * 1e6

    def results(self):
        return [array(leaf) for leaf in jax.tree.leaves(self.function(*self.arguments))]

    def difference(self, file):
        """How far the results in `file` are from XLA's, as a share of the greatest of each array."""
        with np.load(pathlib.Path(file)) as found:
            theirs, ours = self.results(), [found[name] for name in found.files]
        if [(a.shape, a.dtype) for a in theirs] != [(a.shape, a.dtype) for a in ours]:
            return float("inf")
        return max((share(wide(a), wide(b)) for a, b in zip(theirs, ours)), default=0.0)


def array(value):
    """A NumPy array that numpy.savez can keep: keys as their words, 16-bit floats as bytes."""
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    value = np.asarray(value)
    return value if value.dtype.isbuiltin == 1 else value.view(f"V{value.dtype.itemsize}")


def wide(value):
    if value.dtype == np.dtype("V2"):
        return value.view(jax.numpy.bfloat16).astype(np.float64)
    return value.astype(np.complex128 if np.iscomplexobj(value) else np.float64)


def share(expected, found):
    greatest = np.abs(expected).max(initial=0.0)
    difference = np.abs(expected - found).max(initial=0.0)
    return float(difference / greatest) if greatest else float(difference)
