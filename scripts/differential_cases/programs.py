"""What a case is, and how its module is written down."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import _jax
from jaxlib.mlir.dialects import stablehlo

EXACT = 0
NAMES = {
    "bool": "i1",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
    "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN",
}


@dataclasses.dataclass
class Case:
    name: str
    # Makes the module: as text, and in the form in which it is run here. A generator's loop
    # variables, which it may use, stand still until the next case is asked for.
    module: Callable[[], tuple[str, bytes]]
    arguments: list
    # Units in the last place that a result may be off.
    ulps: float = EXACT
    # Absolute error in units of the last place of the greatest result.
    scaled: float = 0


def element(dtype):
    """StableHLO's name of a type."""
    name = str(np.dtype(dtype))
    return NAMES.get(name) or name.replace("uint", "ui").replace("int", "i")


def tensor(shape, dtype):
    return f"tensor<{''.join(f'{dim}x' for dim in shape)}{element(dtype)}>"


def type_of(array):
    return tensor(array.shape, array.dtype)


def program(arguments, results, body):
    """A module of one function over %0, %1, …; the body ends with `return`."""
    parameters = ", ".join(f"%{i}: {type_of(a)}" for i, a in enumerate(arguments))
    return (
        "module @m {\n  func.func public @main("
        + parameters
        + f") -> ({', '.join(results)}) {{\n{body}\n  }}\n}}\n"
    )


def text_case(name, text, arguments, **tolerance):
    """A module that is run as it is written."""
    return Case(name, lambda: (text, text.encode()), arguments, **tolerance)


def jax_case(name, function, *arguments, **tolerance):
    """What JAX makes of a function; here, in the form in which it would hand it to a plugin."""

    def module():
        lowered = jax.jit(function).trace(*arguments).lower()
        bytecode = jax_mlir.module_to_bytecode(lowered.compiler_ir())
        version = stablehlo.get_current_version()
        return lowered.as_text(), _jax.mlir.serialize_portable_artifact(bytecode, version)

    return Case(name, module, list(arguments), **tolerance)


def elementwise(name, op, result_dtype, arguments, attributes="", **tolerance):
    """One generic elementwise operation."""
    result = tensor(arguments[0].shape, result_dtype)
    operands = ", ".join(f"%{i}" for i in range(len(arguments)))
    types = ", ".join(map(type_of, arguments))
    body = f'    %r = "stablehlo.{op}"({operands}) {attributes} : ({types}) -> {result}\n'
    return text_case(
        name,
        program(arguments, [result], body + f"    return %r : {result}"),
        arguments,
        **tolerance,
    )


def reducer(name, dtype):
    ty = tensor((), dtype)
    return f"^bb0(%x: {ty}, %y: {ty}):\n      %z = stablehlo.{name} %x, %y : {ty}\n      stablehlo.return %z : {ty}"
