"""Compares Lockstep's CPU backend with XLA:CPU on small programs, operation by operation.

Called by scripts/differential. Every case is a StableHLO module, its arguments and how close the
results have to be. The programs of a family are the same for the same seed. Exits with 1 when a
result differs; an operation that is refused by name is counted and listed, and is no difference.

XLA:CPU flushes subnormal numbers to zero, Lockstep keeps them: arguments have none, and results
below the least normal number are equal.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import time

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

import differential_cases as cases  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from differential_cases import values  # noqa: E402
from differential_cases.values import NARROW, is_complex, is_float  # noqa: E402
from jax._src import xla_bridge  # noqa: E402
from jax._src.interpreters import mlir as jax_mlir  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402


class Refused(Exception):
    """The program is refused by name."""


def on_xla(case, text):
    backend = xla_bridge.get_backend("cpu")
    with jax_mlir.make_ir_context():
        bytecode = jax_mlir.module_to_bytecode(ir.Module.parse(text))
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    executable = backend.compile_and_load(bytecode, devices, xla_client.CompileOptions())
    results = executable.execute_sharded([jax.device_put(a) for a in case.arguments])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def here(case, source, binary, folder, expected):
    program, inputs, outputs = (folder / name for name in ["program.mlir", "in.npz", "out.npz"])
    program.write_bytes(source)
    # Types that NumPy lacks travel as bytes.
    raw = [
        a if a.dtype.kind in "biufc" and a.dtype.isbuiltin == 1 else as_bytes(a)
        for a in map(np.asarray, case.arguments)
    ]
    np.savez(inputs, *raw)
    command = [binary, "run", program, "--input", inputs, "--output", outputs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 1 and "not implemented" in done.stderr:
        raise Refused(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-600:])
    with np.load(outputs) as archive:
        return [archive[f"arr_{i}"].view(e.dtype).reshape(e.shape) for i, e in enumerate(expected)]


def as_bytes(array):
    return np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}").reshape(array.shape)


def wide(array):
    """The values, and the least normal number and the distance of neighbours of each."""
    dtype = array.dtype
    if is_complex(dtype):
        array = np.stack([array.real, array.imag], -1)
        dtype = array.dtype
    values = array.astype(np.float64)
    info = ml_dtypes.finfo(dtype)
    least = float(info.smallest_normal)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(values), least)))
        unit = 2.0**exponent * float(info.eps)
    return values, least, np.where(np.isfinite(unit), unit, 0)


def difference(case, ours, expected):
    """What differs, or nothing."""
    if not (is_float(expected.dtype) or is_complex(expected.dtype)) or expected.size == 0:
        off = ours != expected
        if str(expected.dtype) in NARROW:
            off = ours.astype(np.int8) != expected.astype(np.int8)
        return first_difference(ours, expected, off)
    if expected.dtype == ml_dtypes.float8_e8m0fnu or expected.dtype.itemsize == 1:
        a, b = ours.astype(np.float64), expected.astype(np.float64)
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
        with np.errstate(all="ignore"):
            bound = case.ulps * neighbour(expected)
            if case.scaled:
                # With three bits of mantissa, what cancels leaves the errors of the terms.
                bound = bound + case.scaled * greatest(case.arguments) * unit_of(expected.dtype)
            close = np.abs(a - b) <= bound
        return first_difference(ours, expected, ~same & ~close)
    (a, least, _), (b, _, unit) = wide(ours), wide(expected)
    bound = case.ulps * unit + case.scaled * greatest([b]) * unit_of(expected.dtype)
    with np.errstate(all="ignore"):
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
        same |= (np.abs(a) < 2 * least) & (np.abs(b) <= least)
        close = (np.abs(a - b) <= bound) & (case.ulps > 0) & np.isfinite(b)
        # A bound that lets zero be off also lets its sign be.
        close |= (a == 0) & (b == 0) & (case.scaled > 0)
    off = ~(same | close)
    if is_complex(expected.dtype):
        # The parts of a number share its size.
        size = np.max(np.abs(b), axis=-1)
        with np.errstate(all="ignore"):
            near = np.max(np.abs(a - b), axis=-1) <= case.ulps * size * unit_of(expected.dtype)
        off = off.any(-1) & ~(near & (case.ulps > 0))
    return first_difference(ours, expected, off)


def greatest(arrays):
    """The greatest finite size of a number in them."""
    sizes = [np.abs(np.asarray(array).astype(np.float64)) for array in arrays]
    return max(float(np.max(size, initial=0, where=np.isfinite(size))) for size in sizes)


def neighbour(array):
    return np.maximum(np.abs(array.astype(np.float64)), 2.0**-9) * unit_of(array.dtype)


def unit_of(dtype):
    return float(ml_dtypes.finfo(dtype).eps)


def first_difference(ours, expected, off):
    if not np.any(off):
        return None
    at = tuple(int(i) for i in np.argwhere(off)[0][: expected.ndim])
    return (
        f"{int(np.sum(off))} of {expected.size} differ, first at {at}: {ours[at]} here, {expected[at]} on XLA",
        at,
    )


def main():
    known = {family.__name__: family for family in cases.FAMILIES}
    names = ARGUMENTS.family or list(known)
    deadline = time.monotonic() + ARGUMENTS.seconds
    totals = collections.defaultdict(collections.Counter)
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        for position, name in enumerate(names):
            # Each family gets its share of the time that is left.
            share = 2 * (deadline - time.monotonic()) / (len(names) - position + 1)
            end = time.monotonic() + share
            for case in known[name]():
                if ARGUMENTS.only not in case.name or not values.in_sample(case.name):
                    continue
                if time.monotonic() > end:
                    totals[name]["not reached"] += 1
                    continue
                totals[name][judge(case, pathlib.Path(folder), reports)] += 1
    columns = ["equal", "DIFFERENT", "FAILED", "refused", "not on XLA", "not reached"]
    print(f"{'family':20}" + "".join(f"{column:>13}" for column in columns))
    for name in names:
        print(f"{name:20}" + "".join(f"{totals[name][column] or '-':>13}" for column in columns))
    for kind in ["DIFFERENT", "FAILED", "refused", "not on XLA"]:
        for report in reports:
            if report.startswith(kind):
                print(report)
    sys.exit(any(totals[name][column] for name in names for column in ["DIFFERENT", "FAILED"]))


def judge(case, folder, reports):
    try:
        text, source = case.module()
        expected = on_xla(case, text)
    except Exception as error:  # XLA has no type of its own for what it lacks.
        if ARGUMENTS.verbose:
            reports.append(f"not on XLA  {case.name}: {str(error).splitlines()[0][:150]}")
        return "not on XLA"
    try:
        ours = here(case, source, ARGUMENTS.binary, folder, expected)
    except Refused as error:
        reports.append(f"refused    {case.name}: {str(error)[:150]}")
        return "refused"
    except Exception as error:
        reports.append(f"FAILED     {case.name}: {error}")
        return "FAILED"
    for i, (a, b) in enumerate(zip(ours, expected)):
        found = difference(case, a, b)
        if found:
            text, at = found
            arguments = [str(v[at]) for v in map(np.asarray, case.arguments) if v.shape == b.shape]
            reports.append(
                f"DIFFERENT  {case.name}, result {i}: {text}, for {', '.join(arguments)}"
            )
            if ARGUMENTS.keep:
                pathlib.Path(ARGUMENTS.keep).mkdir(exist_ok=True)
                (pathlib.Path(ARGUMENTS.keep) / f"{case.name.replace(' ', '_')}.mlir").write_text(
                    text
                )
            return "DIFFERENT"
    return "equal"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("binary", help="lockstep-hlo")
    parser.add_argument("family", nargs="*", help="which operations; all when none is named")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--sample", type=float, default=1, help="the share of cases to try")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--keep", help="a folder for the programs whose results differ")
    parser.add_argument("--verbose", action="store_true", help="also list what XLA:CPU cannot run")
    return parser.parse_args()


if __name__ == "__main__":
    ARGUMENTS = arguments()
    values.SEED, values.SAMPLE = ARGUMENTS.seed, ARGUMENTS.sample
    main()
