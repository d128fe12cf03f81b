"""Conversion of a gamepad's axes and buttons to the channels of a radio receiver.

Axes are numbered and signed as in `sensor_msgs/Joy`: to the left and forward are positive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import Numbers, ParameterError

CHANNELS = 16
_STICKS = ("roll", "pitch", "throttle", "yaw")  # Betaflight's order AETR
_LOW, _CENTRE, _HIGH = 1000, 1500, 2000  # microseconds
_MOST_AXES = 64
_ROUNDING = 1e-3


def _check_axes(name: str, values: Numbers) -> None:
    if len(values) != len(_STICKS) or any(n not in range(_MOST_AXES) for n in values):
        expected = f"numbers from 0 to {_MOST_AXES - 1} of the axes of {', '.join(_STICKS)}"
        raise ParameterError(name, expected, list(values))


def _check_scales(name: str, values: Numbers) -> None:
    if len(values) != len(_STICKS) or not all(-1.0 <= scale <= 1.0 for scale in values):
        expected = f"numbers from -1 to 1 for {', '.join(_STICKS)}"
        raise ParameterError(name, expected, list(values))


def _check_switches(name: str, values: Numbers) -> None:
    most = CHANNELS - len(_STICKS)
    if len(values) > most or any(n not in range(_MOST_AXES) for n in values):
        expected = f"up to {most} numbers of buttons from 0 to {_MOST_AXES - 1}"
        raise ParameterError(name, expected, list(values))


@dataclass(frozen=True)
class GamepadSettings:
    """Mapping of a gamepad's axes and buttons to channels.

    The defaults suit most gamepads in mode 2: throttle and yaw on the left stick, pitch and roll on
    the right one.
    """

    axes: Annotated[
        Numbers, Spec("Axes of roll, pitch, throttle and yaw, from 0", check=_check_axes)
    ] = (3, 4, 1, 0)
    scales: Annotated[
        Numbers,
        Spec(
            "Factors that make roll and yaw to the right, pitch forward and throttle up positive",
            check=_check_scales,
        ),
    ] = (-1, 1, 1, -1)
    switches: Annotated[
        Numbers,
        Spec("Buttons that switch AUX1, AUX2 and so on, on and off", check=_check_switches),
    ] = (7, 6)
    springs: Annotated[
        bool,
        Spec("The throttle's stick returns to its centre, which is no throttle, as is all below"),
    ] = True
    timeout: Annotated[
        float, Spec("Wall time without messages after which all switches are off [s]", 0.05, 60)
    ] = 0.5


class Gamepad:
    """The newest state of a gamepad as channels.

    While the gamepad is silent, they are those of a receiver without its transmitter: no throttle,
    and all switches off. Switches are also off when a gamepad appears or returns.

    Args:
        settings: The settings.
    """

    def __init__(self, settings: GamepadSettings) -> None:
        self._settings = settings
        self._axes = [int(axis) for axis in settings.axes]
        self._buttons = [int(button) for button in settings.switches]
        self._lock = threading.Lock()
        self._heard = -np.inf  # wall time
        self._sticks = [0.0] * len(_STICKS)
        self._pressed = self._on = np.zeros(len(self._buttons), bool)

    def put(self, axes: Sequence[float], buttons: Sequence[int]) -> None:
        """Set the newest state; see `TakesGamepad.take_gamepad`."""
        for what, given, used in (("axes", axes, self._axes), ("buttons", buttons, self._buttons)):
            if max(used, default=-1) >= len(given):
                raise ValueError(
                    f"the gamepad has {len(given)} {what}, and gamepad settings name the numbers "
                    f"{', '.join(map(str, used))}, from 0"
                )
        sticks = [axes[axis] for axis in self._axes]
        if not all(abs(value) <= 1.0 + _ROUNDING for value in sticks):
            raise ValueError(f"axes must be from -1 to 1, got {shown(sticks)}")
        pressed = np.array([bool(buttons[button]) for button in self._buttons], bool)
        with self._lock:
            if self.is_silent:
                self._pressed, self._on = pressed, np.zeros_like(pressed)
            self._on = self._on ^ (pressed & ~self._pressed)
            self._sticks, self._pressed, self._heard = sticks, pressed, time.monotonic()

    @property
    def is_silent(self) -> bool:
        """Whether it has sent nothing for longer than the timeout."""
        return time.monotonic() - self._heard > self._settings.timeout

    def channels(self) -> list[int] | None:
        """Return the pulse lengths of all channels [µs], or None before a gamepad has appeared.

        The channels are roll, pitch, throttle, yaw and the switches.
        """
        with self._lock:
            if self._heard < 0:
                return None
            if self.is_silent:
                return [_CENTRE, _CENTRE, _LOW, _CENTRE, *[_LOW] * (CHANNELS - len(_STICKS))]
            scaled = [s * value for s, value in zip(self._settings.scales, self._sticks)]
            on = self._on.tolist()
        roll, pitch, throttle, yaw = (min(max(value, -1.0), 1.0) for value in scaled)
        share = max(throttle, 0.0) if self._settings.springs else (throttle + 1) / 2
        pulses = [_CENTRE + (_HIGH - _CENTRE) * value for value in (roll, pitch, yaw)]
        pulses.insert(2, _LOW + (_HIGH - _LOW) * share)
        pulses += [_HIGH if is_on else _LOW for is_on in on]
        pulses += [_LOW] * (CHANNELS - len(pulses))
        return [round(pulse) for pulse in pulses]
