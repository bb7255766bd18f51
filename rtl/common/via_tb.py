# SPDX-License-Identifier: Apache-2.0
"""Shared helpers of the block tests: build and run a testbench, clock and reset, stalls, a memory model.

A test file holds cocotb tests and one pytest function that runs them:

    import cocotb
    from via_tb import AxiMem, rng, run, start, stalls

    @cocotb.test(timeout_time=50, timeout_unit="us")
    async def keeps_order(dut):
        r = rng()                        # random.Random from the run's seed
        await start(dut)                 # 4 ns clock on clk_i, reset on rst_ni released
        ...

    @pytest.mark.parametrize("data_w", [512, 64])
    def test_via_xbar(data_w):
        run("via_xbar_tb", __file__, defines={"VIA_DATA_W": data_w})

Environment: VIA_SEED repeats a run (each run prints its seed), VIA_WAVES=1 writes dump.vcd into the build
folder, VIA_CHECKERS=0 leaves the checkers of ports out, COCOTB_TEST_FILTER selects cocotb tests by regular expression.
"""

import ctypes
import hashlib
import os
import random
import re
import signal
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import cocotb
import cocotb_tools.config
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

import checkers
from compilers import cxx, stands
from via_model import ROOT, VARIABLES, build, compiler, execute, held, short, tool, write

SEED_MAX = 2**31 - 1
if (
    "COCOTB_TEST_MODULES" in os.environ
):  # this is the simulation: it ends with the program that has started it, however that ends
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
CXX_OPT = "-O1"
JOBS = min(4, os.cpu_count() or 1)
# Compiles a model, as two units: what is evaluated at an edge, and what is called once (__Slow), for which optimisation takes longer than it
# saves. Verilator's own library and its header, precompiled, are the same for all models with these options: they are in a folder of
# their own, `library`.
MAKEFILE = r"""
-include Vtop_classes.mk
LIBRARY := verilated verilated_dpi verilated_vpi verilated_threads
ifeq ($(TRACE),1)
LIBRARY += verilated_vcd_c
endif
ifeq ($(COVERAGE),1)
LIBRARY += verilated_cov
endif
OBJECTS := $(LIBRARY:%=%.o)
# A header that Clang has compiled names its files by absolute paths: it is another one in a checkout that was moved or copied.
HERE := $(shell cd .. && pwd -P | cksum | cut -d' ' -f1)
PRELUDE := $(HERE)/prelude.h
COMPILE = $(CXX) $(CXXFLAGS) -w -I. -isystem $(INCLUDE) -isystem $(INCLUDE)/vltstd -DVERILATOR=1 -DVM_COVERAGE=$(COVERAGE) -DVM_SC=0 \
  -DVM_TIMING=0 -DVM_TRACE=$(TRACE) -DVM_TRACE_FST=0 -DVM_TRACE_VCD=$(TRACE) -DVM_TRACE_SAIF=0 $(CPPFLAGS)
.PHONY: library again
.DELETE_ON_ERROR:

$(OUT): fast.o slow.o
	$(CXX) $(LDFLAGS) $^ $(OBJECTS:%=$(SHARED)/%) -Wl,-rpath,$(COCOTB) -L$(COCOTB) -lcocotbvpi_verilator -pthread -o $@
fast.o slow.o: LEVEL = $(if $(filter fast.o,$@),$(FAST),-O0)
fast.o: PARTS = $(MAIN) $(VM_CLASSES_FAST:%=%.cpp) $(VM_SUPPORT_FAST:%=%.cpp)
slow.o: PARTS = $(VM_CLASSES_SLOW:%=%.cpp) $(VM_SUPPORT_SLOW:%=%.cpp)
fast.o slow.o: again
	printf '#include "%s"\n' $(PARTS) >$(@:.o=.cpp)
	$(COMPILE) $(LEVEL) -include $(SHARED)/$(PRELUDE) -c -o $@ $(@:.o=.cpp)

library: $(OBJECTS) $(PRELUDE).gch/fast $(PRELUDE).gch/slow
$(OBJECTS): %.o: $(INCLUDE)/%.cpp
	$(COMPILE) $(GLOBAL) -c -o $@ $<
$(PRELUDE):
	mkdir -p $(@D)
	echo '#include "verilated.h"' >$@
$(PRELUDE).gch/fast: LEVEL = $(FAST)
$(PRELUDE).gch/slow: LEVEL = -O0
$(PRELUDE).gch/fast $(PRELUDE).gch/slow: $(PRELUDE)
	mkdir -p $(@D)
	$(COMPILE) $(LEVEL) -MD -MF $(PRELUDE).$(@F).d -x c++-header -o $@ $<
"""

