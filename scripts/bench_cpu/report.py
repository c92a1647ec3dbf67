"""The figures as a table: for the terminal, and for BENCHMARKS.md."""

import math

from tables import row, time_text

STEP_GOAL, STEP_LIMIT, COMPILE_GOAL, MEMORY_GOAL = 1.2, 2.5, 0.1, 1.2


def text(run):
    parts = [heading(run), goals(run.figures), table(run.figures)]
    if run.failures:
        parts.append("These gave no figures:\n\n" + "\n".join(f"- {f}" for f in run.failures))
    return "\n\n".join(parts)


def heading(run):
    machine = ", ".join(f"{key} {value}" for key, value in run.machine.items())
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"`{run.command}` on {run.date}, {run.minutes:.0f} minutes. {machine}. {versions}.\n\n"
        "Times are in microseconds, each the least that was seen; both sides ran in turns, with all "
        "cores. A ratio is Lockstep's time over XLA's: below 1 Lockstep is faster. Compiling begins "
        "with StableHLO in memory, for Lockstep with its bytes. Memory is what each says that a step "
        "takes, in megabytes: arguments, results and what is between them. The difference is the greatest "
        "between both results, as a share of the greatest number in them."
    )


def goals(figures):
    steps = [f.step_ratio for f in figures]
    if not steps:
        return ""
    mean = math.exp(sum(map(math.log, steps)) / len(steps))
    worst = max(figures, key=lambda f: f.step_ratio)
    slowest = max(figures, key=lambda f: f.compile_ratio)
    # Below a megabyte it is a matter of constants.
    largest = max(figures, key=lambda f: f.memory_ratio if f.xla_memory >= 1 else 0)
    rows = [
        ("step time, geometric mean", STEP_GOAL, mean, ""),
        ("step time of each", STEP_LIMIT, worst.step_ratio, worst.name),
        ("compile time of each", COMPILE_GOAL, slowest.compile_ratio, slowest.name),
        ("memory of each above 1 MB", MEMORY_GOAL, largest.memory_ratio, largest.name),
    ]
    lines = [row(["ratio", "wanted", "found", "", "greatest"]), row(["---"] * 5)]
    lines += [
        row([what, f"<= {wanted}", f"{found:.3g}", "holds" if found <= wanted else "**missed**", name])
        for what, wanted, found, name in rows
    ]
    return "\n".join(lines)


def table(figures):
    lines = [
        row(["program", "XLA step", "Lockstep step", "ratio", "XLA compile", "Lockstep compile", "ratio", "XLA memory", "Lockstep memory", "ratio", "difference"]),
        row(["---"] + ["---:"] * 10),
    ]
    lines += [
        row([f.name, time_text(f.xla_step), time_text(f.our_step), f"{f.step_ratio:.2f}",
             time_text(f.xla_compile), time_text(f.our_compile), f"{f.compile_ratio:.4f}",
             f"{f.xla_memory:.2f}", f"{f.our_memory:.2f}", f"{f.memory_ratio:.2f}",
             f"{f.difference:.1g}"])
        for f in figures
    ]
    return "\n".join(lines)
