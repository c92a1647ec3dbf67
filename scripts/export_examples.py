"""Exports the programs and the data that the examples run on.

Called by scripts/export-examples. Writes, below the folder named on the command line:

digits_images.npy, digits_labels.npy   the UCI handwritten digits, as scikit-learn ships them
mlp/{train,evaluate,identical}_N.mlir  a data-parallel classifier for a mesh of N devices
hello/sum_N.mlir                       one all_reduce over N devices

The programs are shard_map programs over one mesh axis, `data`: the batch is cut along it, the
parameters are the same everywhere, and the gradients are summed over it.
"""

import pathlib
import sys

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

MESH_SIZES = (1, 2, 4)
LAYERS = (64, 128, 64, 10)
BATCH = 96
HELD_OUT = 360
LEARNING_RATE = 0.1
MOMENTUM = 0.9


def parameter_shapes():
    for inputs, outputs in zip(LAYERS[:-1], LAYERS[1:]):
        yield (inputs, outputs)
        yield (outputs,)


def logits(parameters, images):
    x = images
    layers = list(zip(parameters[::2], parameters[1::2]))
    for weights, bias in layers[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


def summed_loss(parameters, images, labels):
    log_probabilities = jax.nn.log_softmax(logits(parameters, images))
    return -jnp.sum(log_probabilities * jax.nn.one_hot(labels, LAYERS[-1]))


def train(parameters, velocities, images, labels):
    """One step of momentum descent on a batch of which this device holds a part."""
    loss, gradients = jax.value_and_grad(summed_loss)(parameters, images, labels)
    # One collective for everything: the loss and all gradients in one vector.
    flat = jnp.concatenate([loss[None]] + [g.ravel() for g in gradients])
    flat = lax.psum(flat, "data") / BATCH
    loss, offset = flat[0], 1
    new_parameters, new_velocities = [], []
    for parameter, velocity in zip(parameters, velocities):
        gradient = flat[offset : offset + parameter.size].reshape(parameter.shape)
        offset += parameter.size
        velocity = MOMENTUM * velocity + gradient
        new_velocities.append(velocity)
        new_parameters.append(parameter - LEARNING_RATE * velocity)
    return (loss, *new_parameters, *new_velocities)


def evaluate(parameters, images, labels):
    """How many of the images, spread over the devices, are classified right."""
    guesses = jnp.argmax(logits(parameters, images), axis=1).astype(jnp.int32)
    return lax.psum(jnp.sum((guesses == labels).astype(jnp.int32)), "data")


def identical(parameters):
    """In how many of its bits-as-integers any device's parameters differ from another's."""
    bits = jnp.concatenate([lax.bitcast_convert_type(p, jnp.uint32).ravel() for p in parameters])
    return jnp.sum((lax.pmax(bits, "data") != lax.pmin(bits, "data")).astype(jnp.int32))


def hello(values):
    return lax.psum(values, "data")


def export(path, function, mesh, in_specs, out_specs, *arguments):
    mapped = jax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec), in_specs, is_leaf=lambda x: isinstance(x, P)
    )
    lowered = jax.jit(mapped, in_shardings=shardings, keep_unused=True).lower(*arguments)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lowered.as_text())


def main(folder):
    digits = load_digits()
    np.save(folder / "digits_images.npy", digits.data.astype(np.uint8))
    np.save(folder / "digits_labels.npy", digits.target.astype(np.uint8))

    f32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)  # noqa: E731
    i32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)  # noqa: E731
    parameters = tuple(f32(*shape) for shape in parameter_shapes())
    same = tuple(P() for _ in parameters)
    for n in MESH_SIZES:
        mesh = Mesh(np.array(jax.devices()[:n]), ("data",))
        mlp = folder / "mlp"
        export(
            mlp / f"train_{n}.mlir", train, mesh,
            (same, same, P("data"), P("data")), (P(), *same, *same),
            parameters, parameters, f32(BATCH, LAYERS[0]), i32(BATCH),
        )  # fmt: skip
        export(
            mlp / f"evaluate_{n}.mlir", evaluate, mesh,
            (same, P("data"), P("data")), P(),
            parameters, f32(HELD_OUT, LAYERS[0]), i32(HELD_OUT),
        )  # fmt: skip
        export(mlp / f"identical_{n}.mlir", identical, mesh, (same,), P(), parameters)
        export(folder / "hello" / f"sum_{n}.mlir", hello, mesh, P("data"), P(), f32(n))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
