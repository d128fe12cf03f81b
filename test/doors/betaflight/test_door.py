"""Betaflight's door against a fake: packets, signs, orders, losses, and what is refused."""

from __future__ import annotations

import logging
import random
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import physics_helpers
import pytest
from betaflight_process import own_ports
from fake_betaflight import FakeBetaflight, Receiver

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.betaflight import Betaflight
from crazyflow_ros.doors.gamepad import GamepadSettings
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import DroneState, PhysicsThread, SimulationConfig, Snapshot

T = 120.0  # s, no wait is longer
FREQ, RATE = 500, 250
CONFIG = SimulationConfig.of(
    RealisticOptions(drone_model="hb_x500", real_time_factor=0.0, start_paused=True)
)
CONTEXT = DoorContext.of(CONFIG, ["cf0"], logging.getLogger("betaflight"))
FASTEST = np.sqrt(12.13 / 8.54858e-6)  # rad/s, drone.toml


class Flight:
    def __init__(self, outputs: tuple[float, ...], **settings: Any) -> None:
        self.fake = FakeBetaflight(outputs)
        self.door = Betaflight(**{"timeout": 1.0} | settings).open(CONTEXT)
        self.physics = PhysicsThread(CONFIG, ["cf0"], self.door)
        self.physics.start()

    def fly(self, seconds: float) -> Snapshot:
        return self.physics.step(round(seconds * FREQ)).result(T)

    def packets(self, seconds: float) -> list[tuple[float, ...]]:
        """Fly, and return what is sent meanwhile: the readings of each period's begin."""
        begin = self.physics.snapshot.time_ns * 1e-9 - 1e-6
        last, sent = begin + seconds - 1 / RATE, self.fake.packets
        self.fly(seconds)
        physics_helpers.until(lambda: sent and sent[-1][0] > last, "the last packet", T)
        return [packet for packet in sent if packet[0] > begin]


Start = Callable[..., Flight]


@pytest.fixture
def start() -> Iterator[Start]:
    flights: list[Flight] = []

    def start(outputs: tuple[float, ...] = (0.0,) * 4, **settings: Any) -> Flight:
        flights.append(Flight(outputs, **settings))
        return flights[-1]

    with own_ports():
        yield start
        for flight in flights:
            flight.physics.stop()
            flight.fake.end()
            assert flight.physics.failed is None
            assert not flight.physics.statistics().failures


@pytest.mark.parametrize(
    ("order", "expected"),
    [("gazebo", (0.40, 0.55, 0.45, 0.50)), ("betaflight", (0.45, 0.40, 0.50, 0.55))],
)
def test_outputs_are_for_the_rotors_of_their_order(
    start: Start, order: str, expected: tuple[float, ...]
) -> None:
    flight = start((0.40, 0.45, 0.50, 0.55), motor_order=order)
    speeds = flight.fly(1.0).rotor_vel[0]
    np.testing.assert_allclose(speeds / FASTEST, expected, rtol=0.01)
    assert flight.door.status().attached == ("cf0",)


@pytest.mark.parametrize(("gyro_z", "sign"), [("frd", -1), ("flu", 1)])
def test_readings_have_the_signs_of_betaflight(start: Start, gyro_z: str, sign: int) -> None:
    flight = start(gyro_z=gyro_z, latitude=10.0, longitude=20.0, altitude=100.0)

    def answers() -> bool:  # until then the drone is held
        flight.fly(1 / RATE)
        return bool(flight.door.status().attached)

    physics_helpers.until(answers, "an answer", T)
    packets = np.array(flight.packets(0.2))
    assert len(packets) == 0.2 * RATE
    np.testing.assert_allclose(np.diff(packets[:, 0]), 1 / RATE, atol=1e-9)
    np.testing.assert_allclose(packets[:, 4:7].mean(axis=0), (0, 0, -9.81), atol=0.8)
    np.testing.assert_allclose(packets[-1, 7:11], (1, 0, 0, 0), atol=1e-3)
    np.testing.assert_allclose(packets[-1, 14:16], (20.0, 10.0), atol=1e-4)
    np.testing.assert_allclose(packets[-1, 16], 100.08, atol=0.05)
    np.testing.assert_allclose(packets[-1, 17], 100_129, atol=60)  # standard atmosphere
    flight.fake.outputs = (0.6, 0.6, 0.6, 0.6)
    turning = DroneState(
        pos=(0, 0, 5.0), quat=(0, np.sin(0.1), 0, np.cos(0.1)), vel=(1, 2, 3), ang_vel=(0.5, 1, 2)
    )
    flight.physics.state.set_drone_states({"cf0": turning}).result(T)
    packet = flight.packets(0.02)[0]
    np.testing.assert_allclose(packet[1:4], (0.5, -1, sign * 2), atol=0.15)
    np.testing.assert_allclose(packet[7:11], (np.cos(0.1), 0, -np.sin(0.1), 0), atol=0.02)
    np.testing.assert_allclose(packet[11:14], (1, 2, 3), atol=0.1)


