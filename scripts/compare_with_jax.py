"""Trains the example's model in JAX alone, and says how far Lockstep's losses are from that.

Called by scripts/compare-with-jax with the number of processes. Both sides start from the same
parameters and see the same batches: the sequence of examples/train_mlp.rs is repeated here.
"""

import pathlib
import subprocess
import sys

import jax
import numpy as np

import export_examples as model

EPOCHS = 15
SEED = 42
MASK = (1 << 64) - 1


class Random:
    """SplitMix64, as in examples/train_mlp.rs."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def unit(self):
        return np.float32(self.next() >> 40) / np.float32(1 << 24)

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.next() % (i + 1)
            items[i], items[j] = items[j], items[i]


@jax.jit
def step(parameters, velocities, images, labels):
    loss, gradients = jax.value_and_grad(model.summed_loss)(parameters, images, labels)
    velocities = [
        model.MOMENTUM * v + g / model.BATCH for v, g in zip(velocities, gradients)
    ]
    parameters = [p - model.LEARNING_RATE * v for p, v in zip(parameters, velocities)]
    return loss / model.BATCH, parameters, velocities


def losses_of_jax(data):
    random = Random(SEED)
    images = np.load(data / "digits_images.npy").astype(np.float32) / np.float32(16)
    labels = np.load(data / "digits_labels.npy").astype(np.int32)
    train = np.arange(len(labels)) % 5 != 0
    images, labels = images[train], labels[train]
    parameters = []
    for shape in model.parameter_shapes():
        if len(shape) == 1:
            parameters.append(np.zeros(shape, np.float32))
            continue
        scale = np.sqrt(np.float32(6) / np.float32(shape[0]))
        values = [(random.unit() * np.float32(2) - np.float32(1)) * scale for _ in range(np.prod(shape))]
        parameters.append(np.array(values, np.float32).reshape(shape))
    velocities = [np.zeros_like(p) for p in parameters]
    order = list(range(len(labels)))
    for _ in range(EPOCHS):
        random.shuffle(order)
        losses = []
        for start in range(0, len(order) - model.BATCH + 1, model.BATCH):
            batch = order[start : start + model.BATCH]
            loss, parameters, velocities = step(parameters, velocities, images[batch], labels[batch])
            losses.append(float(loss))
        yield np.mean(losses)


def losses_of_lockstep(release, processes):
    command = [release / "lockstep", "run", "-n", processes, "--no-tag", release / "examples/train_mlp"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [float(line.split()[-1]) for line in lines if line.startswith("epoch")]


def main(root, processes):
    ours = losses_of_lockstep(root / "target/release", processes)
    theirs = list(losses_of_jax(root / "examples/data"))
    print(f"{'epoch':>5}  {'JAX':>10}  {'Lockstep':>10}  relative difference")
    worst = 0.0
    for epoch, (a, b) in enumerate(zip(theirs, ours, strict=True), 1):
        worst = max(worst, abs(b - a) / a)
        print(f"{epoch:>5}  {a:10.7f}  {b:10.7f}  {(b - a) / a:+.1e}")
    print(f"largest relative difference {worst:.1e}: {'ok' if worst <= 1e-4 else 'TOO FAR'}")
    return int(worst > 1e-4)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
