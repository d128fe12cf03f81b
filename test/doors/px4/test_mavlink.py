"""Our frames against pymavlink's, byte by byte, and streams of bytes that are none."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import fake_px4
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crazyflow_ros.doors.px4.mavlink import (
    CommandLong,
    DistanceSensor,
    Heartbeat,
    HilActuatorControls,
    HilGps,
    HilOpticalFlow,
    HilSensor,
    HilStateQuaternion,
    Message,
    Odometry,
    Parser,
    encode,
)

SENSOR = HilSensor(
    4000,
    (0.5, -0.25, -9.8125),
    (0.125, 0.0, -2.0),
    (0.25, 0.0, 0.5),
    950.5,
    0.0,
    488.0,
    11.5,
    63,
    0,
)
CONTROLS = HilActuatorControls(4000, 1, (0.5, 0.25, 0.75, 1.0) + (0.0,) * 12, 129)
MESSAGES = {
    "heartbeat": Heartbeat(7, 2, 12, 129, 3, 3),
    "command_long": CommandLong((115.0, 5000.0, 0.0, 0.0, 0.0, 0.0, 0.0), 511, 1, 1, 0),
    "hil_sensor": SENSOR,
    "hil_gps": HilGps(
        2**40, 473977420, -85455940, 488000, 30, 40, 512, (-300, 400, 32767), 35999, 3, 14, 0, 0
    ),
    "hil_state_quaternion": HilStateQuaternion(
        *(8000, (0.5, 0.5, -0.5, 0.5), (0.125, -0.25, 4.0), 473977420, 85455940, -1000),
        *((-1, 2, -3), 4, 5, (6, -7, 1000)),
    ),
    "hil_actuator_controls": CONTROLS,
    "distance_sensor": DistanceSensor(
        4, 4, 400, 123, 0, 0, 25, 255, 0.5, 0.25, (1.0, 0.0, 0.0, 0.0), 100
    ),
    "hil_optical_flow": HilOpticalFlow(
        8000, 20_000, 0.125, -0.25, (0.5, 0.0, -1.0), 0, -1.0, -100, 1, 255
    ),
    "odometry": Odometry(
        *(8000, (1.0, -2.0, 3.0), (0.5, 0.5, -0.5, 0.5), (0.25, 0.0, -4.0), (0.125, 0.0, 2.0)),
        *((0.5, *[0.0] * 19, 0.25), (2.0, *[0.0] * 20), 1, 12, 3, 3, 100),
    ),
}


@pytest.fixture
def theirs() -> ModuleType:
    return fake_px4.dialect()


def numbers(message: Message) -> Iterator[float]:
    for part in message:
        yield from part if isinstance(part, tuple) else (part,)


def encoded_by_them(theirs: ModuleType, name: str, message: Message, sequence: int) -> bytes:
    """Give the numbers to pymavlink in the order of the wire."""
    kind = getattr(theirs, f"MAVLink_{name}_message")
    values, fields = iter(numbers(message)), {}
    for field, n in zip(kind.ordered_fieldnames, kind.array_lengths):
        fields[field] = [next(values) for _ in range(n)] if n else next(values)
    link = theirs.MAVLink(None, srcSystem=1, srcComponent=200)
    link.seq = sequence
    return bytes(kind(**fields).pack(link))


@pytest.mark.parametrize("name", MESSAGES)
def test_frames_are_those_of_pymavlink_and_are_read_back(theirs: ModuleType, name: str) -> None:
    message = MESSAGES[name]
    frame = encode(message, 259)
    assert frame == encoded_by_them(theirs, name, message, 3)
    assert list(Parser().feed(frame)) == [message]


def test_a_message_of_zeros_keeps_one_byte(theirs: ModuleType) -> None:
    message = Heartbeat(0, 0, 0, 0, 0, 0)
    frame = encode(message, 0)
    assert len(frame) == 13
    assert frame == encoded_by_them(theirs, "heartbeat", message, 0)
    assert list(Parser().feed(frame)) == [message]


def test_pymavlink_reads_our_stream(theirs: ModuleType) -> None:
    stream = b"".join(encode(message, i) for i, message in enumerate(MESSAGES.values()))
    found = theirs.MAVLink(None).parse_buffer(stream)
    assert [message.get_type().lower() for message in found] == list(MESSAGES)
    assert (found[2].zacc, found[2].fields_updated) == (-9.8125, 63)


def signed(theirs: ModuleType, message: Message) -> bytes:
    link = theirs.MAVLink(None, srcSystem=1, srcComponent=200)
    link.signing.secret_key, link.signing.sign_outgoing = bytes(32), True
    kind = theirs.MAVLink_hil_actuator_controls_message
    time, flags, controls, mode = message
    return bytes(kind(time_usec=time, controls=controls, mode=mode, flags=flags).pack(link))


def test_signed_frames_are_read_too(theirs: ModuleType) -> None:
    frame = signed(theirs, CONTROLS)
    assert len(frame) == len(encode(CONTROLS, 0)) + 13
    assert list(Parser().feed(frame + encode(SENSOR, 1))) == [CONTROLS, SENSOR]


def test_frames_of_other_messages_are_passed_over(theirs: ModuleType) -> None:
    link = theirs.MAVLink(None)
    other = bytes(theirs.MAVLink_statustext_message(6, b"\xfd hello \xfd").pack(link))
    assert list(Parser().feed(other + encode(CONTROLS, 0) + other)) == [CONTROLS]


@given(st.lists(st.binary(max_size=40)), st.integers(1, 50))
def test_messages_are_found_between_any_bytes_however_they_are_cut(
    between: list[bytes], cut: int
) -> None:
    frame = encode(CONTROLS, 0)
    # Enough after the last one: what looks like the header of a frame waits for its end.
    stream = frame.join([b"", *between, bytes(300)])
    parser, found = Parser(), []
    for start in range(0, len(stream), cut):
        found += parser.feed(stream[start : start + cut])
    assert found == [CONTROLS] * (len(between) + 1)


def test_damaged_frames_are_refused_and_the_next_one_is_found() -> None:
    frame, rng = encode(CONTROLS, 0), random.Random(1)
    for _ in range(2000):
        bad = bytearray(frame)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        found: list[Any] = list(Parser().feed(bytes(bad) + frame + bytes(300)))
        assert found == [CONTROLS]


def test_refused_bytes_are_counted_until_a_message_comes() -> None:
    parser = Parser()
    assert list(parser.feed(b"\xfe" * 1000)) == []
    assert parser.refused == 1000
    assert list(parser.feed(encode(CONTROLS, 0))) == [CONTROLS]
    assert parser.refused == 0