# ---------------------------------------------------------------- pytest side


def public_signals(module: str, file: Path) -> str:
    """Lines of a configuration that lets a test reach the signals of a module, whichever words of its text these are."""
    words = set(
        re.findall(r"[A-Za-z]\w+|\b[A-Z]\b", re.sub(r"//.*", "", file.read_text()))
    )  # not the genvars: one small letter
    return "".join(f'public_flat_rw -module "{module}" -var "{word}"\n' for word in sorted(words))


def run(
    top: str,
    test_file: str,
    *,
    defines: dict[str, object] | None = None,
    parameters: dict[str, object] | None = None,
    sources: list[str] | None = None,
    testcase: str | list[str] | None = None,
    inside: list[str] | None = None,
    made: Path | None = None,
    coverage: bool = False,
    cxx_opt: str = CXX_OPT,
) -> None:
    """Builds `top` with Verilator (assertions on, -Wall) and runs the cocotb tests of `test_file`.

    A checker is bound to every port of every block below it (tools/checkers.py); VIA_CHECKERS=0 leaves them out.

    `top` and every module below it are found by name in rtl/*/, in build/regs and in tb/ and rtl/ beside the
    test. `defines` sets the geometry (VIA_DATA_W, VIA_NUM_SLOTS, ...), `parameters` the parameters of `top`.
    `sources` are paths relative to the repository to read before it: packages other than via_pkg, .vlt files.
    `testcase` names the tests to run; all of them if None. Tests see the ports of `top`, what is in testbenches,
    and what is in the modules that `inside` names. `made` is a folder with a generated top. A large top with a short test is compiled best
    with `cxx_opt` "-O0". Raises if the build or any test fails.
    """
    test_path = Path(test_file).resolve()
    define_map = dict(defines or {})
    parameter_map = dict(parameters or {})
    knobs = [f"{k.removeprefix('VIA_')}{v}" for k, v in sorted((define_map | parameter_map).items())]
    checked = os.environ.get("VIA_CHECKERS", "1") != "0"
    waves = os.environ.get("VIA_WAVES", "") not in ("", "0")
    name = ".".join([top, *knobs, *([] if checked else ["bare"]), *(["waves"] if waves else [])])
    if len(name) > 100:
        name = f"{top}.{hashlib.sha1(name.encode()).hexdigest()[:12]}"
    build_dir = ROOT / "build" / "tb" / name
    seed = int(os.environ.get("VIA_SEED") or random.randrange(SEED_MAX))

    folders = [
        *([made] if made else []),
        test_path.parent / "tb",
        test_path.parent / "rtl",  # an app's
        ROOT / "build/regs",
        *sorted(p for p in (ROOT / "rtl").iterdir() if p.is_dir()),
        ROOT / "rtl/common/tb",
    ]
    top_file = next((f for d in folders if (f := d / f"{top}.sv").exists()), None)
    if top_file is None:
        raise FileNotFoundError(f"{top}.sv is neither in {test_path.parent.name}/tb nor in rtl/*/")

    options = ["--no-public-flat-rw", "--assert", "-Wall", "--no-timing", "-O3", "-CFLAGS", cxx_opt]
    options += ["--output-split", "0", "-Wno-UNUSED"]  # a build without some functions leaves inputs alone
    options += ["--trace"] if waves else []
    options += ["--coverage-line", "--coverage-toggle"] if coverage else []
    options += [f"-D{macro}={value}" for macro, value in define_map.items()]
    options += [f"-G{parameter}={value}" for parameter, value in parameter_map.items()]

    with held(build_dir):
        # Tests reach the ports of the top and what is in testbenches: were all signals public, most of the time would go into their list.
        public, bind = build_dir / "public.vlt", build_dir / "bind.sv"
        seen = [
            f for d in folders for f in sorted(d.glob("*.sv")) if d.name == "tb" or f.stem in (inside or [])
        ]
        named = {top: top_file} | {f.stem: f for f in seen}
        write(
            public, "`verilator_config\n" + "".join(public_signals(module, f) for module, f in named.items())
        )
        text = f"bind {top} via_tb_assert u_via_tb_assert (.clk_i, .rst_ni);\n"
        if checked:
            text = checkers.binds(top_file, folders)
        write(bind, text)
        first = [ROOT / "tools/lint.vlt", public, ROOT / "rtl/common/via_pkg.sv"]
        files = [*first, *(ROOT / s for s in sources or []), top_file, bind]
        verilate(build_dir, top, options, folders, files, cxx_opt)

        print(f"{name}: repeat with VIA_SEED={seed}")
        try:
            results = get_runner("verilator").test(
                test_module=test_path.stem,
                hdl_toplevel=top,
                hdl_toplevel_lang="verilog",
                testcase=testcase,
                seed=seed,
                build_dir=build_dir,
                test_dir=build_dir,
                results_xml=str(build_dir / "results.xml"),
                # Registers and memories power up with random contents, as only control state has a reset.
                plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{seed or 1}"],
                waves=waves,
            )
            count, failed = get_results(results)
        except SystemExit as e:  # the runner's way to tell of a failed test
            failure = f"failed with status {e.code}"
        else:
            failure = f"{failed} of {count} tests failed" if failed or not count else ""
    if failure:
        raise AssertionError(f"{name}: {failure}; repeat with VIA_SEED={seed}")


