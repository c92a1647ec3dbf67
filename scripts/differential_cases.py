"""The programs of scripts/differential, by family: generators of cases, the same for a seed."""

import dataclasses
import zlib

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import _jax
from jaxlib.mlir.dialects import stablehlo

jaxlib_mlir = _jax.mlir

# Set before the first case is made.
SEED = 0
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
EXACT = 0


@dataclasses.dataclass
class Case:
    name: str
    # A StableHLO module, and the portable artifact if it is not that text that is run here.
    text: str
    arguments: list
    # Units in the last place that a result may be off.
    ulps: float = EXACT
    # Absolute error in units of the last place of the greatest result.
    scaled: float = 0
    portable: bytes = b""


def is_float(dtype):
    return jnp.issubdtype(dtype, jnp.floating)


def is_complex(dtype):
    return jnp.issubdtype(dtype, jnp.complexfloating)


def is_integer(dtype):
    return jnp.issubdtype(dtype, jnp.integer) or str(dtype) in NARROW


def rng_of(*key):
    return np.random.default_rng(zlib.crc32(repr((SEED, key)).encode()))


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


NAMES = {
    "bool": "i1",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
    "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN",
}


def element(dtype):
    """StableHLO's name of a type."""
    name = str(np.dtype(dtype))
    return NAMES.get(name) or name.replace("uint", "ui").replace("int", "i")


def tensor(shape, dtype):
    return f"tensor<{''.join(f'{dim}x' for dim in shape)}{element(dtype)}>"


def type_of(array):
    return tensor(array.shape, array.dtype)


def program(arguments, results, body):
    """A module of one function over %0, %1, …; the body ends with `return`."""
    parameters = ", ".join(f"%{i}: {type_of(a)}" for i, a in enumerate(arguments))
    return (
        "module @m {\n  func.func public @main("
        + parameters
        + f") -> ({', '.join(results)}) {{\n{body}\n  }}\n}}\n"
    )


def jax_case(name, function, *arguments, **tolerance):
    """What JAX makes of a function; here, in the form in which it would hand it to a plugin."""
    lowered = jax.jit(function).trace(*arguments).lower()
    bytecode = jax_mlir.module_to_bytecode(lowered.compiler_ir())
    portable = jaxlib_mlir.serialize_portable_artifact(bytecode, stablehlo.get_current_version())
    return Case(name, lowered.as_text(), list(arguments), portable=portable, **tolerance)


