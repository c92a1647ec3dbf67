"""Trains a classifier of handwritten digits with JAX, data-parallel over all devices there are.

    JAX_PLATFORMS=lockstep LOCKSTEP_DEVICES=4 python examples/jax/train_mlp.py
    lockstep run -n 4 -x JAX_PLATFORMS=lockstep python examples/jax/train_mlp.py
    JAX_PLATFORMS=cpu python examples/jax/train_mlp.py

Every device computes the gradients of its part of the batch, one psum adds them up, and every
device takes the same step. It is the model of the demo (`examples/train_mlp.rs`), as users of JAX
write it.
"""

import argparse
import os
import pathlib
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
SIZES = [64, 128, 64, 10]
BATCH = 96
RATE, MOMENTUM = 0.1, 0.9
SEED = 42


def digits():
    """Pixels from 0 to 1 and labels: for training, and the last fifth for the test."""
    images = np.load(DATA / "digits_images.npy").reshape(-1, SIZES[0]).astype(np.float32) / 16
    labels = np.load(DATA / "digits_labels.npy").astype(np.int32)
    cut = len(labels) * 4 // 5
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def initial_parameters():
    """Weights and biases, the same on every process."""
    random = np.random.default_rng(SEED)
    return [
        {
            "w": (random.standard_normal((m, n)) * np.sqrt(2 / m)).astype(np.float32),
            "b": np.zeros(n, np.float32),
        }
        for m, n in zip(SIZES, SIZES[1:])
    ]


def logits(parameters, images):
    for layer in parameters[:-1]:
        images = jax.nn.relu(images @ layer["w"] + layer["b"])
    return images @ parameters[-1]["w"] + parameters[-1]["b"]


def loss(parameters, images, labels):
    """The mean over these images."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits(parameters, images)), labels[:, None], 1)
    return -chosen.mean()


def training_step(mesh):
    """A step on a batch that is spread over the devices, and parameters that are not."""

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P(), P("data"), P("data")),
        out_specs=(P(), P(), P()),
        check_vma=False,
    )
    def step(parameters, velocities, images, labels):
        value, gradients = jax.value_and_grad(loss)(parameters, images, labels)
        value, gradients = jax.lax.pmean((value, gradients), "data")
        velocities = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocities, gradients)
        parameters = jax.tree.map(jnp.add, parameters, velocities)
        return parameters, velocities, value

    return jax.jit(step, donate_argnums=(0, 1))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--epochs", type=int, default=15)
    epochs = arguments.parse_args().epochs
    if int(os.environ.get("LOCKSTEP_WORLD_SIZE", "1")) > 1:
        jax.distributed.initialize()

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

    def spread(array, sharding):
        """Every process has the array, and puts down what its devices hold of it."""
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    (images, labels), (test_images, test_labels) = digits()
    parameters = jax.tree.map(lambda leaf: spread(leaf, whole), initial_parameters())
    velocities = jax.tree.map(
        lambda leaf: spread(np.zeros_like(leaf), whole), initial_parameters()
    )
    step = training_step(mesh)
    random = np.random.default_rng(SEED)
    say = print if jax.process_index() == 0 else lambda *_: None
    say(f"{jax.device_count()} devices of {jax.process_count()} processes, {jax.default_backend()}")

    start, steps = time.perf_counter(), 0
    for epoch in range(1, epochs + 1):
        order, losses = random.permutation(len(labels)), []
        for at in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[at : at + BATCH]
            parameters, velocities, value = step(
                parameters, velocities, spread(images[batch], cut), spread(labels[batch], cut)
            )
            losses.append(value)
            steps += 1
        # Steps are launched ahead of their completion: only here is one waited for.
        say(f"epoch {epoch:2}  loss {np.mean([float(value) for value in losses]):.7f}")
    took = time.perf_counter() - start

    # What is the same on all devices, each process has.
    local = jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), parameters)
    right = int((np.argmax(jax.jit(logits)(local, test_images), 1) == test_labels).sum())
    say(f"test accuracy {right / len(test_labels):.4f} ({right} of {len(test_labels)} digits)")
    say(f"time per step {1000 * took / steps:.3f} ms, compilation included")


if __name__ == "__main__":
    main()
