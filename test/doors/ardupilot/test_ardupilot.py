"""ArduPilot's door against fakes with a parser of their own: flights, losses, and refusals."""

from __future__ import annotations

import logging
import os
import random
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from door_flight import (
    ARDUPILOT,
    NAMES,
    RATE,
    Start,
    T,
    flights,
    messages,
    until,
)
from fake_ardupilot import FakeArduPilot
from paths import ROOT

from crazyflow_ros.doors import GamepadSettings
from crazyflow_ros.runtime import DroneState


@pytest.fixture
def start(caplog: pytest.LogCaptureFixture) -> Iterator[Start]:
    caplog.set_level(logging.INFO)
    with flights(ARDUPILOT) as start:
        yield start


def times(fake: FakeArduPilot) -> np.ndarray:
    return np.array([reading["timestamp"] for reading in fake.readings])


def test_readings_are_those_of_ardupilots_frames_and_units(start: Start) -> None:
    flight = start(range_finder=True)
    flight.fake(1)
    fake = flight.fake(0)
    east, north, up = flight.fly(1.0).pos[0]  # it faces east
    reading = fake.readings[-1]
    np.testing.assert_allclose(reading["accel_body"], (0, 0, -9.81), atol=0.01)
    np.testing.assert_allclose(reading["gyro"], 0, atol=1e-3)
    np.testing.assert_allclose(reading["velocity"], 0, atol=1e-3)
    np.testing.assert_allclose(reading["position"], (north, east, -up), atol=1e-6)
    np.testing.assert_allclose(reading["attitude"], (0, 0, np.pi / 2), atol=1e-3)
    np.testing.assert_allclose(reading["quaternion"], (0.5**0.5, 0, 0, 0.5**0.5), atol=1e-3)
    assert reading["rng_1"] == pytest.approx(up, abs=0.05)
    assert not {"battery", "voltage", "rc_1", "airspeed", "no_time_sync"} & set(reading)


def test_a_gamepad_is_the_radio_of_the_first_drone_while_it_is_there(start: Start) -> None:
    flight = start(gamepad=GamepadSettings(timeout=0.5))
    fakes = flight.fake(0), flight.fake(1)
    flight.fly(0.1)
    for button in (0, 1):
        flight.door.take_gamepad([0.5, 0.25, 0, -1, -0.5, 0], [*[0] * 7, button])
    flight.fly(1 / RATE)
    mine, other = (fake.readings[-1] for fake in fakes)
    expected = [2000, 1250, 1250, 1250, 2000, *[1000] * 7]
    assert [mine[f"rc_{i}"] for i in range(1, 13)] == expected
    assert "rc_1" not in other
    flight.fly_until(lambda: "rc_1" not in fakes[0].readings[-1])  # its messages have stopped


def test_a_moving_drone_reads_in_north_east_down(start: Start) -> None:
    flight = start(range_finder=True)
    flight.fake(1)
    fake = flight.fake(0)
    flight.fly(0.1)
    moving = DroneState(
        pos=(1, 2, 9.0), quat=(0, np.sin(0.1), 0, np.cos(0.1)), vel=(3, 4, 5), ang_vel=(0.1, 0.2, 2)
    )
    flight.physics.state.set_drone_states({"cf0": moving}).result(T)
    flight.fly(2 / RATE)
    reading = fake.readings[-2]
    np.testing.assert_allclose(reading["position"], (2, 1, -9.0), atol=0.05)
    np.testing.assert_allclose(reading["velocity"], (4, 3, -5), atol=0.2)
    np.testing.assert_allclose(reading["gyro"], (0.1, -0.2, -2), atol=0.1)
    # Nose down by 0.2 rad about an axis to the left, and facing east.
    np.testing.assert_allclose(reading["attitude"], (0, -0.2, np.pi / 2), atol=0.02)
    flight.fly(0.02)
    assert fake.readings[-1]["rng_1"] > 4.0  # out of its reach


def test_frames_that_are_sent_again_are_answered_and_do_not_step_twice(start: Start) -> None:
    digests = []
    for deaf in ((), (0, 3, 4, 200)):
        flight = start()
        fake = flight.hovering(0, deaf=deaf)
        flight.fake(1)
        fake.impatience = 0.05 if deaf else 60.0
        flight.fly(3.0)
        assert fake.resent >= len(deaf)
        assert len(fake.readings) == 3 * RATE
        assert (np.diff(times(fake)) > 0).all()
        assert flight.door.status().cycles == 3 * RATE
        digests.append(flight.digest.digest())
        flight.end()
    assert digests[0] == digests[1]


