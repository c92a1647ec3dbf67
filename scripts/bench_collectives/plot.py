"""The figures as plots: time against size, one panel for each collective in each scene."""

import matplotlib

matplotlib.use("Agg")
# The same bytes for the same figures.
matplotlib.rcParams["svg.hashsalt"] = "lockstep"

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullLocator

STYLES = {
    "Lockstep shm": {"color": "#d62728", "marker": "o", "linewidth": 2.4, "zorder": 3},
    "Lockstep quic": {"color": "#ff9f0e", "marker": "s", "linewidth": 2.4, "zorder": 3},
    "Open MPI": {"color": "#1f77b4", "marker": "^"},
    "MPICH": {"color": "#2ca02c", "marker": "v"},
    "JAX + Gloo": {"color": "#7f7f7f", "marker": "D"},
}


def draw(run, folder):
    """Writes collectives-PLOT.png and .svg for each plot that the run has scenes of."""
    for name in dict.fromkeys(scene.plot for scene in run.scenes):
        figure = panels(run, [scene for scene in run.scenes if scene.plot == name])
        for suffix, metadata in ((".png", {}), (".svg", {"Date": None})):
            figure.savefig(folder / f"collectives-{name}{suffix}", dpi=110, metadata=metadata)
        plt.close(figure)


def panels(run, scenes):
    # A scene with one collective goes below those with all.
    whole = [scene for scene in scenes if len(scene.collectives) > 1]
    rows = [[(scene, c) for scene in whole] for c in whole[0].collectives] if whole else []
    rest = [(scene, c) for scene in scenes if scene not in whole for c in scene.collectives]
    rows += [rest] if rest else []
    columns = max(map(len, rows))
    figure, grid = plt.subplots(
        len(rows), columns, squeeze=False, sharey="row", layout="constrained",
        figsize=(1.2 + 4.2 * columns, 0.8 + 3.1 * len(rows)))
    for axes_row, row in zip(grid, rows):
        for axes in axes_row[len(row):]:
            axes.set_visible(False)
        for axes, (scene, collective) in zip(axes_row, row):
            panel(run, axes, scene, collective)
        axes_row[0].set_ylabel("time")
    lines = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
    lines = {peer: lines[peer] for peer in STYLES if peer in lines}
    figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=len(lines), frameon=False)
    return figure


def panel(run, axes, scene, collective):
    sizes = run.sizes(scene.name, collective)
    for peer in run.peers(scene.name):
        points = [(s, run.time_us(scene.name, collective, s, peer)) for s in sizes]
        points = [(size, time) for size, time in points if time is not None]
        if points:
            axes.plot(*zip(*points), label=peer, markersize=5, **STYLES[peer])
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(f"{collective}, {scene.name}", fontsize=10)
    axes.set_xticks(sizes, [compact_size(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda time, _: duration(time)))
    axes.tick_params(labelsize=8, labelleft=True)
    axes.grid(True, which="major", alpha=0.35)


def compact_size(size):
    for shift, unit in ((20, "M"), (10, "K")):
        if size >= 1 << shift:
            return f"{size >> shift}{unit}"
    return str(size)


def duration(time_us):
    for scale, unit in ((1e6, "s"), (1e3, "ms"), (1, "µs")):
        if time_us >= scale:
            return f"{time_us / scale:g} {unit}"
    return f"{time_us:g} µs"
