"""PX4 in lock-step, beside a stub that only answers it.

    CRAZYFLOW_ROS_PX4=~/PX4-Autopilot/build/px4_sitl_default python -m benchmark.px4 [vehicles ...]

Prints a Markdown table: how much faster than real time 1, 2 and 5 vehicles are. The stub sends each
PX4 the same readings 250 times a second, and waits for all answers: that is what PX4 itself can do
on the machine. In the simulation the drones hover.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.px4 import Px4
from crazyflow_ros.doors.px4.mavlink import HilActuatorControls, HilGps, HilSensor, Parser, encode
from crazyflow_ros.doors.px4.px4_build import FIRST_PORT
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot
from crazyflow_ros.runtime.door_settings import AutopilotStart
from crazyflow_ros.xla.compiled_files import open_cache

VARIABLE = "CRAZYFLOW_ROS_PX4"
VEHICLES = (1, 2, 5)
RATE, GNSS_PERIOD = 250, 25  # Hz, frames
READY, BEGIN, END = 8, 20, 40  # s of simulated time: take-off, and what is measured
BOOTS, ANSWERS = 0.02, 10.0  # s of wall time for an answer
SEA_LEVEL = 1013.25  # hPa
CONFIG = SimulationConfig.of(RealisticOptions(drone_model="hb_x500", real_time_factor=0.0))
HEAD = "| vehicles | stub | simulation | share |\n|---:|---:|---:|---:|"


@contextmanager
def px4(folder: Path, n: int) -> Iterator[None]:
    """Start PX4 without its state of earlier runs, and end it."""
    with tempfile.TemporaryDirectory() as work:
        drones, logger = tuple(f"cf{i}" for i in range(n)), logging.getLogger(__name__)
        autopilots = Px4().autopilots(AutopilotStart(folder, Path(work), CONFIG, drones, logger))
        try:
            list(autopilots.start())
            yield
        finally:
            autopilots.close()


class Stub:
    """The simulator's end of the interface, with constant readings.

    Args:
        servers: A listening socket for each PX4.
    """

    def __init__(self, servers: list[socket.socket]) -> None:
        self._peers = {server.accept()[0]: Parser() for server in servers}
        for peer in self._peers:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._have_answered: set[socket.socket] = set()
        self._noise = np.random.default_rng(0)

    def send(self, frame: int) -> None:
        """Send a frame of readings, with a little noise, which PX4 asks for."""
        usec, noise = frame * 1_000_000 // RATE, self._noise.normal(size=4).tolist()
        acc, mag = (0.0, 0.01 * noise[0], -9.81 + 0.01 * noise[1]), (0.0, 0.2, 0.4 + noise[2] / 500)
        pressure = SEA_LEVEL + 0.02 * noise[3]
        readings = HilSensor(
            usec, acc, (1e-3 * noise[0], 0.0, 0.0), mag, pressure, 0.0, 0.0, 15.0, 0x1BFF, 0
        )
        data = encode(readings, frame)
        if frame % GNSS_PERIOD == 0:
            fix = HilGps(usec, 474_000_000, 85_000_000, 0, 30, 40, 0, (0, 0, 0), 0, 3, 14, 0, 0)
            data = encode(fix, frame) + data
        for peer in self._peers:
            peer.sendall(data)

    def wait(self, frame: int) -> None:
        """Wait until all PX4 have answered a frame, but not for long for those that boot."""
        usec, left = frame * 1_000_000 // RATE, set(self._peers)
        while left:
            patience = ANSWERS if left & self._have_answered else BOOTS
            ready, _, _ = select.select(left, (), (), patience)
            if not ready:
                if patience == ANSWERS:
                    raise TimeoutError(f"PX4 does not answer frame {frame}")
                return
            for peer in ready:
                for message in self._peers[peer].feed(peer.recv(4096)):
                    if isinstance(message, HilActuatorControls):
                        self._have_answered.add(peer)
                        if message.time_usec >= usec:
                            left.discard(peer)


def stub(folder: Path, n: int) -> float:
    """Return the real-time factor of some PX4 with constant readings."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", FIRST_PORT + i)))
            for i in range(n)
        ]
        stack.enter_context(px4(folder, n))
        talks, began = Stub(servers), 0.0
        for frame in range(1, END * RATE + 1):
            if frame == BEGIN * RATE:
                began = time.perf_counter()
            talks.send(frame)
            talks.wait(frame)
        return (END - BEGIN) / (time.perf_counter() - began)


def simulation(folder: Path, n: int) -> float:
    """Return the real-time factor of some drones that hover."""
    names, times = [f"px4_{i}" for i in range(n)], dict[float, float]()
    with ExitStack() as stack:
        stack.callback(open_cache(print).close)
        context = DoorContext.of(CONFIG, names, logging.getLogger(__name__))
        physics = PhysicsThread(CONFIG, names, Px4(port=FIRST_PORT).open(context))
        stack.callback(physics.stop)

        def note(snapshot: Snapshot) -> None:
            times.setdefault(snapshot.tick / CONFIG.freq, time.perf_counter())

        physics.every(1, note, "benchmark")
        physics.start()
        stack.enter_context(px4(folder, n))
        _wait_for(physics, READY)
        for instance in range(n):
            takes_off: list[str | Path] = [
                folder / "bin" / "px4-commander",
                "--instance",
                str(instance),
                "takeoff",
            ]
            subprocess.run(takes_off, check=True, stdout=subprocess.DEVNULL)
        _wait_for(physics, END)
        if not (physics.snapshot.pos[:, 2] > 1.0).all():
            raise RuntimeError(f"not all drones fly: {physics.snapshot.pos[:, 2]} m")
    return (END - BEGIN) / (times[END] - times[BEGIN])


def _wait_for(physics: PhysicsThread, seconds: float) -> None:
    """Wait until a simulated time."""
    while physics.snapshot.time_ns <= seconds * 1e9:
        if physics.failed is not None:
            raise physics.failed
        time.sleep(0.01)


def main(numbers: tuple[int, ...] = VEHICLES) -> None:
    """Print the table."""
    if VARIABLE not in os.environ:
        sys.exit(f"set {VARIABLE} to a build of PX4, such as PX4-Autopilot/build/px4_sitl_default")
    folder = Path(os.environ[VARIABLE])
    print(HEAD)
    for n in numbers:
        bare, ours = stub(folder, n), simulation(folder, n)
        print(f"| {n} | {bare:.2f} | {ours:.2f} | {ours / bare:.2f} |", flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or VEHICLES)
