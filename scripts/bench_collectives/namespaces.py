"""Two hosts on one machine: network namespaces joined by a veth pair. Needs root."""

import os
import pathlib
import shutil
import subprocess
import tempfile

ADDRESSES = ["198.18.0.1", "198.18.0.2"]
INTERFACE = "bench0"


class TwoHosts:
    """Two namespaces with names, addresses and a link; gone when the context ends.

    Each has a host name of its own that resolves to its address: Gloo listens where its own name
    points, and the MPIs tell hosts apart by name.
    """

    def __init__(self, mtu, gbit_per_s):
        self.mtu, self.gbit_per_s = mtu, gbit_per_s
        self.names = [f"bench{os.getpid()}{side}" for side in "ab"]

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-collectives-"))
        try:
            self._join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _join(self):
        hosts = "127.0.0.1 localhost\n"
        hosts += "".join(f"{address} {name}\n" for address, name in zip(ADDRESSES, self.names))
        for name in self.names:
            _ip("netns", "add", name)
            # `ip netns exec` puts what is here in place of /etc/hosts.
            etc = pathlib.Path("/etc/netns", name)
            etc.mkdir(parents=True, exist_ok=True)
            (etc / "hosts").write_text(hosts)
        one, other = self.names
        _ip("-n", one, "link", "add", INTERFACE, "mtu", str(self.mtu), "type", "veth",
            "peer", "name", INTERFACE, "netns", other, "mtu", str(self.mtu))
        for name, address in zip(self.names, ADDRESSES):
            _ip("-n", name, "address", "add", f"{address}/30", "dev", INTERFACE)
            _ip("-n", name, "link", "set", INTERFACE, "up")
            _ip("-n", name, "link", "set", "lo", "up")
            if self.gbit_per_s is not None:
                limit = ["rate", f"{self.gbit_per_s}gbit", "burst", "256kb", "latency", "50ms"]
                _run("tc", "-n", name, "qdisc", "add", "dev", INTERFACE, "root", "tbf", *limit)
        self.agent = self.folder / "agent"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o700)

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(pathlib.Path("/etc/netns", name), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, side, command):
        """`command` as the host on `side`, 0 or 1, runs it."""
        name = self.names[side]
        named = 'hostname "$0" && exec "$@"'
        return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", named, name, *command]


# What the MPIs call in ssh's place: AGENT [OPTION...] HOST COMMAND...
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host && $*"
"""


def _ip(*arguments):
    _run("ip", *arguments)


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
