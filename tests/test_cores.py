# SPDX-License-Identifier: Apache-2.0
"""The core files of rtl/: they agree with the sources, and an external project can use blocks through them alone."""

import graphlib
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from pyslang import DiagnosticEngine
from pyslang.driver import Driver  # pyright: ignore[reportMissingModuleSource]

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv/bin"
RTL = sorted(ROOT.glob("rtl/*/*.sv"))
PATHS = sorted([*ROOT.glob("rtl/*/*.core"), *ROOT.glob("tools/*.core")])
CORES = {path.stem: yaml.safe_load(path.read_text()) for path in PATHS}
BLOCKS = {path.stem: CORES[path.stem] for path in PATHS if path.parent.parent.name == "rtl"}
# Register blocks are generated when a project is set up.
REGS = set(re.findall(r"^addrmap (via_\w+)", (ROOT / "rtl/regs/viaduct.rdl").read_text(), re.M))


def files(core: str) -> list[str]:
    """The files of a core, in its order."""
    return [name for fileset in CORES[core]["filesets"].values() for name in fileset.get("files", [])]


def depends(core: str, fileset: str) -> list[str]:
    """The cores that a fileset depends on."""
    return CORES[core]["filesets"][fileset].get("depend", [])


OWNER = {Path(name).stem: core for core in BLOCKS for name in files(core)}


def needs(core: str) -> set[str]:
    """The cores whose packages and modules the files of a core name."""
    found: set[str] = set()
    for path in (p for p in RTL if OWNER[p.stem] == core):
        for word in re.findall(r"\bvia_\w+", re.sub(r'//.*|"[^"]*"', "", path.read_text())):
            if word in OWNER:
                found.add(OWNER[word])
            elif re.sub(r"_pkg$|__\w+$", "", word) in REGS:
                found.add("regs")
    return found - {core}


def index(core: str) -> str:
    """The description of a core's blocks in rtl/README.md."""
    if core == "virtio_pkg":
        return "types and constants of the virtio functions"
    rows = re.findall(
        r"^\| (?:`(\w+)`)? ?\| (?:`(\w+)`)?.*? ?\| ([^|]*) \|", (ROOT / "rtl/README.md").read_text(), re.M
    )
    return "; ".join(what for folder, block, what in rows if OWNER.get(block, folder) == core)


def test_every_file_is_in_one_core():
    listed = sorted(path.parent / name for path in PATHS if path.stem in BLOCKS for name in files(path.stem))
    assert listed == RTL


@pytest.mark.parametrize("core", BLOCKS)
def test_a_core_says_what_its_sources_say(core: str):
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert CORES[core]["name"] == f"viaduct:rtl:{core}:{version}"
    assert CORES[core]["description"] == index(core)
    # Packages before the modules that import them.
    listed = files(core)
    assert listed == sorted(listed, key=lambda name: (not name.endswith("_pkg.sv"), name))
    macros = [
        m
        for p in RTL
        if OWNER[p.stem] == core
        for m in re.findall(r"^`ifndef (VIA_\w+)", p.read_text(), re.M)
    ]
    assert list(CORES[core].get("parameters", {})) == macros
    for target in CORES[core]["targets"].values():
        assert target.get("parameters", []) == macros
        assert OWNER.get(target.get("toplevel"), core) == core


@pytest.mark.parametrize("core", BLOCKS)
def test_a_core_depends_on_what_its_sources_name(core: str):
    version = CORES[core]["name"].rpartition(":")[2]
    named = {f"viaduct:rtl:{name}:{version}" for name in needs(core)}
    named |= {f"viaduct:tools:gen_regs:{version}"} if core == "regs" else set()
    assert sorted(depends(core, "rtl")) == sorted(named)
    if "lint" in CORES[core]["targets"]:
        assert depends(core, "lint") == [f"viaduct:tools:lint:{version}"]


def test_no_core_depends_on_itself():
    assert {*graphlib.TopologicalSorter({core: needs(core) for core in BLOCKS}).static_order()} == {*BLOCKS}


