"""The programs of jax_programs.py on both platforms, in turns."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

import psum
import results
from jobs import Failed

SERVER = pathlib.Path(__file__).resolve().parent / "program_times.py"
ROUNDS, SECONDS = 3, 0.5
QUICK_ROUNDS, QUICK_SECONDS = 1, 0.2


@dataclasses.dataclass
class Figures:
    """The least times that were seen, in microseconds, and how far the results are apart."""

    name: str
    their_step: float
    our_step: float
    their_compile: float
    our_compile: float
    difference: float

    @property
    def step_ratio(self):
        return self.our_step / self.their_step

    @property
    def compile_ratio(self):
        return self.our_compile / self.their_compile


class Platform:
    """A process with JAX on one platform."""

    def __init__(self, environment):
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER)], env={**os.environ, **environment}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise Failed(f"the process ended with {self.process.wait()}")
        answer = json.loads(answer)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Platforms:
    def __init__(self, release, folder):
        self.folder = folder
        self.theirs = Platform(psum.environment(release, "cpu"))
        self.ours = Platform(psum.environment(release))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.theirs.close()
        self.ours.close()

    def measure(self, name, quick):
        difference = self.compare(name)
        rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
        theirs, ours = [], []
        for _ in range(rounds):
            theirs.append(self.theirs.ask(program=name, seconds=seconds))
            ours.append(self.ours.ask(program=name, seconds=seconds))

        def least(times, which):
            return min(time[which] for time in times)

        return Figures(name, least(theirs, "step_us"), least(ours, "step_us"),
                       least(theirs, "compile_us"), least(ours, "compile_us"), difference)

    def compare(self, name):
        theirs = self.kept(self.theirs, name, "theirs.npz")
        ours = self.kept(self.ours, name, "ours.npz")
        difference = results.difference(theirs, ours)
        if not difference <= results.tolerance(theirs):
            raise Failed(f"the results differ by {difference:.1g} of the greatest element")
        return difference

    def kept(self, platform, name, file):
        platform.ask(program=name, results=str(self.folder / file))
        with np.load(self.folder / file) as found:
            return [found[name] for name in found.files]
