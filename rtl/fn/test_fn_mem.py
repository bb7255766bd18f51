# SPDX-License-Identifier: Apache-2.0
"""via_fn_mem: a disk whose store moves from slot to slot, and which is reset with bursts in flight."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles

from via_tb import AxiMem, AxiRaw, rng, run, start, until

SLOTS, WIDTH, SIZE, BEATS = 2, 8, 1 << 14, 4


class Bench:
    def __init__(self, dut, stall: float) -> None:
        self.dut, self.r = dut, rng()
        dut.core_rst.value = dut.store.value = 0
        self.mem = [
            AxiMem(dut.gen_slot[s].u_m, "axi", stall=stall, latency=9, size=SIZE, r=self.r, early=True)
            for s in range(SLOTS)
        ]
        for s, m in enumerate(self.mem):
            m.mem[:] = self.r.randbytes(SIZE)
            m.mem[0] = s
        # Data of a burst comes without a pause, as docs/interfaces.md demands (No deadlocks).
        self.disk = AxiRaw(dut.u_s, r=self.r)

    async def burst(self, slot: int, n: int) -> None:
        """Reads and writes, all of which are answered by the right slot."""
        r, disk, mem = self.r, self.disk, self.mem[slot].mem
        disk.r.clear()
        disk.b.clear()
        reads = [r.randrange(SIZE // 2 // 32) * 32 for _ in range(n)]
        writes = {SIZE // 2 + i * 32: [r.getrandbits(64) for _ in range(BEATS)] for i in range(n)}
        for addr in reads:
            disk.read(addr, BEATS)
        for addr, words in writes.items():
            disk.write(addr, words)
        await until(self.dut, lambda: len(disk.r) == BEATS * n and len(disk.b) == n, 3000, f"slot {slot}")
        words = [
            int.from_bytes(mem[a + 8 * i : a + 8 * i + 8], "little") for a in reads for i in range(BEATS)
        ]
        assert [x[4] for x in disk.r] == words and not any(x[2] for x in disk.r + disk.b)
        for addr, words in writes.items():
            assert mem[addr : addr + 32] == b"".join(w.to_bytes(8, "little") for w in words)


@cocotb.test(timeout_time=500, timeout_unit="us")
async def the_store_moves_when_nothing_is_in_flight(dut):
    b = Bench(dut, 0.2)
    await start(dut)
    slot = 0
    for store in (0, 1, 0, 1, 1, SLOTS, 0, 15, 1):
        dut.store.value = store
        slot = store if store < SLOTS else slot
        await b.burst(slot, 12)
        # The next change comes amid reads: they end where they began.
        b.disk.r.clear()
        b.disk.read(64, BEATS)
        await ClockCycles(dut.clk_i, b.r.randrange(2, 12))
        expect = b.mem[slot].mem[64:72]
        dut.store.value = 1 - slot
        await until(dut, lambda: len(b.disk.r) == BEATS, 200)
        other = b.mem[1 - slot].mem[64:72]
        assert b.disk.r[0][4].to_bytes(8, "little") in (expect, other)
        dut.store.value = slot
        await ClockCycles(dut.clk_i, 20)
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def a_reset_leaves_nothing_behind(dut):
    b = Bench(dut, 0.3)
    await start(dut)
    for rnd in range(60):
        slot = b.r.randrange(SLOTS)
        dut.store.value = slot
        at = 0x1000 + rnd * 8 % 0x800
        before = [bytes(m.mem) for m in b.mem]
        for i in range(b.r.randrange(1, 12)):
            b.disk.read(i * 32, BEATS)
            b.disk.write(at, [0xABCD] * BEATS)
        await ClockCycles(dut.clk_i, b.r.randrange(1, 60))
        dut.core_rst.value = 1
        b.disk.clear()
        await ClockCycles(dut.clk_i, b.r.choice((1, 2, 30)))
        b.disk.clear()
        dut.core_rst.value = 0
        # At once the next life: its responses are its own, and it finds memory as it was but for what was written.
        await b.burst(slot, 4)
        await until(dut, lambda: int(dut.idle_o.value), 500, "idle")
        for s, m in enumerate(b.mem):
            changed = [a for a in range(0, SIZE // 2, 8) if m.mem[a : a + 8] != before[s][a : a + 8]]
            assert all(at <= a < at + 32 and m.mem[a] == 0xCD for a in changed), f"round {rnd}, slot {s}"
            assert not m.open_reads and not m.open_writes


@pytest.mark.parametrize("data_w", [64])
def test_via_fn_mem(data_w):
    run("via_fn_mem_tb", __file__, defines={"VIA_DATA_W": data_w, "VIA_NUM_SLOTS": SLOTS})
