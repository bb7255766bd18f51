# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import numpy as np

import viaduct

path, updates = Path(sys.argv[1]), int(sys.argv[2])
with viaduct.open("sim") as card, card.load("gups") as slot, slot.map(path, write=True) as mapping:
    table = mapping.array.view(np.uint64)  # the bytes of the file, as this program sees them
    before = table.copy()
    mapping.madvise("random")
    loading = mapping.madvise_async("willneed")  # a concurrent.futures.Future
    slot.set(updates=updates)
    loading.result()
    report = slot.start_and_wait(mapping)
    mapping.sync(durable=True)  # what the app has written is in the file, and in `table`
    print(report.cycles, "cycles,", np.count_nonzero(table != before), "words changed")

    # The other way round: the program changes the file, and the app begins with that.
    table[:] = before
    mapping.sync(invalidate=True)
    slot.start_and_wait(mapping)
    print(slot.pager.pages_in, "pages loaded,", slot.pager.pages_out, "written")
