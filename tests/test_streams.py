# SPDX-License-Identifier: Apache-2.0
"""`viaduct run` in a pipeline: standard input and output, FIFOs, files of the kernel, and errors."""

import hashlib
import json
import os
import resource
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RUN = [str(ROOT / "viaduct"), "run"]


def run(*args: object, code: int = 0, words: str = "", **kwargs) -> subprocess.CompletedProcess[bytes]:
    """The command ends with this code and, if that is not 0, with one error line that contains these words."""
    done = subprocess.run(
        [*RUN, *map(str, args)],
        capture_output=True,
        timeout=300,
        cwd=ROOT,
        **kwargs,
    )
    said = done.stderr.decode()
    assert done.returncode == code, (done.returncode, said)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == (code != 0) and all(words in line for line in errors), said
    assert "panicked" not in said
    return done


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(hashlib.shake_256(b"data").digest(300_001))
    return path


def test_an_app_is_a_filter(data: Path):
    """Only data on standard output; messages are on standard error."""
    done = run("pass", "--in", "-", "--out", "-", "--check", input=data.read_bytes())
    assert done.stdout == data.read_bytes()
    assert b"300001 bytes in, 300001 bytes out" in done.stderr
    assert b"all 300001 bytes equal the golden model's" in done.stderr
    with data.open("rb") as file:
        assert (
            run("pass", "--in", "file:/dev/stdin", "--out", "file:/dev/stdout", stdin=file).stdout
            == done.stdout
        )


def test_a_file_of_the_kernel_is_written_in_order(tmp_path: Path):
    """Here the name of the program; `--check` looks at what was sent, since the file has something else."""
    name = tmp_path / "name"
    name.write_bytes(b"59")
    for check in ([], ["--check"]):
        run("pass", "--in", f"file:{name}", "--out", "file:/proc/self/comm", *check)


def test_a_digest_of_standard_input(data: Path):
    done = run("sha256", "--in", "-", input=data.read_bytes())
    assert done.stdout.decode() == f"{hashlib.sha256(data.read_bytes()).hexdigest()}  -\n"


def test_an_app_with_memory_is_a_filter(data: Path, tmp_path: Path):
    """Standard input is the memory, standard output gets what the app has made of it; the same as with files."""
    settings = [f"--set={value}" for value in ("size=64", "count=500", "seed=7", "write=1")]
    out = tmp_path / "out"
    run("rng", "--in", f"mem=file:{data}", "--out", f"mem=file:{out}", *settings)
    assert out.read_bytes() != data.read_bytes()
    for routes in (["mem=-", "mem=-"], ["mem=file:/dev/stdin", "mem=file:/dev/stdout"]):
        done = run(
            "rng", "--in", routes[0], "--out", routes[1], "--check", *settings, input=data.read_bytes()
        )
        assert done.stdout == out.read_bytes()
    sums = [
        json.loads(run("rng", "--in", route, "--json", "--check", *settings[:3], input=given).stdout)[
            "registers"
        ]
        for route, given in (("mem=-", data.read_bytes()), (f"mem=file:{data}", b""))
    ]
    assert sums[0]["checksum"] == sums[1]["checksum"] != "0x0"
    made = run("rng", "--in", f"mem=file:{data}", "--out", "mem=-", *settings)
    assert made.stdout == out.read_bytes()
    into = tmp_path / "into"
    run("rng", "--in", "mem=-", "--out", f"mem=file:{into}", *settings, input=data.read_bytes())
    assert into.read_bytes() == out.read_bytes()

    both = ["rng", "--in", "mem=-", "--out", "mem=-", *settings]
    run(*both, code=2, words="standard input: 0 bytes", input=b"")
    run("rng", "--out", "mem=-", *settings, code=2, words="changed copy; add --in mem=", input=b"x")
    run("rng", "--in", "mem=fd:0", *settings, code=2, words="on a file, or on -", input=b"x")
    run(*both, "--json", code=2, words="both go to standard output", input=b"x")
    reading, writing = os.pipe()
    os.close(reading)
    with (
        os.fdopen(writing, "wb") as closed,
        subprocess.Popen(
            [*RUN, *both], stdin=subprocess.PIPE, stdout=closed, stderr=subprocess.PIPE, cwd=ROOT
        ) as filtering,
    ):
        _, said = filtering.communicate(data.read_bytes(), timeout=300)
    assert filtering.returncode == 1 and b"standard output: cannot write: Broken pipe" in said


def test_the_wrong_end_of_a_pipe(data: Path):
    """Nothing would ever come from there, or be taken."""
    reads, writes = os.pipe()
    with os.fdopen(reads), os.fdopen(writes, "w"):
        words = "open for writing only; give the other end"
        run("pass", "--in", f"fd:{writes}", "--out", "-", code=1, words=words, pass_fds=(writes,))
        words = "open for reading only; give the other end"
        routes = ["--in", f"file:{data}", "--out", f"fd:{reads}"]
        run("pass", *routes, code=1, words=words, pass_fds=(reads,))


