"""Ports that are free."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(
    count: int = 1, *, step: int = 1, kind: socket.SocketKind = socket.SOCK_DGRAM, least: int = 1
) -> int:
    """Return the first of some free ports, by default of UDP.

    Args:
        count: How many.
        step: From one to the next.
        kind: UDP or TCP.
        least: The first one is at least so high.
    """
    while True:
        with ExitStack() as stack:
            probes = [stack.enter_context(socket.socket(type=kind)) for _ in range(count)]
            probes[0].bind(("127.0.0.1", 0))
            port = int(probes[0].getsockname()[1])
            try:
                for i, probe in enumerate(probes[1:], 1):
                    probe.bind(("127.0.0.1", port + step * i))
            except (OSError, OverflowError):
                continue
            if port >= least:
                return port
