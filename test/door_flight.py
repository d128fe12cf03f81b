"""Two drones that fakes of autopilots fly in lock-step, and what tests of such doors share."""

from __future__ import annotations

import hashlib
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import physics_helpers
import pytest
from fake_ardupilot import FakeArduPilot, HoverReading
from fake_px4 import FakePx4, Hover
from ports import free_ports

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.ardupilot import ArduPilot
from crazyflow_ros.doors.px4 import Px4
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot

T = 120.0  # s, no wait is longer
NAMES = ("cf0", "cf1")
FREQ, RATE = 500, 250  # Hz
PERIOD = FREQ // RATE


def config_of(drone: str) -> SimulationConfig:
    """One that compiles what the program does."""
    options = RealisticOptions(drone_model=drone, real_time_factor=0.0, start_paused=True)
    return SimulationConfig.of(options)


CONFIG = config_of("hb_x500")
CONTEXT = DoorContext.of(CONFIG, NAMES, logging.getLogger("door"))
FASTEST = np.sqrt(12.13 / 8.54858e-6)  # rad/s, drone.toml
until = partial(physics_helpers.until, timeout=T)


@dataclass(frozen=True)
class Kind:
    """A door, and the fakes of its autopilot."""

    title: str
    settings: type[Any]
    options: Mapping[str, Any]
    """Settings of the tests."""
    socket: socket.SocketKind
    step: int
    """Ports from one drone to the next."""
    fake: type[Any]
    hover: Callable[[float], Any]
    """Pilot of a fake that hovers at a height above its start [m]."""
    usec: Callable[[Any], np.ndarray]
    """Returns the times of all frames that a fake has got [us]."""
    connected: str
    """What the door says when one comes."""


PX4 = Kind(
    *("PX4", Px4, {"boot_timeout": T}, socket.SOCK_STREAM, 1, FakePx4, Hover),
    usec=lambda fake: np.array([sensor.time_usec for sensor in fake.sensors]),
    connected="a PX4 has connected",
)
ARDUPILOT = Kind(
    *("ArduPilot", ArduPilot, {"rate": RATE}, socket.SOCK_DGRAM, 10, FakeArduPilot, HoverReading),
    usec=lambda fake: 1e6 * np.array([reading["timestamp"] for reading in fake.readings]),
    connected="an ArduPilot has connected",
)


class DoorFlight:
    """A simulation whose drones fakes fly.

    Args:
        kind: Of the door.
        drone: Model of the drones.
        settings: Its settings.
    """

    def __init__(self, kind: Kind, drone: str = "hb_x500", **settings: Any) -> None:
        self.kind, self._fakes = kind, list[Any]()
        self.port = free_ports(len(NAMES), step=kind.step, kind=kind.socket)
        chosen = {"timeout": T, **kind.options} | settings
        config = config_of(drone)
        context = DoorContext.of(config, NAMES, logging.getLogger("door"))
        self.door = kind.settings(port=self.port, **chosen).open(context)
        self.physics = PhysicsThread(config, NAMES, self.door)
        self.digest = hashlib.sha256()
        self.physics.every(RATE, self._note, "test")
        self.physics.start()

    def _note(self, snapshot: Snapshot) -> None:
        if snapshot.tick % PERIOD == 0:
            for field in (snapshot.pos, snapshot.quat, snapshot.rotor_vel):
                self.digest.update(field.tobytes())

    def fake(self, drone: int, *args: Any, **options: Any) -> Any:
        """Start the autopilot of a drone."""
        fake = self.kind.fake(self.port + self.kind.step * drone, *args, **options)
        self._fakes.append(fake)
        fake.start()
        return fake

    def hovering(self, drone: int, height: float = 1.0, **options: Any) -> Any:
        """Start one that hovers at a height above the start [m]."""
        return self.fake(drone, self.kind.hover(height), **options)

    def fly(self, seconds: float) -> Snapshot:
        return self.physics.step(round(seconds * FREQ)).result(T)

    def fly_until(self, condition: Callable[[], object]) -> None:
        """Fly until a condition holds: while time stands still, nobody connects."""
        ends = time.monotonic() + T
        while not condition():
            assert time.monotonic() < ends, f"waited {T} s"
            self.fly(1 / RATE)

    def end(self) -> None:
        self.physics.stop()
        for fake in self._fakes:
            fake.end()
        assert self.physics.failed is None
        assert not self.physics.statistics().failures


Start = Callable[..., DoorFlight]


@contextmanager
def flights(kind: Kind) -> Iterator[Start]:
    """Give a function that starts flights with some settings, and end them."""
    started: list[DoorFlight] = []

    def start(**settings: Any) -> DoorFlight:
        started.append(DoorFlight(kind, **settings))
        return started[-1]

    yield start
    for flight in started:
        flight.end()


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]
