"""ArduPilot's door against fakes with a parser of their own: flights, losses, and refusals."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import physics_helpers
import pytest
from fake_ardupilot import RATE, FakeArduPilot, HoverReading
from paths import ROOT

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.ardupilot import ArduPilot
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import DroneState, PhysicsThread, SimulationConfig, Snapshot

T = 120.0  # s, no wait is longer
NAMES = ("cf0", "cf1")
FREQ, PERIOD = 500, 2
CONFIG = SimulationConfig.of(  # which compiles what the program does
    RealisticOptions(drone_model="hb_x500", real_time_factor=0.0, start_paused=True)
)
CONTEXT = DoorContext.of(CONFIG, NAMES, logging.getLogger("ardupilot"))
until = partial(physics_helpers.until, timeout=T)


def free_ports() -> int:
    """Return a free UDP port, of which the one 10 higher is free, too."""
    while True:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second,
        ):
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 10))
            except (OSError, OverflowError):
                continue
            return port


class Flight:
    """A simulation whose drones fakes fly."""

    def __init__(self, **settings: Any) -> None:
        self.port, self._fakes = free_ports(), list[FakeArduPilot]()
        chosen = {"timeout": T, "rate": RATE} | settings
        self.door = ArduPilot(port=self.port, **chosen).open(CONTEXT)
        self.physics = PhysicsThread(CONFIG, NAMES, self.door)
        self.digest = hashlib.sha256()
        self.physics.every(RATE, self._note, "test")
        self.physics.start()

    def _note(self, snapshot: Snapshot) -> None:
        if snapshot.tick % PERIOD == 0:
            for field in (snapshot.pos, snapshot.quat, snapshot.rotor_vel):
                self.digest.update(field.tobytes())

    def ardupilot(self, drone: int, *args: Any, **options: Any) -> FakeArduPilot:
        fake = FakeArduPilot(self.port + 10 * drone, *args, **options)
        self._fakes.append(fake)
        fake.start()
        return fake

    def fly(self, seconds: float) -> Snapshot:
        return self.physics.step(round(seconds * FREQ)).result(T)

    def end(self) -> None:
        self.physics.stop()
        for fake in self._fakes:
            fake.end()
        assert self.physics.failed is None
        assert not self.physics.statistics().failures


Start = Callable[..., Flight]


@pytest.fixture
def start(caplog: pytest.LogCaptureFixture) -> Iterator[Start]:
    caplog.set_level(logging.INFO)
    flights: list[Flight] = []

    def start(**settings: Any) -> Flight:
        flights.append(Flight(**settings))
        return flights[-1]

    yield start
    for flight in flights:
        flight.end()


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def times(fake: FakeArduPilot) -> np.ndarray:
    return np.array([reading["timestamp"] for reading in fake.readings])


def test_two_ardupilots_hover_and_the_flight_repeats_to_the_bit(start: Start) -> None:
    digests = []
    for order in ((0, 1), (1, 0)):
        flight = start()
        fakes = {i: flight.ardupilot(i, HoverReading((1.0, 1.5)[i])) for i in order}
        before = flight.physics.snapshot.pos
        after = flight.fly(5.0)
        wanted = before + np.array([(0, 0, 1.0), (0, 0, 1.5)])
        np.testing.assert_allclose(after.pos, wanted, atol=0.05)
        np.testing.assert_allclose(flight.fly(1.0).pos, wanted, atol=0.05)
        status = flight.door.status()
        assert (set(status.attached), status.cycles) == (set(NAMES), 6 * RATE)
        assert (status.timeouts, status.refused) == (0, 0)
        for fake in fakes.values():
            assert len(fake.readings) == 6 * RATE
            # ArduPilot adds each step in whole microseconds, rounded down.
            steps = np.diff(times(fake), prepend=0.0) * 1e6
            assert set(steps.astype(int).tolist()) == {1_000_000 // RATE}
        digests.append(flight.digest.digest())
        flight.end()
    assert digests[0] == digests[1]


def test_readings_are_those_of_ardupilots_frames_and_units(start: Start) -> None:
    flight = start(range_finder=True)
    flight.ardupilot(1)
    fake = flight.ardupilot(0)
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


def test_a_moving_drone_reads_in_north_east_down(start: Start) -> None:
    flight = start(range_finder=True)
    flight.ardupilot(1)
    fake = flight.ardupilot(0)
    flight.fly(0.1)
    moving = DroneState(
        pos=(1, 2, 9.0), quat=(0, np.sin(0.1), 0, np.cos(0.1)), vel=(3, 4, 5), ang_vel=(0.1, 0.2, 2)
    )
    flight.physics.set_drone_states({"cf0": moving}).result(T)
    flight.fly(2 / RATE)
    reading = fake.readings[-2]
    np.testing.assert_allclose(reading["position"], (2, 1, -9.0), atol=0.05)
    np.testing.assert_allclose(reading["velocity"], (4, 3, -5), atol=0.2)
    np.testing.assert_allclose(reading["gyro"], (0.1, -0.2, -2), atol=0.1)
    # Nose down by 0.2 rad about an axis to the left, and facing east.
    np.testing.assert_allclose(reading["attitude"], (0, -0.2, np.pi / 2), atol=0.02)
    flight.fly(0.02)
    assert fake.readings[-1]["rng_1"] > 4.0  # out of its reach


@pytest.mark.parametrize("channels", [16, 32])
def test_outputs_are_for_ardupilots_rotors(start: Start, channels: int) -> None:
    flight = start()
    flight.ardupilot(0, lambda _: [0.40, 0.45, 0.50, 0.55], channels=channels)
    flight.ardupilot(1, lambda _: [-0.1, -1.0, 0.0, -0.5])  # pulses too short to turn a motor
    speeds = flight.fly(1.0).rotor_vel
    fastest = np.sqrt(12.13 / 8.54858e-6)  # drone.toml
    np.testing.assert_allclose(speeds[0] / fastest, (0.40, 0.55, 0.45, 0.50), rtol=0.01)
    assert not speeds[1].any()
    assert flight.door.status().refused == 0


def test_time_begins_when_all_have_come(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    flight = start()
    steps = flight.physics.step(100)
    flight.ardupilot(0)
    until(lambda: any("cf0: an ArduPilot has connected" in t for t in messages(caplog)), "cf0")
    assert not steps.done()
    assert flight.physics.snapshot.tick == PERIOD
    flight.ardupilot(1)
    assert steps.result(T).tick == 101


def test_frames_that_are_sent_again_are_answered_and_do_not_step_twice(start: Start) -> None:
    digests = []
    for deaf in ((), (0, 3, 4, 200)):
        flight = start()
        fake = flight.ardupilot(0, HoverReading(1.0), deaf=deaf)
        flight.ardupilot(1)
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
    fake = flight.ardupilot(0, HoverReading(1.0))
    flight.ardupilot(1)
    flight.fly(2.0)
    fake.impatience = 0.0
    until(lambda: fake.resent >= 20, "frames that are sent again")
    fake.impatience = 60.0
    flight.fly(1.0)
    assert len(fake.readings) == 3 * RATE
    assert (np.diff(times(fake)) > 0).all()  # none is a second answer to a frame


def test_a_silent_ardupilot_is_named_and_time_goes_on_without_it(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(timeout=1.0)
    silent, other = (flight.ardupilot(i, HoverReading(1.0)) for i in range(2))
    before = flight.fly(4.0)
    silent.silent = True
    after = flight.fly(0.2)
    assert flight.door.status().timeouts >= 49
    (late,) = [t for t in messages(caplog) if "no command within 1 s for cf0:" in t]
    assert "ardupilot" in late
    np.testing.assert_allclose(after.pos[1], before.pos[1], atol=0.05)
    assert after.rotor_vel[0].min() > 0.5 * before.rotor_vel[0].min()  # the last outputs stay
    silent.silent = False
    flight.fly(0.2)
    assert any("in time again" in text for text in messages(caplog))
    assert flight.door.status().attached == NAMES
    assert times(silent)[-1] == times(other)[-1]  # its time has not stood still


def test_a_pause_overtakes_the_wait_for_a_silent_ardupilot(start: Start) -> None:
    flight = start()
    flight.ardupilot(0, HoverReading(1.0))
    silent = flight.ardupilot(1)
    flight.fly(1.0)
    silent.silent = True
    flight.physics.resume().result(T)
    at = flight.physics.pause().result(T).tick
    silent.silent = False
    assert at <= FREQ + 1 + 2 * PERIOD


def test_ardupilot_dies_its_rotors_stop_and_a_new_one_takes_off(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    dies, lives = (flight.ardupilot(i, HoverReading(1.0)) for i in range(2))
    before = flight.fly(4.0)
    dies.end()
    after = flight.fly(1.0)
    assert after.rotor_vel[0].max() < 0.1 * before.rotor_vel[0].min()
    np.testing.assert_allclose(after.pos[1], before.pos[1], atol=0.05)
    assert flight.door.status().attached == ("cf1",)
    assert sum("cf0: the ArduPilot at" in t and "has ended" in t for t in messages(caplog)) == 1
    again = flight.ardupilot(0, HoverReading(0.7))
    until(lambda: sum("cf0: an ArduPilot has connected" in t for t in messages(caplog)) == 1, "")
    rests = flight.fly(0.5).pos[0]
    np.testing.assert_allclose(flight.fly(5.0).pos[0, 2], rests[2] + 0.7, atol=0.05)
    assert times(again)[0] == pytest.approx(1 / RATE)
    assert times(lives)[-1] == pytest.approx(10.5)


def test_ardupilots_time_goes_on_through_a_reset(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.ardupilot(0, HoverReading(1.0))
    flight.ardupilot(1)
    flight.fly(2.0)
    assert flight.physics.reset().result(T).pos[0, 2] < 0.2
    flight.fly(0.1)
    np.testing.assert_allclose(np.diff(times(fake)), 1 / RATE, atol=1e-6)
    assert sum("start ArduPilot again" in text for text in messages(caplog)) == 2


def test_an_ardupilot_that_flew_before_the_simulator_is_taken(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.ardupilot(0, HoverReading(1.0), count=2**32 - 100)  # whose count overflows
    flight.ardupilot(1)
    after = flight.fly(4.0)
    assert fake.count == 4 * RATE - 100
    assert after.pos[0, 2] == pytest.approx(1.08, abs=0.05)
    assert any("cf0" in t and "has flown before" in t for t in messages(caplog))


def test_a_second_ardupilot_and_old_frames_are_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.ardupilot(0, lambda _: [0.2] * 4)
    flight.ardupilot(1)
    flight.fly(1.0)
    second = flight.ardupilot(0, lambda _: [0.9] * 4)
    fake.send(fake.packet([0.9] * 4, 7))
    until(lambda: second.ident is not None, "its start")
    after = flight.fly(0.5)
    assert not second.readings
    assert after.rotor_vel[0].max() < 400
    said = " ".join(messages(caplog))
    assert "has the ArduPilot at 127.0.0.1" in said
    assert "packet 7 of ArduPilot is refused: expected" in said
    assert flight.door.status().attached == NAMES


def test_an_ardupilot_that_begins_anew_at_its_port_gets_a_new_time(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.ardupilot(0, lambda _: [0.4] * 4)
    flight.ardupilot(1)
    flight.fly(1.0)
    fake.count = 0
    fake.send(fake.packet([0.0] * 4, 0))
    flight.fly(0.5)
    assert any("cf0: an ArduPilot has started again" in text for text in messages(caplog))
    late = times(fake)[RATE + 2 :]
    assert late[-1] < 1.0 and (np.diff(late) > 0).all()


def test_outputs_that_are_no_outputs_are_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    outputs = iter([[0.5] * 4] * RATE + [[1.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 64.0]] * 5)
    flight.ardupilot(0, lambda _: next(outputs, [0.5] * 4))
    flight.ardupilot(1)
    before = flight.fly(1.0)
    after = flight.fly(0.1)
    assert flight.door.status().refused == 10
    assert any("cf0" in text and "from 0 to 1" in text for text in messages(caplog))
    np.testing.assert_allclose(after.rotor_vel[0], before.rotor_vel[0], rtol=0.01)


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
    flight.ardupilot(0, HoverReading(1.0))
    flight.ardupilot(1, HoverReading(1.5))
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
    flight.ardupilot(1, HoverReading(1.0))
    command = [sys.executable, "test/fake_ardupilot.py", str(flight.port), "600"]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": "test"}) as process:
        flight.fly(2.0)
        process.kill()
    flight.fly(0.1)
    assert any("cf0: the ArduPilot at" in t and "has ended" in t for t in messages(caplog))
    assert flight.fly(0.5).rotor_vel[0].max() < 50


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"port": 65_535}, ("ardupilot.port", "65545")),
        ({"port": 80}, ("port", "1024", "80")),
        ({"rate": 300}, ("ardupilot.rate", "300", "250 or 500")),
        ({"rate": 5000}, ("rate", "2000", "5000")),
        ({"latitude": 91.0}, ("latitude", "90", "91")),
        ({"altitude": float("nan")}, ("altitude", "nan")),
        ({"timeout": 0.0}, ("timeout", "0.001", "0")),
    ],
)
def test_settings_that_cannot_be_are_refused(
    settings: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=words[0]) as refused:
        ArduPilot(**settings).open(CONTEXT)
    assert all(word in str(refused.value) for word in words)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"udp://127.0.0.1:{port}"):
            ArduPilot(port=port).open(CONTEXT)
    with pytest.raises(OSError, match=r"udp://192\.0\.2\.1:9002"):
        ArduPilot(address="192.0.2.1").open(CONTEXT)
