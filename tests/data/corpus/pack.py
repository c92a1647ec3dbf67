#!/usr/bin/env python3
"""Packs the inputs and outputs of the corpus for the tests.

usage: pack.py CORPUS

CORPUS holds <set>/<case>/{data.npz,meta.json}. For every <set>/<case> beside this script, writes
data.bin: the elements of the inputs, then of the outputs, as whole arrays, little-endian and
row-major, one after the other without headers, since the program has the types. cases.txt gets a
line per case: its path, how many devices it runs on, and the tolerance of its outputs.
"""

import io
import json
import pathlib
import struct
import sys
import zipfile


def elements(npz, name):
    data = npz.read(name + ".npy")
    (header_len,) = struct.unpack_from("<H", data, 8)
    header = data[10 : 10 + header_len].decode()
    assert "'fortran_order': False" in header, header
    assert ">" not in header, header
    return data[10 + header_len :]


def main():
    corpus = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    lines = []
    for program in sorted(here.glob("*/*/program.stablehlo.mlir")):
        case = program.parent.relative_to(here)
        meta = json.loads((corpus / case / "meta.json").read_text())
        npz = zipfile.ZipFile(corpus / case / "data.npz")
        sides = [("in", meta["inputs"]), ("out", meta["outputs"])]
        shards = [array.get("shards") for _, arrays in sides for array in arrays]
        devices = max((len(names) for names in shards if names), default=1)
        packed = io.BytesIO()
        for side, arrays in sides:
            for index in range(len(arrays)):
                packed.write(elements(npz, f"{side}{index}"))
        (program.parent / "data.bin").write_bytes(packed.getvalue())
        lines.append(f"{case} {devices} {meta['tolerance']}\n")
    (here / "cases.txt").write_text("".join(lines))


main()
