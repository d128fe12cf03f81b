"""Lets a script live in simulated time, before its first line.

`begin` replaces Python's clocks, locks, threads, sockets and waits. The simulator starts the script
with this package on its path; nothing here needs more than Python's own library.
"""

from __future__ import annotations

import _socket
import importlib
import os
import random
import secrets
import sys
from _thread import allocate_lock
from typing import Any, NoReturn

from . import clocks, locks, threads
from .channel import Advance, ChannelReader, Message, Reached, ScriptSettings, request
from .descriptors import Descriptors
from .kernel import Kernel
from .locks import replace
from .outside import Outside
from .sockets import Sockets
from .watch import Watch


class SimulatorConnection:
    """The connection to the simulator.

    Args:
        path: Of its Unix socket.
    """

    def __init__(self, path: str) -> None:
        stream = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        stream.connect(path)
        descriptor = stream.detach()
        os.register_at_fork(after_in_child=lambda: os.close(descriptor))
        self._descriptor = descriptor
        self._reader = ChannelReader(os.fdopen(descriptor, "rb", closefd=False))
        self._lock = allocate_lock()

    def advance(self, now_ns: int, until_ns: int) -> Reached:
        """See `Simulator`."""
        self.send(Advance(now_ns, until_ns))
        return self.reached()

    def reached(self) -> Reached:
        """Return the answer to `Advance`."""
        try:
            return self._reader.reached()
        except (EOFError, OSError):
            _end()

    def send(self, message: Message) -> None:
        """Send a message."""
        data = request(message)
        try:
            with self._lock:  # threads that Python has not started send, too
                while data:
                    data = data[os.write(self._descriptor, data) :]
        except OSError:
            _end()


def _end() -> NoReturn:
    """End the script, whose time cannot go on."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    print("lock-step: the simulator has ended, and with it this script", file=sys.__stderr__)
    os._exit(1)


def begin(settings: dict[str, Any]) -> None:
    """Begin simulated time in this process.

    Args:
        settings: The fields of `ScriptSettings`.
    """
    given = ScriptSettings(**settings)
    simulator = SimulatorConnection(given.path)
    kernel = Kernel(simulator, simulator.advance(0, 0).now_ns)
    descriptors = Descriptors(kernel)
    outside = Outside(kernel, descriptors)
    drones = (given.address, given.ports)
    sockets = Sockets(kernel, descriptors, outside, *drones, simulator.send)
    kernel.receive = sockets.receive
    for module in (locks, threads, clocks):
        module.install(kernel)
    for part in (descriptors, outside, sockets):
        part.install()
    _seed_generators(given.seed)
    if given.extension:
        module = importlib.import_module(given.extension)
        module.begin(kernel, outside, simulator, *given.arguments)
    Watch(kernel, given.patience).start()


def _seed_generators(seed: int) -> None:
    """Seed the generators of Python and NumPy that are not seeded by the script."""
    source = random.Random(seed)
    begin = random.Random.seed

    def begin_known(self: random.Random, a: Any = None, version: int = 2) -> None:
        begin(self, source.getrandbits(64) if a is None else a, version)

    replace(random.Random, seed=begin_known)
    replace(random, seed=random._inst.seed)
    random.seed()
    # NumPy takes the numbers of generators without a seed from here.
    replace(secrets, randbits=source.getrandbits)
