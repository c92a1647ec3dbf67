"""What a user does with JAX, on four devices of Lockstep; every value is checked.

Each function is a scenario. Ends with 1 if any fails, and says which.
"""

import gc
import sys
import tempfile
import threading
import traceback
from functools import partial

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

SEED = 7
SCENARIOS = []
DTYPES = [
    bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16, np.float32,
    np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2,
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3b11fnuz,
]


def scenario(function):
    SCENARIOS.append(function)
    return function


def numbers(*shape):
    return np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)


def grid():
    return Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))


def sharded(array, *spec):
    return jax.device_put(array, NamedSharding(grid(), P(*spec)))


def raises(expected, function):
    try:
        function()
    except Exception as error:
        assert expected in str(error), error
        return
    raise AssertionError(f"nothing was raised, expected {expected!r}")


@scenario
def devices():
    assert [device.id for device in jax.devices()] == [0, 1, 2, 3]
    assert jax.default_backend() == jax.devices()[0].platform == "lockstep"
    assert len(jax.local_devices()) == 4 and jax.process_count() == 1
    kinds = {memory.kind for memory in jax.devices()[1].addressable_memories()}
    assert kinds == {"device", "pinned_host", "unpinned_host"}


@scenario
def every_type_comes_back_as_it_went():
    for dtype in DTYPES:
        array = np.arange(-3, 5).reshape(2, 4).astype(dtype)
        back = np.asarray(jax.device_put(array))
        assert back.dtype == array.dtype and back.tobytes() == array.tobytes(), dtype


@scenario
def strides_are_followed():
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for view in (array.T, array[:, ::-1], array[::-1, 1:, ::2], np.broadcast_to(array[0, 0], (5, 4))):
        np.testing.assert_array_equal(np.asarray(jax.device_put(view)), view)
    assert np.asarray(jax.device_put(np.float32(3))) == 3
    assert np.asarray(jax.device_put(np.zeros((0, 3)))).shape == (0, 3)


@scenario
def host_memory_is_the_users_again():
    array = np.arange(1 << 16, dtype=np.float32)
    put = jax.device_put(array)
    array[:] = -1
    np.testing.assert_array_equal(np.asarray(put), np.arange(1 << 16, dtype=np.float32))
    view = np.asarray(put)
    assert not view.flags.writeable
    put.delete()
    gc.collect()
    assert view[12345] == 12345


@scenario
def programs_of_all_kinds():
    x = numbers(3, 4)
    np.testing.assert_allclose(jax.jit(lambda a: a @ a.T + 1)(x), x @ x.T + 1, rtol=1e-5)
    gradient = jax.jit(jax.grad(lambda a: jnp.sum(jnp.tanh(a) ** 2)))(x)
    np.testing.assert_allclose(gradient, 2 * np.tanh(x) * (1 - np.tanh(x) ** 2), rtol=1e-4)
    carry, sums = jax.jit(lambda a: lax.scan(lambda c, r: (c + r, c * r), a[0], a))(x)
    np.testing.assert_allclose(carry, x[0] + x.sum(0), rtol=1e-5)
    assert sums.shape == (3, 4)
    grown = jax.jit(lambda a: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, a))(x)
    assert grown.sum() >= 100
    assert jax.jit(lambda a: (a, a[:0]))(x)[1].shape == (0, 4) and jax.jit(lambda a: ())(x) == ()
    key = jax.random.key(SEED)
    np.testing.assert_array_equal(
        jax.random.bits(key, (4,)), jax.jit(lambda k: jax.random.bits(k, (4,)))(key)
    )


@scenario
def donated_arrays_are_gone():
    double = jax.jit(lambda a: a * 2, donate_argnums=0)
    x = jax.device_put(numbers(8))
    y = double(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, numbers(8) * 2)
    raises("deleted", lambda: np.asarray(x))
    # What is looked at in place stays as it is.
    z = jax.device_put(numbers(8))
    view = np.asarray(z)
    double(z).block_until_ready()
    np.testing.assert_array_equal(view, numbers(8))
    s = sharded(numbers(8, 8), "x", "y")
    jax.block_until_ready(jax.jit(lambda a: a + 1, donate_argnums=0)(s))
    assert s.is_deleted()


