"""What happens as Python starts inside a job: `cluster` is imported as soon as JAX knows clusters.

JAX imports plugins when it makes its first client, and programs call `jax.distributed.initialize()`
before that. jax-lockstep.pth imports this module in jobs of `lockstep run`, and nowhere else.
"""

import importlib.abc
import importlib.util
import sys

AWAITED = "jax._src.clusters"


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != AWAITED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        from . import cluster  # noqa: F401


if AWAITED in sys.modules:
    from . import cluster  # noqa: F401
else:
    sys.meta_path.insert(0, _Finder())
