"""The figures as tables: for the terminal, and for BENCHMARKS.md."""

import goals
from figures import JAX, MPIS, QUIC, SHM
from tables import row, size_text, time_text


def text(run):
    parts = [heading(run), verdict_table(run)]
    for scene in run.scenes:
        parts.append(f"### {scene.name}")
        parts += [scene_table(run, scene, collective) for collective in scene.collectives]
    if run.failures:
        parts.append("These gave no figures:\n\n" + "\n".join(f"- {f}" for f in run.failures))
    plots = dict.fromkeys(scene.plot for scene in run.scenes)
    parts += [f"![{name}](benchmarks/collectives-{name}.svg)" for name in plots]
    return "\n\n".join(part for part in parts if part)


def heading(run):
    versions = ", ".join(f"{peer} {version}" for peer, version in run.versions.items())
    machine = ", ".join(f"{key} {value}" for key, value in run.machine.items())
    absent = "".join(f" This build has no {peer}." for peer in run.absent)
    return (
        f"`{run.command}` on {run.date}, {run.minutes:.0f} minutes. {machine}. "
        f"{versions}.{absent}\n\n"
        "Times are in microseconds: medians over rounds of the mean time of the slowest rank. A "
        "size is that of the larger side, f32, out of place; every result was checked. A ratio "
        "says how many times as fast as the other Lockstep is. On one host the ranks of all but JAX "
        "are kept to cores. Two hosts are two network "
        "namespaces; Lockstep's bytes between them are encrypted, those of the others are not."
    )


def verdict_table(run):
    verdicts = goals.verdicts(run)
    lines = [row(["goal", "wanted", "found", ""]), row(["---"] * 4)]
    lines += [row([v.goal, v.wanted, v.found, "holds" if v.holds else "**missed**"]) for v in verdicts]
    return "\n".join(lines) if verdicts else ""


def scene_table(run, scene, collective):
    peers = run.peers(scene.name)
    ratios = ratio_columns(scene, peers)
    lines = [row([collective, *peers, *(name for name, _, _ in ratios)]),
             row(["---:"] * (1 + len(peers) + len(ratios)))]
    for size in run.sizes(scene.name, collective):
        times = [run.time_us(scene.name, collective, size, peer) for peer in peers]
        found = [run.ratio(scene.name, collective, size, ours, rivals) for _, ours, rivals in ratios]
        cells = [size_text(size), *map(time_text, times), *map(ratio_text, found)]
        lines.append(row(cells))
    return "\n".join(lines)


def ratio_columns(scene, peers):
    columns = [("shm / faster MPI", SHM, MPIS), ("quic / JAX + Gloo", QUIC, [JAX])]
    if scene.mtu is not None:
        columns.append(("quic / faster MPI", QUIC, MPIS))
    return [c for c in columns if c[1] in peers and any(peer in peers for peer in c[2])]


def ratio_text(ratio):
    return "-" if ratio is None else f"{ratio:.2f}x"


def document(run):
    """What a program may want to read: the rounds of every figure."""
    results = [
        {"scene": scene, "collective": collective, "size_bytes": size, "peer": peer,
         "iterations": samples[-1].iterations,
         "time_us": [round(s.time_us, 3) for s in samples],
         "p50_us": [round(s.p50_us, 3) for s in samples]}
        for (scene, collective, size, peer), samples in run.rounds.items()
    ]
    return {"schema": 1, "date": run.date, "command": run.command, "machine": run.machine,
            "versions": run.versions, "failures": run.failures, "results": results}
