"""The content of a checkpoint besides arrays, checked before any of it takes effect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from crazyflow_ros import limits
from crazyflow_ros.control import Control, Controller
from crazyflow_ros.control.gains import check_gain
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.flight import (
    AltitudeHold,
    Arm,
    AttitudeThrust,
    Brake,
    Commander,
    Emergency,
    FlightState,
    FlyTrajectory,
    FullState,
    Goal,
    GoTo,
    HoldHeight,
    Hover,
    HoverOn,
    Land,
    LevelOut,
    NotifySetpointsStop,
    Order,
    PolynomialTrajectory,
    Pose,
    Position,
    Raw,
    Recover,
    Reference,
    Rules,
    SetGroups,
    Setpoint,
    Spiral,
    Start,
    Stop,
    SwitchOff,
    Takeoff,
    Trajectory,
    Velocity,
    VelocityWorld,
)
from crazyflow_ros.flight.course import AXES
from crazyflow_ros.flight.moving_goal import MOST_POSES, Stream, TimedPose
from crazyflow_ros.limits import shown, unknown
from crazyflow_ros.runtime.wrenches import Wrench

LATEST = 1_000_000_000
"""Latest simulated time of a checkpoint [s]; times in messages reach twice as far."""

_MOST = 2**31 - 1  # resets
_MAX_WRENCHES = 10_000
_START = limits.Limit(1e6, "")  # of the numbers of a motion: m, rad, and their derivatives
_SETPOINTS = (
    Pose,
    Velocity,
    Trajectory,
    Raw,
    Brake,
    Takeoff,
    Land,
    GoTo,
    Spiral,
    FlyTrajectory,
    Stop,
    Goal,
    HoldHeight,
    Hover,
    HoverOn,
    FullState,
    AttitudeThrust,
    LevelOut,
    Position,
    VelocityWorld,
    AltitudeHold,
)
_OTHERS = (Arm, Emergency, NotifySetpointsStop, Recover, SetGroups, SwitchOff)
_KINDS: dict[str, type[Setpoint]] = {k.__name__: k for k in (*_SETPOINTS, *_OTHERS)}
_ORDER = (
    *("setpoint", "time_ns", "start", "ahead_ns", "repeated_ns", "stream", "authority"),
    *("fastest", "restless"),
)
_COMMANDER = (
    *("state", "why", "armed", "groups", "known", "hit", "stuck_ns", "stream", "order"),
    "moving",
)


def from_setpoint(setpoint: Setpoint) -> dict[str, Any]:
    """Return a setpoint as JSON values.

    Raises:
        ValueError: It is of a user-defined class.
    """
    kind = type(setpoint).__name__
    if kind not in _KINDS:
        raise ValueError(f"a setpoint of the kind {kind} cannot be kept in a checkpoint")
    values = {name: getattr(setpoint, name) for name in _arguments(_KINDS[kind])}
    if isinstance(setpoint, FlyTrajectory):
        values["trajectory"] = {k: _plain(v) for k, v in vars(setpoint.trajectory).items()}
    return {"kind": kind} | {
        name: value if isinstance(value, dict) else _plain(value) for name, value in values.items()
    }


def to_setpoint(values: Mapping[str, Any]) -> Setpoint:
    """Inverse of `from_setpoint`.

    Raises:
        ValueError: They are not those of a setpoint.
    """
    kind = _KINDS.get(str(values.get("kind")))
    if kind is None:
        raise ValueError(unknown("kind of setpoint", values.get("kind"), _KINDS))
    arguments = _entries("a setpoint", values, ("kind", *_arguments(kind)))
    del arguments["kind"]
    if arguments.get("start_ns") is not None:
        _whole("'start_ns'", arguments["start_ns"], -LATEST * 10**9, LATEST * 10**9)
    try:
        if kind is FlyTrajectory:
            names = _arguments(PolynomialTrajectory)
            trajectory = _entries("a trajectory", arguments["trajectory"], names)
            arguments["trajectory"] = PolynomialTrajectory(**trajectory)
        return kind(**arguments)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a {kind.__name__} is invalid: {_brief(error)}") from None


def from_commander(commander: Commander) -> dict[str, Any]:
    """Return the state of a commander as JSON values.

    Raises:
        ValueError: Its setpoint is of a user-defined class.
    """
    values: dict[str, Any] = {
        "state": str(commander.state),
        "why": commander.why,
        "armed": commander.armed,
        "groups": commander.groups,
        "known": sorted(commander.reported),
        "hit": None if commander.hit is None else list(commander.hit),
        "stuck_ns": commander.stuck_ns,
        "stream": _from_stream(commander.stream),
        "order": None,
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
        ValueError: The setpoint cannot be followed.
    """
    commander = Commander(rules)
    commander.state, commander.why = FlightState(values["state"]), values["why"]
    commander.armed, commander.groups = values["armed"], values["groups"]
    commander.reported, commander.stuck_ns = set(values["known"]), values["stuck_ns"]
    commander.stream = _to_stream(values["stream"])
    if (hit := values.get("hit")) is not None:
        commander.hit = (hit[0], hit[1])
    if (kept := values["order"]) is not None:
        state, *numbers = kept["start"]
        pos, vel, acc = np.array(numbers, float).reshape(3, AXES)
        start = Start(
            kept["time_ns"],
            Reference(pos, vel, acc),
            FlightState(state),
            _to_stream(kept["stream"]),
            kept["authority"],
            math.inf if kept["fastest"] is None else kept["fastest"],
            kept["restless"],
        )
        setpoint = to_setpoint(kept["setpoint"])
        plan = setpoint.plan(start, rules.at(start))
        commander.order = Order(setpoint, start, plan, kept["ahead_ns"], kept["repeated_ns"])
    return commander


