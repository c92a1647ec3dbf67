"""Operations that move elements."""

import numpy as np
from jax import lax

from .programs import jax_case
from .values import (
    COMPLEX,
    FLOATS8,
    NARROW,
    PLAIN,
    SMALL_FLOATS,
    is_complex,
    is_float,
    itemsize,
    mixed,
    numbers,
    rng_of,
)


def movement():
    for dtype in PLAIN + COMPLEX + NARROW + FLOATS8 + SMALL_FLOATS:
        rng = rng_of("movement", dtype)
        x = mixed(rng, 60, dtype).reshape(3, 4, 5)
        y = mixed(rng, 24, dtype).reshape(3, 2, 4)
        zero = np.zeros((), dtype) if dtype != "float8_e8m0fnu" else np.ones((), dtype)
        functions = {
            "transpose": lambda x: lax.transpose(x, (2, 0, 1)),
            "reverse": lambda x: lax.rev(x, (0, 2)),
            "slice": lambda x: lax.slice(x, (0, 1, 1), (3, 4, 5), (2, 1, 3)),
            "reshape": lambda x: lax.reshape(lax.transpose(x, (1, 0, 2)), (6, 10)),
            "broadcast": lambda x: lax.broadcast_in_dim(x[:, :1, 0], (3, 2, 4), (0, 2)),
            "concatenate": lambda x: lax.concatenate([x, x[:, :0], lax.rev(x, (2,))], 1),
        }
        for name, f in functions.items():
            yield jax_case(f"{name} {dtype}", f, x)
        for config in [
            ((1, 2, 0), (0, -1, 2), (2, 1, 0)),
            ((-1, -2, 1), (-1, 0, 1)),
            ((0, 1, 3), (-3, 2, 0)),
        ]:
            config = [c if len(c) == 3 else (*c, 1) for c in zip(*config)]
            yield jax_case(f"pad {dtype} {config}", lambda x, z: lax.pad(x, z, config), x, zero)
        for start in [(0, 0, 0), (2, -1, 9), (-5, 3, 1)]:
            for index in ["int32", "int8", "uint8", "uint64"]:
                starts = [np.array(s).astype(index) for s in start]
                yield jax_case(
                    f"dynamic_slice {dtype} {start} {index}",
                    lambda x, *s: lax.dynamic_slice(x, s, (2, 2, 3)),
                    x,
                    *starts,
                )
                yield jax_case(
                    f"dynamic_update_slice {dtype} {start} {index}",
                    lambda x, y, *s: lax.dynamic_update_slice(x, y[:2, :2, :3], s),
                    x,
                    y,
                    *starts,
                )
        if dtype not in ["bool", *COMPLEX, *FLOATS8, *SMALL_FLOATS]:
            for dim in [0, 1]:
                yield jax_case(
                    f"iota {dtype} {dim}", lambda: lax.broadcasted_iota(dtype, (3, 4), dim)
                )
    bits = {
        1: ["int8", "uint8", "float8_e5m2"],
        2: ["int16", "bfloat16", "float16"],
        4: ["float32", "uint32"],
        8: ["float64", "int64"],
    }
    for source in sum(bits.values(), []):
        x = mixed(rng_of("bitcast", source), 16, source)
        for target in sum(bits.values(), []):
            ratio = itemsize(target) // itemsize(source)
            y = x.reshape(-1, ratio) if ratio > 1 else x
            yield jax_case(
                f"bitcast {source} to {target}", lambda y: lax.bitcast_convert_type(y, target), y
            )


def gather_scatter():
    modes = ["clip", "fill", "promise_in_bounds"]
    for dtype in ["float32", "int32", "bfloat16", "uint8", "complex64", "bool", "float64", "int4"]:
        for index in ["int32", "int8", "uint8", "int64"]:
            for i in range(6):
                rng = rng_of("gather", dtype, index, i)
                x = numbers(rng, (7, 5, 4), dtype)
                mode = modes[i % 2]
                low = 0 if index[0] == "u" else -9
                idx = rng.integers(low, 12, (3, 2)).astype(index)
                dnums = [
                    (lax.GatherDimensionNumbers((1, 2), (0,), (0,)), (1, 3, 2), idx[:, :1]),
                    (lax.GatherDimensionNumbers((1, 2, 3), (), (0, 2)), (2, 5, 3), idx),
                    (lax.GatherDimensionNumbers((1,), (0, 1), (1, 0)), (1, 1, 4), idx),
                    (lax.GatherDimensionNumbers((0, 2), (1,), (1,)), (7, 1, 2), idx[:, :1]),
                ][i % 4]
                d, sizes, at = dnums
                yield jax_case(
                    f"gather {dtype} {index} {mode} {i}",
                    lambda x, at: lax.gather(x, at, d, sizes, mode=mode),
                    x,
                    at,
                )
                batched = lax.GatherDimensionNumbers(
                    (1,), (1,), (1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,)
                )
                yield jax_case(f"gather batched {dtype} {index} {mode} {i}", lambda x, at: lax.gather(x, at, batched, (1, 1, 3), mode=mode),
                               x, rng.integers(low, 12, (7, 1)).astype(index))  # fmt: skip
        if dtype == "int4":
            continue
        for i in range(24):
            rng = rng_of("scatter", dtype, i)
            x = numbers(rng, (7, 5, 4), dtype)
            kinds = [
                lax.scatter,
                lax.scatter_add,
                lax.scatter_mul,
                lax.scatter_min,
                lax.scatter_max,
                lax.scatter_sub,
            ]
            if dtype == "complex64":
                kinds = kinds[:3]
            if dtype == "bool":
                kinds = kinds[:1]
            f = kinds[i % len(kinds)]
            mode = ["clip", "fill"][i // 6 % 2]
            idx = rng.integers(-3, 9, (6, 2)).astype("int32")
            if f is lax.scatter:
                # Which of several updates of one element wins is not said.
                idx = np.stack([rng.permutation(11)[:6] - 2, rng.integers(-1, 3, 6)], 1).astype(
                    "int32"
                )
            d, at, updates = [
                (lax.ScatterDimensionNumbers((1, 2), (0,), (0,)), idx[:, :1], (6, 5, 4)),
                (lax.ScatterDimensionNumbers((1, 2), (0,), (0, 2)), idx, (6, 5, 2)),
                (lax.ScatterDimensionNumbers((1,), (0, 1), (0, 1)), idx, (6, 3)),
            ][i % 3]
            u = numbers(rng, updates, dtype)
            ulps = {} if not (is_float(dtype) or is_complex(dtype)) else {"ulps": 4, "scaled": 2}
            yield jax_case(
                f"{f.__name__} {dtype} {mode} {i}",
                lambda x, at, u: f(x, at, u, d, mode=mode),
                x,
                at,
                u,
                **ulps,
            )
