# SPDX-License-Identifier: Apache-2.0
"""The system: host, link and card, and which data path goes where. `make drawings` draws it."""

from draw import MONO, Hue, Pen

SIZE = (860, 560)
TITLE = "Viaduct: host software, PCI functions, and what is in the card"


def draw(pen: Pen) -> None:
    """Host on top, card below; from left to right the XDMA driver's path, the program's, the stock drivers'."""
    # Panels.
    pen.box((10, 10), (840, 142), "panel", [], rx=10)
    pen.box((10, 226), (840, 324), "panel", [], rx=10)
    heading = {"text_anchor": "start", "font_weight": 600}
    pen.text((26, 34), "HOST", "panel", 13, **heading)
    pen.text((26, 194), "PCIe", "panel", 13, **heading)
    pen.text((26, 534), "CARD", "panel", 13, **heading)
    pen.text(
        (834, 534),
        "SystemVerilog, simulated cycle by cycle or synthesised for an FPGA",
        "panel",
        text_anchor="end",
    )
    for y, line in ((187, "in process, vfio-user"), (203, "or kernel VFIO")):
        pen.text((772, y), line, "panel")
    pen.text((333, 194), "data", "blue", text_anchor="start")
    pen.text((443, 194), "commands", "blue", text_anchor="start")

    # Paths; boxes lie over their ends.
    pen.arrow((97, 140), (97, 268), "purple")
    pen.arrow((245, 140), (245, 268), "blue")
    pen.arrow((325, 140), (325, 350), "blue")
    pen.arrow((435, 140), (435, 268), "blue", dashed=True)
    pen.arrow((690, 140), (690, 268), "orange")
    pen.arrow((150, 318), (150, 350), "purple")
    pen.arrow((245, 318), (245, 350), "blue")
    pen.arrow((480, 318), (480, 424), "blue", both=False, dashed=True)
    pen.arrow((625, 318), (625, 350), "orange")
    pen.arrow((690, 371), (730, 371), "orange")
    pen.arrow((105, 371), (134, 371), "grey")
    pen.arrow((290, 392), (290, 424), "grey")
    pen.arrow((625, 392), (625, 424), "orange")

    # Host.
    pen.box((30, 48), (135, 92), "purple", ["XDMA driver", "kernel/xdma"])
    pen.box((190, 24), (330, 48), "blue", ["Your program", "command line · Rust · C · Python"])
    pen.box((190, 88), (330, 52), "blue", ["Host library", "file: host: card: opened like files"])
    pen.box(
        (550, 24),
        (280, 116),
        "orange",
        ["Stock virtio drivers", "net · blk · console · rng · input", "of Linux, in the host or in a VM"],
    )
    # Functions.
    functions: list[tuple[int, int, Hue, str]] = [
        (30, 135, "purple", "function 6"),
        (190, 330, "blue", "PCI function 0"),
        (550, 280, "orange", "functions 1 to 5"),
    ]
    for x, width, hue, name in functions:
        pen.box((x, 216), (width, 22), hue, [], rx=11)
        pen.text((x + width / 2, 231), name, hue)
    # Card.
    pen.box((30, 268), (135, 50), "purple", ["XDMA engine"])
    pen.box((190, 268), (115, 50), "blue", ["DMA"])
    pen.box((345, 268), (175, 50), "blue", ["Queues", "commands · events"])
    pen.box((550, 268), (280, 50), "orange", ["Virtio functions", "a queue engine and a device each"])
    pen.box((30, 350), (75, 42), "grey", ["DRAM"])
    pen.box((134, 350), (306, 42), "grey", ["Crossbar"])
    pen.box((560, 350), (130, 42), "orange", ["Switch"])
    pen.box((730, 350), (100, 42), "grey", ["Ethernet", "UART"])
    pen.box((150, 424), (540, 36), "grey", ["Movers, MMU and guard of each slot"])
    for n, app in enumerate(("aes", "sha256", "udp_echo", "your app")):
        pen.box((150 + 137 * n, 466), (129, 44), "green", [app, f"slot {n}"])
    # Endpoints.
    for at, name in (((274, 338), "file:"), ((354, 338), "host:"), ((68, 410), "card:")):
        pen.text(at, name, "blue", font_family=MONO)
