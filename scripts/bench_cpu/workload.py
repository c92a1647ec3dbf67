"""One program: as JAX runs it on XLA:CPU, and exported for Lockstep."""

import pathlib
import time

import jax
import numpy as np
from jax import export

import jax_programs
import results


class Workload:
    def __init__(self, name, folder):
        self.name = name
        function, arguments = jax_programs.make(name)
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
        np.savez(self.input, *(results.array(leaves[i]) for i in exported.module_kept_var_idx))

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

    def difference(self, file):
        """How far the results in `file` are from XLA's, as a share of the greatest of each array,
        and how far they may be."""
        theirs = [results.array(leaf) for leaf in jax.tree.leaves(self.function(*self.arguments))]
        with np.load(pathlib.Path(file)) as found:
            difference = results.difference(theirs, [found[name] for name in found.files])
        return difference, results.tolerance(theirs)
