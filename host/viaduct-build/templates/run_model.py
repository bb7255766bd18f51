# SPDX-License-Identifier: Apache-2.0
"""Runs an app's golden model: arguments and results are JSON files, data is in files."""

import importlib.util
import json
import os
import pathlib
import sys


def path_of(numbers: list[int]) -> pathlib.Path:
    """Paths are passed as bytes, since they need not be valid text."""
    return pathlib.Path(os.fsdecode(bytes(numbers)))


orders = json.loads(pathlib.Path(sys.argv[1]).read_text())
path = path_of(orders["model"])
sys.path.insert(0, str(path.parent))
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("viaduct_golden_model", path)
assert spec and spec.loader
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if not callable(getattr(module, "model", None)):
    sys.exit(f"{path} does not define the function model")
inputs = {name: path_of(file).read_bytes() for name, file in orders["inputs"].items()}
outputs = module.model(inputs, {name: int(value, 16) for name, value in orders["registers"].items()})
if not isinstance(outputs, dict):
    sys.exit(f"model() returned {type(outputs).__name__}, not a dict")


def write(name: str, value: bytes | bytearray | memoryview) -> None:
    """Writes a file in the folder of the results."""
    folder = path_of(orders["folder"])
    try:
        (folder / name).write_bytes(value)
    except OSError as error:
        sys.exit(
            f"run_model: error: its result cannot be written in the temporary folder {folder.parent}: "
            f"{error.strerror}; make room there, or name another folder with TMPDIR"
        )


response = {}
for index, (name, value) in enumerate(outputs.items()):
    if not isinstance(name, str) or not isinstance(value, bytes | bytearray | memoryview):
        sys.exit(f"model() returned {type(value).__name__} for {name!r}, not bytes")
    response[name] = f"out{index}"
    write(response[name], value)
write(path_of(orders["response"]).name, json.dumps(response).encode())