def _from_stream(stream: Stream) -> list[list[float]]:
    return [[pose.time_ns, *pose.pos] for pose in stream]


def _to_stream(values: Sequence[Sequence[float]]) -> Stream:
    return tuple(TimedPose(int(time), (x, y, z, yaw)) for time, x, y, z, yaw in values)


def check_kept(about: Mapping[str, Any], freq: int) -> None:
    """Check time, orders, wrenches, wind, lives and gains, as `Simulation.capture` gives them.

    Args:
        about: See `Checkpoint.about`; the names of the drones are known to be strings.
        freq: Ticks per simulated second.

    Raises:
        ValueError: Something is missing or invalid; the message names it.
    """
    drones = about["names"]
    _whole("'tick'", about.get("tick"), 0, LATEST * freq)
    _whole("'epoch'", about.get("epoch"), 0, _MOST)
    for name, life in _mapping("'lives'", about.get("lives"), drones, complete=True).items():
        values = _entries(f"the life of {name}", life, ("resets", "tick"))
        _whole(f"{name}: 'resets'", values["resets"], 0, _MOST)
        _whole(f"{name}: 'tick'", values["tick"], 0, LATEST * freq)
    for name, order in _mapping("'orders'", about.get("orders"), drones).items():
        _commander(name, order)
    _wind(about.get("wind"))
    if not isinstance(about.get("gusts"), bool):
        raise ValueError(f"'gusts' must be true or false, {_got(about.get('gusts'))}")
    wrenches = about.get("wrenches")
    if not isinstance(wrenches, list) or len(wrenches) > _MAX_WRENCHES:
        rule = f"a list of at most {_MAX_WRENCHES}"
        raise ValueError(f"'wrenches' must be {rule}, {_got(wrenches)}")
    for wrench in wrenches:
        _wrench(wrench, drones, freq)
    for name, tuned in _mapping("'gains'", about.get("gains", {}), drones).items():
        _gains(name, tuned)


