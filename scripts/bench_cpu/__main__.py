"""Measures the CPU backend against XLA:CPU in turns; see --help."""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402

import benchmarks_page  # noqa: E402
import jax_programs  # noqa: E402
import report  # noqa: E402
from jobs import Failed  # noqa: E402
from progress import Progress  # noqa: E402
from workload import Workload  # noqa: E402

DESCRIPTION = """\
Exports the programs of jax_programs.py to StableHLO and runs them on XLA:CPU, through JAX, and on
Lockstep's CPU backend, in turns, so that what disturbs the machine disturbs both. Compares their
results. Prints a table, and writes it into BENCHMARKS.md between its marks unless it is one of some
programs only."""

@dataclasses.dataclass
class Figures:
    name: str
    xla_step: float
    our_step: float
    xla_compile: float
    our_compile: float
    xla_memory: float
    our_memory: float
    difference: float

    @property
    def step_ratio(self):
        return self.our_step / self.xla_step

    @property
    def compile_ratio(self):
        return self.our_compile / self.xla_compile

    @property
    def memory_ratio(self):
        return self.our_memory / self.xla_memory


@dataclasses.dataclass
class Run:
    date: str
    command: str
    machine: dict
    versions: dict
    figures: list
    failures: list
    minutes: float = 0.0


class Lockstep:
    def __init__(self, binary, folder):
        self.binary, self.output = binary, folder / "results.npz"

    def call(self, command, workload, *options):
        arguments = [self.binary, command, workload.program, "--input", workload.input, *options]
        done = subprocess.run(arguments, text=True, capture_output=True, check=False)
        if done.returncode:
            raise Failed(done.stderr.strip().splitlines()[0])
        return done.stdout

    def version(self):
        done = subprocess.run([self.binary, "--version"], text=True, capture_output=True, check=True)
        return done.stdout.split()[-1]

    def results(self, workload):
        self.call("run", workload, "--output", self.output)
        return self.output

    def times(self, workload, seconds):
        """Microseconds of a step and of making a program of bytes, and its megabytes."""
        figures = json.loads(self.call("bench", workload, "--seconds", str(seconds), "--json"))
        least, read, compile_us, memory = (
            figures[name]["value"] for name in ("run_least", "read", "compile", "memory"))
        return least, read + compile_us, memory


def measure(workload, lockstep, rounds, seconds):
    difference, tolerance = workload.difference(lockstep.results(workload))
    if not difference <= tolerance:
        raise Failed(f"the results differ by {difference:.1g} of the greatest element")
    theirs, ours = [], []
    for _ in range(rounds):
        compile_us = workload.compile_us()
        theirs.append((workload.step_us(seconds), compile_us, workload.memory_mb()))
        ours.append(lockstep.times(workload, seconds))
    xla_step, xla_compile, xla_memory = map(min, zip(*theirs))
    our_step, our_compile, our_memory = map(min, zip(*ours))
    return Figures(workload.name, xla_step, our_step, xla_compile, our_compile,
                   xla_memory, our_memory, difference)


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench-cpu", description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="NAME", help="only these programs")
    parser.add_argument("--quick", action="store_true",
                        help="one short round; BENCHMARKS.md stays as it is")
    return parser.parse_args()


def main():
    options = arguments()
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = root / "target" / "bench-cpu"
    folder.mkdir(parents=True, exist_ok=True)
    lockstep = Lockstep(root / "target" / "release" / "lockstep-hlo", folder)
    jax_programs.require(options.programs)
    run = Run(
        date=datetime.date.today().isoformat(),
        command=" ".join(["scripts/bench-cpu", *sys.argv[1:]]),
        machine=benchmarks_page.machine(root),
        versions={"XLA:CPU of JAX": jax.__version__, "Lockstep": lockstep.version()},
        figures=[], failures=[])
    rounds, seconds = (1, 0.3) if options.quick else (3, 0.7)
    start = time.monotonic()
    names = options.programs or list(jax_programs.MAKERS)
    progress = Progress(len(names))
    for name in names:
        progress.step(name)
        try:
            run.figures.append(measure(Workload(name, folder), lockstep, rounds, seconds))
        except Failed as failure:
            run.failures.append(f"{name}: {failure}")
    progress.clear()
    run.minutes = (time.monotonic() - start) / 60
    text = report.text(run)
    print(text)
    if not options.quick and not options.programs:
        benchmarks_page.write(root / "BENCHMARKS.md", "scripts/bench-cpu", "The CPU backend", text)
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