def test_frames_that_pile_up_in_a_pause_are_answered_once(start: Start) -> None:
    flight = start()
    fake = flight.hovering(0)
    flight.fake(1)
    flight.fly(2.0)
    fake.impatience = 0.0
    until(lambda: fake.resent >= 20, "frames that are sent again")
    fake.impatience = 60.0
    flight.fly(1.0)
    assert len(fake.readings) == 3 * RATE
    assert (np.diff(times(fake)) > 0).all()  # none is a second answer to a frame


def test_a_new_ardupilot_has_a_time_of_its_own(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    dies, lives = flight.fake(0), flight.fake(1)
    flight.fly(0.2)
    dies.end()
    flight.fly(0.1)
    caplog.clear()
    again = flight.fake(0)
    flight.fly_until(lambda: any("cf0: an ArduPilot has" in text for text in messages(caplog)))
    flight.fly(0.2)
    assert times(again)[0] == pytest.approx(1 / RATE)
    assert times(lives)[-1] > times(again)[-1] + 0.29  # all frames since 0.3 s before


def test_an_ardupilot_that_flew_before_the_simulator_is_taken(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.hovering(0, count=2**32 - 100, channels=32)  # whose count overflows
    flight.fake(1)
    after = flight.fly(4.0)
    assert fake.count == 4 * RATE - 100
    assert after.pos[0, 2] == pytest.approx(1.08, abs=0.05)
    assert any("cf0" in t and "has flown before" in t for t in messages(caplog))


def test_a_second_ardupilot_and_old_frames_are_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.fake(0, lambda _: [0.2] * 4)
    flight.fake(1, lambda _: [-0.1, -1.0, 0.0, -0.5])  # pulses too short to turn a motor
    flight.fly(1.0)
    second = flight.fake(0, lambda _: [0.9] * 4)
    fake.send(fake.packet([0.9] * 4, 7))
    until(lambda: second.ident is not None, "its start")
    after = flight.fly(0.5)
    assert not second.readings
    assert after.rotor_vel[0].max() < 400
    assert not after.rotor_vel[1].any()
    said = " ".join(messages(caplog))
    assert "has the ArduPilot at 127.0.0.1" in said
    assert "packet 7 of ArduPilot is refused: expected" in said
    assert flight.door.status().attached == NAMES


def test_an_ardupilot_that_begins_anew_at_its_port_gets_a_new_time(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.fake(0, lambda _: [0.4] * 4)
    flight.fake(1)
    flight.fly(1.0)
    fake.count = 0
    fake.send(fake.packet([0.0] * 4, 0))
    flight.fly(0.5)
    assert any("cf0: an ArduPilot has started again" in text for text in messages(caplog))
    late = times(fake)[RATE + 2 :]
    assert late[-1] < 1.0 and (np.diff(late) > 0).all()


def hostile(rng: random.Random) -> bytes:
    """Return a packet that no ArduPilot sends now."""
    channels = rng.choice((0, 4, 16, 31, 32, 33))
    magic = rng.choice((18458, 29569, 0, rng.randrange(2**16)))
    count = rng.choice((0, 1, 100, 2**31, 2**32 - 1, rng.getrandbits(32)))
    pwm = [rng.choice((0, 999, 1500, 2000, 65_535)) for _ in range(channels)]
    frame = struct.pack(f"<HHI{channels}H", magic, rng.randrange(2**16), count, *pwm)
    return rng.choice((rng.randbytes(rng.randrange(1500)), frame, frame[: rng.randrange(40)]))


def test_hostile_packets_stop_neither_time_nor_others(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight, rng = start(), random.Random(0)
    flight.hovering(0)
    flight.hovering(1, 1.5)
    flight.fly(0.1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(100):
            for _ in range(200):
                stranger.sendto(hostile(rng), ("127.0.0.1", flight.port + 10 * rng.randrange(2)))
            flight.fly(0.004)
    after = flight.fly(4.0)
    np.testing.assert_allclose(after.pos[:, 2], (1.08, 1.58), atol=0.05)
    assert flight.door.status().refused == 20_000
    assert flight.door.status().timeouts == 0
    said = " ".join(messages(caplog))
    assert "expected 40 or 72 bytes that begin with 18458 or 29569" in said
    assert len(messages(caplog)) < 200


def test_a_process_that_is_killed_is_noticed_at_once(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    flight.hovering(1)
    command = [sys.executable, "test/fake_ardupilot.py", str(flight.port), "600"]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": "test"}) as process:
        flight.fly(2.0)
        process.kill()
    flight.fly(0.1)
    assert any("cf0: the ArduPilot at" in t and "has ended" in t for t in messages(caplog))
    assert flight.fly(0.5).rotor_vel[0].max() < 50