def _gains(name: str, tuned: Any) -> None:
    what = f"the gains of {name}"
    for controller, gains in _mapping(what, tuned, list(Controller), of="controller").items():
        if not isinstance(gains, dict):
            raise ValueError(f"{what}: {controller} must map gains to values, {_got(gains)}")
        for gain, value in gains.items():
            try:
                check_gain(Controller(controller), gain, value)
            except ValueError as error:
                raise ValueError(f"{what}: {error}") from None


def check_orders(about: Mapping[str, Any], control: Control, rules: Rules, time_ns: int) -> None:
    """Check that drones in a control mode can follow the orders that `check_kept` let pass.

    Raises:
        ValueError: They cannot.
    """
    for name, values in about["orders"].items():
        try:
            order = to_commander(values, rules).order
            if order is None:
                continue
            order.setpoint.check(control)
            now = order.reference(time_ns)
        except (ArithmeticError, AssertionError) as error:
            raise ValueError(f"the setpoint of {name} gives no command: {error}") from None
        if now is not None and not np.isfinite(np.concatenate(now)).all():
            raise ValueError(f"the setpoint of {name} gives no finite command")


def _commander(name: str, values: Any) -> None:
    if isinstance(values, dict):
        values = {"hit": None, **values}  # older checkpoints contain none
    kept = _entries(f"the commander of {name}", values, _COMMANDER)
    _state(name, kept["state"])
    _whole(f"{name}: 'groups'", kept["groups"], 0, 255)
    if not isinstance(kept["why"], str):
        raise ValueError(f"{name}: 'why' must be a string, {_got(kept['why'])}")
    known = kept["known"]
    if not isinstance(known, list) or not all(isinstance(kind, str) for kind in known):
        raise ValueError(f"{name}: 'known' must be a list of strings, {_got(known)}")
    if (hit := kept["hit"]) is not None:
        if not isinstance(hit, list) or len(hit) != 2 or not isinstance(hit[1], str):
            raise ValueError(f"{name}: 'hit' must be a time and a name, {_got(hit)}")
        _whole(f"{name}: 'hit'", hit[0], -LATEST * 10**9, LATEST * 10**9)
    if kept["stuck_ns"] is not None:
        _whole(f"{name}: 'stuck_ns'", kept["stuck_ns"], -LATEST * 10**9, LATEST * 10**9)
    for flag in ("armed", "moving"):
        if not isinstance(kept[flag], bool):
            raise ValueError(f"{name}: {flag!r} must be true or false, {_got(kept[flag])}")
    _stream(name, kept["stream"])
    if kept["order"] is not None:
        _order(name, kept["order"])
    elif kept["moving"]:
        raise ValueError(f"{name}: 'moving' cannot be true without an order")


def _stream(name: str, value: Any) -> None:
    """Check the poses of a stream: their times rise."""
    if not isinstance(value, list) or len(value) > MOST_POSES:
        raise ValueError(f"{name}: 'stream' has at most {MOST_POSES} poses, {_got(value)}")
    before = -LATEST * 10**9
    for pose in value:
        if not isinstance(pose, list) or len(pose) != 1 + AXES:
            rule = f"a time and {AXES} numbers"
            raise ValueError(f"{name}: a pose of 'stream' must be {rule}, {_got(pose)}")
        before = 1 + _whole(f"{name}: a time of 'stream'", pose[0], before, LATEST * 10**9)
        for value in pose[1:]:
            _number(f"{name}: a pose of 'stream'", value, _START)


def _state(name: str, value: Any) -> None:
    if value not in list(FlightState):
        states = ", ".join(FlightState)
        raise ValueError(f"{name}: 'state' must be one of {states}, {_got(value)}")


