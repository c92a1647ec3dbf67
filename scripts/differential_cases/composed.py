"""What JAX composes of many operations, and control flow."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .programs import jax_case, program, tensor, text_case, type_of
from .values import edges, numbers, pairs, rng_of


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
                yield text_case(
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
