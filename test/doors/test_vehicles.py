"""Doors with an autopilot for each drone, in lock-step: what is the same for all kinds of them."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import fake_px4
import numpy as np
import pytest
from door_flight import (
    ARDUPILOT,
    CONTEXT,
    FASTEST,
    FREQ,
    NAMES,
    PERIOD,
    PX4,
    RATE,
    Kind,
    Start,
    T,
    flights,
    messages,
    until,
)


@pytest.fixture(params=[PX4, ARDUPILOT], ids=lambda kind: kind.title)
def kind(request: pytest.FixtureRequest) -> Kind:
    fake_px4.dialect()  # which skips the tests without pymavlink
    kind: Kind = request.param
    return kind


@pytest.fixture
def start(kind: Kind, caplog: pytest.LogCaptureFixture) -> Iterator[Start]:
    caplog.set_level(logging.INFO)
    with flights(kind) as start:
        yield start


def test_two_hover_within_5_cm_and_the_flight_repeats_to_the_bit(start: Start, kind: Kind) -> None:
    digests = []
    for order in ((0, 1), (1, 0)):
        flight = start()
        fakes = [flight.hovering(i, (1.0, 1.5)[i]) for i in order]
        before = flight.physics.snapshot.pos
        wanted = before + np.array([(0, 0, 1.0), (0, 0, 1.5)])
        for seconds in (5.0, 1.0):
            np.testing.assert_allclose(flight.fly(seconds).pos, wanted, atol=0.05)
        status = flight.door.status()
        assert (set(status.attached), status.cycles) == (set(NAMES), 6 * RATE)
        assert (status.timeouts, status.refused) == (0, 0)
        for fake in fakes:
            # ArduPilot adds each step in whole microseconds, rounded down.
            steps = np.diff(kind.usec(fake), prepend=0).astype(int)
            assert steps.tolist() == [1_000_000 // RATE] * (6 * RATE)
        digests.append(flight.digest.digest())
        flight.end()
    assert digests[0] == digests[1]


def test_outputs_are_for_the_rotors_of_quadrotor_x(start: Start) -> None:
    flight = start()
    flight.fake(0, lambda *_: [0.40, 0.45, 0.50, 0.55])
    flight.fake(1, lambda *_: [0.0] * 4)
    speeds = flight.fly(1.0).rotor_vel
    np.testing.assert_allclose(speeds[0] / FASTEST, (0.40, 0.55, 0.45, 0.50), rtol=0.01)
    assert not speeds[1].any()


def test_time_begins_when_all_have_come(
    start: Start, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    steps = flight.physics.step(100)
    flight.fake(0)
    until(lambda: any(f"cf0: {kind.connected}" in text for text in messages(caplog)), "cf0")
    assert not steps.done()
    assert flight.physics.snapshot.tick == PERIOD
    flight.fake(1)
    assert steps.result(T).tick == 101


def test_a_stranger_is_no_autopilot_and_keeps_none_out(
    start: Start, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    with socket.socket(type=kind.socket) as silent, socket.socket(type=kind.socket) as garbled:
        for stranger in (silent, garbled):
            stranger.connect(("127.0.0.1", flight.port))
        garbled.sendall(bytes(range(256)))
        steps = flight.physics.step(PERIOD)
        flight.fake(1)
        until(lambda: any(f"cf1: {kind.connected}" in text for text in messages(caplog)), "cf1")
        assert not any(f"cf0: {kind.connected}" in text for text in messages(caplog))
        assert not steps.done()
        flight.fake(0)
        steps.result(T)
        flight.fly(0.1)
        assert flight.door.status().attached == NAMES
        assert sum(kind.connected in text for text in messages(caplog)) == len(NAMES)


def test_a_silent_one_is_named_and_time_goes_on_without_it(
    start: Start, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(timeout=1.0)
    silent, other = flight.hovering(0), flight.hovering(1)
    before = flight.fly(4.0)
    silent.silent = True
    after = flight.fly(0.2)
    assert flight.door.status().timeouts >= 49  # one of them may have been answered before
    (late,) = [text for text in messages(caplog) if "no command within" in text]
    assert f"{kind.title.lower()}: no command within 1 s for cf0:" in late
    np.testing.assert_allclose(after.pos[1], before.pos[1], atol=0.05)
    assert after.rotor_vel[0].min() > 0.5 * before.rotor_vel[0].min()  # the last outputs stay
    silent.silent = False
    flight.fly(0.2)
    assert any("in time again" in text for text in messages(caplog))
    assert flight.door.status().timeouts < 100
    assert flight.door.status().attached == NAMES
    assert kind.usec(silent)[-1] == kind.usec(other)[-1]  # its time has not stood still


def test_a_pause_overtakes_the_wait_for_a_silent_one(start: Start) -> None:
    flight = start()
    flight.hovering(0)
    silent = flight.fake(1)
    flight.fly(1.0)
    silent.silent = True
    flight.physics.resume().result(T)
    at = flight.physics.pause().result(T).tick
    silent.silent = False
    assert at <= FREQ + 1 + 2 * PERIOD


def test_one_dies_its_rotors_stop_and_a_new_one_takes_off(
    start: Start, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    dies, lives = flight.hovering(0), flight.hovering(1)
    before = flight.fly(4.0)
    dies.end()
    after = flight.fly(1.0)
    assert after.rotor_vel[0].max() < 0.1 * before.rotor_vel[0].min()
    np.testing.assert_allclose(after.pos[1], before.pos[1], atol=0.05)
    assert flight.door.status().attached == ("cf1",)
    assert sum("cf0" in t and "has to be started again" in t for t in messages(caplog)) == 1
    caplog.clear()
    flight.hovering(0, 0.7)
    flight.fly_until(lambda: any(f"cf0: {kind.connected}" in text for text in messages(caplog)))
    rests = flight.fly(0.5).pos[0]
    np.testing.assert_allclose(flight.fly(5.0).pos[0, 2], rests[2] + 0.7, atol=0.05)
    assert (np.diff(kind.usec(lives), prepend=0).astype(int) == 1_000_000 // RATE).all()


def test_time_goes_on_through_a_reset(
    start: Start, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    fake = flight.hovering(0)
    flight.hovering(1)
    flight.fly(3.0)
    assert flight.physics.state.reset().result(T).pos[0, 2] < 0.2
    flight.fly(0.1)
    assert (np.diff(kind.usec(fake), prepend=0).astype(int) == 1_000_000 // RATE).all()
    assert sum(f"start {kind.title} again" in text for text in messages(caplog)) == 2


def test_outputs_that_are_no_outputs_are_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start()
    outputs = iter([[0.5] * 4] * RATE + [[1.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 64.0]] * 5)
    flight.fake(0, lambda *_: next(outputs, [0.5] * 4))
    flight.fake(1)
    before = flight.fly(1.0)
    after = flight.fly(0.1)
    assert flight.door.status().refused == 10
    assert any("cf0" in text and "from 0 to 1" in text for text in messages(caplog))
    np.testing.assert_allclose(after.rotor_vel[0], before.rotor_vel[0], rtol=0.01)


def test_a_port_that_is_taken_is_named(kind: Kind) -> None:
    with socket.socket(type=kind.socket) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"://127.0.0.1:{port}"):
            kind.settings(port=port).open(CONTEXT)
    with pytest.raises(OSError, match=rf"://192\.0\.2\.1:{kind.settings().port}"):
        kind.settings(address="192.0.2.1").open(CONTEXT)
