"""The content of a checkpoint besides arrays, checked before any of it takes effect."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.checks.plain_values import Spec, arguments_of, convert, entries
from crazyflow_ros.control import Control, Controller
from crazyflow_ros.control.gains import check_gain
from crazyflow_ros.engine.attachments import Attachment
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.flight.raw import check_setpoint
from crazyflow_ros.flight.setpoint_values import LATEST, KeptCommander, to_commander
from crazyflow_ros.runtime.wrenches import TimedWrench
from crazyflow_ros.scene.conditions import STANDARD, Conditions

_MAX_WRENCHES = 10_000
_Resets = Annotated[int, Spec("Number of resets", 0, 2**31 - 1)]


@dataclass(frozen=True)
class _KeptLife:
    """A `Life`."""

    resets: _Resets
    tick: int


@dataclass(frozen=True)
class _KeptWrench:
    """An active wrench, see `Wrenches.capture`."""

    name: str
    wrench: dict[str, Any]
    """Arguments of `TimedWrench`."""
    end: int | float
    """A tick, or infinity."""
    key: tuple[str | int, ...] | None

    def __post_init__(self) -> None:
        arguments = entries("'wrench'", self.wrench, TimedWrench)
        convert(arguments["in_body"], bool, "in_body")
        TimedWrench(**arguments)
        if isinstance(self.end, float) and self.end != math.inf:
            raise ValueError(f"'end' must be a whole number or infinity, got {self.end}")


@dataclass(frozen=True)
class _Kept:
    """What `Checkpoint.about` has besides configuration and names."""

    tick: int
    epoch: _Resets
    lives: dict[str, _KeptLife]
    orders: dict[str, KeptCommander]
    wind: Wind
    gusts: bool
    wrenches: tuple[_KeptWrench, ...]
    gains: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """Gains of each drone, by controller; older checkpoints have none."""
    draws: dict[str, int] = field(default_factory=dict)
    """How often drones have drawn parameters; older checkpoints have none."""
    held: dict[str, Attachment] = field(default_factory=dict)
    """What drones hold; older checkpoints have none."""
    conditions: Conditions = STANDARD
    """Of the world; older checkpoints have none, and were of worlds with these."""


def check_kept(about: Mapping[str, Any], freq: int) -> None:
    """Check time, orders, wrenches, wind, lives and gains, as `Simulation.capture` gives them.

    Args:
        about: See `Checkpoint.about`; the names of the drones are known to be strings.
        freq: Ticks per simulated second.

    Raises:
        ValueError: Something is missing or invalid; the message names it.
    """
    names = arguments_of(_Kept)
    entries("wind", about.get("wind"), Wind)
    kept: _Kept = convert({name: about[name] for name in names if name in about}, _Kept, "")
    drones = about["names"]
    for what in ("lives", "orders", "gains", "draws", "held"):
        _check_known(what, getattr(kept, what), "drone", drones)
    if missing := set(drones) - kept.lives.keys():
        raise ValueError(f"lives: there is no entry of {', '.join(sorted(missing))}")
    _check_tick("tick", kept.tick, 0, LATEST * freq)
    for name, life in kept.lives.items():
        _check_tick(f"lives.{name}.tick", life.tick, 0, LATEST * freq)
    for name, count in kept.draws.items():
        _check_tick(f"draws.{name}", count, 0, LATEST * freq)
    if len(kept.wrenches) > _MAX_WRENCHES:
        raise ValueError(f"wrenches: at most {_MAX_WRENCHES}, got {len(kept.wrenches)}")
    for wrench in kept.wrenches:
        if wrench.end != math.inf:
            where = f"wrenches: the end of one on {wrench.name}"
            _check_tick(where, wrench.end, -LATEST * freq, 2 * LATEST * freq)
    for name, tuned in kept.gains.items():
        _check_known(f"gains.{name}", tuned, "controller", Controller.known())
        for controller, gains in tuned.items():
            _check_gains(f"gains.{name}", Controller(controller), gains)


def check_conditions(about: Mapping[str, Any], here: Conditions) -> None:
    """Check that a checkpoint is of a world with the present gravity, air and floor.

    Raises:
        ValueError: It is not; the message has both values of the first one that differs.
    """
    there = convert(about.get("conditions", {}), Conditions, "conditions")
    for name, value in vars(here).items():
        if (kept := getattr(there, name)) != value:
            kept, value = ("none" if x is None else np.array(x).tolist() for x in (kept, value))
            raise ValueError(
                f"the checkpoint is of a world with {name} {kept}, here it is {value}: load that "
                "world first"
            )


def _check_gains(where: str, controller: Controller, gains: Mapping[str, Any]) -> None:
    for gain, value in gains.items():
        try:
            check_gain(controller, gain, value)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def _check_known(where: str, names: Collection[str], what: str, known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: {unknown(what, name, known)}")


def _check_tick(name: str, tick: float, low: int, high: int) -> None:
    if not low <= tick <= high:
        raise ValueError(f"{name} must be from {low} to {high}, got {shown(tick)}")


def check_orders(about: Mapping[str, Any], control: Control, rules: Rules, time_ns: int) -> None:
    """Check that drones in a control mode can follow the orders that `check_kept` has accepted.

    Raises:
        ValueError: A drone cannot follow its order.
    """
    for name, values in about["orders"].items():
        try:
            order = to_commander(values, rules).order
            if order is None:
                continue
            check_setpoint(order.setpoint, control, rules.n_rotors)
            now = order.reference(time_ns)
        except (ArithmeticError, AssertionError) as error:
            raise ValueError(f"the setpoint of {name} gives no command: {error}") from None
        if now is not None and not np.isfinite(np.concatenate(now)).all():
            raise ValueError(f"the setpoint of {name} gives no finite command")