def test_the_index_names_the_versions_tested():
    pins = set((ROOT / "tools/requirements.txt").read_text().splitlines())
    named = set(re.findall(r"\S+==\S+", (ROOT / "rtl/README.md").read_text()))
    assert named and named <= pins


# ---------------------------------------------------------------- a project outside
READER = """
// Two ranges of memory, read through one port and given out as streams of their own.
module my_reader
  import via_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  cmd_t          cmd_i       [2],
  input  logic    [1:0] cmd_valid_i,
  output logic    [1:0] cmd_ready_o,
  output axi_ax_t       ar_o,
  output logic          ar_valid_o,
  input  logic          ar_ready_i,
  input  axi_r_t        r_i,
  input  logic          r_valid_i,
  output logic          r_ready_o,
  output strm_t         strm_o      [2],
  output logic    [1:0] strm_valid_o,
  input  logic    [1:0] strm_ready_i
);
  axi_ax_t ar[2];
  axi_r_t r[2];
  logic [1:0] ar_valid, ar_ready, r_valid, r_ready;

  for (genvar i = 0; i < 2; i++) begin : gen_reader
    strm_t in, behind;
    logic in_valid, in_ready, behind_valid, behind_ready;
    via_mover_in u_mover (
      .clk_i, .rst_ni,
      .cmd_i(cmd_i[i]), .cmd_valid_i(cmd_valid_i[i]), .cmd_ready_o(cmd_ready_o[i]),
      .cpl_o(), .cpl_valid_o(), .cpl_ready_i(1'b1),
      .m_ar_o(ar[i]), .m_ar_valid_o(ar_valid[i]), .m_ar_ready_i(ar_ready[i]),
      .m_r_i(r[i]), .m_r_valid_i(r_valid[i]), .m_r_ready_o(r_ready[i]),
      .strm_o(in), .strm_valid_o(in_valid), .strm_ready_i(in_ready),
      .abort_i(1'b0), .still_o(), .idle_o()
    );
    via_fifo #(.T(strm_t), .Depth(32), .Ram(1'b1)) u_fifo (
      .clk_i, .rst_ni, .flush_i(1'b0), .count_o(),
      .s_i(in), .s_valid_i(in_valid), .s_ready_o(in_ready),
      .m_o(behind), .m_valid_o(behind_valid), .m_ready_i(behind_ready)
    );
    via_slice #(.T(strm_t)) u_slice (
      .clk_i, .rst_ni,
      .s_i(behind), .s_valid_i(behind_valid), .s_ready_o(behind_ready),
      .m_o(strm_o[i]), .m_valid_o(strm_valid_o[i]), .m_ready_i(strm_ready_i[i])
    );
  end

  axi_ax_t no_aw[1];
  axi_w_t no_w[1];
  assign no_aw = '{default: '0};
  assign no_w = '{default: '0};
  via_axi_mux #(.NumRd(2), .NumWr(1), .NumFirst(0)) u_mux (
    .clk_i, .rst_ni,
    .weight_i('{default: '0}), .first_i('{default: '0}), .share_i('0), .window_i('0),
    .s_ar_i(ar), .s_ar_valid_i(ar_valid), .s_ar_ready_o(ar_ready),
    .s_r_o(r), .s_r_valid_o(r_valid), .s_r_ready_i(r_ready),
    .s_aw_i(no_aw), .s_aw_valid_i(1'b0), .s_aw_ready_o(),
    .s_w_i(no_w), .s_w_valid_i(1'b0), .s_w_ready_o(),
    .s_b_o(), .s_b_valid_o(), .s_b_ready_i(1'b1),
    .m_ar_o(ar_o), .m_ar_valid_o(ar_valid_o), .m_ar_ready_i(ar_ready_i),
    .m_r_i(r_i), .m_r_valid_i(r_valid_i), .m_r_ready_o(r_ready_o),
    .m_aw_o(), .m_aw_valid_o(), .m_aw_ready_i(1'b0),
    .m_w_o(), .m_w_valid_o(), .m_w_ready_i(1'b0),
    .m_b_i('0), .m_b_valid_i(1'b0), .m_b_ready_o(),
    .still_o(), .idle_o()
  );
endmodule
"""
CORE = """CAPI=2:
name: me:my:{name}
filesets:
  rtl:
    depend: [{depend}]
    files: [{name}.sv]
    file_type: systemVerilogSource
targets:
  lint:
    filesets: [rtl]
    parameters: [VIA_DATA_W=64]
    toplevel: {name}
    flow: lint
    flow_options: {{tool: verilator, verilator_options: [-Wall]}}
"""


