"""BENCHMARKS.md, of which each benchmark writes its own section, and what all of them say."""

import os
import pathlib
import platform
import subprocess

END = "<!-- to here -->"


def write(path, script, heading, text):
    """Puts `text` between the marks of a script; what others wrote around them stays."""
    begin = f"<!-- {script} writes from here -->"
    old = path.read_text() if path.exists() else "# Benchmarks\n"
    if begin not in old:
        old += f"\n## {heading}\n\n{begin}\n{END}\n"
    before, _, rest = old.partition(begin)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{script}: {path} has {begin} without {END}")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{END}{after}")


def machine(root):
    """Where a run was made, and of what."""
    fields = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.split(":", 1)[1].strip() for line in fields if line.startswith("model name"))
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=root, text=True,
                            capture_output=True, check=False).stdout.strip()
    return {"CPU": next(models, platform.machine()), "cores": len(os.sched_getaffinity(0)),
            "Linux": platform.release(), "commit": commit or "unknown"}