def verilate(
    build_dir: Path,
    top: str,
    options: list[str],
    folders: list[Path],
    files: list[Path],
    cxx_opt: str,
) -> None:
    """Builds the model, a program with cocotb's main file that loads cocotb's library."""
    __tracebackhide__ = True
    cocotb_lib = Path(cocotb_tools.config.libs_dir).resolve()
    main = Path(cocotb_tools.config.share_dir).resolve() / "lib/verilator/verilator.cpp"
    verilator = tool("verilator")
    command = [str(verilator), "-cc", "--exe", "-Mdir", short(build_dir), "--top-module", top, "--vpi"]
    command += ["--prefix", "Vtop", "--timescale", "1ns/1ps"]
    command += options
    for folder in folders:
        command += ["-y", short(folder)]
    command += map(short, files)

    settings = {"CXX": cxx(), "FAST": cxx_opt, "GLOBAL": CXX_OPT, "COCOTB": cocotb_lib, "MAIN": main}
    include = next((verilator.parents[1] / "lib").glob("python3*/site-packages/verilator/include"))
    settings |= {"INCLUDE": include}
    settings |= {"TRACE": int("--trace" in options), "COVERAGE": int("--coverage-line" in options)}
    made = [f"{name}={value}" for name, value in settings.items()]
    environment = [os.environ.get(name, "") for name in VARIABLES]
    what = [*made, *environment, compiler(), MAKEFILE]
    key = hashlib.sha1("\n".join(what).encode()).hexdigest()
    shared = build_dir.parent / f"library.{key[:12]}"
    makefile = shared / "model.mk"
    make = ["make", "-j", str(JOBS), "-f", "model.mk"]
    with held(shared):
        write(makefile, MAKEFILE)
        (shared / "build.log").unlink(missing_ok=True)
        for compiled in shared.glob("*/prelude.h.gch/*"):
            if not stands(compiled, compiled.parents[1] / f"prelude.h.{compiled.name}.d", shared):
                compiled.unlink()
        execute([*make, "-C", short(shared), "library", *made], "Verilator's library", shared / "build.log")
    make[-1] = f"../{shared.name}/model.mk"
    make += ["-C", short(build_dir), f"SHARED=../{shared.name}", f"OUT={top}", *made]
    build(build_dir / top, "Vtop", [command, make], folders)


