"""Times programs of jax_programs.py on the platform that JAX_PLATFORMS names, as it is told to.

Reads one line of JSON for each request, and answers with one:

    {"program": NAME, "results": FILE}     runs it once and keeps its results: {}
    {"program": NAME, "seconds": SECONDS}  least times of compiling and of a step, in microseconds

While it waits it takes no time of the machine's, so that another may be measured.
"""

import json
import sys
import time

import jax
import numpy as np

import jax_programs
import results


def keep(function, arguments, file):
    leaves = jax.tree.leaves(function(*arguments))
    np.savez(file, *(results.array(leaf) for leaf in leaves))
    return {}


def times(function, arguments, seconds):
    jax.clear_caches()
    lowered = function.lower(*arguments)
    start = time.perf_counter()
    compiled = lowered.compile()
    compile_s = time.perf_counter() - start

    jax.block_until_ready(compiled(*arguments))
    steps = []
    end = time.perf_counter() + seconds
    while not steps or start < end:
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        steps.append(time.perf_counter() - start)
    return {"compile_us": compile_s * 1e6, "step_us": min(steps) * 1e6}


def main():
    made = {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["program"]
        try:
            if name not in made:
                made.clear()
                function, arguments = jax_programs.make(name)
                made[name] = jax.jit(function), jax.device_put(arguments)
            if "results" in request:
                answer = keep(*made[name], request["results"])
            else:
                answer = times(*made[name], request["seconds"])
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
