# SPDX-License-Identifier: Apache-2.0
"""The card's functions under the drivers of stock kernels. The scripts are guest/tests/*.sh.

With VIA_VM_ROUNDS=50000 the test in one boot makes as many round trips of each size as in the paper.
With VIA_VM_EACH=1 the parts of that boot also run separately, to locate a failure.
With VIA_VM_REFERENCE=1 the same scripts also run on QEMU's own virtio devices, to distinguish errors of a script and of the card.
"""

import fcntl
import hashlib
import json
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from udp_echo import Echo
from vm_guest import (
    PATIENCE,
    ROOT,
    SCRIPTS,
    VIADUCT,
    beside_tap,
    functions_in,
    guest,
    log_in,
    reason,
    script,
    vm,
)

KINDS = ["net", "blk", "console", "entropy", "input"]
OWN, PEER = "10.0.0.1/24", "10.0.0.2"
KERNELS = ["6.12", "6.1", "new"]
# Of a test whose outcome hardly depends on the kernel, the others are part of the long form.
MOSTLY_ONE = [KERNELS[0], *(pytest.param(kernel, marks=pytest.mark.long) for kernel in KERNELS[1:])]
ROUNDS = int(os.environ.get("VIA_VM_ROUNDS") or 100)
RESETS = "6" if os.environ.get("VIA_VM_ROUNDS") else "3"  # under traffic; one of each kind
ONE_BOOT = PATIENCE + ROUNDS * 5 * 0.02  # seconds
pytestmark = pytest.mark.timeout(PATIENCE)
alone = pytest.mark.skipif(
    not os.environ.get("VIA_VM_EACH"),
    reason="part of test_everything_in_one_boot; VIA_VM_EACH=1 runs it alone",
)
reference = pytest.mark.skipif(not os.environ.get("VIA_VM_REFERENCE"), reason="VIA_VM_REFERENCE is not set")


@alone
@pytest.mark.parametrize("kernel", KERNELS)
def test_enumeration(kernel: str):
    guest(kernel)
    script("enumerate", ",".join(KINDS), *KINDS, options=("--kernel", kernel))


def test_the_management_function_is_found():
    script("enumerate", "mgmt", "mgmt")