# ---------------------------------------------------------------- simulation side


def rng() -> random.Random:
    """A generator seeded from the run's seed, the same in every rerun with VIA_SEED."""
    return random.Random(cocotb.RANDOM_SEED)


async def start(dut, cycles: int = 4, period_ns: int = 4) -> None:
    """Starts the clock on `clk_i`, holds `rst_ni` low for `cycles` and returns just after its release."""
    dut.rst_ni.value = 0
    await Timer(period_ns, "ns")  # before the first edge: registers and inputs power up with random contents
    cocotb.start_soon(Clock(dut.clk_i, period_ns, unit="ns").start())
    await ClockCycles(dut.clk_i, cycles)
    dut.rst_ni.value = 1
    await RisingEdge(dut.clk_i)


def stalls(r: random.Random, p: float) -> Iterator[bool]:
    """Endless True (stall) with probability `p`, in runs: bursts of stalls find more than single ones.

    Fits cocotbext-axi: `sink.set_pause_generator(stalls(r, 0.3))`.
    """
    while True:
        if p <= 0:
            yield False
            continue
        stalled = r.random() < p
        # Both kinds of run have the same mean length, so the share of stalled cycles stays p.
        for _ in range(r.choice((1, 1, 1, 2, 3, 8))):
            yield stalled


def cycle() -> int:
    """The number of the current clock cycle, for a 4 ns clock."""
    return int(cocotb.utils.get_sim_time("ns")) // 4


def high(signal) -> bool:
    """Whether a wire is high. Asks the simulator itself: cocotb's value objects take several times as long, in every cycle."""
    return signal._handle.get_signal_val_binstr() == "1"


def drives(signal) -> Callable[[int], None]:
    """A function that drives a wire nobody else drives; what stays as it is costs nothing."""
    now: int | None = None

    def drive(value: int) -> None:
        nonlocal now
        if value != now:
            signal.value = now = value

    return drive


