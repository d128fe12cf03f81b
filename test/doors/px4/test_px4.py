"""PX4's door against fakes that speak through pymavlink: flights, losses, and what is refused."""

from __future__ import annotations

import hashlib
import itertools
import logging
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import fake_px4
import numpy as np
import physics_helpers
import pytest
from fake_px4 import RATE, FakePx4, Hover

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.px4 import Px4
from crazyflow_ros.doors.px4.mavlink import HilActuatorControls, encode
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot

T = 120.0  # s, no wait is longer
NAMES = ("cf0", "cf1")
FREQ, PERIOD = 500, 2
FRAME = 1_000_000 // RATE  # microseconds
CONFIG = SimulationConfig.of(  # which compiles what the program does
    RealisticOptions(drone_model="hb_x500", real_time_factor=0.0, start_paused=True)
)
until = partial(physics_helpers.until, timeout=T)


@pytest.fixture(autouse=True)
def has_pymavlink() -> None:
    fake_px4.dialect()


class Flight:
    """A simulation whose drones fakes fly."""

    def __init__(self, **settings: Any) -> None:
        self.port, self._fakes = fake_px4.free_ports(), list[FakePx4]()
        waits = {"timeout": T, "boot_timeout": T} | settings
        context = DoorContext.of(CONFIG, NAMES, logging.getLogger("px4"))
        self.door = Px4(port=self.port, **waits).open(context)
        self.physics = PhysicsThread(CONFIG, NAMES, self.door)
        self.digest = hashlib.sha256()
        self.physics.every(RATE, self._note, "test")
        self.physics.start()

    def _note(self, snapshot: Snapshot) -> None:
        if snapshot.tick % PERIOD == 0:
            for field in (snapshot.pos, snapshot.quat, snapshot.rotor_vel):
                self.digest.update(field.tobytes())

    def px4(self, drone: int, *args: Any, **options: Any) -> FakePx4:
        fake = FakePx4(self.port + drone, *args, **options)
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
def start() -> Iterator[Start]:
    flights: list[Flight] = []

    def start(**settings: Any) -> Flight:
        flights.append(Flight(**settings))
        return flights[-1]

    yield start
    for flight in flights:
        flight.end()


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_two_px4_hover_within_5_cm_and_the_flight_repeats_to_the_bit(start: Start) -> None:
    digests = []
    for order in ((0, 1), (1, 0)):
        flight = start()
        fakes = {i: flight.px4(i, Hover((1.0, 1.5)[i])) for i in order}
        before = flight.physics.snapshot.pos
        after = flight.fly(5.0)
        wanted = before + np.array([(0, 0, 1.0), (0, 0, 1.5)])
        np.testing.assert_allclose(after.pos, wanted, atol=0.05)
        np.testing.assert_allclose(flight.fly(1.0).pos, wanted, atol=0.05)
        status = flight.door.status()
        assert (set(status.attached), status.cycles) == (set(NAMES), 6 * RATE)
        assert (status.timeouts, status.refused) == (0, 0)
        for fake in fakes.values():
            times = [sensor.time_usec for sensor in fake.sensors]
            assert times == list(range(FRAME, FRAME * len(times) + 1, FRAME))
        digests.append(flight.digest.digest())
        flight.end()
    assert digests[0] == digests[1]


