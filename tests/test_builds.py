# SPDX-License-Identifier: Apache-2.0
"""Builds: signals, failing tools, two at the same time, a copied checkout, a read-only one, models of block tests.

Where only the build system is tested, the compiler is a script that creates empty files: test_cli.py builds a real app.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 300.0  # longest time for anything, also on a slow machine
NOBODY = 65534

# Logs what it compiles, and acts as the file `mode` says from the first unit on.
COMPILER = r"""#!/bin/sh
here=$(dirname "$0")
[ "$1" != --version ] || { echo "a compiler for tests 1.0"; exit; }
for word; do
  case $word in *.cpp) source=${word##*/} ;; *.gch.part) source=header ;; *.so.part) source=object ;; esac
  [ "$out" != -MF ] || echo "header:" >"$word"
  out=$word
done
echo "$source" >>"$here/log"
mode=$(cat "$here/mode")
[ "$source" != header ] || [ "$mode" = slow ] || mode=make
case $mode in
  make) : >"$out" ;;
  slow) sleep 1; : >"$out" ;;
  hang) sleep 600.125 & wait ;;
  refuse) echo "x.cpp:1:1: error: this is the first error" >&2; exit 1 ;;
  killed) kill -9 $$ ;;
  linker-killed) echo "collect2: fatal error: ld terminated with signal 9 [Killed]" >&2; exit 1 ;;
  clang-child-killed) echo "clang++: error: unable to execute command: Killed" >&2; exit 1 ;;
  child-killed) echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; exit 1 ;;
