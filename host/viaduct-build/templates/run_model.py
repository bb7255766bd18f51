# SPDX-License-Identifier: Apache-2.0
"""Runs an app's golden model: arguments and results are JSON files, data is in files."""

import importlib.util
import json
import os
import pathlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager


def path_of(numbers: list[int]) -> pathlib.Path:
    """Paths are passed as bytes, since they need not be valid text."""
    return pathlib.Path(os.fsdecode(bytes(numbers)))


@contextmanager
def of_user() -> Iterator[None]:
    """Code of the model: an error in it ends this program with one line, which says where in the model it arose."""
    try:
        yield
    except (Exception, SystemExit) as error:
        sys.exit(f"run_model: error: {told(error)}")


def told(error: BaseException) -> str:
    """Type and first line of an error, and the last line of the model that led to it."""
    place = [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    text = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        place, text = [f"{error.filename}:{error.lineno}"], error.msg
    first = next((line for line in text.splitlines() if line.strip()), "")
    return ": ".join(filter(None, (type(error).__name__, first))) + "".join(f" ({p})" for p in place[-1:])


orders = json.loads(pathlib.Path(sys.argv[1]).read_text())
path = path_of(orders["model"])
sys.path.insert(0, str(path.parent))
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("viaduct_golden_model", path)
assert spec and spec.loader
module = importlib.util.module_from_spec(spec)
with of_user():
    spec.loader.exec_module(module)
if not callable(getattr(module, "model", None)):
    sys.exit(f"{path} does not define the function model")
inputs = {name: path_of(file).read_bytes() for name, file in orders["inputs"].items()}
registers = {name: int(value, 16) for name, value in orders["registers"].items()}
with of_user():
    outputs = module.model(inputs, registers)
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
