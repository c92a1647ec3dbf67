"""Functions of the host in programs: `pure_callback`, `io_callback`, `debug.callback` and `print`.

A function becomes a custom call that carries its number. When the program comes to it, the library
calls `_call` here with the number and the addresses of operands and results, on the thread of the
device, which waits for Python's lock if somebody else has it.
"""

import ctypes
import threading

import jax
import numpy as np
from jax._src import callback as jax_callback
from jax._src import debugging, dtypes
from jax._src.interpreters import mlir

TARGET = "lockstep.host_callback"

_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    ctypes.c_size_t,
)

# All that were ever lowered, by number: a program that calls one may live as long as the process.
_functions: list["_Function"] = []
_lock = threading.Lock()


class _Function:
    """A function, and what it takes and gives."""

    def __init__(self, function, operands, results):
        self.function, self.operands, self.results = function, operands, results

    def __call__(self, operand_addresses, result_addresses):
        arguments = []
        for aval, address in zip(self.operands, operand_addresses):
            view = _view(aval, address)
            # The memory is the program's again after the call.
            arguments.append(view.copy())
        returned = self.function(*arguments)
        if len(returned) != len(self.results):
            raise RuntimeError(
                "Mismatched number of outputs from callback. "
                f"Expected: {len(self.results)}, Actual: {len(returned)}"
            )
        for i, (value, aval) in enumerate(zip(returned, self.results)):
            value = dtypes.canonicalize_value(np.asarray(value))
            for what, found, expected in (
                ("shape", value.shape, aval.shape),
                ("dtype", value.dtype, aval.dtype),
            ):
                if found != expected:
                    raise RuntimeError(
                        f"Incorrect output {what} for return value #{i}: "
                        f"Expected: {expected}, Actual: {found}"
                    )
            _view(aval, result_addresses[i])[...] = value


def _view(aval, address):
    """The array at an address."""
    size = aval.size * aval.dtype.itemsize
    if size == 0:
        return np.empty(aval.shape, aval.dtype)
    buffer = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(buffer, dtype=aval.dtype).reshape(aval.shape)


@_FUNCTION
def _call(number, operands, results, message, room):
    try:
        _functions[number](operands, results)
        return 0
    except BaseException as error:  # Nothing may unwind into the library.
        text = f"{type(error).__name__}: {error}".encode()[:room] or b"?"
        ctypes.memmove(message, text, len(text))
        return len(text)


def _emit(ctx, callback, token, operands, operand_avals, result_avals, has_side_effect):
    with _lock:
        number = len(_functions)
        _functions.append(_Function(callback, list(operand_avals), list(result_avals)))
    inner = ctx.replace(avals_in=list(operand_avals), avals_out=list(result_avals))
    rule = jax.ffi.ffi_lowering(TARGET, has_side_effect=has_side_effect)
    # A device runs one program after the other, each in its order: tokens need not say it again.
    return rule(inner, *operands, callback=np.uint64(number)), token, None


def register(platform: str, library: ctypes.CDLL) -> None:
    """Lowers functions of the host on `platform`, whose library is `library`."""
    library.LockstepRegisterHostCallbacks.argtypes = [_FUNCTION]
    library.LockstepRegisterHostCallbacks.restype = None
    library.LockstepRegisterHostCallbacks(_call)
    elsewhere = jax_callback.emit_python_callback

    def emit(
        ctx,
        callback,
        token,
        operands,
        operand_avals,
        result_avals,
        *,
        has_side_effect,
        returns_token=True,
        partitioned=False,
        sharding=None,
    ):
        if tuple(ctx.module_context.platforms) != (platform,):
            return elsewhere(
                ctx,
                callback,
                token,
                operands,
                operand_avals,
                result_avals,
                has_side_effect=has_side_effect,
                returns_token=returns_token,
                partitioned=partitioned,
                sharding=sharding,
            )
        return _emit(
            ctx, callback, token, operands, operand_avals, result_avals, has_side_effect
        )

    jax_callback.emit_python_callback = emit
    mlir.register_lowering(
        debugging.debug_callback_p, debugging.debug_callback_lowering, platform=platform
    )
    mlir.register_lowering(
        debugging.debug_print_p, debugging.debug_print_lowering_rule, platform=platform
    )