class AxiMem:
    """An in-order AXI4 memory behind the signals `<prefix>_arvalid` ... of `dut`, exact to the cycle.

    The first beat of a read comes `latency` cycles after its address was accepted, the others and later bursts
    follow without a gap, up to `outstanding` bursts at once; the same for B after the last W beat. `stall` is
    the share of cycles in which each channel refuses. With `overtake` beats and responses of different ids mix.
    With `ordered`, the rule of a board's host port, a read is made once B of every write that was accepted whole
    before its address has been given. Write data is accepted behind its address only, with `early` also before. Addresses for which `fails(addr)`
    is true response SLVERR. Only what the shell sends: INCR, full-width beats. IDs are returned if the port has
    them. Every access is checked against 4 KiB and WLAST; a wrong one fails the test.

    `reads` and `writes` list (cycle, addr, beats) in the order of the addresses; `r_beats` and `w_beats` the
    cycle of every data beat. `open_reads` and `open_writes` count bursts taken and not yet answered in full.
    """

    def __init__(
        self,
        dut,
        prefix: str,
        *,
        latency: int = 1,
        stall: float = 0.0,
        outstanding: int = 256,
        size: int = 1 << 20,
        fails: Callable[[int], bool] = lambda addr: False,
        overtake: bool = False,
        early: bool = False,
        ordered: bool = False,
        r: random.Random | None = None,
    ) -> None:
        self._dut, self._prefix = dut, prefix
        self.mem = bytearray(size)
        self.latency, self.outstanding, self.fails = latency, outstanding, fails
        self._overtake, self._early, self._ordered = overtake, early, ordered
        self._taken = 0  # writes taken whole
        self._untold: set[int] = set()  # those of them whose B was not given yet, by their number
        r = r or rng()
        self._r = r
        self.set_stall(stall)
        self.reads: list[tuple[int, int, int]] = []
        self.writes: list[tuple[int, int, int]] = []
        self.r_beats: list[int] = []
        self.w_beats: list[int] = []
        self.open_reads = self.open_writes = 0
        self._width = len(self._sig("rdata")) // 8
        self._has_id = hasattr(dut, f"{prefix}_arid")
        self._tasks = [cocotb.start_soon(self._read()), cocotb.start_soon(self._write())]

    def set_stall(self, stall: float) -> None:
        """From now on each channel refuses in this share of cycles."""
        self._stall = [stalls(random.Random(self._r.getrandbits(32)), stall) for _ in range(5)]

    def end(self) -> None:
        """Stops the model, so that another may take its place."""
        for task in self._tasks:
            task.cancel()

    def _sig(self, name: str):
        return getattr(self._dut, f"{self._prefix}_{name}")

    def _accept(self, kind: str) -> tuple[int, int, int]:
        addr = int(self._sig(f"{kind}addr").value)
        beats = int(self._sig(f"{kind}len").value) + 1
        ident = int(self._sig(f"{kind}id").value) if self._has_id else 0
        width = self._width
        assert addr % width == 0, f"{self._prefix}: misaligned {kind} {addr:#x}"
        assert addr // 4096 == (addr + beats * width - 1) // 4096, (
            f"{self._prefix}: {kind} {addr:#x}+{beats} crosses 4 KiB"
        )
        return addr, beats, ident

    def _next(self, queue: deque, ident: int):
        """Takes the first entry, or with `overtake` the first of any id; `ident` is the place of the id."""
        if self._overtake and len(queue) > 1:
            pick = self._r.choice(sorted({x[ident] for x in queue}))
            at = next(i for i, x in enumerate(queue) if x[ident] == pick)
            queue.rotate(-at)
            first = queue.popleft()
            queue.rotate(at)
            return first
        return queue.popleft()

    def _at(self, addr: int) -> int:
        return addr % len(self.mem)

    async def _read(self) -> None:
        arvalid, arready, rvalid, rready = (self._sig(s) for s in ("arvalid", "arready", "rvalid", "rready"))
        rdata, rresp, rlast = (self._sig(s) for s in ("rdata", "rresp", "rlast"))
        # due cycle, address, beats left, id, writes taken before it
        queue: deque[tuple[int, int, int, int, int]] = deque()
        rst, set_arready, set_rvalid = cocotb.top.rst_ni, drives(arready), drives(rvalid)
        set_arready(0)
        set_rvalid(0)
        ar_up = r_up = False
        edge = RisingEdge(cocotb.top.clk_i)  # a copy of it below the top changes after the registers
        now = 0
        while True:
            await edge
            now += 1
            if not high(rst):
                continue
            if ar_up and high(arvalid):
                addr, beats, ident = self._accept("ar")
                self.reads.append((cycle(), addr, beats))
                self.open_reads += 1
                queue.append((now + self.latency, addr, beats, ident, self._taken))
            if r_up and high(rready):
                self.r_beats.append(cycle())
                self.open_reads -= high(rlast)
                r_up = False
            if not r_up:
                entry = None
                if queue and queue[0][0] <= now + 1 and not next(self._stall[0]):
                    entry = self._next(queue, 3)
                    if self._ordered and any(number < entry[4] for number in self._untold):
                        queue.appendleft(entry)
                        entry = None
                if entry:
                    due, addr, beats, ident, behind = entry
                    at = self._at(addr)
                    rdata.value = int.from_bytes(self.mem[at : at + self._width], "little")
                    rresp.value = 2 if self.fails(addr) else 0
                    rlast.value = beats == 1
                    if self._has_id:
                        self._sig("rid").value = ident
                    if beats > 1:
                        queue.appendleft((due, addr + self._width, beats - 1, ident, behind))
                    r_up = True
                set_rvalid(r_up)
            ar_up = len(queue) < self.outstanding and not next(self._stall[1])
            set_arready(ar_up)

    async def _write(self) -> None:
        awvalid, awready, wvalid, wready = (self._sig(s) for s in ("awvalid", "awready", "wvalid", "wready"))
        wdata, wstrb, wlast = (self._sig(s) for s in ("wdata", "wstrb", "wlast"))
        bvalid, bready, bresp = (self._sig(s) for s in ("bvalid", "bready", "bresp"))
        bursts: deque[list] = deque()  # address, beats left, id, failed
        data: deque[tuple[int, int, int]] = deque()
        responses: deque[tuple[int, int, bool, int]] = deque()  # due cycle, id, failed, number
        rst = cocotb.top.rst_ni
        set_awready, set_wready, set_bvalid = drives(awready), drives(wready), drives(bvalid)
        set_awready(0)
        set_wready(0)
        set_bvalid(0)
        aw_up = w_up = b_up = False
        edge = RisingEdge(cocotb.top.clk_i)  # a copy of it below the top changes after the registers
        now = 0
        while True:
            await edge
            now += 1
            if not high(rst):
                continue
            if aw_up and high(awvalid):
                addr, beats, ident = self._accept("aw")
                self.writes.append((cycle(), addr, beats))
                self.open_writes += 1
                bursts.append([addr, beats, ident, False])
            if w_up and high(wvalid):
                self.w_beats.append(cycle())
                data.append((int(wdata.value), int(wstrb.value), int(wlast.value)))
            while bursts and data:
                burst = bursts[0]
                word, strb, last = data.popleft()
                self._store(burst[0], word, strb)
                burst[3] |= self.fails(burst[0])
                assert last == (burst[1] == 1), f"{self._prefix}: WLAST at {burst[0]:#x}, {burst[1]} left"
                burst[0] += self._width
                burst[1] -= 1
                if burst[1] == 0:
                    responses.append((now + self.latency, burst[2], burst[3], self._taken))
                    self._untold.add(self._taken)
                    self._taken += 1
                    bursts.popleft()
            if b_up and high(bready):
                self.open_writes -= 1
                b_up = False
            if not b_up:
                if responses and responses[0][0] <= now + 1 and not next(self._stall[2]):
                    _, ident, failed, number = self._next(responses, 1)
                    self._untold.remove(number)
                    bresp.value = 2 if failed else 0
                    if self._has_id:
                        self._sig("bid").value = ident
                    b_up = True
                set_bvalid(b_up)
            aw_up = len(bursts) + len(responses) < self.outstanding and not next(self._stall[3])
            set_awready(aw_up)
            w_up = (bool(bursts) or (self._early and len(data) < 16)) and not next(self._stall[4])
            set_wready(w_up)

    def _store(self, addr: int, data: int, strb: int) -> None:
        at = self._at(addr)
        raw = data.to_bytes(self._width, "little")
        if self.fails(addr):
            return
        if strb == (1 << self._width) - 1:
            self.mem[at : at + self._width] = raw
            return
        for i in range(self._width):
            if strb >> i & 1:
                self.mem[at + i] = raw[i]


