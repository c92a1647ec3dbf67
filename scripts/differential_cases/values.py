"""Element types, and the numbers that cases are made of: the same for a seed."""

import zlib

import jax.numpy as jnp
import ml_dtypes
import numpy as np

# Set before the first case is made: what numbers there are, and the share of cases that is tried.
SEED = 0
SAMPLE = 1.0

FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NARROW = ["int2", "int4", "uint2", "uint4"]
FLOATS8 = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
]
SMALL_FLOATS = ["float8_e8m0fnu", "float4_e2m1fn"]
PLAIN = ["bool", *INTEGERS, *FLOATS]


def is_float(dtype):
    return jnp.issubdtype(dtype, jnp.floating)


def is_complex(dtype):
    return jnp.issubdtype(dtype, jnp.complexfloating)


def is_integer(dtype):
    return jnp.issubdtype(dtype, jnp.integer) or str(dtype) in NARROW


def itemsize(dtype):
    return np.dtype(dtype).itemsize


def rng_of(*key):
    return np.random.default_rng(zlib.crc32(repr((SEED, key)).encode()))


def in_sample(name):
    return rng_of("sample", name).random() < SAMPLE


def edges(dtype):
    """Every kind of number that a type has, subnormals excepted."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return np.array([False, True])
    if is_complex(dtype):
        parts = np.array([0.0, -0.0, 1.0, -2.5, 3.25, np.inf, -np.inf, np.nan])
        real, imaginary = np.meshgrid(parts, parts)
        numbers = np.empty(real.size, dtype)
        numbers.real, numbers.imag = real.ravel(), imaginary.ravel()
        return numbers
    if is_integer(dtype):
        info = jnp.iinfo(dtype)
        wanted = [info.min, info.min + 1, -2, -1, 0, 1, 2, 3, info.max - 1, info.max]
        kept = [x for x in wanted if info.min <= x <= info.max]
        return np.array(kept, dtype=np.int64 if info.max < 2**63 else np.uint64).astype(dtype)
    info = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        values = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, np.pi, 10.0, 100.25]
        values += [1e-6, 1e6, -1e-3, 0.1, 0.99, 1.01, 20.0, -20.0, 88.0, -88.0, 1e4, 1e-10, 1e10]
        values += [float(info.max), float(info.min), np.inf, -np.inf, np.nan]
        values = np.array(values).astype(dtype)
        wide = np.abs(values.astype(np.float64))
        return values[(wide == 0) | ~(wide < float(info.smallest_normal))]


def numbers(rng, shape, dtype, scale=2.0):
    """Ordinary numbers of a type."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if is_complex(dtype):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if is_integer(dtype):
        info = jnp.iinfo(dtype)
        low, high = max(int(info.min), -9), min(int(info.max), 9)
        return rng.integers(low, high + 1, shape).astype(dtype)
    return (scale * rng.standard_normal(shape)).astype(dtype)


def mixed(rng, count, dtype):
    """Edges and ordinary numbers, shuffled, `count` of them."""
    pool = np.concatenate([edges(dtype), numbers(rng, 3 * count, dtype).ravel()])
    return rng.permutation(pool)[:count] if count < len(pool) else np.resize(pool, count)


def pairs(rng, dtype):
    """Every edge with every edge, and ordinary pairs."""
    some = edges(dtype)
    if len(some) > 32:
        some = rng.permutation(some)[:32]
    a, b = np.meshgrid(some, some)
    more = [numbers(rng, 40, dtype) for _ in range(2)]
    return np.concatenate([a.ravel(), more[0]]), np.concatenate([b.ravel(), more[1]])
