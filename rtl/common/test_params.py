# SPDX-License-Identifier: Apache-2.0
"""Parameters outside their range are refused at elaboration, with a message that says which, its value and what is allowed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyslang import DiagnosticEngine
from pyslang.driver import Driver  # pyright: ignore[reportMissingModuleSource]

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [ROOT / "rtl/common/via_pkg.sv", ROOT / "rtl/virtio/via_virtio_pkg.sv"]
PACKAGES += [p for p in sorted(ROOT.glob("rtl/*/*_pkg.sv")) if p not in PACKAGES]
PACKAGES += sorted((ROOT / "build/regs").glob("*_pkg.sv"))
FOLDERS = [*sorted(p for p in (ROOT / "rtl").iterdir() if p.is_dir()), ROOT / "build/regs"]
# End-to-end tests that run at the same time create apps of the name test_… and remove them again.
APPS = [p for p in ROOT.glob("apps/*/rtl/*.sv") if not p.parents[1].name.startswith("test_")]
MODULES = [*sorted(ROOT.glob("rtl/*/via_*.sv")), *sorted(APPS)]
MODULES = [p for p in MODULES if not p.stem.endswith("_pkg")]

CHECK = re.compile(r'^  localparam bit \w+Ok = (?:via_pkg::)?param_(in|pow2)\("(\w+) (\w+)"', re.M)
PARAMETER = re.compile(r"^  parameter +(?:int unsigned|logic *(?:\[[^]]*\])?) +(\w+) *=", re.M)
# What may have any value that fits its type.
ANY = {
    "via_functions": {"FnMask"},  # the macro behind it is checked
    "via_vio_switch": {"FnMask"},
    "via_virtio_pci": {"Class", "Features"},
    "via_virtio_pci_cap": {"Class"},
    "via_vdev_chop": {"Queue"},
    "via_vdev_console_ctrl": {"Queue"},
}
RANGE = re.compile(r"is (\d+): must be (?:a power of two, )?(\d+) to (\d+)")


def words(top: str, defines: dict[str, int], parameters: dict[str, int]) -> list[str]:
    """What Verilator and slang are told to elaborate `top` with these macros and parameters."""
    options = [f"-D{k}={v}" for k, v in defines.items()] + [f"-G{k}={v}" for k, v in parameters.items()]
    apps = [p.parent for p in MODULES if p.stem == top and p.parent not in FOLDERS]
    options += [w for folder in [*FOLDERS, *apps] for w in ("-y", str(folder))]
    packages = [*PACKAGES, *(p for folder in apps for p in sorted(folder.glob("*_pkg.sv")))]
    file = next(p for p in MODULES if p.stem == top)
    return [*options, *map(str, packages), str(file)]


def slang(
    top: str,
    defines: dict[str, int] | None = None,
    parameters: dict[str, int] | None = None,
    alone: bool = False,
) -> str:
    """The errors slang finds in `top` and, unless `alone`, in what is below it."""
    driver = Driver()
    driver.addStandardArgs()
    command = words(top, defines or {}, parameters or {})
    if alone:
        command = [w for w in command if w != "-y" and not Path(w).is_dir()] + ["--ignore-unknown-modules"]
    assert driver.parseCommandLine(" ".join(["slang", "--top", top, *command]))
    assert driver.processOptions() and driver.parseAllSources()
    compilation = driver.createCompilation()
    errors = [d for d in compilation.getAllDiagnostics() if d.isError()]
    return DiagnosticEngine.reportAll(driver.sourceManager, errors) if errors else ""


def checks() -> list[tuple[str, str, str]]:
    """Module, parameter and kind (in, pow2) of each check in the sources."""
    found = []
    for path in MODULES:
        for kind, module, name in CHECK.findall(path.read_text()):
            assert module == path.stem, f"{path}: the message would blame {module}"
            found.append((module, name, kind))
    return found


def test_every_parameter_is_checked():
    checked = {(module, name) for module, name, _ in checks()}
    for path in MODULES:
        names = set(PARAMETER.findall(path.read_text())) - ANY.get(path.stem, set())
        assert {name for name in names if (path.stem, name) not in checked} == set(), path.stem


@pytest.mark.parametrize(("module", "name", "kind"), checks())
def test_values_outside_the_range_are_refused(module, name, kind):
    def refused(value: int) -> tuple[int, int]:
        text = slang(module, parameters={name: value}, alone=True)
        said = re.search(rf"{module} {name} {RANGE.pattern}", text)
        assert said and int(said[1]) == value, f"{module} {name} = {value}: {text or 'elaborates'}"
        return int(said[2]), int(said[3])

    low, high = refused(65535 if name == "DeviceType" else 2**31 - 1)
    refused(high + 1)
    if low > 0:
        refused(low - 1)
    if kind == "pow2":
        refused(high - 1)


BAD_MACROS = [
    ("VIA_NUM_CHAN", 3, "a power of two, 1 to 16"),
    ("VIA_NUM_CHAN", 0, "a power of two, 1 to 16"),
    ("VIA_NUM_CHAN", 32, "a power of two, 1 to 16"),
    ("VIA_DATA_W", 100, "a power of two, 64 to 512"),
    ("VIA_DATA_W", 32, "a power of two, 64 to 512"),
    ("VIA_DATA_W", 1024, "a power of two, 64 to 512"),
    ("VIA_NUM_SLOTS", 0, "1 to 16"),
    ("VIA_NUM_SLOTS", 17, "1 to 16"),
    ("VIA_NUM_STREAMS", 0, "1 to 14"),
    ("VIA_NUM_STREAMS", 15, "1 to 14"),
    ("VIA_QUEUE_SIZE", 100, "a power of two, 4 to 256"),
    ("VIA_QUEUE_SIZE", 512, "a power of two, 4 to 256"),
    ("VIA_FN_MASK", 128, "0 to 127"),
]


@pytest.mark.parametrize(("macro", "value", "allowed"), BAD_MACROS)
def test_a_card_that_cannot_be_is_refused(macro, value, allowed):
    assert f"{macro} is {value}: must be {allowed}" in slang("via_shell", {macro: value})


@pytest.mark.parametrize(
    ("slots", "chans", "width", "streams"),
    [(4, 4, 512, 1), (1, 1, 64, 1), (16, 16, 64, 14), (16, 1, 512, 14), (3, 2, 128, 1), (1, 8, 256, 2)],
)
def test_a_card_as_documented_elaborates(slots, chans, width, streams):
    geometry = {
        "VIA_NUM_SLOTS": slots,
        "VIA_NUM_CHAN": chans,
        "VIA_DATA_W": width,
        "VIA_NUM_STREAMS": streams,
    }
    assert slang("via_shell", geometry) == ""


@pytest.mark.parametrize(("width", "slots"), [(64, 1), (128, 2), (256, 1), (512, 4)])
def test_what_is_synthesised_elaborates(width, slots):
    sys.path.insert(0, str(ROOT / "synth"))
    import synth

    macros = {"VIA_NUM_SLOTS": slots, "VIA_NUM_CHAN": 1, "VIA_DATA_W": width}
    tops = {b.module for b in [*synth.blocks(slots, 1, 1), *synth.functions(width)]}
    said = {top: slang(top, macros) for top in sorted(tops)}
    assert {top: errors for top, errors in said.items() if errors} == {}


@pytest.mark.parametrize(
    ("module", "name", "lowest", "others"),
    [("via_cmdq", "Queue", 2, {"Fetch": 2}), ("flow_divide", "Width", 8, {})],
)
def test_the_lowest_value_allowed_elaborates(module, name, lowest, others):
    """No select leaves its vector."""
    assert f"must be {lowest} to" in slang(module, parameters={name: 0}, alone=True)
    done = verilator(module, {}, {name: lowest, **others})
    assert done.returncode == 0 and "SELRANGE" not in done.stderr, done.stderr


def test_a_queue_engine_of_another_width_is_refused():
    for top in ("via_vq", "via_virtio_fn"):
        assert f"VIA_DATA_W of {top} is 64: must be 512 to 512" in slang(top, {"VIA_DATA_W": 64})


def verilator(
    top: str, defines: dict[str, int], parameters: dict[str, int]
) -> subprocess.CompletedProcess[str]:
    lint = ["verilator", "--lint-only", "-Wno-fatal", "--top-module", top]
    return subprocess.run(
        [*lint, *words(top, defines, parameters)], capture_output=True, text=True, check=False
    )


def yosys(top: str, defines: dict[str, int], parameters: dict[str, int]) -> subprocess.CompletedProcess[str]:
    read = ["read_slang", "--top", top, *words(top, defines, parameters)]
    command = [str(ROOT / "tools/yosys"), "-p", " ".join(read)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tool", [verilator, yosys])
@pytest.mark.parametrize(
    ("top", "defines", "parameters", "message"),
    [
        ("via_fifo", {}, {"Depth": 0}, "via_fifo Depth is 0: must be 1 to 16777216"),
        ("via_mmu", {}, {"HugeSets": 3}, "via_mmu HugeSets is 3: must be a power of two, 2 to 65536"),
        ("via_xbar", {"VIA_NUM_CHAN": 3}, {}, "VIA_NUM_CHAN is 3: must be a power of two, 1 to 16"),
        ("via_slice", {"VIA_NUM_SLOTS": 17}, {}, "VIA_NUM_SLOTS is 17: must be 1 to 16"),
        ("via_slice", {}, {}, ""),
    ],
)
def test_every_tool_refuses_them(tool, top, defines, parameters, message):
    """Even where warnings are none: the simulator of an app is built so."""
    done = tool(top, defines, parameters)
    said = done.stdout + done.stderr
    assert (done.returncode != 0) == bool(message), said
    assert message in said
