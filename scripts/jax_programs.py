"""Programs as users of JAX write them, for benchmarks: by name, makers of a function and arguments."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SEED = 0


class Numbers:
    """Random arrays, the same in each process that makes a program."""

    def __init__(self):
        self.random = np.random.default_rng(SEED)

    def normal(self, *shape, scale=1.0):
        return (self.random.standard_normal(shape) * scale).astype(np.float32)

    def integers(self, below, *shape):
        return self.random.integers(0, below, shape).astype(np.int32)


def cross_entropy(logits, labels):
    chosen = jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels]
    return -jnp.mean(chosen)


def descended(parameters, gradients):
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def mlp_step(numbers):
    sizes = [784, 512, 512, 10]
    parameters = [
        (numbers.normal(m, n, scale=0.05), np.zeros(n, np.float32))
        for m, n in zip(sizes, sizes[1:])
    ]

    def loss(parameters, x, labels):
        *hidden, (weights, bias) = parameters
        for w, b in hidden:
            x = jax.nn.relu(x @ w + b)
        return cross_entropy(x @ weights + bias, labels)

    def step(parameters, x, labels):
        value, gradients = jax.value_and_grad(loss)(parameters, x, labels)
        return descended(parameters, gradients), value

    return step, (parameters, numbers.normal(256, 784), numbers.integers(10, 256))


def transformer_step(numbers):
    batch, length, width, heads = 8, 128, 256, 8
    shapes = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width),
              "up": (width, 4 * width), "down": (4 * width, width)}
    parameters = {name: numbers.normal(*shape, scale=0.02) for name, shape in shapes.items()}

    def normalized(x):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5)

    def attention(p, x):
        def split(y):
            return y.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

        q, k, v = (split(x @ p[name]) for name in "qkv")
        scores = q @ k.swapaxes(2, 3) / np.sqrt(width // heads)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jax.nn.softmax(scores) @ v
        return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["o"]

    def loss(p, x):
        x = x + attention(p, normalized(x))
        x = x + jax.nn.gelu(normalized(x) @ p["up"]) @ p["down"]
        return (x**2).mean()

    def step(parameters, x):
        value, gradients = jax.value_and_grad(loss)(parameters, x)
        return descended(parameters, gradients), value

    return step, (parameters, numbers.normal(batch, length, width))


def convnet_step(numbers):
    kernels = [numbers.normal(3, 3, 3, 16, scale=0.1), numbers.normal(3, 3, 16, 32, scale=0.1)]
    parameters = (kernels, numbers.normal(32 * 8 * 8, 10, scale=0.05))

    def loss(parameters, x, labels):
        kernels, weights = parameters
        for kernel in kernels:
            x = jax.nn.relu(lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return cross_entropy(x.reshape(len(labels), -1) @ weights, labels)

    return jax.value_and_grad(loss), (
        parameters, numbers.normal(32, 32, 32, 3), numbers.integers(10, 32))


def rnn_scan_256(numbers):
    def run(w, x):
        def cell(h, row):
            return jnp.tanh(h @ w + row), h

        return lax.scan(cell, jnp.zeros((32, 128)), x)[0]

    return run, (numbers.normal(128, 128, scale=0.05), numbers.normal(256, 32, 128))


def matmul_bf16_512(numbers):
    def short():
        return jnp.asarray(numbers.normal(512, 512), jnp.bfloat16)

    return jnp.matmul, (short(), short())


def while_scalar_100k(numbers):
    def run(n):
        return lax.fori_loop(0, n, lambda i, s: s * 1.0000001 + i, 0.0)

    return run, (np.int32(100_000),)


def cholesky_512(numbers):
    def run(x):
        return jnp.linalg.cholesky(x @ x.T + 512 * jnp.eye(512))

    return run, (numbers.normal(512, 512),)


def one(function, *shapes):
    """The maker of a function of normal arrays."""
    return lambda numbers: (function, tuple(numbers.normal(*shape) for shape in shapes))


MAKERS = {
    "mlp_step": mlp_step,
    "transformer_step": transformer_step,
    "convnet_step": convnet_step,
    "matmul_1024": one(jnp.matmul, (1024, 1024), (1024, 1024)),
    "matmul_bf16_512": matmul_bf16_512,
    "elementwise_16M": one(
        lambda x: jnp.tanh(x) * jnp.exp(-x * x) + jnp.sqrt(jnp.abs(x)), (1 << 24,)),
    "saxpy_16M": one(lambda x, y: 2 * x + y, (1 << 24,), (1 << 24,)),
    "softmax_4kx4k": one(jax.nn.softmax, (4096, 4096)),
    "reduce_cols": one(lambda x: x.sum(0), (4096, 4096)),
    "transpose_4k": one(lambda x: x.T + 0, (4096, 4096)),
    "sort_1M": one(jnp.sort, (1 << 20,)),
    "gather_rows": lambda numbers: (
        lambda table, rows: table[rows],
        (numbers.normal(100_000, 64), numbers.integers(100_000, 65_536))),
    "scatter_add": lambda numbers: (
        lambda table, rows, updates: table.at[rows].add(updates),
        (numbers.normal(100_000, 64), numbers.integers(100_000, 65_536),
         numbers.normal(65_536, 64))),
    "cumsum_1M": one(jnp.cumsum, (1 << 20,)),
    "rnn_scan_256": rnn_scan_256,
    "while_scalar_100k": while_scalar_100k,
    "threefry_4M": lambda numbers: (
        lambda key: jax.random.normal(key, (1 << 22,)), (jax.random.key(SEED),)),
    "fft_2d_1k": lambda numbers: (
        jnp.fft.fft2, (numbers.normal(1024, 1024).astype(np.complex64),)),
    "cholesky_512": cholesky_512,
    "tiny_add": one(lambda x: x + 1, (8,)),
}


def require(names):
    """Ends the command that was given the name of no program."""
    if unknown := set(names) - set(MAKERS):
        sys.exit(f"there are {', '.join(MAKERS)}, not {', '.join(sorted(unknown))}")


def make(name):
    """A function and its arguments."""
    return MAKERS[name](Numbers())
