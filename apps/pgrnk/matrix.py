#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a Matrix Market file into the memory of app pgrnk, and that memory into ranks.

    .venv/bin/python apps/pgrnk/matrix.py pack web.mtx memory      # prints the options for `viaduct run`
    ./viaduct run pgrnk --out mem=file:memory --set …
    .venv/bin/python apps/pgrnk/matrix.py ranks memory --set …     # a rank a line; the same options

Entry (i, j) is the weight of an edge from i to j.
"""

import argparse
import sys
from pathlib import Path

import model
import scipy.io
import scipy.sparse


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["pack", "ranks"])
    parser.add_argument("files", nargs="+", type=Path, help="matrix and memory, or memory")
    parser.add_argument("--damping", type=float, default=0.85)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="registers of the run"
    )
    args = parser.parse_args()
    if len(args.files) != (2 if args.what == "pack" else 1):
        parser.error("pack needs a matrix and a memory, ranks a memory")
    if args.what == "ranks":
        registers = {name: int(value, 0) for name, value in (s.split("=") for s in args.set)}
        print(*model.unpack(args.files[0].read_bytes(), registers), sep="\n")
        return
    matrix = scipy.sparse.coo_array(scipy.io.mmread(args.files[0]))
    rows, columns = matrix.shape or (0, 0)
    if rows != columns or (matrix.nnz and matrix.data.min() < 0):
        sys.exit(f"{args.files[0]}: PageRank needs a square matrix without negative entries")
    memory, registers = model.pack(matrix, args.damping, args.iterations)
    args.files[1].write_bytes(memory)
    print(" ".join(f"--set {name}={value}" for name, value in registers.items()))


if __name__ == "__main__":
    main()
