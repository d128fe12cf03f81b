"""PX4's door against fakes that speak through pymavlink: flights, losses, and what is refused."""

from __future__ import annotations

import itertools
import logging
import random
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import fake_px4
import numpy as np
import pytest
from door_flight import (
    NAMES,
    PX4,
    RATE,
    Start,
    T,
    flights,
    messages,
    until,
)

from crazyflow_ros.doors.px4.mavlink import Heartbeat, HilActuatorControls, encode
from crazyflow_ros.runtime import DroneState


@pytest.fixture
def start(caplog: pytest.LogCaptureFixture) -> Iterator[Start]:
    caplog.set_level(logging.INFO)
    fake_px4.dialect()  # which skips the tests without pymavlink
    with flights(PX4) as start:
        yield start


def test_readings_are_those_of_px4s_frames_and_units(start: Start) -> None:
    flight = start(range_finder=True, latitude=10.0, longitude=20.0, altitude=100.0)
    flight.fake(1)
    fake = flight.fake(0)
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


def test_cameras_see_what_the_drones_do_over_the_floor(start: Start) -> None:
    flight = start(optical_flow=True, odometry=True)
    fakes = flight.fake(0), flight.fake(1)
    flight.fly(0.02)
    for fake in fakes:
        fake.flows.clear()
        fake.odometries.clear()
    motion = {"vel": (6, -4, 0), "ang_vel": (1.0, 0.5, 2.0)}  # facing east
    states = {
        "cf0": DroneState(pos=(1, 2, 2), **motion),
        "cf1": DroneState(pos=(8, 2, 5), **motion),
    }
    flight.physics.state.set_drone_states(states).result(T)
    flight.fly(0.02)
    near, far = (fake.flows[0] for fake in fakes)
    assert (near.integration_time_us, near.quality, far.quality) == (20_000, 255, 0)
    gyro = [getattr(near, f"integrated_{axis}gyro") / 0.02 for axis in "xyz"]
    np.testing.assert_allclose(gyro, (1.0, -0.5, -2.0), atol=0.1)
    # It moves to the right at 2 rad/s, and turns to the right at 1; forward at 3, and nose down.
    flow = np.array([near.integrated_x, near.integrated_y]) / 0.02
    np.testing.assert_allclose(flow, (-2.0 + 1.0, 3.0 - 0.5), atol=1.2)
    pose = fakes[0].odometries[0]
    assert (pose.frame_id, pose.child_frame_id, pose.estimator_type) == (1, 12, 3)
    np.testing.assert_allclose((pose.x, pose.y, pose.z), (2, 1, -2), atol=0.15)
    np.testing.assert_allclose(pose.q, (np.sqrt(0.5), 0, 0, np.sqrt(0.5)), atol=0.05)
    np.testing.assert_allclose((pose.vx, pose.vy, pose.vz), (6, 4, 0), atol=0.3)
    np.testing.assert_allclose(
        (pose.rollspeed, pose.pitchspeed, pose.yawspeed), (1, -0.5, -2), atol=0.1
    )
    upper = np.array(pose.pose_covariance)[[0, 6, 11, 15, 18, 20]]
    np.testing.assert_allclose(np.sqrt(upper), [0.005] * 3 + [0.003] * 3, rtol=1e-5)


