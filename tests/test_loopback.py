# SPDX-License-Identifier: Apache-2.0
"""`viaduct loopback` in a guest: kernel/loopback, its driver of the guest's kernel, and an off-the-shelf device process."""

import shutil
import subprocess
from pathlib import Path

import pytest
from vm_guest import PATIENCE, ROOT, SCRIPTS, guest, reason, vm

pytestmark = pytest.mark.timeout(PATIENCE)


def made(*command: str | Path) -> str:
    """What a tool that fetches packages prints; without network the test is skipped, with the reason."""
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing to test with: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip()


def run(tmp_path: Path, kernel: str, cycles: int) -> str:
    guest(kernel)
    module = made(ROOT / "tools/guest_module.sh", kernel, "loopback")
    # Under this name, in the folder of the script.
    devices = tmp_path / "devices.tar"
    devices.symlink_to(made(ROOT / "tools/guest_devices.sh"))
    tester = tmp_path / "test_loopback"
    source = ROOT / "kernel/loopback/test_loopback.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", tester, source], check=True)
    copies = [module, devices, tester, ROOT / "target/release/viaduct"]
    # Not in a Debian package; `cargo install vhost-device-rng`.
    if own := shutil.which("vhost-device-rng"):
        copies.append(own)
    options = [word for file in copies for word in ("--copy", file)]
    done = vm("--kernel", kernel, *options, "--script", SCRIPTS / "loopback.sh", "--", str(cycles))
    assert done.returncode == 0, reason(done)
    print(done.stdout)
    return done.stdout


def test_devices_of_the_guests_own_kernel(tmp_path: Path):
    """A disk served by qemu-storage-daemon: data, zero copies, killed and unplugged under load; a hostile device process."""
    said = run(tmp_path, "6.12", 20)
    assert "none of it copied" in said and "after 3 ends of the device process" in said


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["6.12", "6.1", "new"])
def test_a_thousand_times_plugged_on_every_kernel(kernel: str, tmp_path: Path):
    run(tmp_path, kernel, 1000)


@pytest.mark.parametrize("kernel", ["6.12", "6.1", "new"])
def test_the_module_is_clean(kernel: str):
    """No warnings of the compiler and sparse; `make lint-kernel` also runs checkpatch."""
    made(ROOT / "tools/guest_module.sh", kernel, "loopback")
    check = [ROOT / "tools/guest_module.sh", kernel, "loopback", "--check"]
    done = subprocess.run(check, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
