"""The figures as tables: for the terminal, and for BENCHMARKS.md."""

import dataclasses
import statistics

from psum import OURS, THEIRS
from tables import MIB, row, size_text, time_text

# How many times as fast as Gloo, by size in bytes.
PSUM_GOALS = {8: 5.0, 16 * MIB: 4.0}
STEP_GOAL, COMPILE_GOAL = 1.2, 0.3
# The step of one program alone.
ALONE, ALONE_GOAL = "tiny_add", 1.0


def text(run):
    parts = [heading(run), verdicts(run), psum_table(run), program_table(run)]
    if run.failures:
        parts.append("These gave no figures:\n\n" + "\n".join(f"- {f}" for f in run.failures))
    return "\n\n".join(part for part in parts if part)


def heading(run):
    machine = ", ".join(f"{key} {value}" for key, value in run.machine.items())
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"`{run.command}` on {run.date}, {run.minutes:.0f} minutes. {machine}. {versions}.\n\n"
        "Times are in microseconds, as a program in Python sees them from a call until its result is "
        "ready. Both sides ran in turns, with all cores. Of psum they are the medians over rounds of "
        "the median of the slower process, of f32 that stays on the devices; of programs the least "
        "that was seen. A ratio of psum says how many times as fast as Gloo Lockstep is; one of "
        "programs is Lockstep's time over that of JAX on its own CPU device: below 1 Lockstep is "
        "faster. Compiling begins with what JAX has lowered. The difference is the greatest between "
        "both results, as a share of the greatest number in them."
    )


def psum_figures(run):
    """By size: their time, ours, and how many times as fast ours is."""
    found = {}
    for size in sorted({size for size, _ in run.psum}):
        times = [run.psum.get((size, peer)) for peer in (THEIRS, OURS)]
        if all(times):
            theirs, ours = map(statistics.median, times)
            found[size] = theirs, ours, theirs / ours
    return found


def verdicts(run):
    rows = []
    psums = psum_figures(run)
    for size, wanted in PSUM_GOALS.items():
        if size in psums:
            ratio = psums[size][2]
            rows.append((f"psum of {size_text(size)}, times as fast as Gloo", f">= {wanted:g}",
                         f"{ratio:.2f}", ratio >= wanted))
    if run.programs:
        count = len(run.programs)
        mean = statistics.geometric_mean(figures.step_ratio for figures in run.programs)
        rows.append((f"step of {count} programs, geometric mean of ratios", f"<= {STEP_GOAL:g}",
                     f"{mean:.2f}", mean <= STEP_GOAL))
        for figures in run.programs:
            if figures.name == ALONE:
                rows.append((f"step of {ALONE}, ratio", f"<= {ALONE_GOAL:g}",
                             f"{figures.step_ratio:.2f}", figures.step_ratio <= ALONE_GOAL))
        mean = statistics.geometric_mean(figures.compile_ratio for figures in run.programs)
        rows.append((f"compiling {count} programs, geometric mean of ratios", f"<= {COMPILE_GOAL:g}",
                     f"{mean:.2f}", mean <= COMPILE_GOAL))
        slowest = max(run.programs, key=lambda figures: figures.compile_ratio)
        rows.append((f"compiling, greatest ratio ({slowest.name})", f"<= {COMPILE_GOAL:g}",
                     f"{slowest.compile_ratio:.2f}", slowest.compile_ratio <= COMPILE_GOAL))
    if not rows:
        return ""
    lines = [row(["goal", "wanted", "found", ""]), row(["---"] * 4)]
    lines += [row([goal, wanted, found, "holds" if holds else "**missed**"])
              for goal, wanted, found, holds in rows]
    return "\n".join(lines)


def psum_table(run):
    lines = [row(["psum over 2 processes", THEIRS, OURS, "times as fast"]), row(["---:"] * 4)]
    found = psum_figures(run)
    lines += [row([size_text(size), time_text(theirs), time_text(ours), f"{ratio:.2f}x"])
              for size, (theirs, ours, ratio) in found.items()]
    return "\n".join(lines) if found else ""


def program_table(run):
    lines = [
        row(["program", "JAX step", "Lockstep step", "ratio", "JAX compile", "Lockstep compile",
             "ratio", "difference"]),
        row(["---"] + ["---:"] * 7),
    ]
    lines += [
        row([f.name, time_text(f.their_step), time_text(f.our_step), f"{f.step_ratio:.2f}",
             time_text(f.their_compile), time_text(f.our_compile), f"{f.compile_ratio:.3f}",
             f"{f.difference:.1g}"])
        for f in run.programs
    ]
    return "\n".join(lines) if run.programs else ""


def document(run):
    """What a program may want to read: the rounds of psum, and the figures of every program."""
    psums = [{"size_bytes": size, "peer": peer, "p50_us": [round(time, 3) for time in times]}
             for (size, peer), times in run.psum.items()]
    return {"schema": 1, "date": run.date, "command": run.command, "machine": run.machine,
            "versions": run.versions, "failures": run.failures, "psum": psums,
            "programs": [dataclasses.asdict(figures) for figures in run.programs]}
