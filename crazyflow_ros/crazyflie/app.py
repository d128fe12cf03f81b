"""Apps: programs of users that run on a Crazyflie, and talk to scripts by the app channel."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import Any, Protocol

from crazyflow_ros.checks.entry_points import load
from crazyflow_ros.crazyflie.crtp import DATA_SIZE, Packet, Port
from crazyflow_ros.crazyflie.parameters import CrazyflieParameters, Number
from crazyflow_ros.crazyflie.supervision import Supervision
from crazyflow_ros.crazyflie.telemetry import Telemetry
from crazyflow_ros.crazyflie.variables import VARIABLES
from crazyflow_ros.flight import Setpoint

APPS = "crazyflow_ros.apps"
"""Group of the entry points that name apps."""

CHANNEL = 2
"""Channel of the app's packets on the port of the platform."""

_SLOW = 0.1  # s of wall time of a call


class App(Protocol):
    """An app of one drone; a method that it lacks is not called."""

    def receive(self, data: bytes) -> None:
        """Receive a packet of up to 30 bytes from a script."""

    def step(self) -> None:
        """Do something, 100 times per second of simulated time."""


class Onboard:
    """A drone as its app sees it.

    Args:
        name: Name of the drone.
        parameters: Its parameters.
        supervision: Its supervisor, which commands it.

    Attributes:
        name: As given.
        transmit: Sends a packet to all scripts; the server sets it.
        show: Shows a text on the drone's console; the server sets it.
        telemetry: The present state; the server sets it.
    """

    def __init__(
        self, name: str, parameters: CrazyflieParameters, supervision: Supervision
    ) -> None:
        self.name = name
        self._parameters, self._supervision = parameters, supervision
        self.transmit: Callable[[Packet], None] = lambda _: None
        self.show: Callable[[str], None] = lambda _: None
        self.telemetry: Telemetry | None = None

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return 0.0 if self.telemetry is None else self.telemetry.time_ns * 1e-9

    def send(self, data: bytes) -> None:
        """Send a packet to all scripts that are connected to the drone.

        Raises:
            ValueError: It has more than 30 bytes.
        """
        if len(data) > DATA_SIZE:
            raise ValueError(f"a packet of the app channel has {DATA_SIZE} bytes, got {len(data)}")
        self.transmit(Packet(Port.platform, CHANNEL, bytes(data)))

    def log(self, name: str) -> float:
        """Return the latest value of a log variable, such as "stateEstimate.z".

        Raises:
            KeyError: There is no such variable.
        """
        variable = VARIABLES[name]
        return 0.0 if self.telemetry is None else float(variable.value(self.telemetry))

    def parameter(self, name: str) -> Number:
        """Return a parameter, such as "stabilizer.controller".

        Raises:
            KeyError: There is no such parameter.
        """
        return self._parameters.get(name)

    def set_parameter(self, name: str, value: Number) -> None:
        """Set a parameter.

        Raises:
            KeyError: There is no such parameter.
            ValueError: It is read-only, or cannot have this value.
        """
        self._parameters.set(name, value)

    def command(self, setpoint: Setpoint) -> None:
        """Command the drone, for example by `flight.Takeoff(0.5)`; a refusal is in the log."""
        self._supervision.ask(setpoint)

    def print(self, text: str) -> None:
        """Show a text on the drone's console."""
        self.show(text)


def load_app(name: str) -> Callable[[Onboard], Any] | None:
    """Return the class of an app; None for an empty name.

    Args:
        name: Name of an entry point, or "file.py:Class", or "module:Class".

    Raises:
        ValueError: There is no such app, or it cannot be imported.
    """
    if not name:
        return None
    rule = "a class whose instances have `receive` or `step`"
    if ":" not in name:
        return load(APPS, name, "app", rule, _is_app)
    place, _, attribute = name.rpartition(":")
    try:
        found = getattr(_module(place), attribute)
    except Exception as error:
        raise ValueError(f"the app {name!r} cannot be loaded: {_cause(error)}") from error
    if not _is_app(found):
        raise ValueError(f"the app {name!r} has to be {rule}, got {found!r}")
    return found


def _is_app(found: Any) -> bool:
    return isinstance(found, type) and (hasattr(found, "receive") or hasattr(found, "step"))


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        return import_module(place)
    name = f"crazyflow_ros_app_{Path(place).stem}"
    spec = spec_from_file_location(name, place)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


def _cause(error: BaseException) -> str:
    """Return an exception, and where it was raised."""
    frames = extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


class AppTask:
    """Runs the app of one drone, in the server's thread. What an app raises is reported.

    Args:
        kind: Class of the app; None without one.
        onboard: The drone.
        report: Logs problems.
    """

    def __init__(
        self,
        kind: Callable[[Onboard], Any] | None,
        onboard: Onboard,
        report: Callable[[str], None],
    ) -> None:
        self._kind, self._onboard, self._report = kind, onboard, report
        self._app: Any = None
        self._has_failed = self._has_told = False

    @property
    def is_there(self) -> bool:
        """Whether the drone has an app."""
        return self._kind is not None

    def connect(self, transmit: Callable[[Packet], None], show: Callable[[str], None]) -> None:
        """Set what sends packets and texts to all scripts."""
        self._onboard.transmit, self._onboard.show = transmit, show

    def restart(self) -> None:
        """Let the app begin anew, as with the firmware. From any thread."""
        self._app, self._has_failed = None, False

    def receive(self, data: bytes) -> None:
        """Let the app receive a packet; without an app, nobody reads it, as in the firmware."""
        if self._kind is not None:
            self._call("receive", data)
        elif not self._has_told:
            self._has_told = True
            self._report("no app reads the packets of the app channel")

    def step(self, now: Telemetry) -> None:
        """Let the app do its work, with the drone's present state."""
        self._onboard.telemetry = now
        self._call("step")

    def _call(self, method: str, *arguments: Any) -> None:
        began = time.monotonic()
        try:
            if self._app is None and self._kind is not None and not self._has_failed:
                self._has_failed = True  # until it has succeeded
                self._app = self._kind(self._onboard)
                self._has_failed = False
            if (call := getattr(self._app, method, None)) is not None:
                call(*arguments)
        except Exception as error:
            self._report(f"the app failed in {method}: {_cause(error)}")
        if (took := time.monotonic() - began) > _SLOW:
            self._report(f"the app held up all drones for {took:.1f} s in {method}")
