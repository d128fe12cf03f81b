"""Setpoints and commanders as plain values, for checkpoints and recordings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import isabstract
from typing import Annotated, Any

import numpy as np

from crazyflow_ros import flight
from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.checks.plain_values import Spec, arguments_of, convert, entries, plain
from crazyflow_ros.flight.commander import Commander, Order
from crazyflow_ros.flight.course import AXES, Reference
from crazyflow_ros.flight.high_level import FlyTrajectory
from crazyflow_ros.flight.moving_goal import MOST_POSES, Stream, TimedPose
from crazyflow_ros.flight.plan import FlightState, Rules, StartState
from crazyflow_ros.flight.polynomial_trajectory import PolynomialTrajectory
from crazyflow_ros.flight.setpoint import Setpoint

LATEST = 1_000_000_000
"""Latest simulated time that is kept [s]; times in messages reach twice as far."""

_NS = 1_000_000_000
_BRIEF = 300  # characters of an error; some quote the whole value
_KINDS: dict[str, type[Setpoint]] = {
    name: kind
    for name in flight.__all__
    if isinstance(kind := getattr(flight, name), type)
    and issubclass(kind, Setpoint)
    and not isabstract(kind)
}
"""All setpoints that `flight` exports, by name."""

_Time = Annotated[int, Spec("Simulated time, ns", -LATEST * _NS, LATEST * _NS)]
_Number = Annotated[float, Spec("m, rad, or a derivative of them", -1e6, 1e6)]
_Stream = tuple[tuple[_Time, _Number, _Number, _Number, _Number], ...]
_Start = tuple[
    FlightState,
    _Number,  # position of the reference
    _Number,
    _Number,
    _Number,
    _Number,  # velocity
    _Number,
    _Number,
    _Number,
    _Number,  # acceleration
    _Number,
    _Number,
    _Number,
]


@dataclass(frozen=True)
class KeptOrder:
    """An `Order` and its `StartState` as plain values."""

    setpoint: dict[str, Any]
    """See `from_setpoint`."""
    time_ns: Annotated[int, Spec("Of the start, ns", 0, LATEST * _NS)]
    start: _Start
    stream: _Stream
    authority: Annotated[float, Spec("Share of the spare thrust", 0.0, 1.0)]
    fastest: Annotated[float, Spec("m/s", 0.0, 1e6)] | None
    """None for infinity."""
    restless: bool
    ahead_ns: _Time
    repeated_ns: _Time | None

    def __post_init__(self) -> None:
        to_setpoint(self.setpoint)
        _check_stream(self.stream)
        if self.fastest == 0:
            raise ValueError("'fastest' must be positive, got 0")


@dataclass(frozen=True)
class KeptCommander:
    """A `Commander` as plain values."""

    state: FlightState
    why: str
    armed: bool
    groups: Annotated[int, Spec("Bit mask", 0, 255)]
    known: tuple[str, ...]
    """`Commander.reported`."""
    stuck_ns: _Time | None
    stream: _Stream
    order: KeptOrder | None
    moving: bool
    """Whether the command of its order changes with time."""
    hit: tuple[_Time, str] | None = None  # older checkpoints have none

    def __post_init__(self) -> None:
        _check_stream(self.stream)
        if self.moving and self.order is None:
            raise ValueError("'moving' cannot be true without an order")


def _check_stream(stream: _Stream) -> None:
    if len(stream) > MOST_POSES:
        raise ValueError(f"'stream' must have at most {MOST_POSES} poses, got {len(stream)}")
    times = [time for time, *_ in stream]
    if times != sorted(set(times)):
        raise ValueError(f"the times of 'stream' must rise, got {shown(times)}")


def from_setpoint(setpoint: Setpoint) -> dict[str, Any]:
    """Return a setpoint as JSON values.

    Raises:
        ValueError: The setpoint is of a user-defined class.
    """
    kind = type(setpoint).__name__
    if kind not in _KINDS:
        raise ValueError(f"a setpoint of the kind {kind} cannot be kept in a checkpoint")
    values = {name: getattr(setpoint, name) for name in arguments_of(_KINDS[kind])}
    if isinstance(setpoint, FlyTrajectory):
        values["trajectory"] = vars(setpoint.trajectory)
    return {"kind": kind} | {name: plain(value) for name, value in values.items()}


def to_setpoint(values: Mapping[str, Any]) -> Setpoint:
    """Inverse of `from_setpoint`.

    Raises:
        ValueError: The values do not describe a setpoint.
    """
    kind = _KINDS.get(str(values.get("kind")))
    if kind is None:
        raise ValueError(unknown("kind of setpoint", values.get("kind"), _KINDS))
    arguments = entries("a setpoint", values, kind, "kind")
    del arguments["kind"]
    try:
        convert(arguments.get("start_ns"), _Time | None, "start_ns")
        if kind is FlyTrajectory:
            trajectory = entries("a trajectory", arguments["trajectory"], PolynomialTrajectory)
            arguments["trajectory"] = PolynomialTrajectory(**trajectory)
        return kind(**arguments)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a {kind.__name__} is invalid: {str(error)[:_BRIEF]}") from None


def from_commander(commander: Commander, *, moving: bool = False) -> dict[str, Any]:
    """Return the state of a commander as JSON values, those of `KeptCommander`.

    Args:
        commander: The commander.
        moving: See `KeptCommander`.

    Raises:
        ValueError: Its setpoint is of a user-defined class.
    """
    values: dict[str, Any] = {
        "state": str(commander.state),
        "why": commander.why,
        "armed": commander.armed,
        "groups": commander.groups,
        "known": sorted(commander.reported),
        "hit": plain(commander.hit),
        "stuck_ns": commander.stuck_ns,
        "stream": _from_stream(commander.stream),
        "order": None,
        "moving": moving,
    }
    if (order := commander.order) is not None:
        start = order.start
        values["order"] = {
            "setpoint": from_setpoint(order.setpoint),
            "time_ns": start.time_ns,
            "start": [str(start.state), *np.concatenate(start.reference).tolist()],
            "ahead_ns": order.ahead_ns,
            "repeated_ns": order.repeated_ns,
            "stream": _from_stream(start.stream),
            "authority": start.authority,
            "fastest": None if start.fastest == math.inf else start.fastest,
            "restless": start.restless,
        }
    return values


def to_commander(values: Mapping[str, Any], rules: Rules) -> Commander:
    """Inverse of `from_commander`.

    Raises:
        ValueError: The values do not describe a commander, or its setpoint cannot be followed.
    """
    given: KeptCommander = convert(values, KeptCommander, "")
    commander = Commander(rules)
    commander.state, commander.why = given.state, given.why
    commander.armed, commander.groups = given.armed, given.groups
    commander.reported, commander.stuck_ns = set(given.known), given.stuck_ns
    commander.stream, commander.hit = _to_stream(given.stream), given.hit
    if (kept := given.order) is not None:
        state, *numbers = kept.start
        start = StartState(
            kept.time_ns,
            Reference(*np.array(numbers, float).reshape(3, AXES)),
            state,
            _to_stream(kept.stream),
            kept.authority,
            math.inf if kept.fastest is None else kept.fastest,
            kept.restless,
        )
        setpoint = to_setpoint(kept.setpoint)
        plan = setpoint.plan(start, rules.at(start))
        commander.order = Order(setpoint, start, plan, kept.ahead_ns, kept.repeated_ns)
    return commander


def _from_stream(stream: Stream) -> list[list[float]]:
    return [[pose.time_ns, *pose.pos] for pose in stream]


def _to_stream(values: _Stream) -> Stream:
    return tuple(TimedPose(time, (x, y, z, yaw)) for time, x, y, z, yaw in values)