class AxiRaw:
    """An AXI4 manager exact to the cycle, that sends what it is given, right or wrong.

    Append to `ar` and `aw` tuples (id, addr, len, size, burst) as `ax` makes them, to `w` (data, strb, last).
    `r` lists (cycle, id, resp, last, data) and `b` (cycle, id, resp), `taken` the cycles at which addresses
    and data were accepted. `stall` is the share of cycles in which each channel pauses. A name in `drop` lets
    that channel break the handshake: its valid falls before ready, now and then. So does a function in `change`: in
    every cycle in which an entry of that channel waits it makes another one of it.
    """

    def __init__(
        self, dut, prefix: str = "axi", *, stall: float = 0.0, r: random.Random | None = None
    ) -> None:
        self._dut, self._prefix = dut, prefix
        self._r = r or rng()
        self.ar: deque[tuple[int, ...]] = deque()
        self.aw: deque[tuple[int, ...]] = deque()
        self.w: deque[tuple[int, int, int]] = deque()
        self.r: list[tuple[int, int, int, int, int]] = []
        self.b: list[tuple[int, int, int]] = []
        self.taken: dict[str, list[int]] = {"ar": [], "aw": [], "w": []}
        self.stall = {
            name: stalls(random.Random(self._r.getrandbits(32)), stall)
            for name in ("ar", "aw", "w", "r", "b")
        }
        self.drop: set[str] = set()
        self.change: dict[str, Callable[[tuple], tuple]] = {}
        self.width = len(self._sig("wdata")) // 8
        self.size = self.width.bit_length() - 1
        self._up = dict.fromkeys(("ar", "aw", "w"), False)
        for name in ("arvalid", "awvalid", "wvalid", "rready", "bready"):
            self._sig(name).value = 0
        self._task = cocotb.start_soon(self._run())

    def ax(self, addr: int, beats: int = 1, ident: int = 0) -> tuple[int, ...]:
        return ident, addr, beats - 1, self.size, 1

    def read(self, addr: int, beats: int = 1, ident: int = 0) -> None:
        self.ar.append(self.ax(addr, beats, ident))

    def write(self, addr: int, data: list[int], ident: int = 0, strb: int | None = None) -> None:
        self.aw.append(self.ax(addr, len(data), ident))
        full = (1 << self.width) - 1 if strb is None else strb
        self.w.extend((d, full, int(i == len(data) - 1)) for i, d in enumerate(data))

    def clear(self) -> None:
        """Forgets what was not sent; lowers every valid at the next edge, handshake or not."""
        for queue in (self.ar, self.aw, self.w):
            queue.clear()
        self._up = dict.fromkeys(self._up, False)

    def end(self) -> None:
        self._task.cancel()
        for name in ("arvalid", "awvalid", "wvalid"):
            self._sig(name).value = 0

    @property
    def idle(self) -> bool:
        return not (self.ar or self.aw or self.w)

    def _sig(self, name: str):
        return getattr(self._dut, f"{self._prefix}_{name}")

    async def _run(self) -> None:
        queues = {"ar": self.ar, "aw": self.aw, "w": self.w}
        set_valid = {name: drives(self._sig(f"{name}valid")) for name in queues}
        ready = {name: self._sig(f"{name}ready") for name in queues}
        fields = {
            name: [self._sig(name + f) for f in ("id", "addr", "len", "size", "burst")]
            for name in ("ar", "aw")
        }
        fields["w"] = [self._sig(name) for name in ("wdata", "wstrb", "wlast")]
        rvalid, rready, bvalid, bready = (self._sig(n) for n in ("rvalid", "rready", "bvalid", "bready"))
        set_rready, set_bready = drives(rready), drives(bready)
        r_fields = [self._sig(n) for n in ("rid", "rresp", "rlast", "rdata")]
        b_fields = [self._sig(n) for n in ("bid", "bresp")]
        up, r_up, b_up = self._up, False, False
        edge = RisingEdge(cocotb.top.clk_i)  # a copy of it below the top changes after the registers
        while True:
            await edge
            up = self._up
            for name, queue in queues.items():
                if up[name] and high(ready[name]):
                    queue.popleft()
                    self.taken[name].append(cycle())
                    up[name] = False
                elif up[name] and name in self.drop and self._r.random() < 0.3:
                    up[name] = False
                    set_valid[name](0)
                    continue
                elif up[name] and name in self.change:
                    queue[0] = self.change[name](queue[0])
                    for field, value in zip(fields[name], queue[0], strict=True):
                        field.value = value
                if not up[name] and queue and not next(self.stall[name]):
                    for field, value in zip(fields[name], queue[0], strict=True):
                        field.value = value
                    up[name] = True
                set_valid[name](up[name])
            if r_up and high(rvalid):
                self.r.append((cycle(), *(int(f.value) for f in r_fields)))
            if b_up and high(bvalid):
                self.b.append((cycle(), *(int(f.value) for f in b_fields)))
            r_up, b_up = not next(self.stall["r"]), not next(self.stall["b"])
            set_rready(r_up)
            set_bready(b_up)


async def until(dut, condition: Callable[[], bool], limit: int = 2000, what: str = "") -> None:
    """Waits for `condition()` at most `limit` cycles."""
    edge = RisingEdge(dut.clk_i)
    for _ in range(limit):
        if condition():
            return
        await edge
    raise AssertionError(f"not within {limit} cycles: {what or 'condition'}")
