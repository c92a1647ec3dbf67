"""Operations that fold, window or order elements."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from .programs import jax_case, program, reducer, tensor, text_case, type_of
from .values import (
    COMPLEX,
    FLOATS8,
    INTEGERS,
    NARROW,
    PLAIN,
    is_complex,
    is_float,
    is_integer,
    mixed,
    numbers,
    rng_of,
)


def reduce():
    for dtype in PLAIN + COMPLEX + NARROW + FLOATS8:
        rng = rng_of("reduce", dtype)
        # XLA leaves initial values out where there is nothing to reduce: all are neutral.
        ops = {"add": 0, "multiply": 1}
        if dtype == "bool":
            ops |= {"maximum": False, "minimum": True, "and": True, "or": False, "xor": False}
        elif dtype in INTEGERS + NARROW:
            ops |= {"maximum": jnp.iinfo(dtype).min, "minimum": jnp.iinfo(dtype).max}
            ops |= {"and": -1 if dtype[0] == "i" else jnp.iinfo(dtype).max, "or": 0, "xor": 0}
        elif dtype not in COMPLEX:
            info = ml_dtypes.finfo(dtype)
            infinite = np.isinf(np.array(np.inf).astype(dtype))
            ops |= {
                "maximum": -np.inf if infinite else info.min,
                "minimum": np.inf if infinite else info.max,
            }
        for op, start in ops.items():
            for shape, dims in [((0,), (0,)), ((1,), (0,)), ((7,), (0,)), ((5, 33), (0,)), ((5, 33), (1,)),
                                ((4, 3, 9), (0, 2)), ((4, 3, 9), (1,)), ((1000,), (0,)), ((3, 0, 2), (1,)), ((2, 3), ())]:  # fmt: skip
                exact = op in ["maximum", "minimum", "and", "or", "xor"] or not (
                    is_float(dtype) or is_complex(dtype)
                )
                x = numbers(rng, shape, dtype, scale=0.5)
                if exact and x.size > 3:
                    x = mixed(rng, x.size, dtype).reshape(shape)
                if op == "multiply" and not exact:
                    x = (
                        1 + np.asarray(x, np.complex128 if dtype in COMPLEX else np.float64) / 50
                    ).astype(dtype)
                init = np.array(start).astype(dtype)
                out = tensor([d for i, d in enumerate(shape) if i not in dims], dtype)
                body = (
                    f'    %r = "stablehlo.reduce"(%0, %1) ({{\n    {reducer(op, dtype)}\n    }}) '
                    f"{{dimensions = array<i64{': ' if dims else ''}{', '.join(map(str, dims))}>}} : "
                    f"({type_of(x)}, {type_of(init)}) -> {out}\n    return %r : {out}"
                )
                tolerance = (
                    {} if exact else {"ulps": 2 + 0.05 * x.size, "scaled": 2 + 0.05 * x.size}
                )
                yield text_case(
                    f"reduce {op} {dtype} {shape} {dims}",
                    program([x, init], [out], body),
                    [x, init],
                    **tolerance,
                )
        if dtype not in COMPLEX + NARROW + FLOATS8 + ["bool"]:
            for shape, dim in [((1,), 0), ((65,), 0), ((6, 11), 0), ((6, 11), 1)]:
                x = mixed(rng, int(np.prod(shape)), dtype).reshape(shape)
                for f in [lax.argmax, lax.argmin]:
                    yield jax_case(
                        f"{f.__name__} {dtype} {shape} {dim}", lambda x: f(x, dim, "int32"), x
                    )


def reduce_window():
    for dtype in ["float32", "bfloat16", "float64", "int32", "uint8", "bool", "int8"]:
        for i in range(12):
            rng = rng_of("reduce_window", dtype, i)
            rank = int(rng.integers(1, 4))
            shape = rng.integers(1, 9, rank)
            window = rng.integers(1, 4, rank)
            strides, base, dilation = (rng.integers(1, 3, rank) for _ in range(3))
            padding = rng.integers(-1 if i % 3 == 0 else 0, 4, (rank, 2))
            op, init = [(lax.max, -np.inf), (lax.min, np.inf), (lax.add, 0), (lax.mul, 1)][i % 4]
            if dtype == "bool":
                op, init = [(lax.bitwise_or, False), (lax.bitwise_and, True)][i % 2]
            elif is_integer(dtype) and abs(init) == np.inf:
                init = jnp.iinfo(dtype).min if init < 0 else jnp.iinfo(dtype).max
            x = numbers(rng, shape, dtype)
            if op in [lax.max, lax.min]:
                x = mixed(rng, x.size, dtype).reshape(shape)
            dilated = (shape - 1) * base + 1
            if np.any(dilated + padding.sum(1) < (window - 1) * dilation + 1) or np.any(
                dilated + padding.sum(1) < 0
            ):
                continue
            f = lambda x: lax.reduce_window(x, np.array(init, dtype), op, tuple(window), tuple(strides),
                                            [tuple(map(int, p)) for p in padding], tuple(base), tuple(dilation))  # fmt: skip
            exact = op not in [lax.add, lax.mul] or is_integer(dtype)
            yield jax_case(
                f"reduce_window {op.__name__} {dtype} {i}",
                f,
                x,
                **({} if exact else {"ulps": 8, "scaled": 2}),
            )
    for dtype in ["float32", "int32", "float64"]:
        for n in [1, 2, 9, 64, 1000]:
            x = numbers(rng_of("cumulative", dtype, n), (n,), dtype, scale=0.2)
            for f in [lax.cumsum, lax.cummax, lax.cummin, lax.cumprod]:
                yield jax_case(f"{f.__name__} {dtype} {n}", f, x, ulps=n, scaled=4)
            if is_float(dtype):
                yield jax_case(
                    f"cumlogsumexp {dtype} {n}", lax.cumlogsumexp, x, ulps=n + 8, scaled=8
                )


def sort():
    for dtype in PLAIN + COMPLEX + NARROW + FLOATS8:
        for shape, dim in [
            ((0,), 0),
            ((1,), 0),
            ((7,), 0),
            ((300,), 0),
            ((5, 40), 0),
            ((5, 40), 1),
            ((2, 9, 3), 1),
        ]:
            x = mixed(rng_of("sort", dtype, shape), int(np.prod(shape)), dtype).reshape(shape)
            if dtype not in FLOATS8:
                yield jax_case(
                    f"sort {dtype} {shape} {dim}", lambda x: lax.sort(x, dimension=dim), x
                )
                order = np.arange(x.size, dtype=np.int32).reshape(shape)
                yield jax_case(
                    f"sort pairs {dtype} {shape} {dim}",
                    lambda x, y: lax.sort((x, y), dimension=dim, num_keys=1),
                    x,
                    order,
                )
            if dtype in ["float32", "int8", "int32"]:
                y = mixed(rng_of("sort second", dtype), x.size, dtype).reshape(shape)
                keys = np.sign(np.nan_to_num(x.astype(np.float64))).astype(dtype)
                yield jax_case(
                    f"sort two keys {dtype} {shape} {dim}",
                    lambda x, y, z: lax.sort((x, y, z), dimension=dim, num_keys=2),
                    keys,
                    y,
                    order,
                )
                for direction in ["GT", "GE", "LE", "LT"]:
                    for order_name in ["FLOAT", "TOTALORDER"] if is_float(dtype) else ["SIGNED"]:
                        clean = (
                            np.nan_to_num(x, posinf=7, neginf=-7) + np.zeros((), dtype)
                            if order_name == "FLOAT"
                            else x
                        )
                        scalar, ty = tensor((), dtype), type_of(x)
                        body = (
                            f'    %r = "stablehlo.sort"(%0) ({{\n    ^bb0(%x: {scalar}, %y: {scalar}):\n'
                            f"      %z = stablehlo.compare {direction}, %x, %y, {order_name} : ({scalar}, {scalar}) -> tensor<i1>\n"
                            f"      stablehlo.return %z : tensor<i1>\n    }}) {{dimension = {dim} : i64, is_stable = true}} : ({ty}) -> {ty}\n"
                            f"    return %r : {ty}"
                        )
                        yield text_case(
                            f"sort by {direction} {order_name} {dtype} {shape} {dim}",
                            program([clean], [ty], body),
                            [clean],
                        )
            if dtype in ["float32", "bfloat16", "int32", "uint8"] and x.size:
                yield jax_case(
                    f"top_k {dtype} {shape}", lambda x: lax.top_k(x, min(2, x.shape[-1])), x
                )


def windows_text(window, strides, padding):
    pads = ", ".join(f"[{a}, {b}]" for a, b in padding)
    return (
        f"{{window_dimensions = array<i64: {', '.join(map(str, window))}>, window_strides = array<i64: {', '.join(map(str, strides))}>, "
        f"padding = dense<[{pads}]> : tensor<{len(padding)}x2xi64>}}"
    )


def select_and_scatter():
    for dtype in ["float32", "float64", "bfloat16", "float16", "int32", "uint8"]:
        for i in range(10):
            rng = rng_of("select_and_scatter", dtype, i)
            rank = int(rng.integers(1, 4))
            shape, window = rng.integers(3, 9, rank), rng.integers(1, 4, rank)
            strides = rng.integers(1, 4, rank)
            padding = [tuple(map(int, p)) for p in rng.integers(0, 3, (rank, 2))]
            out = [(s + sum(p) - w) // t + 1 for s, p, w, t in zip(shape, padding, window, strides)]
            x, source = rng.integers(0, 6, shape).astype(dtype), numbers(rng, out, dtype)
            if rank > 1:
                # XLA reduces a window dimension by dimension: between equals it takes another.
                x = rng.permutation(x.size).reshape(shape).astype(dtype)
                x = x if len(np.unique(x)) == x.size else x[..., :0]
                if x.size == 0:
                    continue
            init = np.array([0, 1][i % 2], dtype)
            scalar, ty = tensor((), dtype), type_of(x)
            direction = ["GE", "GT", "LE"][i % 3]
            body = (
                f'    %r = "stablehlo.select_and_scatter"(%0, %1, %2) ({{\n    ^bb0(%x: {scalar}, %y: {scalar}):\n'
                f"      %z = stablehlo.compare {direction}, %x, %y : ({scalar}, {scalar}) -> tensor<i1>\n      stablehlo.return %z : tensor<i1>\n"
                f"    }}, {{\n    {reducer('add', dtype)}\n    }}) {windows_text(window, strides, padding)} : ({ty}, {type_of(source)}, {scalar}) -> {ty}\n"
                f"    return %r : {ty}"
            )
            tolerance = {"ulps": 4, "scaled": 2} if is_float(dtype) else {}
            yield text_case(
                f"select_and_scatter {direction} {dtype} {i}",
                program([x, source, init], [ty], body),
                [x, source, init],
                **tolerance,
            )
    for dtype in ["float32", "bfloat16"]:
        x = numbers(rng_of("max pool", dtype), (2, 9, 9, 3), dtype)
        pool = lambda x: lax.reduce_window(
            x, np.array(-np.inf, dtype), lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"
        )
        yield jax_case(
            f"gradient of max pooling {dtype}",
            jax.grad(lambda x: (pool(x) ** 2).sum().astype("float32")),
            x,
            ulps=4,
            scaled=2,
        )


def batch_norm():
    for dtype in ["float32", "float64", "bfloat16", "float16"]:
        for feature, shape in [(1, (4, 3, 5)), (0, (2, 6)), (3, (2, 3, 4, 5))]:
            rng = rng_of("batch_norm", dtype, feature)
            x, n = numbers(rng, shape, dtype), shape[feature]
            scale, offset, mean = (numbers(rng, (n,), dtype) for _ in range(3))
            variance = np.abs(numbers(rng, (n,), dtype)) + np.ones((), dtype)
            attributes = f"{{epsilon = 1.0e-3 : f32, feature_index = {feature} : i64}}"
            vector, ty = type_of(scale), type_of(x)
            tolerance = {"ulps": 32, "scaled": 32}
            for op, arguments, results in [
                ("batch_norm_inference", [x, scale, offset, mean, variance], [ty]),
                ("batch_norm_training", [x, scale, offset], [ty, vector, vector]),
                (
                    "batch_norm_grad",
                    [x, scale, mean, variance, numbers(rng, shape, dtype)],
                    [ty, vector, vector],
                ),
            ]:
                operands = ", ".join(f"%{i}" for i in range(len(arguments)))
                names = (
                    ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
                )
                count = f":{len(results)}" if len(results) > 1 else ""
                body = f'    %r{count} = "stablehlo.{op}"({operands}) {attributes} : ({", ".join(map(type_of, arguments))}) -> ({", ".join(results)})\n'
                yield text_case(
                    f"{op} {dtype} {shape}",
                    program(
                        arguments, results, body + f"    return {names} : {', '.join(results)}"
                    ),
                    arguments,
                    **tolerance,
                )
