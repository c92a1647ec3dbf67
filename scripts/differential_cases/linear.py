"""Products, convolutions, transforms and decompositions."""

import numpy as np
from jax import lax

from .programs import jax_case, program, text_case, type_of
from .values import COMPLEX, FLOATS, FLOATS8, INTEGERS, is_complex, is_float, numbers, rng_of


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
                yield text_case(
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
                            yield text_case(
                                f"triangular_solve {dtype} {n} {left} {lower} {unit} {transpose}",
                                program([t, rhs], [type_of(rhs)], body),
                                [t, rhs],
                                **loose,
                            )
