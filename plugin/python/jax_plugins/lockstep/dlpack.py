"""DLPack: arrays of Lockstep are host memory, which NumPy describes to others.

JAX hands out arrays of the platforms that DLPack has numbers for. Lockstep has none, and needs none:
to everybody else its arrays are the host's.
"""

import jax
import numpy as np
from jax._src import array
from jax._src import dlpack as jax_dlpack

HOST = (1, 0)  # kDLCPU, and the only one of these.


def _is_ours(value, platform: str) -> bool:
    return isinstance(value, array.ArrayImpl) and all(
        device.platform == platform for device in value.devices()
    )


def register(platform: str) -> None:
    """Lets arrays of `platform` be exported, and arrays of the host be imported to it."""
    to_dlpack, from_dlpack = array.ArrayImpl.__dlpack__, jax.dlpack.from_dlpack
    dlpack_device = array.ArrayImpl.__dlpack_device__

    def export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if not _is_ours(self, platform):
            return to_dlpack(
                self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
            )
        # NumPy's own says, by a flag, that the array is not to be written to: it needs a version
        # that has one. Others get memory of their own.
        view = np.asarray(self)
        if max_version is None or max_version < (1, 0) or copy:
            return np.array(view).__dlpack__()
        return view.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def device(self):
        return HOST if _is_ours(self, platform) else dlpack_device(self)

    def load(external_array, device=None, copy=None):
        on_host = getattr(external_array, "__dlpack_device__", lambda: None)() == HOST
        if not on_host or jax.default_backend() != platform:
            return from_dlpack(external_array, device=device, copy=copy)
        if copy is False:
            raise ValueError("lockstep copies what is not its own: copy=False cannot be had")
        return jax.device_put(np.from_dlpack(external_array), device)

    array.ArrayImpl.__dlpack__ = export
    array.ArrayImpl.__dlpack_device__ = device
    jax.dlpack.from_dlpack = jax_dlpack.from_dlpack = load