@pytest.mark.parametrize("kernel", MOSTLY_ONE)
def test_the_management_function_is_driven_from_a_guest(kernel: str):
    images = [
        ROOT / "build/apps" / app / f"{app}.{kind}" for app in ["sha256", "rng"] for kind in ["via", "toml"]
    ]
    guest(kernel)
    subprocess.run([VIADUCT, "build", "sha256", "rng"], cwd=ROOT, check=True)
    cargo = [
        "cargo",
        "test",
        "--release",
        "--workspace",
        "--test",
        "vfio",
        "--no-run",
        "--message-format=json",
    ]
    built = subprocess.run(cargo, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
    test = next(path for line in built.splitlines() if (path := json.loads(line).get("executable")))
    copies = [word for path in [Path(VIADUCT).resolve(), Path(test), *images] for word in ("--copy", path)]
    out = script("mgmt", "mgmt", options=("--kernel", kernel, "--iommu", *copies))
    assert "call by call" in out


def test_found_at_boot():
    script("enumerate", ",".join(KINDS), *KINDS, options=("--fresh",))


def test_behind_an_iommu():
    script("entropy", "entropy", "2", options=("--iommu",))


@pytest.mark.parametrize("packed", [False, True], ids=["split", "packed"])
def test_net(packed: bool):
    """Packed rings only where they were requested."""
    options = ("--features", "net:+packed") if packed else ()
    out = script("net", "net", OWN, PEER, "7", "100", options=options)
    bits = next(line.split()[1] for line in out.splitlines() if line.startswith("features: "))
    assert bits[34] == str(int(packed)), bits
    figures = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    assert [size["size"] for size in figures["sizes"]] == [64, 128, 256, 512, 1024]
    assert all(size["wrong"] == 0 for size in figures["sizes"])


def test_two_cards_on_one_cable(tmp_path: Path):
    """With different addresses they reach each other over IPv6, also with the longest frames."""
    guest()
    a, b = tmp_path / "a", tmp_path / "b"
    base = [VIADUCT, "vm", "--function", "net", "--disk", "none", "--timeout", str(int(PATIENCE))]
    far = [*base, "--net", f"unix:{b},{a}", "--mac", "02:56:49:41:44:02"]
    with subprocess.Popen([*far, "--", "sh", "-c", "ip link set eth0 up; sleep infinity"], cwd=ROOT) as other:
        try:
            work = """
                ip link set eth0 up
                n=0; until ping -6 -q -c 1 -W 5 "$1%eth0"; do n=$((n + 1)); [ $n -lt 200 ]; sleep 1; done
                ping -6 -q -c 3 -W 60 -M do -s 9168 "$1%eth0"
                ip -6 address show dev eth0
            """
            words = ["--", "sh", "-ec", work, "sh", "fe80::56:49ff:fe41:4402"]
            done = vm("--disk", "none", "--net", f"unix:{a},{b}", *words, functions="net")
        finally:
            other.terminate()
    assert done.returncode == 0, reason(done)
    assert "3 packets transmitted, 3 received" in done.stdout
    assert "fe80::56:49ff:fe41:4401" in done.stdout and "dadfailed" not in done.stdout


@pytest.mark.timeout(ONE_BOOT + PATIENCE)
@pytest.mark.parametrize("kernel", MOSTLY_ONE)
def test_everything_in_one_boot(kernel: str, tmp_path: Path):
    """With an iperf3 server and a UDP echo on the host, at the other end of a TAP device."""
    files = guest(kernel)
    probe = beside_tap("", "true")
    if probe.returncode != 0:
        pytest.skip(f"no TAP device can be made here: {probe.stderr.strip()}")
    limit = ("--timeout", str(int(ONE_BOOT)))
    options = ["--kernel", kernel, *limit, "--net", "tap:t0", "--uart", f"unix:{tmp_path}/console"]
    scripts = [word for path in SCRIPTS.glob("*.sh") for word in ("--copy", path)]
    args = [OWN, PEER, "7", str(ROUNDS), "5201", "1", RESETS]
    user = threading.Thread(target=log_in, args=[tmp_path / "console", ONE_BOOT], daemon=True)
    user.start()
    done = beside_tap(
        f"{files['dir']}/root",
        *(VIADUCT, "vm", *options, *scripts, "--script", SCRIPTS / "all.sh", "--", *args),
        timeout=ONE_BOOT + 60,
    )
    print(done.stdout)
    assert done.returncode == 0, reason(done)
    user.join()
    passed = [line for line in done.stdout.splitlines() if line.startswith("pass: ")]
    assert f"pass: {ROUNDS} UDP round trips of each size" in passed
    assert passed[-1].startswith("pass: all, in one boot of ")


def xdma_module() -> str:
    """kernel/xdma for the guest's kernel."""
    guest()
    module = subprocess.run([ROOT / "tools" / "guest_module.sh"], text=True, capture_output=True, check=False)
    if module.returncode != 0:
        pytest.skip(f"no kernel/xdma for the guest: {module.stderr.strip().splitlines()[-1]}")
    return module.stdout.strip()


def test_user_logic_interrupts_a_guest(tmp_path: Path):
    """The card's owner runs an app; a guest with the XDMA-compatible function gets an interrupt at each end."""
    module = xdma_module()
    with functions_in(tmp_path, "--unconnected"):
        own = ("--card", tmp_path, "--function", "xdma", "--copy", module)
        command = [VIADUCT, "vm", *own, "--script", SCRIPTS / "events.sh", "--", "3"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as booted:
            assert booted.stdout and booted.stdout.readline() == "ready\n"
            app = f"run rng --card unix:{tmp_path}/mgmt.sock --slot 0 --out mem=file:{tmp_path}/memory"
            registers = "--set size=64 --set count=20 --set write=1"
            (tmp_path / "memory").write_bytes(bytes(100_000))
            for _ in range(3):
                subprocess.run([VIADUCT, *app.split(), *registers.split()], cwd=ROOT, check=True)
            assert booted.stdout.readline() == "pass: 3 interrupts of user logic\n"
        assert booted.returncode == 0


def test_a_guest_has_the_registers_of_an_app():
    options = ("--xdma-app", "rng", "--copy", xdma_module())
    script("user_bar", "xdma", options=options)
    done = vm("--xdma-app", "rng", "--", "true", functions="net")
    assert done.returncode == 2 and "--function xdma" in done.stderr, done.stderr


def test_the_kernel_sources_are_clean():
    """No warnings of the compiler and sparse; `make lint-kernel` also runs checkpatch."""
    xdma_module()
    check = [ROOT / "tools" / "guest_module.sh", "--check"]
    done = subprocess.run(check, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_app_is_run_behind_a_function(tmp_path: Path):
    """`virtio:net` as an endpoint: the card is served by one process, the app run by another, the driver is in a guest."""
    guest()
    app = f"run udp_echo --card unix:{tmp_path}/mgmt.sock --json --in virtio:net --out virtio:net"
    pipe = subprocess.PIPE
    with functions_in(tmp_path, "--unconnected"):
        for _ in range(2):
            with subprocess.Popen(
                [VIADUCT, *app.split()], cwd=ROOT, text=True, stdout=pipe, stderr=pipe
            ) as serving:
                assert serving.stderr
                while "is behind net" not in (line := serving.stderr.readline()):
                    assert line, "it has ended"
                script("net", "net", OWN, PEER, "7", "20", options=("--card", tmp_path))
                serving.send_signal(signal.SIGINT)
                figures = json.loads(serving.communicate(timeout=PATIENCE)[0])
            assert serving.returncode == 0
            assert figures["function"] == "net" and figures["messages_in"] >= figures["messages_out"] >= 280
        # No app is attached any more: the driver sees no link.
        look = "ip link set eth0 up; cat /sys/class/net/eth0/carrier"
        done = vm("--card", tmp_path, "--", "sh", "-c", look, functions="net")
        assert done.stdout == "0\n", done.stderr


def test_round_trips_beside_the_rival():
    xdma_module()
    bench = [VIADUCT, "bench", "guest", "--rounds", "100", "--json"]
    done = subprocess.run(bench, text=True, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    figures = {figure["what"]: figure["value"] for figure in json.loads(done.stdout)}
    for size in [64, 128, 256, 512, 1024]:
        # A packet needs no register read; the XDMA driver reads one for each of two transfers.
        assert figures[f"guest, virtio of {size} bytes: MMIO reads"] == 0
        assert 2 <= figures[f"guest, XDMA of {size} bytes: MMIO reads"] < 2.1
        # Cycles of the card, which a guest's interrupts and notifications shift by some (docs/results.md).
        virtio, xdma = (figures[f"guest, {way} of {size} bytes: hardware"] for way in ("virtio", "XDMA"))
        assert 420 < virtio < 600 and virtio < xdma < 800, (size, virtio, xdma)
        assert all(figures[f"guest, {way} of {size} bytes: mean"] > 0 for way in ("virtio", "XDMA"))


@alone
def test_blk():
    script("blk", "blk", "1")


@pytest.mark.long
def test_a_file_system_on_an_encrypted_disk(tmp_path: Path):
    """The guest does not notice the app in its disk's path; an independent AES deciphers the file."""
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(24 << 20)
    key, iv = bytes(range(32)), bytes(range(0xF0, 0x100))
    registers = "--set", f"key={key.hex()}", "--set", f"iv={iv.hex()}"
    options = "--disk", f"file:{disk}", "--disk-app", "aes", "--disk-sectors", *registers
    script("blk", "blk", "1", options=options)
    secret = disk.read_bytes()
    plain = Cipher(AES256(key), CTR(iv)).decryptor().update(secret)
    assert b"lost+found" in plain and b"lost+found" not in secret
    # The script ends with these zeroes.
    assert plain[4096:69632] == bytes(65536) and plain[:4096] != bytes(4096)
    assert len(set(secret[4096:69632])) == 256


def test_a_file_is_there_once_the_guest_has_synced_it(tmp_path: Path):
    """Even if the serving process is then killed."""
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(8 << 20)
    card = tmp_path / "card"
    guest()
    work = "head -c 300000 /dev/urandom >a; dd if=a of=/dev/vda bs=4k seek=5 conv=fsync status=none && sha256sum <a"
    with functions_in(card, "--disk", f"file:{disk}", "--net", "none") as serving:
        done = vm("--card", card, "--", "sh", "-c", work, functions="blk")
        serving.kill()
    assert done.returncode == 0, done.stderr
    written = disk.read_bytes()[5 * 4096 :][:300000]
    assert done.stdout.split()[0] == hashlib.sha256(written).hexdigest()


def root_image(folder: Path) -> Path:
    """A root file system for `viaduct vm --root`."""
    guest()
    image = folder / "root.img"
    made = subprocess.run(
        [ROOT / "tools" / "guest.sh", "--root", image], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return image


def check_file_system(image: Path) -> None:
    """With the guest's own e2fsck: clean, and everything in its place."""
    root = Path(guest()["dir"]) / "root"
    libraries = root / "usr/lib/x86_64-linux-gnu"
    loader = [root / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries]
    done = subprocess.run(
        [*loader, root / "usr/sbin/e2fsck", "-f", "-n", image], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recovering journal" not in done.stdout + done.stderr


@pytest.mark.long
def test_a_guest_boots_from_the_cards_disk(tmp_path: Path):
    image = root_image(tmp_path)
    options = ("--root", "--disk", f"file:{image}")
    # A process that has a file open for writing does not keep the file system from being left clean.
    first = "grep -q '^/dev/vda / ext4 rw' /proc/mounts && echo kept >/root/note && (sleep 600 >/root/open &)"
    for command in (first, "cat /root/note"):
        done = vm(*options, "--", "sh", "-c", command, functions="blk")
        assert done.returncode == 0, reason(done)
        check_file_system(image)
    assert done.stdout == "kept\n"
    # Without the disk there is nothing to boot from.
    done = vm("--root", functions="net")
    assert done.returncode == 2 and "--function blk" in done.stderr


@pytest.mark.long
def test_a_root_file_system_on_the_cards_disk(tmp_path: Path):
    """Login, work, shutdown, and the same again. Prints how long it takes, and how long with the disk in memory."""
    image = root_image(tmp_path)
    for number, (store, again) in enumerate([("copy", []), ("file", []), ("file", ["again"])]):
        console = tmp_path / f"console{number}"
        user = threading.Thread(target=log_in, args=[console, PATIENCE], daemon=True)
        user.start()
        options = ("--root", "--disk", f"{store}:{image}", "--uart", f"unix:{console}")
        begin, before = time.monotonic(), image.stat().st_mtime_ns
        said = script("root", "blk,console", "16", "200", *again, options=options)
        print(f"{store} {again}: {time.monotonic() - begin:.1f} s")
        user.join()
        assert sum(line.startswith("pass: ") for line in said.splitlines()) == 2 + len(again)
        assert (image.stat().st_mtime_ns == before) == (store == "copy")
        check_file_system(image)


@alone
def test_entropy():
    script("entropy", "entropy", "8")


def test_console(tmp_path: Path):
    path = tmp_path / "console"
    user = threading.Thread(target=log_in, args=[path])
    user.start()
    options = ("--uart", f"unix:{path}", "--console-size", "132x50")
    script("console", "console", "120", "50", "132", options=options)
    user.join()


def test_the_console_has_the_size_of_its_terminal(tmp_path: Path):
    """Also after that has changed."""
    guest()
    sizes = """
        # The device sends its ports after the driver has started; the node may be there before its port.
        until test -c /dev/hvc0 && (: <>/dev/hvc0) 2>/dev/null; do sleep 0.1; done
        exec 5<>/dev/hvc0
        until [ "$(stty -F /dev/hvc0 size)" = "$1" ]; do sleep 0.1; done; echo first
        until [ "$(stty -F /dev/hvc0 size)" = "$2" ]; do sleep 0.1; done; echo second
    """
    ours, theirs = os.openpty()

    def window(rows: int, columns: int) -> None:
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    window(43, 99)
    options = ("--functions", tmp_path, "--uart", "stdio", "--net", "none", "--disk", "none")
    own_terminal = ["setsid", "-c", VIADUCT, "card", *options]
    card = subprocess.Popen(
        own_terminal, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True
    )
    with card:
        try:
            assert card.stderr and card.stderr.readline().startswith("functions in")
            run = ("--card", tmp_path, "--", "sh", "-c", sizes, "sh", "43 99", "50 132")
            command = [VIADUCT, "vm", "--function", "console", *run]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as booted:
                assert booted.stdout and booted.stdout.readline() == "first\n"
                window(50, 132)
                assert booted.stdout.readline() == "second\n"
            assert booted.returncode == 0
        finally:
            card.terminate()
            os.close(theirs)
            os.close(ours)


@alone
def test_drivers_come_and_go():
    script("rebind", ",".join(KINDS), *KINDS)


@alone
def test_reset_under_network_traffic():
    script("traffic", "net", "6", "net", OWN, PEER)


@alone
def test_reset_under_disk_traffic():
    script("traffic", "blk", "6", "blk")


# ---------------------------------------------------------------- the scripts themselves


def commands(folder: Path) -> Path:
    """QEMU's options for its own virtio devices in place of the card's functions."""

    def command(name: str, **arguments) -> str:
        return json.dumps(
            {"execute": name, "arguments": {k.replace("_", "-"): v for k, v in arguments.items()}}
        )

    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(64 << 20)
    console = {
        "addr": {"type": "unix", "data": {"path": str(folder / "console")}},
        "server": True,
        "wait": False,
    }
    lines = [
        command("netdev_add", type="user", id="n"),
        command("blockdev-add", driver="file", node_name="b", filename=str(disk), discard="unmap"),
        command("object-add", qom_type="rng-builtin", id="r"),
        command("chardev-add", id="c", backend={"type": "socket", "data": console}),
        command("device_add", driver="virtio-net-pci", id="net", bus="port0", netdev="n", romfile=""),
        command("device_add", driver="virtio-blk-pci", id="blk", bus="port1", drive="b"),
        command("device_add", driver="virtio-rng-pci", id="rng", bus="port2", rng="r"),
        command("device_add", driver="virtio-serial-pci", id="serial", bus="port3"),
        command("device_add", driver="virtconsole", id="console", bus="serial.0", chardev="c"),
        command("device_add", driver="virtio-keyboard-pci", id="input", bus="port4"),
    ]
    path = folder / "qmp"
    path.write_text("\n".join(lines) + "\n")
    return path


@reference
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("enumerate", KINDS),
        ("blk", ["2"]),
        ("entropy", []),
        ("rebind", KINDS),
        ("traffic", ["6", "net", "10.0.2.15/24", "10.0.2.2"]),
        ("traffic", ["6", "blk"]),
    ],
)
def test_reference(name: str, args: list[str], tmp_path: Path):
    script(name, "none", *args, options=("--qmp", commands(tmp_path)))


@reference
def test_reference_net(tmp_path: Path):
    echo = Echo()
    echo.start()
    options = ("--qmp", commands(tmp_path))
    script("net", "none", "10.0.2.15/24", "10.0.2.2", str(echo.port), "200", options=options)


@reference
def test_reference_console(tmp_path: Path):
    options = ("--qmp", commands(tmp_path))
    user = threading.Thread(target=log_in, args=[tmp_path / "console"])
    user.start()
    script("console", "none", "120", options=options)
    user.join()
