"""Jobs that `lockstep run` started, as JAX's own set-up of distributed programs finds them.

Inside such a job `jax.distributed.initialize()` needs no arguments.
"""

import os

from jax._src.clusters import ClusterEnv


class LockstepCluster(ClusterEnv):
    name = "lockstep"

    @classmethod
    def is_env_present(cls) -> bool:
        return "LOCKSTEP_WORLD_SIZE" in os.environ and "LOCKSTEP_COORDINATOR" in os.environ

    @classmethod
    def get_coordinator_address(cls, timeout_secs, override_coordinator_port) -> str:
        # Lockstep's coordinator has a UDP port of this number; the TCP port is for JAX's.
        host, port = os.environ["LOCKSTEP_COORDINATOR"].rsplit(":", 1)
        return f"{host}:{override_coordinator_port or port}"

    @classmethod
    def get_process_count(cls) -> int:
        return int(os.environ["LOCKSTEP_WORLD_SIZE"])

    @classmethod
    def get_process_id(cls) -> int:
        return int(os.environ["LOCKSTEP_RANK"])


# Whoever started the job last knows best: `lockstep run` may itself run under Slurm.
ClusterEnv._cluster_types.remove(LockstepCluster)
ClusterEnv._cluster_types.insert(0, LockstepCluster)
