"""Lockstep's devices in JAX.

JAX finds this package by its name and calls `initialize()`, which registers the platform
`lockstep` and teaches JAX what it does for platforms that it knows and not for others: buffer
donation, factorizations of matrices, functions of the host, DLPack, and the persistent cache of
compilations.

Environment: `LOCKSTEP_DEVICES` says how many devices a process shows; `LOCKSTEP_PJRT_LIBRARY` names
another library than the one beside this file, such as one that `cargo build` has just made.
"""

import ctypes
import os
import pathlib

PLATFORM = "lockstep"


def library() -> pathlib.Path:
    """The shared library behind the platform."""
    if path := os.environ.get("LOCKSTEP_PJRT_LIBRARY"):
        return pathlib.Path(path)
    here = pathlib.Path(__file__).parent
    for path in sorted(here.glob("liblockstep_pjrt*.so")):
        return path
    raise FileNotFoundError(
        f"{here} has no liblockstep_pjrt: install the package with `pip install ./plugin`, or name "
        "the library in LOCKSTEP_PJRT_LIBRARY"
    )


def initialize() -> None:
    """Registers the platform. JAX calls it once, before it makes any client."""
    import jax
    from jax._src import distributed, xla_bridge
    from jax._src.interpreters import mlir

    from . import cache, callbacks, dlpack, linalg

    # What JAX does on the host, such as calling functions of it, it does with its own CPU devices.
    if jax.config.jax_platforms == PLATFORM:
        jax.config.update("jax_platforms", f"{PLATFORM},cpu")
    path = str(library())

    def options():
        # Processes that nobody launched as a job meet where JAX's coordinator is.
        coordinator = distributed.global_state.coordinator_address
        return {"coordinator_address": coordinator} if coordinator else {}

    xla_bridge.register_plugin(PLATFORM, library_path=path, options=options)
    # JAX donates on platforms of this list alone.
    mlir._platforms_with_donation.append(PLATFORM)
    linalg.register(PLATFORM)
    dlpack.register(PLATFORM)
    cache.register(PLATFORM)
    callbacks.register(PLATFORM, ctypes.CDLL(path))
