"""Messages between simulators and requests in them: what comes in is checked."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from crazyflow_ros.hosts.calls import call, decoded, encoded, read_call
from crazyflow_ros.hosts.words import PROTOCOL, Hello, Word, inputs_of, packed, unpacked
from crazyflow_ros.runtime import (
    BatteryCharge,
    DroneState,
    MotorEfficiency,
    ResetScope,
    Wind,
)

INPUTS = np.arange(46, dtype=np.float32).reshape(2, 23)
INPUTS[:, -7] = 5, -1  # levels
LEVELS = range(-1, 8)
WORD = Word(
    *("view", 3, 125, 1, "digest", False, True, 130),
    (call("reset", [ResetScope.state], {}),),
    INPUTS.tobytes(),
)


def test_messages_arrive_as_they_were_sent() -> None:
    hello = Hello(PROTOCOL, {"freq": 500, "wind": [0.1, math.inf]}, ("cf0",))
    assert unpacked(packed(hello)) == hello
    assert unpacked(packed(WORD)) == WORD
    assert (inputs_of(WORD, INPUTS, LEVELS) == INPUTS).all()


def text(**changes: Any) -> bytes:
    """The bytes of a word with other values."""
    values = {name: value for name, value in vars(WORD).items() if name != "inputs"} | changes
    content = json.dumps(values).encode()
    return b"cfrh" + struct.pack("<I", len(content)) + content


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "not a message of crazyflow_ros: 0 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "not a message of crazyflow_ros"),
        (text(tick="125"), "tick: expected a whole number"),
        (text(tick=True), "tick: expected a whole number"),
        (text(unknown=1), "there is no field 'unknown'"),
        (text(requests=[1]), "requests: expected"),
        (text(requests=[{}] * 1001), "at most 1000 requests, got 1001"),
        (b"cfrh" + struct.pack("<I", 1 << 30) + b"{", "delimiter|Expecting"),
        (b"cfrh" + struct.pack("<I", 200_000) + b"[" * 200_000, "nested too deeply"),
    ],
)
def test_other_messages_are_refused(message: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        unpacked(message)


@given(some.binary(max_size=200), some.integers(0, 300))
def test_damaged_messages_are_refused_or_read(noise: bytes, at: int) -> None:
    message = packed(WORD)
    try:
        read = unpacked(message[:at] + noise + message[at + len(noise) :])
    except ValueError:
        return
    assert isinstance(read, Word | Hello)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (INPUTS[:1], "expected 184 bytes of inputs, got 92"),
        (INPUTS * [[1] * 16 + [9] + [1] * 6], "expected 184 bytes"),
        ((INPUTS * np.float32(9)), "levels must be from -1 to 7"),
        (np.full_like(INPUTS, np.nan), "levels must be from -1 to 7"),
    ],
)
def test_other_inputs_are_refused(inputs: np.ndarray, reason: str) -> None:
    word = Word(**vars(WORD) | {"inputs": inputs.tobytes()})
    with pytest.raises(ValueError, match=reason):
        inputs_of(word, INPUTS, LEVELS)


def test_a_message_that_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crazyflow_ros.hosts.words.MOST_BYTES", 100)
    with pytest.raises(ValueError, match="at most 100 bytes, got"):
        packed(WORD)


@pytest.mark.parametrize(
    "argument",
    [
        *(None, True, 3, -0.1, math.inf, "text", [1, [2.5, "x"]], {"cf0": {"a": [1]}}),
        *(ResetScope.all, ResetScope.state | ResetScope.time, BatteryCharge("cf0", 0.5)),
        *(Wind((1.0, 0.0, 0.1), 0.5, 8.0), MotorEfficiency("cf0", 2, 0.9)),
        {"cf0": DroneState(pos=[0.1, 0.2, 0.3]), "cf1": DroneState()},
    ],
)
def test_arguments_arrive_as_they_were_sent(argument: Any) -> None:
    request = json.loads(json.dumps(call("name", [argument], {"other": argument})))
    name, (first,), by_name = read_call(request)
    assert name == "name"
    assert plainly(first) == plainly(by_name["other"]) == plainly(argument)


def plainly(value: Any) -> Any:
    """A value of which NumPy compares nothing by element."""
    if isinstance(value, Wind):
        return [*value.mean, value.gust_intensity, value.gust_altitude]
    return value


def test_arrays_keep_their_bits() -> None:
    array = np.random.default_rng(0).normal(size=(3, 2))
    assert np.array_equal(json.loads(json.dumps(encoded(array))), array)


@pytest.mark.parametrize("argument", [print, object(), b"bytes", {1, 2}, lambda: None])
def test_what_cannot_be_sent_is_named(argument: Any) -> None:
    with pytest.raises(ValueError, match="other simulators cannot be sent"):
        encoded(argument)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"Popen": {"args": "ls"}}, "there is no kind of argument 'Popen'"),
        ({"DroneState": {"nothing": 1}}, "DroneState cannot be read"),
        ({"DroneState": 3}, "DroneState cannot be read"),
        ({"Wind": {"mean": [1e9, 0, 0]}}, "wind"),
        ({"scope": 99}, "99"),
        ({"checkpoint": "not base 64"}, "checkpoint cannot be read"),
        ({"checkpoint": "bm9uZQ=="}, "is not a checkpoint"),
        ({"a": 1, "b": 2}, "an argument has one kind"),
    ],
)
def test_other_arguments_are_refused(value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decoded(value)


@pytest.mark.parametrize("request_", [{}, {"call": 1}, {"call": "x", "with": 3}])
def test_other_requests_are_refused(request_: Any) -> None:
    with pytest.raises(ValueError, match="a request has the entries"):
        read_call(request_)
