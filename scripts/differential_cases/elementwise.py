"""Operations that look at one element of each operand."""

import numpy as np

from .programs import elementwise
from .values import (
    COMPLEX,
    FLOATS,
    FLOATS8,
    INTEGERS,
    NARROW,
    PLAIN,
    SMALL_FLOATS,
    edges,
    itemsize,
    mixed,
    numbers,
    pairs,
    rng_of,
)


def unary():
    functions = [
        "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one",
        "logistic", "rsqrt", "sine", "sqrt", "tan", "tanh",
    ]  # fmt: skip
    exact = ["ceil", "floor", "round_nearest_afz", "round_nearest_even"]
    for dtype in FLOATS + FLOATS8:
        x = np.concatenate([edges(dtype), numbers(rng_of("unary", dtype), 200, dtype)])
        if dtype in FLOATS:
            x = np.concatenate([x, numbers(rng_of("unary far", dtype), 100, dtype, scale=50.0)])
        for op in functions:
            ulps = itemsize(dtype)
            if (op, dtype) == ("log_plus_one", "float64"):
                # XLA's own is up to 128 off.
                ulps = 160
            yield elementwise(f"{op} {dtype}", op, dtype, [x], ulps=ulps)
        for op in exact + ["abs", "negate", "sign"]:
            yield elementwise(f"{op} {dtype}", op, dtype, [x])
        yield elementwise(f"is_finite {dtype}", "is_finite", "bool", [x])
    for dtype in COMPLEX:
        # Of infinities and NaN the two make different things: unit tests say what.
        some = edges(dtype)
        x = np.concatenate([some[np.isfinite(some)], numbers(rng_of("unary", dtype), 200, dtype)])
        part = "float32" if dtype == "complex64" else "float64"
        for op in functions:
            yield elementwise(f"{op} {dtype}", op, dtype, [x], ulps=16)
        yield elementwise(f"negate {dtype}", "negate", dtype, [x])
        yield elementwise(f"sign {dtype}", "sign", dtype, [x], ulps=4)
        for op in ["real", "imag"]:
            yield elementwise(f"{op} {dtype}", op, part, [x])
        yield elementwise(f"abs {dtype}", "abs", part, [x], ulps=4)
    for dtype in INTEGERS + NARROW:
        x = np.concatenate([edges(dtype), numbers(rng_of("unary", dtype), 30, dtype)])
        ops = ["negate", "not", "popcnt", "count_leading_zeros"]
        if "u" not in dtype:
            ops += ["abs", "sign"]
        for op in ops:
            yield elementwise(f"{op} {dtype}", op, dtype, [x])
    yield elementwise("not bool", "not", "bool", [edges("bool")])


def binary():
    arithmetic = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"]
    for dtype in FLOATS + FLOATS8:
        a, b = pairs(rng_of("binary", dtype), dtype)
        for op in arithmetic:
            yield elementwise(f"{op} {dtype}", op, dtype, [a, b])
        for op in ["power", "atan2"]:
            yield elementwise(
                f"{op} {dtype}", op, dtype, [a, b], ulps=1 if itemsize(dtype) < 4 else 8
            )
    for dtype in INTEGERS + NARROW:
        a, b = pairs(rng_of("binary", dtype), dtype)
        for op in arithmetic + ["and", "or", "xor", "power"]:
            # XLA looks at the six low bits of an exponent.
            small = op != "power" or b.astype(np.float64) < 64
            yield elementwise(f"{op} {dtype}", op, dtype, [a[small].ravel(), b[small].ravel()])
        for op in ["shift_left", "shift_right_arithmetic", "shift_right_logical"]:
            yield elementwise(f"{op} {dtype}", op, dtype, [a, b])
    for dtype in COMPLEX:
        a, b = pairs(rng_of("binary", dtype), dtype)
        for op in ["add", "subtract"]:
            yield elementwise(f"{op} {dtype}", op, dtype, [a, b])
        for op in ["multiply", "divide", "power"]:
            finite = np.isfinite(a) & np.isfinite(b)
            yield elementwise(f"{op} {dtype} finite", op, dtype, [a[finite], b[finite]], ulps=64)
            yield elementwise(f"{op} {dtype}", op, dtype, [a, b], ulps=64)
    for part, dtype in [("float32", "complex64"), ("float64", "complex128")]:
        yield elementwise(f"complex {part}", "complex", dtype, list(pairs(rng_of("complex"), part)))
    a, b = pairs(rng_of("binary", "bool"), "bool")
    for op in ["add", "multiply", "maximum", "minimum", "and", "or", "xor"]:
        yield elementwise(f"{op} bool", op, "bool", [a, b])


def compare():
    kinds = [(d, ["FLOAT", "TOTALORDER"]) for d in FLOATS] + [
        (d, ["FLOAT"]) for d in FLOATS8 + COMPLEX
    ]
    kinds += [(d, ["UNSIGNED" if d[0] == "u" else "SIGNED"]) for d in INTEGERS + NARROW]
    kinds += [("bool", ["UNSIGNED"])]
    for dtype, orders in kinds:
        a, b = pairs(rng_of("compare", dtype), dtype)
        for order in orders:
            for direction in ["EQ", "NE", "GE", "GT", "LE", "LT"]:
                if dtype in COMPLEX and direction not in ["EQ", "NE"]:
                    continue
                attributes = (
                    f"{{comparison_direction = #stablehlo<comparison_direction {direction}>, "
                    f"compare_type = #stablehlo<comparison_type {order}>}}"
                )
                yield elementwise(
                    f"compare {direction} {order} {dtype}", "compare", "bool", [a, b], attributes
                )


def convert():
    types = PLAIN + COMPLEX + NARROW + FLOATS8 + SMALL_FLOATS
    for source in types:
        rng = rng_of("convert", source)
        x = np.concatenate([edges(source), numbers(rng, 60, source)])
        if source in ["int32", "int64", "uint32", "uint64"]:
            info = np.iinfo(source)
            x = np.concatenate([x, rng.integers(info.min, info.max, 200, source, endpoint=True)])
        if source in FLOATS:
            x = np.concatenate([x, numbers(rng, 60, source, scale=1000.0)])
        for target in types:
            if source in COMPLEX and target not in COMPLEX:
                continue
            yield elementwise(f"convert {source} to {target}", "convert", target, [x])


def reduce_precision():
    for dtype in FLOATS:
        x = mixed(rng_of("reduce_precision", dtype), 300, dtype)
        for exponent, mantissa in [
            (5, 10),
            (8, 7),
            (4, 3),
            (5, 2),
            (8, 23),
            (11, 52),
            (3, 0),
            (2, 1),
        ]:
            attributes = f"{{exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32}}"
            yield elementwise(
                f"reduce_precision {dtype} e{exponent}m{mantissa}",
                "reduce_precision",
                dtype,
                [x],
                attributes,
            )


def choose():
    for dtype in PLAIN + COMPLEX + NARROW + FLOATS8:
        rng = rng_of("select", dtype)
        a, b = pairs(rng, dtype)
        p = rng.integers(0, 2, a.shape).astype(bool)
        yield elementwise(f"select {dtype}", "select", dtype, [p, a, b])
        if dtype not in COMPLEX:
            low = np.resize(edges(dtype), a.shape)
            yield elementwise(f"clamp {dtype}", "clamp", dtype, [low, a, b])
