#!/usr/bin/env python3
"""Writes `bytecode` beside this script: the programs of the files here as jaxlib serializes them.

usage: target/python-env/bin/python tests/data/operations/pack.py

Programs that the verifier must refuse, and those that jaxlib does not know or has no bytecode of, are
left out.
`transfers.mlir` has files of its own, of several versions.
"""

import pathlib

from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

here = pathlib.Path(__file__).parent


def main():
    (here / "bytecode").mkdir(exist_ok=True)
    for file in sorted(here.glob("*.mlir")):
        for number, text in enumerate(file.read_text().split("\n// -----\n")):
            skipped = text.startswith("// refused: ") or "// jaxlib: " in text
            if skipped or file.stem == "transfers":
                continue
            with mlir.make_ir_context():
                module = ir.Module.parse(text)
                artifact = stablehlo.serialize_portable_artifact(
                    module, stablehlo.get_current_version(), True
                )
            (here / "bytecode" / f"{file.stem}-{number}.mlirbc").write_bytes(artifact)


main()
