"""JAX's persistent cache of compilations, which it keeps to the platforms that it knows.

What is kept is the program as it came, with the numbers of the host's functions in it: the key says
all of that, so that whoever finds it has the same functions under the same numbers.
"""

from jax._src import compilation_cache


def register(platform: str) -> None:
    """Lets `jax_compilation_cache_dir` hold for the platform's programs."""
    used_by_others = compilation_cache.is_cache_used

    def is_cache_used(backend) -> bool:
        if backend.platform == platform:
            return compilation_cache._is_cache_enabled()
        return used_by_others(backend)

    compilation_cache.is_cache_used = is_cache_used
