"""The door of examples/13_door, from a package of its own: autopilots are other processes."""

from __future__ import annotations

import hashlib
import logging
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import physics_helpers
import pytest
from other_packages import EXAMPLES, installed, metadata
from ports import free_ports

from crazyflow_ros.doors import DoorContext, door_settings
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot

T = 120.0  # s, no wait is longer
NAMES = ("cf0", "cf1")
PERIOD = 2  # ticks, 250 Hz
until = partial(physics_helpers.until, timeout=T)
CONFIG = SimulationConfig(real_time_factor=0.0, start_paused=True)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in installed("13_door", tmp_path):
        monkeypatch.syspath_prepend(path)


class Flight:
    """A simulation whose drones autopilots fly."""

    def __init__(self, config: SimulationConfig = CONFIG, timeout: float = T) -> None:
        self.port, self._pilots = free_ports(), dict[int, subprocess.Popen[bytes]]()
        self.door: Any = door_settings("udp_autopilot")(port=self.port, timeout=timeout).open(
            DoorContext.of(config, NAMES, logging.getLogger("door"))
        )
        self.physics = PhysicsThread(config, NAMES, self.door)
        self.digest = hashlib.sha256()
        self.physics.every(250, self._note, "test")
        self.physics.start()

    def _note(self, snapshot: Snapshot) -> None:
        if snapshot.tick % PERIOD == 0:
            for field in (snapshot.pos, snapshot.quat, snapshot.rotor_vel):
                self.digest.update(field.tobytes())

    def pilot(self, drone: int, height: float = 0.5) -> subprocess.Popen[bytes]:
        program = EXAMPLES / "13_door" / "udp_pilot.py"
        command = [sys.executable, program, str(drone), str(height), str(self.port)]
        self._pilots[drone] = subprocess.Popen(command)
        return self._pilots[drone]

    def end(self) -> None:
        self.physics.stop()
        for pilot in self._pilots.values():
            pilot.kill()
            pilot.wait(T)
        assert self.physics.failed is None


Start = Callable[..., Flight]


@pytest.fixture
def start() -> Iterator[Start]:
    flights: list[Flight] = []

    def start(**options: Any) -> Flight:
        flights.append(Flight(**options))
        return flights[-1]

    yield start
    for flight in flights:
        flight.end()


def test_autopilots_in_lock_step_fly_to_their_heights_the_same_way_each_time(start: Start) -> None:
    digests = []
    for order in ((0, 1), (1, 0)):
        flight = start()
        for drone in order:
            flight.pilot(drone, height=(0.5, 0.8)[drone])
        assert flight.physics.step(500).result(T).tick == 501
        digests.append(flight.digest.digest())
    assert digests[0] == digests[1]
    after = flight.physics.step(2000).result(T)
    np.testing.assert_allclose(after.pos[:, 2], (0.5, 0.8), atol=0.1)
    np.testing.assert_allclose(after.pos[:, :2], [[-0.5, -0.5], [0.5, -0.5]], atol=0.15)
    status = flight.door.status()
    assert set(status.attached) == set(NAMES)
    assert (status.cycles, status.timeouts, status.refused) == (1250, 0, 0)


def test_an_autopilot_dies_and_comes_back(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    flight = start(timeout=1.0)
    flight.pilot(0)
    pilot = flight.pilot(1)
    flight.physics.step(500).result(T)
    pilot.kill()
    pilot.wait(T)
    after = flight.physics.step(250).result(T)  # the first control period waits in vain
    assert flight.door.status().attached == ("cf0",)
    assert after.pos[0, 2] > 0.3
    assert not after.rotor_vel[1].any() or after.rotor_vel[1].max() < after.rotor_vel[0].min()
    (late,) = [r.getMessage() for r in caplog.records if "no command within" in r.getMessage()]
    assert "udp_autopilot" in late and "cf1" in late and "cf0" not in late
    flight.physics.resume().result(T)
    flight.pilot(1)
    until(lambda: flight.door.status().attached == ("cf0", "cf1"), "its return")
    until(lambda: flight.physics.snapshot.pos[1, 2] > 0.3, "its take-off")


def test_packets_that_are_no_commands_change_nothing(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    flight = start()
    flight.pilot(0)
    flight.pilot(1)
    tick = flight.physics.step(100).result(T).tick
    bad = [b"\x00", bytes(2000), struct.pack("<BQ4d", 2, tick, *[0.0] * 4)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for packet in bad:
            stranger.sendto(packet, ("127.0.0.1", flight.port))
    after = flight.physics.step(900).result(T)
    assert flight.door.status().cycles == 500
    np.testing.assert_allclose(after.pos[:, 2], 0.5, atol=0.1)
    assert any("is no command" in record.getMessage() for record in caplog.records)


def test_a_door_that_fails_is_named_and_time_runs_on(
    start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = start()

    def fail(*_: Any) -> bool:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(flight.door, "collect", fail)
    monkeypatch.setattr(flight.door, "show", fail)
    assert flight.physics.step(10).result(T).tick == 11
    failure = flight.physics.statistics().failures["the door udp_autopilot"]
    assert "ZeroDivisionError" in failure.error
    assert any("udp_autopilot" in record.getMessage() for record in caplog.records)


def test_doors_that_cannot_be_had_are_named_with_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors = {"broken": "no_such_module:Door", "odd": "socket:socket", "udp_autopilot": "a:B"}
    folder = metadata(tmp_path / "others", "some-package", {"crazyflow_ros.doors": doors})
    monkeypatch.syspath_prepend(str(folder))
    for name in doors:
        with pytest.raises(ValueError, match=f"(?s)some-package.*'{name}'|'{name}'.*some-package"):
            door_settings(name)
    with pytest.raises(ValueError, match=r"(?s)'udp_autopilo'.*udp_autopilot"):
        door_settings("udp_autopilo")
