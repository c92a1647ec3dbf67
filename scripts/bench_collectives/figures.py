"""The figures of one run, and what can be asked of them."""

import statistics
from dataclasses import dataclass, field

MPIS = ["Open MPI", "MPICH"]
JAX = "JAX + Gloo"
SHM, QUIC = "Lockstep shm", "Lockstep quic"


@dataclass
class Run:
    """All that one run of the script found out."""

    date: str
    command: str
    machine: dict
    # Of each peer, in the order of the columns.
    versions: dict
    absent: list
    scenes: list
    minutes: float = 0
    # The samples of all rounds, by names of scene and collective, size in bytes, and peer.
    rounds: dict = field(default_factory=dict)
    # What gave no figures, and why; once each.
    failures: list = field(default_factory=list)

    def take(self, scene, peer, samples):
        for sample in samples:
            key = (scene, sample.collective, sample.size_bytes, peer)
            self.rounds.setdefault(key, []).append(sample)

    def time_us(self, scene, collective, size, peer):
        """The median over rounds; None where there is none."""
        samples = self.rounds.get((scene, collective, size, peer))
        return statistics.median(sample.time_us for sample in samples) if samples else None

    def ratio(self, scene, collective, size, ours, rivals):
        """How many times as fast as the fastest of `rivals` `ours` is; None if one is missing."""
        mine = self.time_us(scene, collective, size, ours)
        theirs = [self.time_us(scene, collective, size, rival) for rival in rivals]
        best = min((time for time in theirs if time is not None), default=None)
        return best / mine if mine and best else None

    def sizes(self, scene, collective):
        return sorted({key[2] for key in self.rounds if key[:2] == (scene, collective)})

    def peers(self, scene):
        found = {key[3] for key in self.rounds if key[0] == scene}
        return [peer for peer in self.versions if peer in found]
