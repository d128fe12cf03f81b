"""Gamepads: which axes and buttons are which channels, what is refused, and silence."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from crazyflow_ros.doors import gamepad as module
from crazyflow_ros.doors.betaflight import Betaflight
from crazyflow_ros.doors.gamepad import Gamepad, GamepadSettings
from crazyflow_ros.runtime.door_settings import DoorContext

BUTTONS = [0] * 8
LOW = [1000] * 12


def pressed(*numbers: int) -> list[int]:
    return [int(number in numbers) for number in range(8)]


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ([0, 0, 0, 0, 0, 0], [1500, 1500, 1000, 1500]),
        ([0, 0, 0, -1, 0, 0], [2000, 1500, 1000, 1500]),  # right stick to the right: roll right
        ([0, 0, 0, 0, 1, 0], [1500, 2000, 1000, 1500]),  # and forward: pitch forward
        ([0, 0.5, 0, 0, 0, 0], [1500, 1500, 1500, 1500]),  # left one forward: throttle
        ([0, -1, 0, 0, 0, 0], [1500, 1500, 1000, 1500]),
        ([1.0005, 1, 0, 0, 0, 0], [1500, 1500, 2000, 1000]),  # and to the left: yaw left
    ],
)
def test_sticks_of_a_gamepad_in_mode_2(axes: list[float], expected: list[int]) -> None:
    gamepad = Gamepad(GamepadSettings())
    gamepad.put(axes, BUTTONS)
    assert gamepad.channels() == expected + LOW


def test_a_transmitter_has_other_axes_and_a_throttle_without_a_spring() -> None:
    given = GamepadSettings(axes=(0, 1, 2, 3), scales=(1, 1, 1, 0.5), switches=(), springs=False)
    gamepad = Gamepad(given)
    gamepad.put([0.5, -0.5, -0.5, 1.0], [])
    assert gamepad.channels() == [1750, 1250, 1250, 1750, *LOW]


def test_buttons_switch_on_and_off_and_silence_switches_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gamepad, now = Gamepad(GamepadSettings(timeout=0.5)), [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def switches(*numbers: int) -> list[int]:
        gamepad.put([0.0] * 6, pressed(*numbers))
        channels = gamepad.channels()
        assert channels is not None
        return channels[4:6]

    assert gamepad.channels() is None
    assert switches(7) == [1000, 1000]  # pressed already when it came
    assert switches() == [1000, 1000]
    assert switches(7) == switches(7) == switches() == [2000, 1000]
    assert switches(6, 7) == [1000, 2000]
    gamepad.put([0.0, 1.0, 0.0, 1.0, 1.0, 0.0], pressed())
    now[0] += 0.4
    assert gamepad.channels() == [1000, 2000, 2000, 1500, 1000, 2000, *LOW[2:]]
    now[0] += 0.2
    assert gamepad.is_silent
    assert gamepad.channels() == [1500, 1500, 1000, 1500, *LOW]
    assert switches(6) == [1000, 1000]


@pytest.mark.parametrize(
    ("axes", "buttons", "words"),
    [
        ([0.0] * 4, BUTTONS, "has 4 axes.*3, 4, 1, 0"),
        ([0.0] * 6, [0] * 7, "has 7 buttons.*7, 6"),
        ([0.0, float("nan"), 0, 0, 0, 0], BUTTONS, "from -1 to 1.*nan"),
        ([0.0, 0, 0, 0, -1.1, 0], BUTTONS, "from -1 to 1.*-1.1"),
    ],
)
def test_states_that_cannot_be_are_refused_and_change_nothing(
    axes: list[float], buttons: list[int], words: str
) -> None:
    gamepad = Gamepad(GamepadSettings())
    gamepad.put([0.0, 0.5, 0, 0, 0, 0], BUTTONS)
    before = gamepad.channels()
    with pytest.raises(ValueError, match=words):
        gamepad.put(axes, buttons)
    assert gamepad.channels() == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"axes": (0, 1, 2)}, r"gamepad.axes.*roll, pitch, throttle, yaw, got \[0.0, 1.0, 2.0\]"),
        ({"axes": (0, 1, 2.5, 3)}, "gamepad.axes.*2.5"),
        ({"scales": (1, 1, 1, 2)}, "gamepad.scales.*from -1 to 1"),
        ({"switches": tuple(range(13))}, "gamepad.switches.*up to 12"),
        ({"timeout": 0.0}, "gamepad.timeout.*0.05"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    context = DoorContext(("cf0",), "hb_x500", 500, 0, logging.getLogger("betaflight"))
    with pytest.raises(ValueError, match=words):
        Betaflight(gamepad=GamepadSettings(**settings)).open(context)
