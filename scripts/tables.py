"""How figures are written in tables, by all benchmarks."""

KIB, MIB = 1 << 10, 1 << 20


def row(cells):
    return "| " + " | ".join(cells) + " |"


def time_text(time):
    """Microseconds; a dash where there are none."""
    if time is None:
        return "-"
    return f"{time:.2f}" if time < 10 else f"{time:.1f}" if time < 100 else f"{time:,.0f}"


def size_text(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"