def test_betaflight_ends_and_comes_back(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    flight = start((0.5,) * 4, timeout=0.05)
    flight.fly(0.5)
    flight.fake.silent = True
    assert flight.fly(1.5).rotor_vel.max() < 1e-3
    assert flight.door.status().timeouts == 25  # later ones are not waited for
    assert flight.door.status().attached == ()
    flight.fake.silent = False
    flight.physics.set_real_time_factor(1.0).result(T)
    flight.physics.resume().result(T)
    said = [record.getMessage() for record in caplog.records]
    assert sum("has not answered 25 packets" in text for text in said) == 1

    physics_helpers.until(lambda: flight.physics.snapshot.rotor_vel.min() > 400, "its return", T)


@pytest.fixture
def receiver(start: Start) -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_a_gamepad_moves_the_sticks(start: Start, receiver: Receiver) -> None:
    flight = start(gamepad=GamepadSettings(timeout=60.0))
    flight.fly(0.5)
    assert receiver.packets() == []  # nobody has touched it
    for button in (0, 1):
        flight.door.take_gamepad([0, 0.25, 0, 0.5, 0, 0], [*[0] * 7, button])
    flight.fly(1.0)
    assert receiver.packets() == []  # Betaflight is not ready for sticks
    flight.fly(1.0)
    packets = receiver.packets()
    assert 0 < len(packets) <= 0.5 * RATE + 2
    assert {packet[1:7] for packet in packets} == {(1250, 1500, 1250, 1500, 2000, 1000)}
    np.testing.assert_allclose(np.diff([packet[0] for packet in packets]), 1 / RATE, atol=1e-6)


def test_without_its_gamepad_the_switches_are_off(
    start: Start, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    flight = start(gamepad=GamepadSettings(timeout=0.05))
    flight.fly(2.5)
    for button in (0, 1):
        flight.door.take_gamepad([0, 1, 0, 0, 0, 0], [*[0] * 7, button])

    def says(text: str) -> bool:
        flight.fly(0.004)
        return any(text in record.getMessage() for record in caplog.records)

    assert says("a gamepad moves its sticks")
    physics_helpers.until(lambda: says("the gamepad is silent"), "its silence", T)
    packets = receiver.packets()
    assert packets[0][1:6] == (1500, 1500, 2000, 1500, 2000)

    def is_off() -> bool:
        flight.fly(0.004)
        packets.extend(receiver.packets())
        return packets[-1][1:] == (1500, 1500, 1000, 1500, *[1000] * 12)

    physics_helpers.until(is_off, "a packet with all switches off", T)


def test_packets_that_are_no_outputs_are_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight, rng = start((0.5,) * 4), random.Random(0)
    before = flight.fly(0.5)
    for value in (float("nan"), float("inf"), -1.0, 1.5):
        flight.fake.answer(struct.pack("<4f", value, 0.5, 0.5, 0.5))
    for _ in range(500):
        flight.fake.answer(rng.randbytes(rng.randrange(200)))
        flight.fly(0.004)
    assert flight.door.status().refused > 400
    after = flight.fly(0.2)
    np.testing.assert_allclose(after.rotor_vel, before.rotor_vel, rtol=0.01)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "from 0 to 1" in said and "expected 16" in said


def test_who_sends_no_outputs_is_no_betaflight(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    flight = start((2.0, 0.5, float("nan"), 0.5), timeout=0.1)
    flight.fly(0.1)
    assert flight.door.status().refused > 0
    assert flight.door.status().attached == ()
    flight.fake.outputs = (0.5,) * 4
    assert not any("Betaflight answers" in record.getMessage() for record in caplog.records)
    flight.fly(0.1)
    assert flight.door.status().attached == ("cf0",)


def test_a_rate_several_drones_and_a_port_that_is_taken_are_refused() -> None:
    with pytest.raises(ValueError, match=r"betaflight.rate.*300.*250 or 500"):
        Betaflight(rate=300).open(CONTEXT)
    both = DoorContext.of(CONFIG, ["cf0", "cf1"], logging.getLogger("betaflight"))
    with pytest.raises(ValueError, match=r"one drone.*got 2: cf0, cf1"):
        Betaflight().open(both)
    with own_ports(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", 9002))
        with pytest.raises(OSError, match="betaflight: udp port 9002"):
            Betaflight().open(CONTEXT)
