"""Starting what is measured, and its end."""

import os
import signal
import socket
import subprocess
import tempfile
import time

# A launch that takes longer is given up, and said to have been.
LAUNCH_TIMEOUT_S = 60


class Failed(Exception):
    """What gave no figures; the text says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def finish(commands, environment=None):
    """Runs `commands` at once; what the first printed when all have succeeded.

    Output goes through files: one that writes much must not wait for one that is read later.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        processes = []
        try:
            for index, command in enumerate(commands):
                extra = environment(index) if environment else {}
                stdout = out if index == 0 else subprocess.DEVNULL
                processes.append(subprocess.Popen(
                    command, env={**os.environ, **extra}, stdin=subprocess.DEVNULL,
                    stdout=stdout, stderr=errors, start_new_session=True))
            deadline = time.monotonic() + LAUNCH_TIMEOUT_S
            codes = [p.wait(max(0.1, deadline - time.monotonic())) for p in processes]
        except subprocess.TimeoutExpired:
            raise Failed(f"no answer within {LAUNCH_TIMEOUT_S} s") from None
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        errors.seek(0)
        if any(codes):
            lines = errors.read().strip().splitlines()
            raise Failed(f"exit codes {codes}: {' | '.join(lines[-3:])}")
        out.seek(0)
        return out.read()
