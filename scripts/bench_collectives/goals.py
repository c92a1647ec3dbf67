"""What the figures are to reach, and whether they do."""

from dataclasses import dataclass

from figures import JAX, MPIS, QUIC, SHM
from tables import KIB, MIB, size_text

TWO_RANKS, FOUR_RANKS = "2 ranks on one host", "4 ranks on one host"


@dataclass(frozen=True)
class Verdict:
    goal: str
    wanted: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Faster:
    """All sizes in a range: so many times as fast as the fastest rival that there is."""

    scene: str
    collective: str
    ours: str
    rivals: list
    ratio: float
    from_bytes: int = 0
    below_bytes: int | None = None

    def judge(self, run):
        sizes = [size for size in run.sizes(self.scene, self.collective)
                 if self.from_bytes <= size and (self.below_bytes is None or size < self.below_bytes)]
        ratios = [run.ratio(self.scene, self.collective, size, self.ours, self.rivals) for size in sizes]
        if not ratios or None in ratios:
            return
        span = f" from {size_text(self.from_bytes)}" if self.from_bytes else ""
        span += f" below {size_text(self.below_bytes)}" if self.below_bytes else ""
        rivals = "the faster MPI" if self.rivals == MPIS else self.rivals[0]
        words = f"{self.scene}: {self.collective}{span}, {self.ours} against {rivals}"
        least = min(ratios)
        yield Verdict(words, f">= {self.ratio}x", f"{least:.2f}x", least >= self.ratio)


@dataclass(frozen=True)
class Prompt:
    """The smallest all_reduce, in a time."""

    scene: str
    limit_us: float

    def judge(self, run):
        time = run.time_us(self.scene, "all_reduce", 8, SHM)
        if time is not None:
            words = f"{self.scene}: all_reduce of 8 B, {SHM}"
            yield Verdict(words, f"<= {self.limit_us:g} us", f"{time:.2f} us", time <= self.limit_us)


@dataclass(frozen=True)
class LineFilled:
    """At a limited rate: the share of the line that the largest all_reduce fills."""

    share: float

    def judge(self, run):
        for scene in run.scenes:
            time = scene.gbit_per_s and run.time_us(scene.name, "all_reduce", 16 * MIB, QUIC)
            if time:
                # Of two ranks, each sends and receives as many bytes as the operand has.
                found = 16 * MIB / time / (scene.gbit_per_s * 125)
                words = f"{scene.name}: all_reduce of 16 MiB, {QUIC}, share of the line"
                wanted = f">= {self.share * 100:.0f} %"
                yield Verdict(words, wanted, f"{found * 100:.1f} %", found >= self.share)


GOALS = [
    Prompt(TWO_RANKS, 1),
    Faster(TWO_RANKS, "all_reduce", SHM, MPIS, 1, below_bytes=256 * KIB),
    Faster(TWO_RANKS, "all_reduce", SHM, MPIS, 3, from_bytes=256 * KIB),
    Faster(TWO_RANKS, "all_gather", SHM, MPIS, 1.5, from_bytes=256 * KIB),
    Faster(TWO_RANKS, "all_to_all", SHM, MPIS, 1.5, from_bytes=256 * KIB),
    Prompt(FOUR_RANKS, 20),
    Faster(FOUR_RANKS, "all_reduce", SHM, ["Open MPI"], 3, from_bytes=64 * KIB),
    *[Faster(FOUR_RANKS, c, SHM, ["Open MPI"], 1) for c in ("all_reduce", "all_gather", "all_to_all")],
    Faster("2 hosts, 1500-byte frames", "all_reduce", QUIC, [JAX], 0.8, from_bytes=256 * KIB),
    Faster("2 hosts, 9000-byte frames", "all_reduce", QUIC, [JAX], 1.3, from_bytes=256 * KIB),
    LineFilled(0.92),
]


def verdicts(run):
    """Those of the goals that the run measured."""
    return [verdict for goal in GOALS for verdict in goal.judge(run)]