def test_files_of_the_kernel(tmp_path: Path):
    version = Path("/proc/version").read_bytes()
    out = tmp_path / "out"
    report = json.loads(
        run("pass", "--in", "file:/proc/version", "--out", f"file:{out}", "--check", "--json").stdout
    )
    assert out.read_bytes() == version and report["check"] == {"ok": True, "bytes": len(version)}
    # As messages in lanes, together with an ordinary file.
    both = run("sha256", "--in", "file:/proc/version", "--in", f"file:{out}", "--out", "-").stdout
    assert both == 2 * hashlib.sha256(version).digest()


def test_fifos(data: Path, tmp_path: Path):
    source, sink = tmp_path / "source", tmp_path / "sink"
    os.mkfifo(source)
    os.mkfifo(sink)
    got: list[bytes] = []
    writer = threading.Thread(target=lambda: source.write_bytes(data.read_bytes()))
    reader = threading.Thread(target=lambda: got.append(sink.read_bytes()))
    writer.start()
    reader.start()
    run("pass", "--in", f"file:{source}", "--out", f"file:{sink}")
    writer.join()
    reader.join()
    assert got == [data.read_bytes()]
    run(
        "sha256", "--in", f"file:{source}", "--in", f"file:{data}", code=1, words="only files can be messages"
    )


def test_closed_standard_streams(data: Path, tmp_path: Path):
    """Data is not lost in files that replace them."""
    out = f"file:{tmp_path / 'out'}"
    for redirection, routes, words in [
        (">&-", ["--in", f"file:{data}", "--out", "-"], "standard output: is closed"),
        ("<&-", ["--in", "-", "--out", out], "standard input: is closed"),
    ]:
        command = ["sh", "-c", f'"$@" {redirection}', "sh", *RUN, "pass", *routes]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
    command = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *RUN, "pass", "--in", f"file:{data}", "--out", out]
    subprocess.run(command, timeout=300, cwd=ROOT, check=True)
    assert (tmp_path / "out").read_bytes() == data.read_bytes()


def test_a_reader_that_has_enough(data: Path):
    """The input has no end; the run ends because its output has no reader."""
    command = [*RUN, "pass", "--in", "file:/dev/zero", "--out", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as filter_:
        assert filter_.stdout and filter_.stderr
        assert filter_.stdout.read(100_000) == bytes(100_000)
        filter_.stdout.close()
        said = filter_.stderr.read().decode()
        assert filter_.wait(300) == 1
    assert "standard output: cannot write: Broken pipe" in said and "its reader has closed it" in said


def test_a_file_may_not_grow_beyond_the_limit(data: Path, tmp_path: Path):
    """As on a full disk: an error, what fits is in the file, no signal ends the program. A file named: tests/c/misuse.c."""
    out = tmp_path / "out"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    with out.open("wb") as file:
        command = [*RUN, "pass", "--in", "-", "--out", "-"]
        done = subprocess.run(
            command,
            input=data.read_bytes() * 3,
            stdout=file,
            stderr=subprocess.PIPE,
            preexec_fn=limit,
            timeout=300,
            cwd=ROOT,
        )
    said = "standard output: cannot write: File too large"
    assert done.returncode == 1 and said.encode() in done.stderr, done.stderr
    assert out.read_bytes() == (data.read_bytes() * 3)[:600_000]


def test_an_output_outlives_a_run_that_does_not_begin(data: Path, tmp_path: Path):
    """Memory for the card cannot be had, because it is a file, too: what the output held before is still there."""
    out = tmp_path / "out"
    out.write_bytes(b"earlier")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    route = ["--in", f"file:{data}", "--out", f"file:{out}"]
    run("pass", *route, code=1, words="File too large", preexec_fn=limit)
    assert out.read_bytes() == b"earlier"


def test_both_directions_fail_alike(data: Path, tmp_path: Path):
    out = tmp_path / "out"
    good, to = f"file:{data}", f"file:{out}"
    for code, words, source, sink in [
        (2, "is a directory", f"file:{tmp_path}", to),
        (2, "is a directory", good, f"file:{tmp_path}"),
        (1, "No such file", f"file:{tmp_path}/no/such", to),
        (1, "no such folder", good, f"file:{tmp_path}/no/such"),
        (1, "/proc/self/mem: cannot read it: Input/output error", "file:/proc/self/mem", to),
        (1, "/dev/full: cannot write: No space left", good, "file:/dev/full"),
        (1, "fd:77: cannot use it, since it is not open in this process: Bad file", "fd:77", to),
        (1, "fd:77: cannot use it, since it is not open in this process: Bad file", good, "fd:77"),
        (2, "is both read and written", good, good),
        (2, "overlaps card:0x0+8192", "card:0+8K", "card:4K+8K"),
        (2, "host:SIZE", "host:12x", to),
        (2, "host:SIZE", good, "host:12x"),
        (2, "both go to standard output", good, "- --json"),
    ]:
        run("pass", "--in", source, "--out", *sink.split(), code=code, words=words)
    assert len(data.read_bytes()) == 300_001
    # A checked run reads through a copier: it must not hide what it reads.
    for options in [[], ["--check"]]:
        with data.open("rb") as file:
            words = "is both read and written"
            run("pass", "--in", "-", "--out", good, *options, code=2, words=words, stdin=file)
    assert len(data.read_bytes()) == 300_001