esac
"""


class Project:
    """A project with the real tools, one app, and that compiler."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        (self.root / "apps").mkdir(parents=True)
        for shared in ("tools", "rtl", "sim", ".venv"):
            (self.root / shared).symlink_to(ROOT / shared)
        self.compiler = folder / "compiler"
        self.compiler.write_text(COMPILER)
        self.compiler.chmod(0o755)
        self.env = os.environ | {"VIADUCT_ROOT": str(self.root), "CXX": str(self.compiler)}
        subprocess.run(
            [ROOT / "viaduct", "new", "small"], env=self.env, check=True, stdout=subprocess.DEVNULL
        )

    def start(self, mode: str) -> subprocess.Popen[str]:
        """A build; signals to it are not sent to its children."""
        (self.compiler.parent / "mode").write_text(mode)
        return subprocess.Popen(
            [ROOT / "viaduct", "build", "small"],
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def build(self, mode: str, code: int, words: str = "") -> str:
        """A build that ends with this exit code, and if that is not 0 with one line that contains these words."""
        with self.start(mode) as process:
            out, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, out + errors
        assert "Traceback" not in errors and "panicked" not in errors
        lines = [line for line in errors.splitlines() if line.startswith("error: ")]
        assert len(lines) == (code != 0) and all(words in line for line in lines), errors
        return out + errors

    def log(self) -> list[str]:
        """Files that were compiled since the last call."""
        path = self.compiler.parent / "log"
        lines = path.read_text().split() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def processes(self) -> list[str]:
        """Its running processes: the build system, the compiler, its child."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                mine = str(self.compiler).encode() in (folder / "environ").read_bytes()
            except OSError:
                continue
            if mine:
                found.append(words)
        return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def until(condition, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_build_and_the_next_goes_on(project: Project, how: signal.Signals):
    with project.start("hang") as process:
        until(lambda: any("sleep 600.125" in words for words in project.processes()), "nothing is compiled")
        process.send_signal(how)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == -how
    until(lambda: not project.processes(), "a child is still running")
    begun = project.log()
    assert begun.count("header") == 2
    project.build("make", 0)
    assert "header" not in project.log(), "existing files are not built again"
    assert "up to date" in project.build("make", 0) and project.log() == []


@pytest.mark.parametrize("text", ["", "\xff", "[]", "7", '{"key": 1}', '{"inputs": 1, "sources": []}'])
def test_a_damaged_stamp_is_that_of_another_build(project: Project, text: str):
    """Of the object, and of what Verilator wrote."""
    project.build("make", 0)
    work = project.root / "build/apps/small/small.verilated"
    whole = (work / "slot/verilated.json").read_text()
    # That one has a list in place of its sources.
    for of_model in (text, '{"key": ' + json.dumps(json.loads(whole)["key"]) + ', "sources": []}'):
        (work / "stamp.json").write_text(text, "latin-1")
        (work / "slot/verilated.json").write_text(of_model, "latin-1")
        project.build("make", 0)
        assert (work / "slot/verilated.json").read_text() == whole
    assert "up to date" in project.build("make", 0)


def test_a_build_waits_for_compilers_that_a_killed_one_left(project: Project):
    """They still write files of that build."""
    with project.start("hang") as process:
        until(lambda: any("sleep 600.125" in words for words in project.processes()), "nothing is compiled")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        tool = next(pid for pid in children if b"verilate.py" in Path(f"/proc/{pid}/cmdline").read_bytes())
        left = Path(f"/proc/{tool}/task").glob("*/children")
        compilers = [int(pid) for path in left for pid in path.read_text().split()]
        os.kill(int(tool), signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "its program was killed" in errors
    with project.start("make") as process:
        assert process.stdout
        assert f"waiting for process {tool}" in process.stdout.readline()
        time.sleep(1)
        assert process.poll() is None
        for compiler in compilers:
            os.killpg(compiler, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_ctrl_c_ends_a_build_whichever_thread_receives_it(project: Project):
    """A terminal sends it to the tools as well, and the system chooses a thread: often one that waits for a compiler."""
    with project.start("hang") as process:
        until(lambda: any("sleep 600.125" in words for words in project.processes()), "nothing is compiled")
        tools = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        tool = next(pid for pid in tools if b"verilate.py" in Path(f"/proc/{pid}/cmdline").read_bytes())
        thread = max(int(task.name) for task in Path(f"/proc/{tool}/task").iterdir())
        assert thread != int(tool)
        assert ctypes.CDLL(None).tgkill(int(tool), thread, signal.SIGINT) == 0
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert not project.processes()


def test_what_a_failed_compiler_says(project: Project):
    said = project.build("refuse", 1, "ended with status 1; its messages are above")
    assert "the first error" in said
    project.build("killed", 1, "was ended by signal 9 (Killed); memory may be short")
    said = project.build("child-killed", 1, "ended with status 1; memory may be short")
    assert "terminated program cc1plus" in said
    project.build("linker-killed", 1, "ended with status 1; memory may be short")
    project.build("clang-child-killed", 1, "ended with status 1; memory may be short")
    project.compiler.chmod(0o644)
    project.build("make", 1, f"the C++ compiler {project.compiler}: Permission denied")
    project.compiler.chmod(0o755)
    (project.root / "build/apps/small/.small.verilated.lock").unlink()
    (project.root / "build/apps/small/.small.verilated.lock").mkdir()
    project.build("make", 1, "build/apps/small/.small.verilated.lock: Is a directory")


def test_a_generated_top_module(project: Project):
    app = project.root / "apps/small"
    manifest, top = app / "app.toml", app / "rtl/small_app.sv"
    maker = app / "make.py"
    text = "import sys\nfrom pathlib import Path\n# 1\nPath(sys.argv[4]).write_text(Path({!r}).read_text())\n"
    top.rename(app / "text")
    maker.write_text(text.format(str(app / "text")))
    manifest.write_text(manifest.read_text().replace("top =", 'generator = "make.py"\ntop ='))
    assert "generating small_app" in project.build("make", 0)
    said = project.build("make", 0)
    assert "up to date" in said and "generating" not in said
    maker.write_text(maker.read_text().replace("# 1", "# 2"))
    assert "generating small_app" in project.build("make", 0)
    (project.root / "build/apps/small/gen/small_app.v").write_text("damaged")
    assert "generating small_app" in project.build("make", 0)
    maker.write_text("print('no')")
    project.build("make", 1, "make.py has written nothing to the file of --out")
    maker.write_text("import sys\nsys.exit('this is why')")
    assert "this is why" in project.build("make", 1, "generating the top module of app small")
    maker.unlink()
    project.build("make", 2, "make.py does not exist")


def test_two_builds_at_once(project: Project):
    with project.start("slow") as first, project.start("slow") as second:
        said = [process.communicate(timeout=PATIENCE) for process in (first, second)]
        assert [first.returncode, second.returncode] == [0, 0], said
    assert sum("small: waiting for process " in out for out, _ in said) == 1, said
    assert sum("small: done in" in out for out, _ in said) == 1, said
    log = project.log()
    assert len(log) == len(set(log)) + 1 and log.count("header") == 2, log


def test_registers_fail_in_one_line(tmp_path: Path):
    (tmp_path / "file").touch()
    command = [ROOT / ".venv/bin/python", ROOT / "tools/gen_regs.py", "--out", tmp_path / "file"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("gen_regs: error: ") and str(tmp_path / "file") in done.stderr


@pytest.fixture
def copied() -> Iterator[Path]:
    """The files of this checkout that running an app needs, copied, moved, and read-only."""
    base = Path(
        tempfile.mkdtemp(prefix="viaduct-test-")
    )  # unlike pytest's own folders, readable by everybody
    base.chmod(0o755)
    first, root = base / "first", base / "second"
    for part in (
        "rtl",
        "sim",
        "tools",
        "apps/pass",
        "build/regs",
        "build/card",
        "build/apps/pass",
        "viaduct",
    ):
        (first / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-rH", ROOT / part, first / part], check=True)
    first.rename(root)
    subprocess.run(["chmod", "-R", "a-w,a+rX", root], check=True)
    yield root
    subprocess.run(["chmod", "-R", "u+w", base], check=True)
    shutil.rmtree(base)


def test_a_copied_checkout_runs_for_anybody_without_tools(copied: Path):
    """Its files are read-only, and there is neither compiler nor Python: existing builds are used."""
    work = copied.parent / "work"
    work.mkdir()
    (work / "in").write_bytes(b"viaduct" * 1000)
    somebody: list[str] = []
    if os.geteuid() == 0:
        os.chown(work, NOBODY, NOBODY)
        setpriv = shutil.which("setpriv")
        assert setpriv
        somebody = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    def run() -> subprocess.CompletedProcess[str]:
        command = [*somebody, copied / "viaduct", "run", "pass", "--in", "file:in", "--out", "file:out"]
        env = {"VIADUCT_ROOT": str(copied), "PATH": "/nowhere"}
        return subprocess.run(
            command, env=env, cwd=work, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    done = run()
    assert done.returncode == 0, done.stderr
    assert (work / "out").read_bytes() == (work / "in").read_bytes()

    # The build system itself agrees.
    copied.chmod(0o755)
    (copied / ".venv").symlink_to(ROOT / ".venv")
    command = [".venv/bin/python", "tools/verilate.py", "card"]
    done = subprocess.run(command, cwd=copied, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "card: up to date\n", done.stdout + done.stderr
    (copied / ".venv").unlink()

    # Outdated files cannot be rebuilt here; one line says so.
    for file, what in (
        ("apps/pass/rtl/pass_app.sv", "app pass (apps/pass/rtl/pass_app.sv has changed)"),
        ("sim/new.cpp", "the simulated card (sim/new.cpp is new)"),
        ("sim/link.cpp", "the simulated card (sim/link.cpp has changed)"),
    ):
        (copied / file).parent.chmod(0o755)
        if (copied / file).exists():
            (copied / file).chmod(0o644)
        with (copied / file).open("a") as source:
            source.write("// changed\n")
        done = run()
        assert done.returncode == 1, done.stdout
        remedy = "the pinned tools are not installed; run `make setup`"
        assert done.stderr == f"error: building {what} failed: {remedy}\n"


def test_a_missing_folder_is_told_in_one_line(tmp_path: Path):
    for there in ("tools", "sim", ".venv"):
        (tmp_path / there).symlink_to(ROOT / there)
    command = [".venv/bin/python", "tools/verilate.py", "card"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    told = r"verilate: error: rtl/\*/via_\w+\.sv: there is no such file; is the checkout complete\?\n"
    assert done.returncode == 1 and re.fullmatch(told, done.stderr), done.stderr


def test_an_app_is_built_in_a_copied_checkout(project: Project):
    """Clang's precompiled headers name their files by absolute paths: those that were copied with the rest are not used."""
    shutil.copytree(ROOT / "build/verilator-runtime", project.root / "build/verilator-runtime")
    del project.env["CXX"]
    project.build("", 0)


def test_models_of_block_tests_move_with_the_checkout(tmp_path: Path):
    """Neither the path nor the times of its files matter; a failing build says why."""
    root = tmp_path / "first"
    root.mkdir()
    changing = shutil.ignore_patterns("__pycache__", "*.o.*")  # other tests may run at the same time
    shutil.copytree(ROOT / "rtl", root / "rtl", ignore=changing)
    shutil.copytree(ROOT / "tools", root / "tools", ignore=changing)
    for library in (ROOT / "build/tb").glob("library.*"):  # else it takes longer
        shutil.copytree(library, root / "build/tb" / library.name, ignore=changing)

    def run() -> subprocess.CompletedProcess[str]:
        path = f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"
        command = [ROOT / ".venv/bin/python", "-m", "pytest", "-q", "rtl/common/test_via_tb_gate.py"]
        return subprocess.run(
            command,
            cwd=root,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    done = run()
    assert done.returncode == 0, done.stdout
    stamp = "build/tb/via_tb_gate.W2/stamp.json"
    built = (root / stamp).stat().st_ino
    root = root.rename(tmp_path / "second")
    for file in root.rglob("*.sv"):
        file.touch()
    done = run()
    assert done.returncode == 0, done.stdout
    assert (root / stamp).stat().st_ino == built, "it was built again"

    block = root / "rtl/common/tb/via_tb_gate.sv"
    block.write_text(block.read_text().replace("endmodule", "assign nothing = 1'b1;\nendmodule"))
    done = run()
    assert (
        done.returncode == 1 and "via_tb_gate cannot be built: verilator ended with status 1" in done.stdout
    )
    assert "Signal definition not found, creating implicitly: 'nothing'" in done.stdout, done.stdout
    # What is built there needs nothing at the former place, such as a precompiled header.
    block.write_text(block.read_text().replace("assign nothing", "wire nothing"))
    done = run()
    assert done.returncode == 0, done.stdout
    assert (root / stamp).stat().st_ino != built
