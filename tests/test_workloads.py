# SPDX-License-Identifier: Apache-2.0
"""The workloads of the FSRF paper (its Table 1) that are apps, on the card through the command line, each checked."""

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import scipy.io

ROOT = Path(__file__).resolve().parents[1]


def write(path: Path, size: int) -> Path:
    path.write_bytes(hashlib.shake_256(path.name.encode()).digest(size))
    return path


def run(app: str, *args: object) -> dict:
    """The report of a run whose results equal the golden model's."""
    command = [str(ROOT / "viaduct"), "run", app, *map(str, args), "--check", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["check"]["ok"], report
    report["registers"] = {name: int(value, 16) for name, value in report["registers"].items()}
    return report


def test_gups_updates_a_table(tmp_path: Path):
    table = write(tmp_path / "table", 40_000)
    before = table.read_bytes()
    report = run("gups", "--out", f"mem=file:{table}", "--set", "updates=5000")
    assert table.read_bytes() != before and table.read_bytes()[32_768:] == before[32_768:]
    assert report["registers"]["errors"] == 0 and report["registers"]["done"] == 1


def test_gups_without_a_seed_says_so_in_its_registers(tmp_path: Path):
    table = write(tmp_path / "table", 4096)
    before = table.read_bytes()
    report = run("gups", "--out", f"mem=file:{table}", "--set", "seed=0")
    assert table.read_bytes() == before and report["registers"]["errors"] == 1


def test_hll_counts_different_items(tmp_path: Path, golden: Callable[[str], ModuleType]):
    items = np.random.default_rng(1).permutation(300_000)[:90_000].astype("<u4")
    source, sketch = tmp_path / "items", tmp_path / "sketch"
    source.write_bytes(items.tobytes() + items[:30_000].tobytes())
    report = run("hll", "--in", f"file:{source}", "--out", f"file:{sketch}", "--set", "seed=5")
    registers = report["registers"]
    assert registers["items"] == 120_000
    model = golden("hll")
    estimate = model.estimate(registers["zeros"], registers["full"], registers["sum"] / 2**17)
    # Three standard errors.
    assert abs(estimate / 90_000 - 1) < 3 * 1.04 / 256
    assert round(estimate) == round(model.count(np.frombuffer(sketch.read_bytes(), np.uint8)))


def test_conv_smooths_an_image(tmp_path: Path):
    image, out = write(tmp_path / "image", 640 * 200), tmp_path / "out"
    report = run("conv", "--in", f"file:{image}", "--out", f"file:{out}", "--set", "width=640")
    assert report["registers"]["errors"] == 0 and out.stat().st_size == 640 * 200
    # Smoothing takes the noise out: each pixel becomes a mean of nine.
    before, after = (np.frombuffer(path.read_bytes(), np.uint8) for path in (image, out))
    assert after.std() < 0.5 * before.std()


def test_conv_with_a_wrong_width_says_so_in_its_registers(tmp_path: Path):
    image, out = write(tmp_path / "image", 5000), tmp_path / "out"
    report = run("conv", "--in", f"file:{image}", "--out", f"file:{out}", "--set", "width=100")
    assert report["registers"]["errors"] == 1 and out.read_bytes() == bytes(5000)


def test_md5_of_many_files_is_as_md5sum_prints(tmp_path: Path):
    files = [write(tmp_path / f"file{n}", 1 + 997 * n) for n in range(20)]
    command = [str(ROOT / "viaduct"), "run", "md5", *(f"--in=file:{path}" for path in files), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout == subprocess.run(["md5sum", *files], capture_output=True, text=True, check=True).stdout
    )


def test_keccak_of_many_files_is_as_openssl_prints(tmp_path: Path):
    files = [write(tmp_path / f"file{n}", 1 + 1361 * n) for n in range(6)]
    command = [str(ROOT / "viaduct"), "run", "keccak", *(f"--in=file:{path}" for path in files), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    openssl = subprocess.run(["openssl", "dgst", "-sha3-256", "-r", *files], capture_output=True, text=True)
    assert done.stdout.split() == openssl.stdout.replace("*", "").split()


def test_gzip_makes_a_file_that_gzip_reads(tmp_path: Path):
    out = tmp_path / "out.gz"
    for source in (ROOT / "CHANGELOG.md", write(tmp_path / "noise", 5000)):
        report = run("gzip", "--in", f"file:{source}", "--out", f"file:{out}")
        assert gzip.decompress(out.read_bytes()) == source.read_bytes()
        assert report["bytes_out"] == out.stat().st_size
        # A byte a cycle, and the start of a run.
        assert report["cycles"] < source.stat().st_size + 15_000


def test_sha_hls_from_its_generator_is_as_sha256sum_prints(tmp_path: Path):
    files = [write(tmp_path / f"file{n}", 1 + 4321 * n) for n in range(3)]
    for path in files:
        command = [str(ROOT / "viaduct"), "run", "sha_hls", f"--in=file:{path}", "--check"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        assert hashlib.sha256(path.read_bytes()).hexdigest() in done.stdout


def test_nw_scores_pairs_of_blocks(tmp_path: Path):
    strings = write(tmp_path / "strings", 20_000)
    before = strings.read_bytes()
    report = run("nw", "--out", f"mem=file:{strings}", "--set", "rows=70", "--set", "cols=128")
    assert report["registers"]["errors"] == 0
    after, at = strings.read_bytes(), 2048 + 16 * 128
    assert (after[:at], after[at + 70 * 128 :]) == (before[:at], before[at + 70 * 128 :])
    # Of random bases: scores around 1, none near 64.
    found = np.frombuffer(after[at : at + 70 * 128], np.int8)
    assert abs(found.mean()) < 5 and np.abs(found).max() < 30


def test_nw_in_a_memory_that_is_too_short_says_so_in_its_registers(tmp_path: Path):
    strings = write(tmp_path / "strings", 2000)
    report = run("nw", "--out", f"mem=file:{strings}")
    assert report["registers"]["errors"] == 1


def test_matmul_multiplies_what_numpy_wrote(tmp_path: Path):
    random = np.random.default_rng(5)
    a, b = (random.integers(-128, 128, size, np.int8) for size in ((80, 192), (192, 128)))
    memory, at = tmp_path / "memory", a.size + b.size
    memory.write_bytes(a.tobytes() + b.tobytes() + bytes(4 * 80 * 128))
    sizes = [f"--set={name}={value}" for name, value in (("rows", 80), ("inner", 192), ("cols", 128))]
    report = run("matmul", "--out", f"mem=file:{memory}", *sizes)
    assert report["registers"]["errors"] == 0
    product = np.frombuffer(memory.read_bytes()[at:], "<i4").reshape(80, 128)
    assert np.array_equal(product, a.astype(np.int32) @ b.astype(np.int32))


def test_pgrnk_ranks_the_vertices_of_a_matrix_market_file(tmp_path: Path):
    web = nx.gnp_random_graph(400, 0.01, seed=4, directed=True)
    scipy.io.mmwrite(tmp_path / "web.mtx", nx.to_scipy_sparse_array(web))
    memory, tool = tmp_path / "memory", [sys.executable, str(ROOT / "apps/pgrnk/matrix.py")]
    pack = [*tool, "pack", str(tmp_path / "web.mtx"), str(memory), "--iterations=30"]
    options = subprocess.run(pack, capture_output=True, text=True, check=True).stdout.split()
    report = run("pgrnk", "--out", f"mem=file:{memory}", *options)
    assert report["registers"]["errors"] == 0
    ranks = [*tool, "ranks", str(memory), *options]
    found = subprocess.run(ranks, capture_output=True, text=True, check=True).stdout.split()
    want = nx.pagerank(web, tol=1e-12, max_iter=200)
    assert np.abs(np.array(found, float) - [want[v] for v in web]).max() * len(web) < 1e-3


def test_pgrnk_with_a_wrong_graph_says_so_in_its_registers(tmp_path: Path):
    memory = write(tmp_path / "memory", 5000)
    report = run("pgrnk", "--out", f"mem=file:{memory}", "--set", "vertices=50", "--set", "edges=100")
    assert report["registers"]["errors"] > 50 and report["registers"]["done"] == 1


def test_tri_counts_the_triangles_of_a_graph(tmp_path: Path, golden: Callable[[str], ModuleType]):
    graph = nx.gnm_random_graph(500, 5000, seed=2)
    memory = tmp_path / "graph"
    memory.write_bytes(golden("tri").pack(len(graph), graph.edges))
    report = run("tri", "--in", f"mem=file:{memory}")
    assert report["registers"]["triangles"] == sum(1 for _ in nx.all_triangles(graph))
    assert report["registers"]["errors"] == 0


def test_tri_in_a_file_that_is_no_graph_says_so_in_its_registers(tmp_path: Path):
    report = run("tri", "--in", f"mem=file:{write(tmp_path / 'noise', 3000)}")
    assert report["registers"]["errors"] > 40 and report["registers"]["done"] == 1


def test_dnn_classifies_images(tmp_path: Path, golden: Callable[[str], ModuleType]):
    model, r = golden("dnn"), np.random.default_rng(5)
    # Class n: a bright square at the n-th of four by four places.
    net = model.from_lines(bytes(64 * model.WEIGHTS))
    net.conv1[0], net.conv2[0, 0, 0, 0] = 10, 256
    for n in range(10):
        net.full1[n, 50 * n], net.full2[n, n] = 256, 256
    images, classes = r.integers(0, 100, (3, 28, 28)), [7, 0, 4]
    for image, n in zip(images, classes, strict=True):
        image[4 * (n // 4) :, 4 * (n % 4) :][:8, :8] += 1000
    memory = tmp_path / "memory"
    memory.write_bytes(model.pack(net, images))
    report = run("dnn", "--out", f"mem=file:{memory}", "--set", "images=3", "--set", "fraction=8")
    assert report["registers"]["errors"] == 0
    assert model.unpack(memory.read_bytes(), 3)[1].tolist() == classes


def test_dnn_without_room_for_its_weights_says_so_in_its_registers(tmp_path: Path):
    report = run("dnn", "--out", f"mem=file:{write(tmp_path / 'memory', 90_000)}")
    assert report["registers"]["errors"] == 1


def test_flow_finds_the_movement_of_a_picture(tmp_path: Path):
    y, x, t = np.meshgrid(np.arange(90), np.arange(128), np.arange(-2, 3), indexing="ij")
    x, y = x - 0.75 * t, y + 0.5 * t
    picture = 128 + 40 * np.sin(0.3 * x + 0.1 * y) + 40 * np.sin(0.4 * y - 0.2 * x)
    frames, out = tmp_path / "frames", tmp_path / "out"
    frames.write_bytes(np.pad(picture.astype(np.uint8), ((0, 0), (0, 0), (0, 3))).tobytes())
    report = run("flow", "--in", f"file:{frames}", "--out", f"file:{out}", "--set", "width=128")
    assert report["registers"]["errors"] == 0
    found = np.frombuffer(out.read_bytes(), "<i4").reshape(90, 128, 2) / 256
    assert np.abs(np.median(found[8:-8, 8:-8], axis=(0, 1)) - (0.75, -0.5)).max() < 0.05
