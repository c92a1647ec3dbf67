"""Measures JAX on Lockstep against JAX on its own CPU devices, in turns; see --help."""

import argparse
import dataclasses
import datetime
import json
import pathlib
import sys
import time

import benchmarks_page
import jax_programs
import report
import programs
import psum
from jobs import Failed
from progress import Progress

DESCRIPTION = """\
Measures JAX on Lockstep and JAX on its own CPU devices in turns, so that what disturbs the machine
disturbs both: a jitted psum over two processes, in a job of `lockstep run` and over Gloo, and the
programs of jax_programs.py in one process, compiling them and running them. Compares the results of
both. Prints tables, and writes them into BENCHMARKS.md between its marks unless only a part was
measured."""


@dataclasses.dataclass
class Run:
    """All that one run of the script found out."""

    date: str
    command: str
    machine: dict
    versions: dict
    # Of psum: the samples of all rounds, by size in bytes and peer.
    psum: dict = dataclasses.field(default_factory=dict)
    programs: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)
    minutes: float = 0.0


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench-jax", description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="NAME", help="only these programs, and no psum")
    parser.add_argument("--quick", action="store_true",
                        help="one short round; BENCHMARKS.md stays as it is")
    parser.add_argument("--only", choices=["psum", "programs"])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def main():
    options = arguments()
    jax_programs.require(options.programs)
    root = pathlib.Path(__file__).resolve().parents[2]
    release, folder = root / "target" / "release", root / "target" / "bench-jax"
    folder.mkdir(parents=True, exist_ok=True)
    whole = not (options.quick or options.only or options.programs)
    names = [] if options.only == "psum" else options.programs or list(jax_programs.MAKERS)
    rounds = 0 if options.only == "programs" or options.programs else 1 if options.quick else psum.ROUNDS
    run = Run(
        date=datetime.date.today().isoformat(),
        command=" ".join(["scripts/bench-jax", *sys.argv[1:]]),
        machine=benchmarks_page.machine(root),
        versions={"JAX": jax_programs.jax.__version__, "Lockstep": psum.version(release)},
    )
    start = time.monotonic()
    progress = Progress(rounds * len(psum.PEERS) + len(names))
    for _ in range(rounds):
        for peer in psum.PEERS:
            progress.step(f"psum: {peer}")
            try:
                for sample in psum.measure(peer, release):
                    run.psum.setdefault((sample["size_bytes"], peer), []).append(sample["p50_us"])
            except Failed as failure:
                run.failures.append(f"psum, {peer}: {failure}")
    if names:
        with programs.Platforms(release, folder) as platforms:
            for name in names:
                progress.step(name)
                try:
                    run.programs.append(platforms.measure(name, options.quick))
                except Failed as failure:
                    run.failures.append(f"{name}: {failure}")
    progress.clear()
    run.minutes = (time.monotonic() - start) / 60

    print(json.dumps(report.document(run), indent=1) if options.json else report.text(run))
    if whole:
        benchmarks_page.write(root / "BENCHMARKS.md", "scripts/bench-jax", "JAX", report.text(run))
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
