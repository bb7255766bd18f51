# SPDX-License-Identifier: Apache-2.0
"""libviaduct from C: the programs in tests/c, compiled strictly against the header, on the simulated card."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "host/viaduct-capi/include/viaduct.h"
LIBRARY = ROOT / "target/release/libviaduct.so"
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-g"]


SHARED = ["-L", str(LIBRARY.parent), f"-Wl,-rpath,{LIBRARY.parent}", "-lviaduct"]
STATIC = [str(LIBRARY.with_suffix(".a")), "-ldl", "-lm"]


def compile_and_run(
    source: Path, folder: Path, *args: object, link: list[str] = SHARED, standard: str = "c99"
) -> str:
    program = folder / source.stem
    command = [
        "cc",
        f"-std={standard}",
        *STRICT,
        "-I",
        str(HEADER.parent),
        str(source),
        *link,
        "-pthread",
        "-o",
        str(program),
    ]
    compiled = subprocess.run(command, text=True, capture_output=True)
    assert compiled.returncode == 0, compiled.stderr
    done = subprocess.run([program, *map(str, args)], text=True, capture_output=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "panicked" not in done.stderr
    return done.stdout


def declared() -> set[str]:
    """Functions of the header."""
    return set(re.findall(r"^[a-z].*?\b(viaduct_\w+)\(", HEADER.read_text(), re.M)) - {"viaduct_progress_fn"}


def test_header_and_library_have_the_same_functions(tmp_path: Path):
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", LIBRARY], text=True, capture_output=True, check=True
    )
    exported = {line.split()[2] for line in listed.stdout.splitlines() if " T " in line}
    assert declared() == exported
    for link in (SHARED, STATIC):
        assert compile_and_run(ROOT / "tests/c/abi.c", tmp_path, link=link) == f"{len(exported)} functions\n"


def test_codes_are_those_of_the_library():
    header = {int(code) for code in re.findall(r"define VIADUCT_E_\w+ \((-\d+)\)", HEADER.read_text())}
    source = (ROOT / "host/viaduct-capi/src/error.rs").read_text()
    assert header == {int(code) for code in re.findall(r"^    \w+ = (-\d+),", source, re.M)}


@pytest.mark.parametrize(
    ("header", "standard"), [(HEADER, "c++98"), (HEADER.with_name("viaduct_fpga.h"), "c++11")]
)
def test_cpp_takes_the_headers(header: Path, standard: str):
    command = [
        "c++",
        f"-std={standard}",
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-long-long",
        "-fsyntax-only",
    ]
    subprocess.run([*command, "-x", "c++", header], check=True)


@pytest.mark.parametrize("card", ["sim", "sim:gen3x16"])
def test_data_goes_through_unharmed(tmp_path: Path, card: str):
    assert compile_and_run(ROOT / "tests/c/roundtrip.c", tmp_path, card, tmp_path) == "as expected\n"


def test_a_card_in_another_process(tmp_path: Path):
    socket = tmp_path / "card.sock"
    command = [ROOT / "viaduct", "card", "--socket", socket]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=ROOT) as served:
        try:
            assert served.stdout and "card on" in served.stdout.readline()
            said = compile_and_run(ROOT / "tests/c/roundtrip.c", tmp_path, f"unix:{socket}", tmp_path)
        finally:
            served.terminate()
    assert said == "as expected\n"


def test_wrong_use_gives_errors(tmp_path: Path):
    assert compile_and_run(ROOT / "tests/c/misuse.c", tmp_path, "sim") == "as expected\n"


def test_an_app_works_on_memory(tmp_path: Path):
    assert compile_and_run(ROOT / "tests/c/memory.c", tmp_path, "sim", tmp_path) == "as expected\n"


def test_forks_stops_descriptors_and_limits(tmp_path: Path):
    assert compile_and_run(ROOT / "tests/c/process.c", tmp_path, "sim", tmp_path) == "as expected\n"


def test_the_calls_of_the_system_level_driver(tmp_path: Path):
    assert compile_and_run(ROOT / "tests/c/fpga.c", tmp_path, standard="c11") == "as expected\n"


def test_two_sources_of_a_program_include_its_header(tmp_path: Path):
    """Its functions are weak: both have them, and there is one state."""
    other, program = tmp_path / "other.c", tmp_path / "two"
    other.write_text('#include "viaduct_fpga.h"\nint other(void) { return fpga_now.card != NULL; }\n')
    main = tmp_path / "main.c"
    main.write_text(
        '#include "viaduct_fpga.h"\nint other(void);\n'
        "int main(void) { return fpga_open() != 0 || !other() || fpga_close() != 0 || other(); }\n"
    )
    for standard in ("c99", "c11"):
        command = [
            "cc",
            f"-std={standard}",
            *STRICT,
            "-I",
            str(HEADER.parent),
            str(main),
            str(other),
            *SHARED,
        ]
        subprocess.run([*command, "-o", str(program)], check=True)
        subprocess.run([program], check=True, timeout=300, cwd=ROOT)


def test_several_threads_share_a_card(tmp_path: Path):
    assert compile_and_run(ROOT / "tests/c/threads.c", tmp_path, "sim") == "as expected\n"