@scenario
def factorizations():
    a = np.random.default_rng(SEED).standard_normal((3, 4, 4)).astype(np.float32)
    symmetric = a + a.transpose(0, 2, 1)
    w, v = jnp.linalg.eigh(symmetric)
    np.testing.assert_allclose(symmetric @ v, v * w[:, None, :], atol=1e-5)
    w, v = jnp.linalg.eig(a[0])
    np.testing.assert_allclose(a[0] @ v, v * w, atol=1e-5)
    for matrix in (a, a[:, :3], a[:, :, :2]):
        u, s, vt = jnp.linalg.svd(matrix, full_matrices=False)
        np.testing.assert_allclose((u * s[:, None, :]) @ vt, matrix, atol=1e-5)
        u, _, vt = jnp.linalg.svd(matrix)
        assert u.shape[1:] == (matrix.shape[1],) * 2 and vt.shape[1:] == (matrix.shape[2],) * 2
        np.testing.assert_allclose(jnp.linalg.svd(matrix, compute_uv=False), s, rtol=1e-5)
        q, r = jnp.linalg.qr(matrix)
        np.testing.assert_allclose(q @ r, matrix, atol=1e-5)
    np.testing.assert_allclose(jnp.linalg.det(a), np.linalg.det(a), rtol=1e-4)
    np.testing.assert_allclose(jnp.linalg.inv(a) @ a, np.broadcast_to(np.eye(4), a.shape), atol=1e-4)
    t, z = jax.scipy.linalg.schur(a[0])
    np.testing.assert_allclose(z @ t @ z.T, a[0], atol=1e-5)


@scenario
def arrays_move():
    x = numbers(8, 8)
    there = jax.device_put(x, jax.devices()[3])
    assert there.devices() == {jax.devices()[3]}
    np.testing.assert_array_equal(jax.jit(lambda a: -a)(there), -x)
    pinned = jax.device_put(x, SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host"))
    assert pinned.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(pinned, x)
    s = sharded(x, "x", "y")
    np.testing.assert_array_equal(s, x)
    np.testing.assert_array_equal(jax.device_put(s, NamedSharding(grid(), P("y", "x"))), x)
    np.testing.assert_array_equal(jax.device_put(s, jax.devices()[1]), x)


@scenario
def programs_over_many_devices():
    x = numbers(8, 8)
    s = sharded(x, "x", "y")
    np.testing.assert_allclose(jax.jit(lambda a: a @ a.T)(s), x @ x.T, rtol=1e-4, atol=1e-5)
    out = NamedSharding(grid(), P(None, "x"))
    sine = jax.jit(jnp.sin, out_shardings=out)(s)
    assert sine.sharding.is_equivalent_to(out, 2)
    np.testing.assert_allclose(sine, np.sin(x), rtol=1e-5)
    # Element by element nothing is exchanged, and results stay where they are made.
    doubled = jax.jit(lambda a: jnp.cos(a) * 2 + lax.iota(jnp.float32, 8))
    np.testing.assert_allclose(doubled(s), np.cos(x) * 2 + np.arange(8), rtol=1e-5)
    assert doubled(s).sharding == s.sharding
    text = doubled.lower(s).compile().as_text()
    assert "f32[4,4]" in text and "f32[8,8]" not in text and "all-gather" not in text, text
    summed = jax.jit(
        jax.shard_map(
            lambda a: lax.psum(a, "x"), mesh=grid(), in_specs=P("x", "y"), out_specs=P(None, "y")
        )
    )(s)
    np.testing.assert_allclose(summed, x[:4] + x[4:], rtol=1e-6)

    # Work on whole arrays around work on parts.
    @jax.jit
    @partial(jax.value_and_grad)
    def loss(a):
        part = jax.shard_map(
            lambda b: lax.pmean(b * b, ("x", "y")), mesh=grid(), in_specs=P("x", "y"), out_specs=P()
        )
        return jnp.sum(part(a + 1))

    value, gradient = loss(s)
    np.testing.assert_allclose(value, ((x + 1) ** 2).sum() / 4, rtol=1e-5)
    np.testing.assert_allclose(gradient, (x + 1) / 2, rtol=1e-5)
    total = jax.pmap(lambda a: lax.psum(a, "i"), axis_name="i")(x[:4])
    np.testing.assert_allclose(total[2], x[:4].sum(0), rtol=1e-5)


@scenario
def shards_that_are_summands():
    explicit = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    x = numbers(8)
    with jax.set_mesh(explicit):
        summands = jax.jit(
            jax.shard_map(
                lambda a: lax.pcast(a, "x", to="unreduced"), out_specs=P(unreduced={"x"})
            )
        )(jax.device_put(x, P("x")))
        for i, shard in enumerate(summands.addressable_shards):
            np.testing.assert_array_equal(shard.data, x[2 * i : 2 * i + 2])
        total = x.reshape(4, 2).sum(0)
        np.testing.assert_allclose(jax.reshard(summands, P()), total, rtol=1e-6)
        spread = jax.device_put(x, P(unreduced={"x"}))
        np.testing.assert_array_equal(jax.reshard(spread, P("x")), x)


@scenario
def functions_of_the_host():
    x = numbers(3, 4)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    sine = jax.jit(lambda a: jax.pure_callback(np.sin, like, a) + 1)(x)
    np.testing.assert_allclose(sine, np.sin(x) + 1, rtol=1e-6)
    seen = []

    @jax.jit
    def counted(a):
        for i in range(3):
            io_callback(lambda v, i=i: seen.append((i, float(v))), None, a.sum(), ordered=True)
        jax.debug.callback(lambda v: seen.append(("debug", float(v))), a[0, 0])
        return a

    counted(x).block_until_ready()
    jax.effects_barrier()
    assert [entry[0] for entry in seen if entry[0] != "debug"] == [0, 1, 2], seen
    assert ("debug", float(x[0, 0])) in seen

    def fail(_):
        raise ValueError("the answer is not known")

    failing = jax.jit(lambda a: jax.pure_callback(fail, like, a))
    raises("the answer is not known", lambda: failing(x).block_until_ready())
    np.testing.assert_array_equal(jax.jit(lambda a: a + a)(x), x + x)


@scenario
def what_is_known_of_a_program():
    x = numbers(3, 4)
    compiled = jax.jit(lambda a: a @ a.T).lower(x).compile()
    assert compiled.memory_analysis().argument_size_in_bytes == 48
    assert compiled.memory_analysis().output_size_in_bytes == 36
    assert "dot" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] == 2 * 3 * 4 * 3
    assert compiled.cost_analysis()["bytes accessed"] >= 48 + 36
    options = {"xla_embed_ir_in_executable": True, "optimization_level": 1}
    assert jax.jit(lambda a: a + 1, compiler_options=options)(1.0) == 2
    options = {"invalid_key": True}
    raises("'invalid_key'", lambda: jax.jit(lambda a: a + 2, compiler_options=options)(1.0))
    exported = jax.export.export(jax.jit(lambda a: a * 3))(x)
    np.testing.assert_array_equal(jax.export.deserialize(exported.serialize()).call(x), x * 3)
    from jax.experimental import serialize_executable

    saved = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(*saved, execution_devices=jax.devices()[:1])
    np.testing.assert_allclose(loaded(x), x @ x.T, rtol=1e-5)