def elementwise(name, op, result_dtype, arguments, attributes="", **tolerance):
    """One generic elementwise operation."""
    result = tensor(arguments[0].shape, result_dtype)
    operands = ", ".join(f"%{i}" for i in range(len(arguments)))
    types = ", ".join(map(type_of, arguments))
    body = f'    %r = "stablehlo.{op}"({operands}) {attributes} : ({types}) -> {result}\n'
    return Case(
        name,
        program(arguments, [result], body + f"    return %r : {result}"),
        arguments,
        **tolerance,
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
            yield elementwise(
                f"{op} {dtype}",
                op,
                dtype,
                [x],
                ulps=64 if op == "log_plus_one" else {1: 1, 2: 2, 4: 4, 8: 8}[itemsize(dtype)],
            )
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


def itemsize(dtype):
    return np.dtype(dtype).itemsize


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


def reducer(name, dtype):
    ty = tensor((), dtype)
    return f"^bb0(%x: {ty}, %y: {ty}):\n      %z = stablehlo.{name} %x, %y : {ty}\n      stablehlo.return %z : {ty}"


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
                yield Case(
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
                        yield Case(
                            f"sort by {direction} {order_name} {dtype} {shape} {dim}",
                            program([clean], [ty], body),
                            [clean],
                        )
            if dtype in ["float32", "bfloat16", "int32", "uint8"] and x.size:
                yield jax_case(
                    f"top_k {dtype} {shape}", lambda x: lax.top_k(x, min(2, x.shape[-1])), x
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
            try:
                yield jax_case(f"pad {dtype} {config}", lambda x, z: lax.pad(x, z, config), x, zero)
            except (TypeError, ValueError):
                continue
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


def dot():
    kinds = [(d, d) for d in FLOATS + COMPLEX + INTEGERS + FLOATS8[1:4]]
    kinds += [("bfloat16", "float32"), ("float16", "float32"), ("int8", "int32"), ("float32", "float64"), ("uint8", "int32"),
              ("int16", "int32"), ("bfloat16", "float64"), ("float8_e4m3fn", "float32"), ("int4", "int32"), ("int8", "float32")]  # fmt: skip
    for source, target in kinds:
        for i, (a, b, contract, batch) in enumerate([
            ((3, 4), (4, 5), ((1,), (0,)), ((), ())),
            ((4, 3), (5, 4), ((0,), (1,)), ((), ())),
            ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
            ((3, 2, 4), (5, 2, 4), ((2,), (2,)), ((1,), (1,))),
            ((2, 3, 4), (4, 2, 6), ((0, 2), (1, 0)), ((), ())),
            ((4,), (4,), ((0,), (0,)), ((), ())),
            ((3,), (4,), ((), ()), ((), ())),
            ((3, 0), (0, 2), ((1,), (0,)), ((), ())),
            ((70, 40), (40, 33), ((1,), (0,)), ((), ())),
        ]):  # fmt: skip
            rng = rng_of("dot", source, target, i)
            x, y = numbers(rng, a, source), numbers(rng, b, source)
            f = lambda x, y: lax.dot_general(x, y, (contract, batch), preferred_element_type=target)
            inexact = is_float(target) or is_complex(target)
            yield jax_case(
                f"dot {source} to {target} {i}",
                f,
                x,
                y,
                **({"ulps": 8, "scaled": 4} if inexact else {}),
            )


def convolution():
    for dtype in ["float32", "float64", "bfloat16", "float16", "int32", "complex64", "int8"]:
        for i in range(16):
            rng = rng_of("convolution", dtype, i)
            spatial = int(rng.integers(0, 4))
            groups, batch_groups = [(1, 1), (2, 1), (1, 2), (3, 1)][i % 4]
            features, out = (
                groups * int(rng.integers(1, 4)),
                groups * batch_groups * int(rng.integers(1, 4)),
            )
            sizes, window = rng.integers(2, 8, spatial), rng.integers(1, 4, spatial)
            strides, left, right = (tuple(map(int, rng.integers(1, 3, spatial))) for _ in range(3))
            padding = [
                tuple(map(int, p)) for p in rng.integers(-1 if i % 3 == 0 else 0, 3, (spatial, 2))
            ]
            x = numbers(rng, (batch_groups * 2, features, *sizes), dtype)
            w = numbers(rng, (out, features // groups, *window), dtype)
            flat = [(size - 1) * l + 1 + sum(p) for size, l, p in zip(sizes, left, padding)]
            if any(f < (k - 1) * r + 1 for f, k, r in zip(flat, window, right)):
                continue
            f = lambda x, w: lax.conv_general_dilated(
                x, w, strides, padding, left, right, None, groups, batch_groups
            )
            inexact = is_float(dtype) or is_complex(dtype)
            yield jax_case(
                f"convolution {dtype} {i}", f, x, w, **({"ulps": 8, "scaled": 4} if inexact else {})
            )


def fft():
    for part, whole in [("float32", "complex64"), ("float64", "complex128")]:
        for shape, lengths in [((8,), (8,)), ((1,), (1,)), ((2, 7), (7,)), ((3, 12), (12,)), ((4, 6), (4, 6)), ((2, 3, 5, 4), (3, 5, 4)),
                               ((31,), (31,)), ((100,), (100,)), ((2, 97), (97,)), ((16, 16), (16, 16)), ((3, 0), (0,)), ((0, 4), (4,)), ((5, 1), (5, 1))]:  # fmt: skip
            rng = rng_of("fft", shape)
            x, z = numbers(rng, shape, part), numbers(rng, shape, whole)
            half = z[..., : lengths[-1] // 2 + 1]
            tolerance = {"ulps": 8, "scaled": 8}
            for kind, argument in [("FFT", z), ("IFFT", z), ("RFFT", x), ("IRFFT", half)]:
                if 0 in lengths:
                    continue
                yield jax_case(
                    f"fft {kind} {whole} {shape}",
                    lambda v: lax.fft(v, kind, lengths),
                    argument,
                    **tolerance,
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
            yield Case(
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
                yield Case(
                    f"{op} {dtype} {shape}",
                    program(
                        arguments, results, body + f"    return {names} : {', '.join(results)}"
                    ),
                    arguments,
                    **tolerance,
                )


def random():
    for dtype in ["uint8", "uint16", "uint32", "uint64"]:
        for algorithm, words in [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)]:
            for shape in [(), (1,), (7,), (3, 5), (4, 4)]:
                state = rng_of("state").integers(0, 2**63, words).astype(np.uint64)
                out, st = tensor(shape, dtype), type_of(state)
                body = (
                    f'    %r:2 = "stablehlo.rng_bit_generator"(%0) {{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}} : ({st}) -> ({st}, {out})\n'
                    f"    return %r#0, %r#1 : {st}, {out}"
                )
                yield Case(
                    f"rng_bit_generator {algorithm} {words} {dtype} {shape}",
                    program([state], [st, out], body),
                    [state],
                )
    key = jax.random.key_data(jax.random.key(3))
    for name, f in {
        "normal": lambda k: jax.random.normal(k, (300,), "float32"),
        "uniform": lambda k: jax.random.uniform(k, (300,), "float64"),
        "bits": lambda k: jax.random.bits(k, (300,)),
        "permutation": lambda k: jax.random.permutation(k, 100),
        "categorical": lambda k: jax.random.categorical(k, jnp.arange(5.0), shape=(50,)),
        "gamma": lambda k: jax.random.gamma(k, 2.5, (20,)),
        "truncated_normal": lambda k: jax.random.truncated_normal(k, -1.0, 1.0, (50,)),
        "poisson": lambda k: jax.random.poisson(k, 3.0, (20,)),
        "randint": lambda k: jax.random.randint(k, (50,), -3, 12),
    }.items():
        yield jax_case(
            f"random {name}", lambda k: f(jax.random.wrap_key_data(k)), np.asarray(key), ulps=256
        )


def special():
    for dtype in ["float32", "float64"]:
        x = np.concatenate([edges(dtype), numbers(rng_of("special", dtype), 100, dtype)])
        positive = np.abs(numbers(rng_of("special positive", dtype), 60, dtype)) + np.ones(
            (), dtype
        )
        loose = {"ulps": 64, "scaled": 8}
        for f in [
            lax.erf,
            lax.erfc,
            lax.asin,
            lax.acos,
            lax.atan,
            lax.asinh,
            lax.acosh,
            lax.atanh,
            lax.sinh,
            lax.cosh,
            lax.exp2,
        ]:
            yield jax_case(f"{f.__name__} {dtype}", f, x, **loose)
        for f in [lax.lgamma, lax.digamma, lax.bessel_i0e, lax.bessel_i1e]:
            yield jax_case(f"{f.__name__} {dtype}", f, positive, **loose)
        yield jax_case(
            f"erf_inv {dtype}", lax.erf_inv, np.linspace(-0.99, 0.99, 77).astype(dtype), **loose
        )
        yield jax_case(
            f"igamma {dtype}", lax.igamma, positive, positive[::-1].copy(), ulps=512, scaled=64
        )
        yield jax_case(f"nextafter {dtype}", lax.nextafter, *pairs(rng_of("next"), dtype))
        for power in [-3, -1, 0, 2, 3, 7]:
            yield jax_case(
                f"integer_pow {power} {dtype}", lambda x: lax.integer_pow(x, power), x, ulps=8
            )


def control():
    for n in [-1, 0, 1, 2, 5]:
        at = np.array(n, np.int32)
        x = np.arange(4, dtype=np.float32)
        branches = [lambda x: x + 1, lambda x: x * 2, lambda x: -x]
        yield jax_case(f"switch {n}", lambda i, x: lax.switch(i, branches, x), at, x)
        yield jax_case(
            f"fori_loop {n}",
            lambda n, x: lax.fori_loop(0, n, lambda i, x: x * 2 + i.astype("float32"), x),
            at,
            x,
        )
        yield jax_case(
            f"cond {n}", lambda i, x: lax.cond(i > 0, lambda x: x[::-1], lambda x: x, x), at, x
        )
    for reverse in [False, True]:
        xs = np.arange(12, dtype=np.float32).reshape(4, 3)
        f = lambda xs: lax.scan(
            lambda c, x: (c + x, c * x), jnp.zeros(3, "float32"), xs, reverse=reverse
        )
        yield jax_case(f"scan reverse={reverse}", f, xs)


def linear_algebra():
    for dtype in ["float32", "float64", "complex64", "complex128"]:
        for n in [1, 2, 5, 17]:
            rng = rng_of("linalg", dtype, n)
            a = numbers(rng, (2, n, n), dtype)
            spd = (a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)).astype(dtype)
            loose = {"ulps": 256, "scaled": 64}
            ty = type_of(spd)
            for lower in ["true", "false"]:
                body = f'    %r = "stablehlo.cholesky"(%0) {{lower = {lower}}} : ({ty}) -> {ty}\n    return %r : {ty}'
                yield Case(
                    f"cholesky {dtype} {n} lower={lower}",
                    program([spd], [ty], body),
                    [spd],
                    **loose,
                )
            b = numbers(rng, (2, n, 3), dtype)
            for left in [True, False]:
                rhs = b if left else np.ascontiguousarray(np.swapaxes(b, -1, -2))
                for lower in [True, False]:
                    for unit in [True, False]:
                        for transpose in ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]:
                            t = (a / n + 2 * np.eye(n)).astype(dtype)
                            body = (
                                f'    %r = "stablehlo.triangular_solve"(%0, %1) {{left_side = {str(left).lower()}, lower = {str(lower).lower()}, '
                                f"unit_diagonal = {str(unit).lower()}, transpose_a = #stablehlo<transpose {transpose}>}} : ({ty}, {type_of(rhs)}) -> {type_of(rhs)}\n"
                                f"    return %r : {type_of(rhs)}"
                            )
                            yield Case(
                                f"triangular_solve {dtype} {n} {left} {lower} {unit} {transpose}",
                                program([t, rhs], [type_of(rhs)], body),
                                [t, rhs],
                                **loose,
                            )


FAMILIES = [
    unary, binary, compare, convert, reduce_precision, choose, reduce, reduce_window, sort, movement,
    gather_scatter, dot, convolution, fft, select_and_scatter, batch_norm, random, special, control, linear_algebra,
]  # fmt: skip
