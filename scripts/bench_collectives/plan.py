"""What is measured: scenes, collectives, sizes and how often."""

from dataclasses import dataclass

from tables import KIB, MIB

COLLECTIVES = ["all_reduce", "all_gather", "all_to_all"]


@dataclass(frozen=True)
class Scene:
    """Where the ranks are, and what is between them."""

    name: str
    ranks: int
    collectives: tuple = tuple(COLLECTIVES)
    # Bytes of a frame between two hosts of one rank each; None when all ranks are on one host.
    mtu: int | None = None
    # What the link carries in each direction; None for all it can.
    gbit_per_s: int | None = None
    rounds: int = 5

    @property
    def plot(self):
        return "one-host" if self.mtu is None else "two-hosts"


@dataclass(frozen=True)
class Range:
    """Sizes that one launch measures: the larger is the smaller times `factor`.

    `warm_up` iterations come before those that count: caches take about fifty to be as they are in
    a program that has begun long ago.
    """

    smaller: int
    larger: int
    iterations: int
    warm_up: int

    @property
    def factor(self):
        return self.larger // self.smaller

    @property
    def sizes(self):
        return [self.smaller, self.larger]


def scenes(only):
    one_host = [
        Scene("2 ranks on one host", 2),
        Scene("4 ranks on one host", 4, rounds=3),
    ]
    frames = [1500, 9000, 65535]
    two_hosts = [Scene(f"2 hosts, {mtu}-byte frames", 2, mtu=mtu) for mtu in frames]
    two_hosts += [
        Scene(f"2 hosts, {mtu}-byte frames, 1 Gbit/s", 2, ("all_reduce",), mtu, 1, rounds=2)
        for mtu in frames
    ]
    return {"one-host": one_host, "two-hosts": two_hosts, None: one_host + two_hosts}[only]


def ranges(scene, collective, quick):
    """The sizes of a collective; the smallest has an element for each rank's part."""
    smallest = 8 if collective == "all_reduce" else 4 * scene.ranks
    slow = scene.gbit_per_s is not None
    ranges = [
        Range(smallest, 4 * KIB, 200 if slow else 1000, 100),
        Range(64 * KIB, 256 * KIB, 20 if slow else 100, 5 if slow else 50),
        Range(2 * MIB, 16 * MIB, 5 if slow else 20, 5),
    ]
    if quick:
        ranges = [Range(r.smaller, r.larger, max(3, r.iterations // 10), 5) for r in ranges]
    return ranges
