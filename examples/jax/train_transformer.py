"""Trains a small transformer with JAX: the heads and the hidden units over all devices there are.

    JAX_PLATFORMS=lockstep LOCKSTEP_DEVICES=4 python examples/jax/train_transformer.py
    lockstep run -n 4 -x JAX_PLATFORMS=lockstep python examples/jax/train_transformer.py
    JAX_PLATFORMS=cpu python examples/jax/train_transformer.py

Every device has some of the heads of an attention and some of the hidden units of what follows it,
and all of the text. Twice in a layer a psum adds up what the devices have made of it. The model
learns to continue sequences that repeat after a period of their own: it has to look back.
"""

import argparse
import os
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SYMBOLS, LENGTH, BATCH = 16, 32, 32
WIDTH, HEADS, HIDDEN, LAYERS = 64, 8, 256, 2
RATE, MOMENTUM = 0.1, 0.9
SEED = 42

# How a layer's parameters are cut: what makes heads or hidden units by columns, what takes them up
# by rows.
CUTS = {
    "query": P(None, "model"), "key": P(None, "model"), "value": P(None, "model"),
    "out": P("model", None), "up": P(None, "model"), "down": P("model", None),
}
SPECS = {"embedding": P(), "positions": P(), "layers": [CUTS] * LAYERS}


def initial_parameters():
    """The same on every process."""
    random = np.random.default_rng(SEED)

    def weights(m, n, scale):
        return (random.standard_normal((m, n)) * scale).astype(np.float32)

    shapes = {
        "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH),
        "out": (WIDTH, WIDTH), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH),
    }
    return {
        "embedding": weights(SYMBOLS, WIDTH, WIDTH**-0.5),
        "positions": weights(LENGTH, WIDTH, WIDTH**-0.5),
        "layers": [
            {name: weights(m, n, m**-0.5) for name, (m, n) in shapes.items()}
            for _ in range(LAYERS)
        ],
    }


def sequences(random):
    """A batch of texts, each a random word over and over, and what comes next at each place."""
    periods = random.integers(2, 9, BATCH)
    words = random.integers(0, SYMBOLS, (BATCH, 8))
    places = np.arange(LENGTH + 1)
    texts = np.stack([word[places % period] for word, period in zip(words, periods)])
    return texts[:, :-1].astype(np.int32), texts[:, 1:].astype(np.int32)


def normalized(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(layer, x):
    """What this device's heads make of the text; the sum over devices is what all do."""

    def heads(weights):
        return (x @ weights).reshape(BATCH, LENGTH, -1, WIDTH // HEADS)

    query, key, value = (heads(layer[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * (WIDTH // HEADS) ** -0.5
    past = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    attended = jax.nn.softmax(jnp.where(past, scores, -jnp.inf))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", attended, value)
    return mixed.reshape(BATCH, LENGTH, -1) @ layer["out"]


def loss(parameters, texts, following):
    """Of the whole text, on every device."""
    x = parameters["embedding"][texts] + parameters["positions"]
    for layer in parameters["layers"]:
        x = x + jax.lax.psum(attention(layer, normalized(x)), "model")
        hidden = jax.nn.gelu(normalized(x) @ layer["up"])
        x = x + jax.lax.psum(hidden @ layer["down"], "model")
    logits = jax.nn.log_softmax(normalized(x) @ parameters["embedding"].T)
    return -jnp.take_along_axis(logits, following[..., None], 2).mean()


def training_step(mesh):
    """A step on a text that every device has, and parameters that are spread as `SPECS` says."""
    spread_loss = jax.shard_map(
        loss, mesh=mesh, in_specs=(SPECS, P(), P()), out_specs=P()
    )

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(parameters, velocities, texts, following):
        value, gradients = jax.value_and_grad(spread_loss)(parameters, texts, following)
        velocities = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocities, gradients)
        return jax.tree.map(jnp.add, parameters, velocities), velocities, value

    return step


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=200)
    steps = arguments.parse_args().steps
    if int(os.environ.get("LOCKSTEP_WORLD_SIZE", "1")) > 1:
        jax.distributed.initialize()
    if HEADS % jax.device_count():
        raise SystemExit(f"{HEADS} heads cannot be shared by {jax.device_count()} devices")

    mesh = jax.make_mesh((jax.device_count(),), ("model",))

    def spread(array, spec):
        """Every process has the array, and puts down what its devices hold of it."""
        sharding = NamedSharding(mesh, spec)
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    initial = initial_parameters()
    parameters = jax.tree.map(spread, initial, SPECS)
    velocities = jax.tree.map(lambda leaf, spec: spread(np.zeros_like(leaf), spec), initial, SPECS)
    step = training_step(mesh)
    random = np.random.default_rng(SEED)
    say = print if jax.process_index() == 0 else lambda *_: None
    say(f"{jax.device_count()} devices of {jax.process_count()} processes, {jax.default_backend()}")

    start, losses = time.perf_counter(), []
    for number in range(1, steps + 1):
        texts, following = sequences(random)
        parameters, velocities, value = step(
            parameters, velocities, spread(texts, P()), spread(following, P())
        )
        losses.append(value)
        # Steps are launched ahead of their completion: only here are they waited for.
        if number % 20 == 0 or number == steps:
            say(f"step {number:4}  loss {np.mean([float(value) for value in losses]):.4f}")
            losses = []
    say(f"time per step {1000 * (time.perf_counter() - start) / steps:.3f} ms, compilation included")


if __name__ == "__main__":
    main()
