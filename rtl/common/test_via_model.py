# SPDX-License-Identifier: Apache-2.0
"""Building of models: only what has changed, wherever the checkout lies; a build that fails says why and frees its folder.

Verilator and the compiler are a line of shell here; tests/test_builds.py builds a real model and moves it.
"""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import via_model
from via_model import BuildError, build, held

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}  # of programs that import these modules


def is_free(folder: Path) -> bool:
    """Whether another run would get the folder at once."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_folder_is_free_however_its_use_ended(tmp_path):
    with held(tmp_path / "model"):
        assert not is_free(tmp_path / "model")
    assert is_free(tmp_path / "model")
    with pytest.raises(BuildError), held(tmp_path / "model"):
        build(tmp_path / "model/top", "Vtop", [["false"]], [])
    assert is_free(tmp_path / "model")


def test_a_failed_build_says_which_tool_and_why(tmp_path, monkeypatch):
    monkeypatch.setattr(via_model, "ROOT", tmp_path)
    tool = "seq 100; echo '%Error: a.sv:1:2: the first error'; seq 100; exit 3"
    for _ in range(2):  # nor is it taken for built afterwards
        with pytest.raises(BuildError) as failed:
            build(tmp_path / "top", "Vtop", [["sh", "-c", tool], ["true"]], [])
        said = str(failed.value).splitlines()
        assert said[:2] == [
            "top cannot be built: sh ended with status 3; all it said is in build.log",
            "%Error: a.sv:1:2: the first error",
        ]
        assert len(said) < 50
    with pytest.raises(BuildError, match="memory"):
        build(tmp_path / "top", "Vtop", [["sh", "-c", "kill -9 $$"]], [])


class Project:
    """A project of one module and one below it, whose model is the two."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._patch = root, monkeypatch
        for folder in ("early", "late", "model"):
            (root / folder).mkdir(parents=True)
        (root / "late/top.sv").write_text("top")
        (root / "late/part.sv").write_text("part")

    def builds(self) -> bool:
        """Whether there was anything to do."""
        self._patch.setattr(via_model, "ROOT", self.root)
        tool = "cat late/top.sv late/part.sv >model/top; echo 'model/Vtop.cpp: late/top.sv \\\n late/part.sv' >model/Vtop__ver.d"
        folders = [self.root / "early", self.root / "late"]
        return build(self.root / "model/top", "Vtop", [["sh", "-c", tool]], folders)


def test_a_signal_ends_a_build_with_all_it_has_started(tmp_path):
    """As `viaduct test` ends it: the tool's own child is gone too, and the folder is free."""
    script = """
        import pytest, sys, via_model
        from pathlib import Path

        class Tests(pytest.Item):
            def runtest(self):
                out = Path(sys.argv[1])
                with via_model.held(out.parent):
                    via_model.build(out, "Vtop", [["sh", "-c", "sleep 1000 & echo $! $$; wait"]], [])

        class Plugin:
            def pytest_collection_modifyitems(self, session, items):
                items[:] = [Tests.from_parent(session, name=name) for name in ("one", "two")]

        sys.exit(pytest.main(["-p", "no:cacheprovider", "-q", sys.argv[2]], [Plugin()]))
    """
    script = textwrap.dedent(script)
    log = tmp_path / "model/build.log"
    (tmp_path / "empty").mkdir()
    run = subprocess.Popen(
        [sys.executable, "-c", script, log.parent / "top", tmp_path / "empty"],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
    )
    while not (log.exists() and log.read_text()):
        assert run.poll() is None
        time.sleep(0.01)
    tools = [int(word) for word in log.read_text().split()]
    run.terminate()
    assert run.wait(60) == -signal.SIGTERM  # and no further test is begun
    assert log.read_text().split() == list(map(str, tools))
    for pid in tools:
        stat = Path(f"/proc/{pid}/stat")
        end = time.monotonic() + 60
        # Killed, and perhaps not yet waited for by whoever has inherited it.
        while stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z":
            assert time.monotonic() < end, f"process {pid} goes on"
            time.sleep(0.01)
    assert is_free(log.parent)


def test_a_simulation_ends_with_the_program_that_has_started_it(tmp_path):
    """Even if that is killed: `via_tb`, which all tests import, sees to it in the process of the simulator."""
    child = "import via_tb; print('ready', flush=True); import time; time.sleep(1000)"
    script = f"""
        import os, subprocess, sys
        environment = os.environ | {{"COCOTB_TEST_MODULES": "test"}}
        child = subprocess.Popen([sys.executable, "-c", {child!r}], env=environment, stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\\n"
        print(child.pid, flush=True)
        child.wait()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        stat = Path(f"/proc/{int(run.stdout.readline())}/stat")
        run.kill()
    end = time.monotonic() + 60
    while stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z":
        assert time.monotonic() < end, "the simulation goes on"
        time.sleep(0.01)


def test_only_what_has_changed_is_built(tmp_path, monkeypatch):
    project = Project(tmp_path / "project", monkeypatch)
    assert project.builds() and not project.builds()

    project.root = project.root.rename(tmp_path / "moved")
    for file in project.root.rglob("*"):
        os.utime(file, (2**31 - 1,) * 2)
    assert not project.builds(), "neither place nor times count"

    (project.root / "late/part.sv").write_text("another")
    assert project.builds() and not project.builds()
    (project.root / "early/other.sv").write_text("nobody asks for it")
    assert not project.builds()
    (project.root / "early/part.sv").write_text("found before the other")
    assert project.builds()
    (project.root / "early/part.sv").unlink()
    project.builds()
    (project.root / "model/top").write_text("damaged")
    assert project.builds() and not project.builds()
    monkeypatch.setenv("CXXFLAGS", "-g")
    assert project.builds() and not project.builds()
