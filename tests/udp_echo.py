# SPDX-License-Identifier: Apache-2.0
"""A host that sends every UDP datagram back: `udp_echo.py ADDRESS PORT`, or `Echo` in a thread of its own."""

import socket
import sys
import threading


class Echo(threading.Thread):
    """Port 0: the system chooses one, which is in `port`."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, port))
        self.port: int = self.socket.getsockname()[1]

    def run(self) -> None:
        while True:
            data, sender = self.socket.recvfrom(1 << 16)
            self.socket.sendto(data, sender)


if __name__ == "__main__":
    Echo(sys.argv[1], int(sys.argv[2])).run()