def test_readings_are_those_of_px4s_frames_and_units(start: Start) -> None:
    flight = start(range_finder=True, latitude=10.0, longitude=20.0, altitude=100.0)
    flight.px4(1)
    fake = flight.px4(0)
    snapshot = flight.fly(2.0)
    east, north, up = snapshot.pos[0]  # it faces east
    n, sensors = 2 * RATE, fake.sensors
    updated = [sensor.fields_updated for sensor in sensors]
    assert len(updated) == n
    assert sum(fields & 0x3F == 0x3F for fields in updated) == n
    assert sum(fields & 0x1C0 == 0x1C0 for fields in updated) == n / 5
    assert sum(fields & 0x1A00 == 0x1A00 for fields in updated) == n / 5
    assert sum(fields & ~0x1BFF for fields in updated) == 0

    def of(*names: str) -> np.ndarray:
        fresh = [s for s in sensors if s.fields_updated & 0x1000]
        return np.array([[getattr(s, name) for name in names] for s in fresh])

    force, rates = of("xacc", "yacc", "zacc"), of("xgyro", "ygyro", "zgyro")
    np.testing.assert_allclose(force.mean(axis=0), (0, 0, -9.81), atol=0.1)
    np.testing.assert_allclose(rates.mean(axis=0), 0, atol=0.01)
    field = of("xmag", "ymag", "zmag")
    level, declination, inclination = 0.484, np.radians(3.5), np.radians(63.4)
    expected = level * np.array(
        (
            np.cos(inclination) * np.sin(declination),
            -np.cos(inclination) * np.cos(declination),
            np.sin(inclination),
        )
    )
    np.testing.assert_allclose(field.mean(axis=0), expected, atol=2e-3)
    for noisy in (force, rates, field, of("abs_pressure")):
        assert (noisy.std(axis=0) > 1e-4).all()
    # 11.777 Pa/m at 100 m in the standard atmosphere, 1001.29 hPa
    np.testing.assert_allclose(of("abs_pressure").mean(), 1001.29 - 0.1178 * up, atol=0.3)
    np.testing.assert_allclose(of("pressure_alt").mean(), 100.0 + up, atol=3.0)
    np.testing.assert_allclose(of("temperature").mean(), 14.35, atol=0.01)

    fixes = np.array([(f.lat, f.lon, f.alt) for f in fake.fixes]) * (1e-7, 1e-7, 1e-3)
    assert len(fixes) == 20
    metres = np.array((110_608.0, 109_639.0, 1.0))  # of a degree at 10 degrees north, WGS 84
    np.testing.assert_allclose(
        (fixes.mean(axis=0) - (10, 20, 100)) * metres, (north, east, up), atol=0.1
    )
    assert {(fix.fix_type, fix.eph) for fix in fake.fixes} == {(3, 30)}
    truth = fake.truths[-1]
    np.testing.assert_allclose(
        truth.attitude_quaternion, (np.sqrt(0.5), 0, 0, np.sqrt(0.5)), atol=1e-3
    )
    assert (truth.xacc, truth.yacc, truth.zacc) == pytest.approx((0, 0, -1000), abs=5)
    assert {r.orientation for r in fake.ranges} == {25}
    np.testing.assert_allclose(
        np.mean([r.current_distance for r in fake.ranges]), 100 * up, atol=3.0
    )


def test_outputs_are_for_px4s_rotors(start: Start) -> None:
    flight = start()
    flight.px4(0, lambda *_: [0.40, 0.45, 0.50, 0.55])
    flight.px4(1, lambda *_: [0.0] * 4)
    speeds = flight.fly(1.0).rotor_vel
    fastest = np.sqrt(12.13 / 8.54858e-6)  # drone.toml
    np.testing.assert_allclose(speeds[0] / fastest, (0.40, 0.55, 0.45, 0.50), rtol=0.01)
    assert not speeds[1].any()


