# SPDX-License-Identifier: Apache-2.0
"""What `make install` installs, below a DESTDIR: programs in C and Python find and use it, and nothing else of this checkout."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PREFIX = Path("/opt/viaduct")
PATIENCE = 300
KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
IV = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"


def script(
    action: str, destdir: Path, prefix: Path | str = PREFIX, root: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"DESTDIR": str(destdir), "PREFIX": str(prefix)}
    command = [root / "tools/install.sh", action]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that would be PREFIX."""
    destdir = tmp_path_factory.mktemp("destdir")
    done = script("install", destdir)
    assert done.returncode == 0, done.stderr
    yield destdir / PREFIX.relative_to("/")
    shutil.rmtree(destdir)


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder in no checkout, and an environment that names none."""
    monkeypatch.chdir(tmp_path)
    for name in ("VIADUCT_ROOT", "VIADUCT_LIB", "PYTHONPATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*command: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()}


def test_an_installed_program_runs_an_app_without_tools(installed: Path, away: Path):
    """Neither Python nor the compiler that built it is there."""
    (away / "in").write_bytes(b"viaduct" * 1000)
    command = [installed / "bin/viaduct", "run", "pass", "--in", "file:in", "--out", "file:out"]
    done = run(*command, PATH="/nowhere", CXX="/bin/echo")
    assert done.returncode == 0, done.stderr
    assert (away / "out").read_bytes() == (away / "in").read_bytes()
    assert run(installed / "bin/viaduct", "doctor").returncode == 0
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    for name in ("viaduct", "viaductd"):
        assert run(installed / "bin" / name, "--version").stdout == f"{name} {version}\n"


def test_what_needs_a_checkout_names_the_variable_for_it(installed: Path, away: Path):
    viaduct, tree = installed / "bin/viaduct", installed / "share/viaduct"
    remedy = (
        f"needs a checkout: {tree} was installed, without tools; change to a Viaduct checkout, "
        "or name it with VIADUCT_ROOT\n"
    )
    done = run(viaduct, "new", "mine")
    assert (done.returncode, done.stderr) == (1, f"error: a new app {remedy}")
    assert not (tree / "apps/mine").exists()
    source = tree / "apps/inc/rtl/inc_app.sv"
    text = source.read_text()
    source.write_text(text + "// changed\n")
    done = run(viaduct, "build", "inc")
    source.write_text(text)
    assert done.returncode == 1
    assert done.stderr.endswith(f"building app inc (apps/inc/rtl/inc_app.sv has changed) {remedy}")
    done = run(viaduct, "build", "inc", VIADUCT_ROOT=str(ROOT))
    assert done.returncode == 0, done.stderr


def test_a_program_in_c_is_built_by_pkg_config(installed: Path, away: Path):
    pkg_config = shutil.which("pkg-config")
    if not pkg_config:
        pytest.skip("there is no pkg-config")
    env = {
        "PKG_CONFIG_PATH": str(installed / "lib/pkgconfig"),
        "PKG_CONFIG_SYSROOT_DIR": str(installed).removesuffix(str(PREFIX)),
    }
    flags = run(pkg_config, "--cflags", "--libs", "viaduct", **env)
    assert flags.returncode == 0, flags.stderr
    made = run("cc", ROOT / "examples/encrypt.c", "-o", "encrypt", *flags.stdout.split())
    assert made.returncode == 0, made.stderr
    data = bytes(range(256)) * 100
    (away / "in").write_bytes(data)
    # The loader looks for the SONAME, not for the name with which it was linked.
    done = run("./encrypt", KEY, IV, "in", "out", LD_LIBRARY_PATH=str(installed / "lib"))
    assert done.returncode == 0, done.stderr
    expected = subprocess.run(
        ["openssl", "enc", "-aes-256-ctr", "-K", KEY, "-iv", IV], input=data, capture_output=True, check=True
    )
    assert (away / "out").read_bytes() == expected.stdout
    needed = run("readelf", "-d", "encrypt").stdout
    version = run(pkg_config, "--modversion", "viaduct", **env).stdout.strip()
    link = installed / "lib" / os.readlink(installed / "lib/libviaduct.so")
    assert f"[{link.name}]" in needed
    assert os.readlink(link) == f"libviaduct.so.{version}"


def test_a_python_package_is_built_by_pip(installed: Path, away: Path):
    """In a virtual environment of its own, with what pip gets from the package index."""
    run(sys.executable, "-m", "venv", "--without-pip", "own")
    pip = [sys.executable, "-m", "pip", "--python", "own", "install", "--quiet", "--no-compile"]
    before = files(ROOT / "python")
    done = run(*pip, ROOT / "python", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_RETRIES="1")
    if "No matching distribution found" in done.stderr and "onnection" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    assert files(ROOT / "python") == before
    program = """if True:
        import numpy, viaduct
        data = numpy.arange(10_000, dtype=numpy.uint8)
        with viaduct.open("sim") as card, card.load("pass") as slot:
            assert (slot.run(data) == data).all()
        print(viaduct.__file__)
    """
    where = f"{away}/own/lib/python3.{sys.version_info.minor}/site-packages/viaduct/__init__.py\n"
    path = f"{installed}/bin:{os.environ['PATH']}"
    for env in ({"LD_LIBRARY_PATH": f"{installed}/lib"}, {"PATH": path}):
        done = run("own/bin/python", "-W", "error", "-c", program, **env)
        assert (done.returncode, done.stdout) == (0, where), done.stderr
    abi = os.readlink(installed / "lib/libviaduct.so")
    if "viaduct" not in run("/sbin/ldconfig", "-p").stdout:
        done = run("own/bin/python", "-c", "import viaduct", PATH="/usr/bin")
        assert done.returncode == 1
        assert f"ImportError: {abi}: cannot open shared object file" in done.stderr


def test_what_was_installed_is_removed(tmp_path: Path):
    """Nothing else is; and an installation over an older one leaves no file of that."""
    there = tmp_path / PREFIX.relative_to("/")
    done = script("install", tmp_path)
    assert done.returncode == 0, done.stderr
    listing = there / "share/viaduct/installed-files"
    first = files(there)
    assert first == {*listing.read_text().splitlines(), "share/viaduct/installed-files"}
    for file in ("share/viaduct/apps/pass/app.toml", "share/man/man1/viaduct-run.1", "lib/libviaduct.a"):
        assert file in first
    for file in first:
        mode = (there / file).stat().st_mode
        assert mode & 0o444 == 0o444 and not mode & 0o022, file
    assert str(tmp_path) not in (there / "lib/pkgconfig/viaduct.pc").read_text()

    (there / "bin/viaduct-old").touch()
    with listing.open("a") as out:
        out.write("bin/viaduct-old\n")
    (there / "bin/other").touch()
    assert script("install", tmp_path).returncode == 0
    assert files(there) == {*first, "bin/other"}

    assert script("uninstall", tmp_path).returncode == 0
    assert files(there) == {"bin/other"} and not (there / "share/viaduct").exists()
    done = script("uninstall", tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("install: error: nothing is installed in ")
    done = script("install", tmp_path, "opt")
    assert done.returncode == 1 and done.stderr == "install: error: PREFIX=opt: not an absolute path\n"


def test_what_is_not_built_is_not_installed(installed: Path, tmp_path: Path):
    """Of a checkout whose sources have changed since."""
    root, destdir = tmp_path / "root", tmp_path / "destdir"
    shutil.copytree(installed / "share/viaduct", root, ignore=shutil.ignore_patterns("installed-files"))
    for part in ("target", "host", "Cargo.toml", "LICENSE"):
        (root / part).symlink_to(ROOT / part)
    with (root / "sim/link.cpp").open("a") as source:
        source.write("// changed\n")
    (destdir / str(PREFIX).lstrip("/") / "share/viaduct").mkdir(parents=True)
    older = destdir / str(PREFIX).lstrip("/") / "share/viaduct/installed-files"
    older.write_text("share/viaduct/installed-files\n")
    done = script("install", destdir, root=root)
    why = "what is built cannot be used: the simulated card (sim/link.cpp has changed)"
    assert done.stderr == f"install: error: {why}: run `make build`, then the same command again\n"
    assert done.returncode == 1 and files(destdir) == {str(older.relative_to(destdir))}, "the older one stays"
    (root / "build/card/libviaduct_card.so").unlink()
    done = script("install", destdir, root=root)
    assert done.stderr == "install: error: not everything is built: run `make build` first\n"
