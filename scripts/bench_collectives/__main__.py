"""Measures our collectives and those of Open MPI, MPICH and JAX in turns; see --help."""

import argparse
import collections
import contextlib
import datetime
import json
import pathlib
import sys
import time

import benchmarks_page
import plan
import plot
import report
from figures import Run
from jobs import Failed
from namespaces import TwoHosts
from peers import Jax, Lockstep, Mpi
from progress import Progress

DESCRIPTION = """\
Measures all_reduce, all_gather and all_to_all of Open MPI, MPICH, JAX with Gloo, and Lockstep by
each of its transports: in turns within each round, so that what disturbs the machine disturbs all.
The figure of a round is the mean over iterations of the rank where it is greatest; tables have the
medians over rounds. Prints the tables, writes them into BENCHMARKS.md between its marks, and draws
benchmarks/*.png and *.svg; the figures are in benchmarks/collectives.json.
Two hosts are two network namespaces, for which it must be root."""


def launches(scene, peers, quick):
    """What one round does, in turns: a peer, and the collectives with sizes that it measures."""
    plans = [(c, plan.ranges(scene, c, quick)) for c in scene.collectives]
    for peer in peers:
        if peer.slow_start:
            yield peer, plans
    for one in plans:
        for peer in peers:
            if not peer.slow_start:
                yield peer, [one]


def measure(run, peers, quick):
    def rounds(scene):
        return 1 if quick else scene.rounds

    def served(scene):
        return [peer for peer in peers if scene.mtu is None or peer.crosses_hosts]

    steps = sum(len(list(launches(s, served(s), quick))) * rounds(s) for s in run.scenes)
    progress = Progress(steps)
    for scene in run.scenes:
        with contextlib.ExitStack() as stack:
            hosts = stack.enter_context(TwoHosts(scene.mtu, scene.gbit_per_s)) if scene.mtu else None
            failed = collections.Counter()
            for _ in range(rounds(scene)):
                for peer, plans in launches(scene, served(scene), quick):
                    what = f"{scene.name}: {peer.name}, {', '.join(name for name, _ in plans)}"
                    progress.step(what)
                    # What failed twice takes no more time.
                    if failed[what] == 2:
                        continue
                    try:
                        run.take(scene.name, peer.name, peer.run(scene, hosts, plans))
                    except Failed as failure:
                        failed[what] += 1
                        run.failures.append(f"{what}: {failure}")
    progress.clear()


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench-collectives", description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="one round of few iterations; BENCHMARKS.md stays as it is")
    parser.add_argument("--only", choices=["one-host", "two-hosts"])
    return parser.parse_args()


def main():
    options = arguments()
    root = pathlib.Path(__file__).resolve().parents[2]
    build = root / "target" / "bench-collectives"
    build.mkdir(parents=True, exist_ok=True)
    release = root / "target" / "release"
    ours = [Lockstep(transport, release) for transport in ("shm", "quic")]
    absent = [peer.name for peer in ours if not peer.is_there()]
    shm, quic = ours
    # In turns: a peer, us, a peer, us.
    peers = [Mpi("Open MPI", "openmpi", build), shm, Mpi("MPICH", "mpich", build), quic, Jax()]
    peers = [peer for peer in peers if peer.name not in absent]
    run = Run(
        date=datetime.date.today().isoformat(),
        command=" ".join(["scripts/bench-collectives", *sys.argv[1:]]),
        machine=benchmarks_page.machine(root),
        versions={peer.name: peer.version() for peer in peers},
        absent=absent,
        scenes=plan.scenes(options.only),
    )
    start = time.monotonic()
    measure(run, peers, options.quick)
    run.minutes = (time.monotonic() - start) / 60

    text = report.text(run)
    print(text)
    folder = build if options.quick or options.only else root / "benchmarks"
    folder.mkdir(exist_ok=True)
    plot.draw(run, folder)
    (folder / "collectives.json").write_text(json.dumps(report.document(run), indent=1) + "\n")
    if folder != build:
        benchmarks_page.write(root / "BENCHMARKS.md", "scripts/bench-collectives", "Collectives", text)
    print(f"bench-collectives: plots and figures are in {folder.relative_to(root)}", file=sys.stderr)
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
