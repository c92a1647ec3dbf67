"""Whether jaxlib's parser, MLIR's own, takes what Lockstep prints for what it was read from.

usage: jaxlib_judge.py ORIGINAL PRINTED [ORIGINAL PRINTED ...]

Reads both files of each pair with MLIR, takes away the notes of the frontend to itself, which
Lockstep does not keep, and compares what MLIR prints. Ends with 1 if any pair differs.
"""

import difflib
import pathlib
import sys

from jax._src.interpreters import mlir
from jaxlib.mlir import ir

NOTES = ("jax.", "mhlo.frontend_attributes", "mhlo.layout_mode", "stablehlo.mesh", "no_inline")


def is_note(name):
    return name.startswith(NOTES) and name != "jax.buffer_donor"


def without_notes(attributes):
    for name in list(attributes):
        if is_note(name):
            del attributes[name]


def plain_signature(function):
    """Without notes on parameters and results, and with the default visibility spelled out."""
    attributes = function.attributes
    for key in ("arg_attrs", "res_attrs"):
        if key not in attributes:
            continue
        kept = [
            {entry.name: entry.attr for entry in ir.DictAttr(each) if not is_note(entry.name)}
            for each in ir.ArrayAttr(attributes[key])
        ]
        if any(kept):
            attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in kept])
        else:
            del attributes[key]
    if "sym_visibility" not in attributes:
        attributes["sym_visibility"] = ir.StringAttr.get("public")


def plain(operation):
    without_notes(operation.attributes)
    if operation.name == "builtin.module":
        one = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
        for name in ("mhlo.num_partitions", "mhlo.num_replicas"):
            if name not in operation.attributes:
                operation.attributes[name] = one
    if operation.name == "func.func":
        plain_signature(operation)
    for region in operation.regions:
        for block in region:
            for inner in block:
                plain(inner.operation)


def canonical(path):
    module = ir.Module.parse(pathlib.Path(path).read_text())
    plain(module.operation)
    return module.operation.get_asm().splitlines()


def main(paths):
    differing = 0
    with mlir.make_ir_context(), ir.Location.unknown():
        for original, printed in zip(paths[::2], paths[1::2], strict=True):
            try:
                before, after = canonical(original), canonical(printed)
            except ir.MLIRError as error:
                differing += 1
                print(f"{original} or {printed}: {error}")
                continue
            if before != after:
                differing += 1
                print("\n".join(difflib.unified_diff(before, after, original, printed, n=0, lineterm="")))
    return 1 if differing else 0


sys.exit(main(sys.argv[1:]))