@scenario
def compilations_are_kept():
    hits = []
    jax.monitoring.register_event_listener(
        lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None
    )
    settings = {
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    with tempfile.TemporaryDirectory() as folder:
        settings["jax_compilation_cache_dir"] = folder
        before = {name: getattr(jax.config, name) for name in settings}
        for name, value in settings.items():
            jax.config.update(name, value)
        try:
            x = jax.device_put(numbers(4))
            for _ in range(2):
                jax.clear_caches()
                kept = jax.jit(lambda a: a * 3 - jax.pure_callback(np.sin, a, a))(x)
                np.testing.assert_allclose(kept, x * 3 - np.sin(x), rtol=1e-5)
                summed = jax.jit(lambda a: (a * 5).sum())(sharded(numbers(8, 8), "x", "y"))
                np.testing.assert_allclose(summed, (numbers(8, 8) * 5).sum(), rtol=1e-4)
            assert hits
        finally:
            for name, value in before.items():
                jax.config.update(name, value)


@scenario
def arrays_of_others():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(np.arange(4.0)), np.arange(4.0))
    assert x.unsafe_buffer_pointer() % 64 == 0


@scenario
def errors_name_the_culprit():
    missing = jax.ffi.ffi_call("nobody_has_this", jax.ShapeDtypeStruct((), jnp.float32))
    raises("nobody_has_this", lambda: jax.jit(lambda: missing())())
    x = jax.device_put(numbers(4))
    x.delete()
    raises("deleted", lambda: x + 1)


@scenario
def threads_launch_at_once():
    step = jax.jit(lambda a: a * 2 + 1)
    wrong = []

    def work(seed):
        x = np.full((64,), seed, np.float32)
        for _ in range(20):
            if not np.array_equal(np.asarray(step(x)), x * 2 + 1):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def main():
    failed = []
    for function in SCENARIOS:
        try:
            function()
        except Exception:
            failed.append(function.__name__)
            traceback.print_exc()
    if failed:
        print(f"failed: {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
