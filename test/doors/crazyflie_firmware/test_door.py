"""The door of the Crazyflie's firmware against fakes: flights, losses, and settings."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from functools import partial

import numpy as np
import physics_helpers
import pytest
from fake_firmware import FakeFirmware
from ports import free_ports

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.crazyflie_firmware import CrazyflieFirmware
from crazyflow_ros.doors.crazyflie_firmware import firmware_door as door_module
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import DroneState, PhysicsThread, SimulationConfig

T = 120.0  # s, no wait is longer
NAMES = ("cf0", "cf1")
GOALS = np.array([[0.0, 0.0, 0.4], [0.7, 0.2, 0.6]])
until = partial(physics_helpers.until, timeout=T)
# Slower than wall time, so that the answers of fakes come in time on a busy machine.
CONFIG = SimulationConfig.of(
    RealisticOptions(drone_model="cf2x_L250", freq=1000, real_time_factor=0.3, start_paused=True)
)
CONTEXT = DoorContext.of(CONFIG, NAMES, logging.getLogger("firmware"))


class Flight:
    """Two drones, each with a fake firmware."""

    def __init__(self) -> None:
        self.port = free_ports(4)
        settings = CrazyflieFirmware(port=self.port, cflib_port=self.port + 2)
        self.door = settings.open(CONTEXT)
        self.physics = PhysicsThread(CONFIG, NAMES, self.door)
        self.physics.start()
        self.firmwares = [self.firmware(drone) for drone in range(len(NAMES))]

    def firmware(self, drone: int) -> FakeFirmware:
        firmware = FakeFirmware(self.port + drone)
        firmware.goal = GOALS[drone]
        return firmware

    def end(self) -> None:
        self.physics.stop()
        for firmware in self.firmwares:
            firmware.end()
        assert self.physics.failed is None
        assert not self.physics.statistics().failures


@pytest.fixture(scope="module")
def flight() -> Iterator[Flight]:
    flight = Flight()
    yield flight
    flight.end()


def said(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


def test_firmwares_take_their_drones_to_their_goals_and_hover(flight: Flight) -> None:
    start = flight.physics.snapshot.pos.copy()
    before = flight.physics.step(20).result(T)
    np.testing.assert_allclose(before.pos, start, atol=1e-3)  # they are held
    assert flight.door.status().attached == ()
    flight.physics.resume().result(T)
    until(lambda: flight.door.status().attached == NAMES, "the firmwares")

    def at_goals() -> bool:
        now = flight.physics.snapshot
        return bool(np.abs(now.pos - GOALS).max() < 0.08 and np.abs(now.vel).max() < 0.1)

    until(at_goals, "the goals")
    after = flight.physics.snapshot.time_ns + 1e9
    until(lambda: flight.physics.snapshot.time_ns > after, "a second")
    assert np.abs(flight.physics.snapshot.pos - GOALS).max() < 0.15
    flight.physics.pause().result(T)


def test_readings_are_those_of_the_state_at_their_rates(flight: Flight) -> None:
    state = DroneState(
        pos=(1, -2, 5.0), quat=(0, np.sin(0.1), 0, np.cos(0.1)), vel=(0, 0, 0), ang_vel=(0.5, 1, 2)
    )
    flight.physics.resume().result(T)
    until(lambda: flight.door.status().attached == NAMES, "the firmwares")
    flight.physics.pause().result(T)
    flight.physics.state.set_drone_states({"cf1": state}).result(T)
    firmware = flight.firmwares[1]
    flight.physics.step(10).result(T)
    firmware.idle.clear()
    assert firmware.idle.wait(T)
    before = dict(firmware.counts)
    after = flight.physics.step(200).result(T)
    new = lambda kind: firmware.counts[kind] - before.get(kind, 0)  # noqa: E731
    until(lambda: new(b"\x90\x00") == 200, "all readings of the IMU")
    assert new(b"\x61\x08") == 20
    assert 1 <= new(b"\x90\x01") <= 3 and new(b"\x90\x02") == new(b"\x90\x01")
    pose = np.array(struct.unpack("<7f", firmware.packets[b"\x61\x08"][2:]))
    np.testing.assert_allclose(pose[:3], after.pos[1], atol=0.06)
    assert abs(pose[3:] @ after.quat[1]) > 0.99
    raw = np.array(struct.unpack("<6h", firmware.packets[b"\x90\x00"][2:]))
    np.testing.assert_allclose(np.radians(raw[3:] * 4000 / 65536), after.ang_vel[1], atol=0.4)


def test_a_reset_and_a_firmware_that_ends_are_told_and_another_one_flies(
    flight: Flight, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    flight.physics.resume().result(T)
    until(lambda: flight.door.status().attached == NAMES, "the firmwares")
    flight.physics.state.reset().result(T)
    assert "cf0: it was reset, and its firmware flies on" in said(caplog)
    until(lambda: flight.door.status().attached == NAMES, "new outputs")
    flight.firmwares[1].end()
    until(lambda: flight.door.status().attached == ("cf0",), "the loss")
    lost = "cf1: its firmware has not sent outputs for 1 s of readings"
    until(lambda: lost in said(caplog), "the message")
    until(lambda: flight.physics.snapshot.rotor_vel[1].max() < 300, "slow rotors")
    flight.physics.state.reset().result(T)  # it has crashed, and may lie on its back
    flight.firmwares[1] = flight.firmware(1)
    until(lambda: flight.door.status().attached == NAMES, "its return")
    until(lambda: flight.physics.snapshot.pos[1, 2] > 0.3, "its take-off")
    until(lambda: flight.physics.snapshot.pos[0, 2] > 0.3, "that of the other")


def test_time_is_not_faster_than_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = 100.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    monkeypatch.setattr(door_module.time, "monotonic", lambda: now)
    monkeypatch.setattr(door_module.time, "sleep", sleep)
    pace = door_module.Pace(freq=1000, period=2)
    pace.wait(10)
    pace.wait(12)
    assert slept == [pytest.approx(0.002)]
    now += 0.020
    for tick in range(14, 100, 2):  # late, and caught up with evenly
        pace.wait(tick)
    assert min(slept[1:]) == pytest.approx(0.0015)
    assert now == pytest.approx(100.088)
    pace.wait(500)  # time was set: a new beginning
    assert now == pytest.approx(100.0895)
    pace.begin()
    pace.wait(700)
    assert now == pytest.approx(100.091)