def _order(name: str, order: Any) -> None:
    values = _entries(f"the order of {name}", order, _ORDER)
    if not isinstance(values["setpoint"], dict):
        got = _got(values["setpoint"])
        raise ValueError(f"{name}: 'setpoint' must map names to values, {got}")
    to_setpoint(values["setpoint"])
    start = values["start"]
    if not isinstance(start, list) or len(start) != 1 + 3 * AXES:
        rule = f"a state and {3 * AXES} numbers"
        raise ValueError(f"{name}: 'start' must be {rule}, {_got(start)}")
    _state(name, start[0])
    for value in start[1:]:
        _number(f"{name}: 'start'", value, _START)
    _whole(f"{name}: 'time_ns'", values["time_ns"], 0, LATEST * 10**9)
    _whole(f"{name}: 'ahead_ns'", values["ahead_ns"], -LATEST * 10**9, LATEST * 10**9)
    if values["repeated_ns"] is not None:
        _whole(f"{name}: 'repeated_ns'", values["repeated_ns"], -LATEST * 10**9, LATEST * 10**9)
    _stream(name, values["stream"])
    if not isinstance(values["restless"], bool):
        got = _got(values["restless"])
        raise ValueError(f"{name}: 'restless' must be true or false, {got}")
    fastest = values["fastest"]
    if fastest is not None and not _number(f"{name}: 'fastest'", fastest, _START) > 0:
        raise ValueError(f"{name}: 'fastest' must be positive, {_got(fastest)}")
    if not 0 <= _number(f"{name}: 'authority'", values["authority"], _START) <= 1:
        raise ValueError(f"{name}: 'authority' must be from 0 to 1, {_got(values['authority'])}")


def _wind(kept: Any) -> None:
    values = _entries("the wind", kept, _arguments(Wind))
    try:
        Wind(**values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the wind is invalid: {_brief(error)}") from None


def _wrench(entry: Any, drones: Sequence[str], freq: int) -> None:
    values = _entries("a wrench", entry, ("name", "wrench", "end", "key"))
    name, key, end = values["name"], values["key"], values["end"]
    if name not in drones:
        raise ValueError(f"a wrench: {unknown('drone', name, drones)}")
    is_key = isinstance(key, list | tuple) and all(isinstance(part, str | int) for part in key)
    if key is not None and not is_key:
        rule = "a list of strings and whole numbers"
        raise ValueError(f"a wrench on {name}: 'key' must be {rule}, {_got(key)}")
    if end != math.inf:
        _whole(f"a wrench on {name}: 'end'", end, -LATEST * freq, 2 * LATEST * freq)
    wrench = _entries(f"the wrench on {name}", values["wrench"], _arguments(Wrench))
    if not isinstance(wrench["in_body"], bool):
        got = _got(wrench["in_body"])
        raise ValueError(f"the wrench on {name}: 'in_body' must be true or false, {got}")
    try:
        Wrench(**wrench)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the wrench on {name} is invalid: {_brief(error)}") from None


def _mapping(
    what: str, value: Any, known: Sequence[str], *, complete: bool = False, of: str = "drone"
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} must map {of}s to values, {_got(value)}")
    for other in sorted(value.keys() - set(known), key=str):
        raise ValueError(f"{what}: {unknown(of, other, known)}")
    if complete and (missing := set(known) - value.keys()):
        raise ValueError(f"{what}: there is no entry for {', '.join(sorted(missing))}")
    return value


def _entries(what: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != set(names):
        raise ValueError(f"{what} must have {', '.join(names)}, {_got(value)}")
    return dict(value)


def _whole(what: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        rule = f"a whole number from {low} to {high}"
        raise ValueError(f"{what} must be {rule}, {_got(value)}")
    return value


def _number(what: str, value: Any, limit: limits.Limit) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{what} must be a number, {_got(value)}")
    return limits.number(what, value, limit)


def _arguments(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.init)


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist() if value is not None else None


def _brief(error: Exception) -> str:
    return str(error)[:300]  # some quote the whole value


def _got(value: Any) -> str:
    return f"got {shown(value)}"