def test_time_begins_when_all_have_come(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    flight = start()
    steps = flight.physics.step(100)
    flight.px4(0)
    until(lambda: any("cf0: a PX4 has connected" in text for text in messages(caplog)), "cf0")
    assert not steps.done()
    assert flight.physics.snapshot.tick == PERIOD
    flight.px4(1)
    assert steps.result(T).tick == 101


def test_time_runs_on_while_px4_boots_and_one_that_never_answers_is_named(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(boot_timeout=0.001)
    flight.px4(0, silent=True)
    fake = flight.px4(1, Hover(0.5), boots=10)
    after = flight.fly(4.2)
    np.testing.assert_allclose(after.pos[1, 2], 0.58, atol=0.05)
    assert flight.door.status().attached == ("cf1",)
    assert fake.answers == len(fake.sensors) - 10
    assert flight.door.status().timeouts == 0
    assert sum("cf0: PX4 has answered none of 1000 frames" in t for t in messages(caplog)) == 1


def test_a_silent_px4_is_named_and_time_goes_on_without_it(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    flight = start(timeout=0.3)
    silent, other = flight.px4(0, Hover(1.0)), flight.px4(1, Hover(1.0))
    before = flight.fly(5.0)
    silent.silent = True
    after = flight.fly(0.2)
    assert flight.door.status().timeouts == 50
    (late,) = [text for text in messages(caplog) if "no command within" in text]
    assert "px4" in late and "cf0" in late and "cf1" not in late
    np.testing.assert_allclose(after.pos[1], before.pos[1], atol=0.05)
    assert after.rotor_vel[0].min() > 0.5 * before.rotor_vel[0].min()  # the last outputs stay
    silent.silent = False
    flight.fly(0.2)
    assert any("in time again" in text for text in messages(caplog))
    assert flight.door.status().timeouts < 100
    assert len(other.sensors) == len(silent.sensors)


def test_answers_that_are_late_stay_in_force(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(timeout=0.1, boot_timeout=0.01)
    flight.px4(0, lambda *_: [0.5] * 4, delay=1)
    flight.px4(1)
    after = flight.fly(0.4)
    assert flight.door.status().timeouts > 90
    assert after.rotor_vel[0].min() > 400.0
    assert sum("no command within" in text for text in messages(caplog)) == 1


def test_a_pause_overtakes_the_wait_for_a_silent_px4(start: Start) -> None:
    flight = start()
    flight.px4(0, Hover(1.0))
    silent = flight.px4(1)
    flight.fly(2.0)
    silent.silent = True
    flight.physics.resume().result(T)
    at = flight.physics.pause().result(T).tick
    silent.silent = False
    assert at <= 2 * FREQ + 1 + PERIOD


def test_px4_dies_its_rotors_stop_and_a_new_one_takes_off(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    flight = start()
    dies, lives = flight.px4(0, Hover(1.0)), flight.px4(1, Hover(1.0))
    before = flight.fly(4.0)
    dies.end()
    after = flight.fly(1.0)
    assert after.rotor_vel[0].max() < 0.1 * before.rotor_vel[0].min()
    np.testing.assert_allclose(after.pos[1], before.pos[1], atol=0.05)
    assert flight.door.status().attached == ("cf1",)
    assert any("cf0" in t and "has to be started again" in t for t in messages(caplog))
    again = flight.px4(0, Hover(0.7))
    rests = flight.fly(0.5).pos[0]
    np.testing.assert_allclose(flight.fly(5.0).pos[0, 2], rests[2] + 0.7, atol=0.05)
    assert again.sensors[0].time_usec > dies.sensors[-1].time_usec
    assert len(lives.sensors) == 10.5 * RATE
    assert any("cf0: PX4 has armed it" in text for text in messages(caplog))


def test_px4s_time_goes_on_through_a_reset(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    flight = start()
    fake = flight.px4(0, Hover(1.0))
    flight.px4(1, Hover(1.0))
    flight.fly(3.0)
    after = flight.physics.reset().result(T)
    assert after.pos[0, 2] < 0.2
    flight.fly(0.1)
    times = [sensor.time_usec for sensor in fake.sensors]
    assert times == list(range(FRAME, FRAME * len(times) + 1, FRAME))
    assert sum("start PX4 again" in text for text in messages(caplog)) == 2


def test_above_250_hz_missing_answers_are_no_fault(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(rate=500, boot_timeout=0.01)
    for drone in range(2):
        flight.px4(drone, lambda *_: [0.4] * 4, every=2)
    assert flight.fly(1.0).rotor_vel.min() > 400.0
    assert flight.door.status().timeouts == 0
    assert not [text for text in messages(caplog) if "no command" in text]


def test_a_second_connection_is_refused(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    flight = start()
    flight.px4(0)
    flight.px4(1)
    flight.fly(0.1)
    second = flight.px4(0)
    flight.fly(0.1)
    second.join(T)
    assert not second.sensors
    assert any("refuses a second connection" in text for text in messages(caplog))
    assert flight.door.status().attached == NAMES


def test_outputs_that_are_no_outputs_are_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    outputs = iter([[0.5] * 4] * RATE + [[float("nan"), 0.5, 0.5, 0.5], [1.5] * 4, [-1.0] * 4] * 9)
    flight.px4(0, lambda *_: next(outputs, [0.5] * 4))
    flight.px4(1)
    before = flight.fly(1.0)
    after = flight.fly(0.1)
    assert flight.door.status().refused == 25
    assert any("cf0" in text and "from 0 to 1" in text for text in messages(caplog))
    np.testing.assert_allclose(after.rotor_vel[0], before.rotor_vel[0], rtol=0.01)


def test_a_px4_that_does_not_read_blocks_nobody(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(boot_timeout=0.001)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", flight.port))
        flight.px4(1, Hover(0.5))
        flight.physics.resume().result(T)
        until(lambda: any("does not read" in t for t in messages(caplog)), "the message")
        flight.physics.pause().result(T)
    np.testing.assert_allclose(flight.fly(5.0).pos[1, 2], 0.58, atol=0.05)


def hostile(rng: random.Random) -> bytes:
    """Return bytes that no PX4 sends."""
    controls = [rng.choice((0.5, float("nan"), float("inf"), -1e30, 1e30)) for _ in range(16)]
    time, flags = rng.choice((0, 1, 4000, 2**64 - 1)), rng.getrandbits(64)
    frame = encode(HilActuatorControls(time, flags, tuple(controls), rng.randrange(256)), 0)
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(rng.randrange(300))
    if kind == 1:
        bad = bytearray(frame)
        bad[rng.randrange(len(bad))] = rng.randrange(256)
        return bytes(bad)
    if kind == 2:
        return frame[: rng.randrange(len(frame))]
    if kind == 3:
        return bytes((0xFD, 255, rng.randrange(256), 0, 0, 0, 0, 93, 0, 0)) * rng.randrange(9)
    return frame


def test_hostile_bytes_stop_neither_time_nor_others(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight, rng = start(timeout=0.01, boot_timeout=0.001), random.Random(0)
    other = flight.px4(1)
    pieces = iter([hostile(rng) for _ in range(20_000)])
    flight.physics.resume().result(T)
    connections = 0
    while some := list(itertools.islice(pieces, 4000)):
        connections += 1
        with (
            socket.create_connection(("127.0.0.1", flight.port), T) as stranger,
            suppress(OSError),  # it is thrown out
        ):
            for piece in some:
                stranger.sendall(piece)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(4096):
                pass
    flight.physics.pause().result(T)
    assert connections == 5
    assert other.is_alive()
    other.end()
    fake, _ = (flight.px4(drone, Hover((0.5, 1.0)[drone])) for drone in range(2))
    after = flight.fly(5.0)
    np.testing.assert_allclose(after.pos[:, 2], (0.58, 1.08), atol=0.05)
    assert fake.answers == len(fake.sensors)


def test_bytes_that_are_no_messages_end_the_connection(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(timeout=0.05)
    flight.px4(0).send(bytes(70_000))
    flight.px4(1)
    flight.fly(0.2)
    assert flight.door.status().attached == ("cf1",)
    assert any("no message of a PX4" in text for text in messages(caplog))


CONTEXT = DoorContext.of(CONFIG, NAMES, logging.getLogger("px4"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"port": 65_535}, ("px4.port", "65536")),
        ({"port": 80}, ("port", "1024", "80")),
        ({"rate": 300}, ("px4.rate", "300", "250 or 500")),
        ({"rate": 125}, ("magnetometer", "125", "50")),
        ({"rate": 5000}, ("rate", "1000", "5000")),
        ({"latitude": 91.0}, ("latitude", "90", "91")),
        ({"altitude": 1e6}, ("altitude", "19000", "1000000")),
        ({"timeout": 0.0}, ("timeout", "0.001", "0")),
        ({"magnetic_field": float("nan")}, ("magnetic_field", "nan")),
    ],
)
def test_settings_that_cannot_be_are_refused(
    settings: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=words[0]) as refused:
        Px4(**settings).open(CONTEXT)
    assert all(word in str(refused.value) for word in words)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"tcp://127.0.0.1:{port}"):
            Px4(port=port).open(CONTEXT)
    with pytest.raises(OSError, match=r"tcp://192\.0\.2\.1:4560"):
        Px4(address="192.0.2.1").open(CONTEXT)