def test_time_runs_on_while_px4_boots_and_one_that_never_answers_is_named(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(boot_timeout=0.001)
    flight.fake(0, silent=True)
    fake = flight.hovering(1, 0.5, boots=10)
    after = flight.fly(4.2)
    np.testing.assert_allclose(after.pos[1, 2], 0.65, atol=0.05)
    assert flight.door.status().attached == ("cf1",)
    assert fake.answers == len(fake.sensors) - 10
    assert flight.door.status().timeouts == 0
    assert sum("cf0: PX4 has answered none of 1000 frames" in t for t in messages(caplog)) == 1


def test_answers_that_are_late_stay_in_force(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(timeout=0.1, boot_timeout=0.01)
    flight.fake(0, lambda *_: [0.5] * 4, delay=1)
    flight.fake(1)
    flight.fly_until(lambda: len(flight.door.status().attached) == 2)
    before = flight.door.status().timeouts
    after = flight.fly(0.4)
    assert flight.door.status().timeouts - before > 90
    assert after.rotor_vel[0].min() > 400.0
    assert sum("no command within" in text for text in messages(caplog)) == 1


def test_a_new_px4_gets_the_time_of_those_that_fly(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    dies, lives = flight.hovering(0), flight.hovering(1)
    flight.fly(0.2)
    dies.end()
    flight.fly(0.1)
    again = flight.fake(0, lambda *_: [0.1] * 4)
    flight.fly(0.2)
    assert again.sensors[0].time_usec > dies.sensors[-1].time_usec
    assert again.sensors[-1].time_usec == lives.sensors[-1].time_usec
    assert any("cf0: PX4 has armed it" in text for text in messages(caplog))


def test_above_250_hz_missing_answers_are_no_fault(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(rate=500, boot_timeout=0.01)
    for drone in range(2):
        flight.fake(drone, lambda *_: [0.4] * 4, every=2)
    assert flight.fly(1.0).rotor_vel.min() > 400.0
    assert flight.door.status().timeouts == 0
    assert not [text for text in messages(caplog) if "no command" in text]


def test_a_second_connection_is_refused(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    flight = start()
    flight.fake(0)
    flight.fake(1)
    flight.fly(0.1)
    second = flight.fake(0)
    flight.fly(0.1)
    second.join(T)
    assert not second.sensors
    assert any("there is a PX4 already" in text for text in messages(caplog))
    assert flight.door.status().attached == NAMES


def test_guests_that_say_nothing_are_sent_away(
    start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = start()
    with ExitStack() as stack:
        address = "127.0.0.1", flight.port
        silent = [stack.enter_context(socket.create_connection(address, T)) for _ in range(30)]
        flight.fake(0)
        flight.fake(1)
        flight.fly_until(lambda: any("8 wait here" in text for text in messages(caplog)))
        assert silent[0].recv(1) == b""
        monkeypatch.setattr("crazyflow_ros.doors.px4.px4_link._PATIENCE", 0.1)
        flight.fly_until(lambda: select.select([silent[-1]], [], [], 0.0)[0])
        assert silent[-1].recv(1) == b""
        assert any("has sent no message" in text for text in messages(caplog))
    assert flight.door.status().attached == NAMES


def test_one_that_answers_nothing_makes_room_for_one_that_does(
    start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = start(boot_timeout=0.001)
    hangs = flight.fake(0, silent=True)
    flight.fake(1)
    flight.fly(0.1)
    monkeypatch.setattr("crazyflow_ros.doors.px4.px4_link._PATIENCE", 0.1)
    flight.physics.resume().result(T)
    until(lambda: len(hangs.sensors) > RATE, "a second")
    flight.fake(0)
    until(lambda: set(flight.door.status().attached) == set(NAMES), "the new one")
    flight.physics.pause().result(T)
    assert any("another one has come" in text for text in messages(caplog))


def test_outputs_that_are_no_numbers_are_refused(start: Start) -> None:
    flight = start()
    outputs = iter([[0.5] * 4] * RATE + [[float("nan"), 0.5, 0.5, 0.5], [-1.0] * 4])
    flight.fake(0, lambda *_: next(outputs, [0.5] * 4))
    flight.fake(1)
    before = flight.fly(1.0)
    after = flight.fly(0.1)
    assert flight.door.status().refused == 2
    np.testing.assert_allclose(after.rotor_vel[0], before.rotor_vel[0], rtol=0.01)


def test_a_px4_that_does_not_read_blocks_nobody(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(boot_timeout=0.001)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", flight.port))
        deaf.sendall(encode(Heartbeat(0, 2, 12, 0, 0, 3), 0))
        flight.hovering(1, 0.5)
        flight.physics.resume().result(T)
        until(lambda: any("does not read" in t for t in messages(caplog)), "the message")
        flight.physics.pause().result(T)
    np.testing.assert_allclose(flight.fly(5.0).pos[1, 2], 0.65, atol=0.05)


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
    other = flight.fake(1)
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
    fake, _ = flight.hovering(0, 0.5), flight.hovering(1)
    after = flight.fly(5.0)
    np.testing.assert_allclose(after.pos[:, 2], (0.65, 1.11), atol=0.05)
    assert fake.answers == len(fake.sensors)


def test_bytes_that_are_no_messages_end_the_connection(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(timeout=0.05)
    flight.fake(0).send(bytes(70_000))
    flight.fake(1)
    flight.fly(0.2)
    assert flight.door.status().attached == ("cf1",)
    assert any("no message of a PX4" in text for text in messages(caplog))
