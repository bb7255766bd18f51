# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import numpy as np

import viaduct

key, iv, source, target = sys.argv[1:]
data = np.fromfile(source, np.uint8)
with viaduct.open("sim") as card, card.load("aes") as slot:
    slot.set(key=key, iv=bytes.fromhex(iv))
    cipher = slot.run(data, progress=lambda p: print(p.bytes_in, "of", p.total_in, "bytes", file=sys.stderr))
    report = slot.report
    cipher.tofile(target)

    # The same from file to file, without arrays; counter mode undoes itself.
    back = Path(target + ".back")
    slot.transfer({"in": Path(target)}, {"out": back})
    assert back.read_bytes() == data.tobytes()
    back.unlink()
print(report.bytes_out, "bytes,", report.cycles, "cycles")