def around(block: str) -> str:
    """A design with only one block, with the block's ports."""
    text = next(p for p in RTL if p.stem == block).read_text()
    header = re.search(rf"^module {block}\b(.*?)(?:#\(.*?\n\) )?(\(\n.*?\n\);)", text, re.M | re.S)
    assert header
    return f"module my_{block}{header[1]}{header[2]}\n  {block} u_block (.*);\nendmodule\n"


class Project:
    """An external project, with a copy of this tree as its library, in which nothing was built."""

    def __init__(self, folder: Path):
        self.folder = folder / "project"
        self.library = folder / "viaduct"
        self.folder.mkdir()
        for part in ("rtl", "tools"):
            shutil.copytree(ROOT / part, self.library / part, ignore=shutil.ignore_patterns("__pycache__"))
        self.before = self.tree()
        self.fusesoc("library", "add", "viaduct", str(self.library))
        self.fusesoc("library", "add", "project", ".")

    def tree(self) -> dict[Path, float]:
        """All files of the library with their times."""
        return {p: p.stat().st_mtime for p in self.library.rglob("*")}

    def fusesoc(self, *command: str, fails: bool = False) -> str:
        """FuseSoC's output; it fails only where that is expected."""
        own = {f"XDG_{kind}_HOME": str(self.folder) for kind in ("CONFIG", "CACHE", "DATA")}
        done = subprocess.run(
            [BIN / "fusesoc", *command],
            cwd=self.folder,
            env=os.environ | own | {"PATH": f"{BIN}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, said
        return said

    def lint(self, name: str, text: str, *depend: str, fails: bool = False) -> str:
        """Verilator's verdict on a design of this project."""
        (self.folder / f"{name}.sv").write_text(text)
        (self.folder / f"{name}.core").write_text(CORE.format(name=name, depend=", ".join(depend)))
        return self.fusesoc("run", "--target=lint", f"me:my:{name}", fails=fails)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("cores"))


def test_a_project_takes_blocks_and_sets_their_width(project: Project):
    blocks = ["viaduct:rtl:common", "viaduct:rtl:mem", "viaduct:rtl:mover", "viaduct:tools:lint"]
    assert "%Warning" not in project.lint("my_reader", READER, *blocks)
    assert "-DVIA_DATA_W=64" in next(project.folder.glob("build/*my_reader*/lint/*.vc")).read_text().split()
    assert project.tree() == project.before
    assert "via_mover_in" in project.lint(
        "my_reader", READER, *(b for b in blocks if "mover" not in b), fails=True
    )


def test_a_project_gets_the_registers_made(project: Project):
    said = project.lint("my_via_csr", around("via_csr"), "viaduct:rtl:host", "viaduct:tools:lint")
    assert "%Warning" not in said
    assert project.tree() == project.before


def test_the_shell_brings_the_whole_card_in_order(project: Project):
    project.fusesoc("run", "--target=lint", "--setup", "viaduct:rtl:shell", "--VIA_NUM_SLOTS=2")
    work = next(project.folder.glob("build/*shell*/lint"))
    words = next(work.glob("*.vc")).read_text().split()
    listed = [str(work / word) for word in words if word.endswith(".sv")]
    defines = [word for word in words if word.startswith("-D")]
    assert defines == ["-DVIA_NUM_SLOTS=2"]
    assert not any("checker" in file for file in listed)
    driver = Driver()
    driver.addStandardArgs()
    assert driver.parseCommandLine(" ".join(["slang", "--top", "via_shell", *defines, *listed]))
    assert driver.processOptions() and driver.parseAllSources()
    errors = [d for d in driver.createCompilation().getAllDiagnostics() if d.isError()]
    assert not errors, DiagnosticEngine.reportAll(driver.sourceManager, errors)
