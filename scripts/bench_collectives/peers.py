"""Who is measured: how each is started, and what it answers."""

import json
import os
import pathlib
import secrets
import subprocess
import sys
from dataclasses import dataclass

import plan
from jobs import Failed, finish, free_port
from namespaces import ADDRESSES, INTERFACE

SOURCES = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Sample:
    """One size in one launch: times of the rank whose mean is greatest."""

    collective: str
    size_bytes: int
    iterations: int
    time_us: float
    p50_us: float


def samples_of(text):
    """The samples in the JSON list that is the last line of `text`; Gloo greets before it."""
    try:
        results = json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed(f"unreadable output {text[:200]!r}") from None
    if wrong := sum(result["wrong"] for result in results):
        raise Failed(f"{wrong} wrong elements")
    return [Sample(**{k: v for k, v in r.items() if k != "wrong"}) for r in results]


def measurements(plans):
    """What is asked of the programs that stand beside this one."""
    return [f"{collective}:{size}:{range_.iterations}:{range_.warm_up}"
            for collective, ranges in plans for range_ in ranges for size in range_.sizes]


class Mpi:
    """One of the MPIs, with the program of mpi_collectives.c built for it."""

    slow_start = False
    crosses_hosts = True

    def __init__(self, name, family, folder):
        self.name, self.family = name, family
        self.mpirun = f"mpirun.{family}"
        self.program = folder / f"mpi_collectives.{family}"
        source = SOURCES / "mpi_collectives.c"
        compiler = [f"mpicc.{family}", "-O2", "-Wall", "-o", str(self.program), str(source)]
        subprocess.run(compiler, check=True)

    def version(self):
        lines = subprocess.run([self.mpirun, "--version"], capture_output=True, text=True, check=True)
        words = lines.stdout.split()
        return next(word for word in words if word[0].isdigit())

    def run(self, scene, hosts, plans):
        program = [str(self.program), *measurements(plans)]
        options = self.on_two_hosts(hosts) if hosts else self.on_one_host()
        command = [self.mpirun, *options, "-n", str(scene.ranks), *program]
        command = hosts.command(0, command) if hosts else command
        return samples_of(finish([command], lambda _: self.environment(hosts)))

    def on_one_host(self):
        """Ranks are kept to cores: MPICH's are 1,000 times as slow for 8 bytes where they are not."""
        if self.family == "mpich":
            return ["-bind-to", "core"]
        return ["--allow-run-as-root", "--oversubscribe", "--bind-to", "core:overload-allowed"]

    def on_two_hosts(self, hosts):
        names, agent = ",".join(hosts.names), str(hosts.agent)
        if self.family == "mpich":
            return ["-launcher", "ssh", "-launcher-exec", agent, "-hosts", names, "-ppn", "1",
                    "-iface", INTERFACE]
        settings = {"plm_rsh_agent": agent, "pml": "ob1", "btl": "tcp,self",
                    "btl_tcp_if_include": INTERFACE, "oob_tcp_if_include": INTERFACE}
        chosen = [word for pair in settings.items() for word in ("--mca", *pair)]
        return ["--allow-run-as-root", "--map-by", "node", "--bind-to", "none", "--host", names, *chosen]

    def environment(self, hosts):
        # The hosts share a machine, which UCX would see.
        if hosts and self.family == "mpich":
            return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": INTERFACE, "MPIR_CVAR_NOLOCAL": "1"}
        return {}


class Jax:
    """JAX with Gloo between processes. It starts so slowly that one launch does all sizes."""

    name = "JAX + Gloo"
    slow_start = True
    crosses_hosts = True

    def version(self):
        code = "import jax; print(jax.__version__)"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True).stdout.strip()

    def run(self, scene, hosts, plans):
        address = ADDRESSES[0] if hosts else "127.0.0.1"
        coordinator = f"{address}:{free_port()}"
        script = str(SOURCES / "jax_collectives.py")

        def command(rank):
            words = [sys.executable, script, "--coordinator", coordinator, "--rank", rank,
                     "--ranks", scene.ranks, *measurements(plans)]
            words = [str(word) for word in words]
            return hosts.command(rank, words) if hosts else words

        return samples_of(finish([command(rank) for rank in range(scene.ranks)]))


class Lockstep:
    """Ourselves, by one transport."""

    slow_start = False

    def __init__(self, transport, release):
        self.name = f"Lockstep {transport}"
        self.transport, self.release = transport, release
        self.crosses_hosts = transport != "shm"

    def version(self):
        perf = [str(self.release / "lockstep-perf"), "--version"]
        return subprocess.run(perf, capture_output=True, text=True, check=True).stdout.split()[-1]

    def is_there(self):
        """Whether this build has the transport: a usage error says that it has not."""
        perf = [str(self.release / "lockstep-perf"), "barrier", "-n", "1"]
        perf += ["--transport", self.transport]
        return subprocess.run(perf, capture_output=True, check=False).returncode != 2

    def run(self, scene, hosts, plans):
        return [sample for collective, ranges in plans for range_ in ranges
                for sample in self.run_range(scene, hosts, collective, range_)]

    def run_range(self, scene, hosts, collective, range_):
        perf = [self.release / "lockstep-perf", collective, "--json",
                "--placement", "out_of_place",
                "--transport", self.transport, "-d", "f32", "-w", range_.warm_up,
                "-n", range_.iterations, "-b", range_.smaller, "-e", range_.larger,
                "-f", range_.factor]
        perf = [str(word) for word in perf]
        if hosts:
            text = self.on_two_hosts(hosts, perf)
        else:
            launcher = str(self.release / "lockstep")
            job = [launcher, "run", "-n", str(scene.ranks), "--bind-to", "core", "--no-tag"]
            text = finish([[*job, *perf]])
        document = json.loads(text)
        if document["wrong"]:
            raise Failed(f"{document['wrong']} wrong elements")
        return [
            Sample(collective, r["size_bytes"], document["iterations"], r["time_us"], r["p50_us"])
            for r in document["results"] if r["placement"] == "out_of_place"
        ]

    def on_two_hosts(self, hosts, perf):
        key = hosts.folder / "key"
        if not key.exists():
            with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(secrets.token_hex(32) + "\n")
        job = {
            "LOCKSTEP_WORLD_SIZE": "2",
            "LOCKSTEP_COORDINATOR": f"{ADDRESSES[0]}:{free_port()}",
            "LOCKSTEP_JOB": "bench",
            "LOCKSTEP_KEY_FILE": str(key),
        }
        commands = [hosts.command(rank, perf) for rank in range(2)]
        return finish(commands, lambda rank: {**job, "LOCKSTEP_RANK": str(rank)})
