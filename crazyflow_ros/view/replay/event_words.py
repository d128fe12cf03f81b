"""Commands, changes and messages of a recording as text.

What a file says is not trusted: whatever cannot be read becomes the name of its kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from crazyflow_ros.ros.messages import deserialised, type_of, xyz

_LONGEST = 300  # characters
_MOTORS = ("front right", "rear right", "rear left", "front left")
_PLAIN = {  # setpoints without numbers that matter
    "Brake": ("brake", "brake and hover"),
    "Emergency": ("emergency", "emergency stop: the rotors stop, and the drone is locked"),
    "FlyTrajectory": ("trajectory", "fly the uploaded trajectory"),
    "NotifySetpointsStop": ("setpoints end", "streamed setpoints end: brake and hover"),
    "Raw": ("raw command", "numbers for the controller"),
    "Recover": ("recover", "recover from a crash"),
    "SetGroups": ("groups", "set the groups of the drone"),
    "Spiral": ("spiral", "fly a spiral"),
    "Stop": ("stop", "stop the rotors"),
    "SwitchOff": ("switch off", "switch off"),
    "Trajectory": ("trajectory", "fly a trajectory"),
}


def place(values: Iterable[float]) -> str:
    """Return coordinates as text, such as `(1.00, 0.00, -0.50)`."""
    return f"({', '.join(f'{float(value):z.2f}' for value in values)})"


def motor(number: int) -> str:
    """Return the number of a motor with its place."""
    where = f" ({_MOTORS[number]})" if 0 <= number < len(_MOTORS) else ""
    return f"motor {number}{where}"


def setpoint_words(setpoint: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of a recorded setpoint, and a text about it."""
    name = str(setpoint.get("kind", "command"))[:_LONGEST]
    try:
        kind, text = _setpoint(name, setpoint)
    except (KeyError, TypeError, ValueError):
        kind, text = name, name
    return kind, text[:_LONGEST]


def _setpoint(name: str, setpoint: Mapping[str, Any]) -> tuple[str, str]:
    duration = float(setpoint.get("duration") or 0.0)
    within = f" in {duration:.3g} s" if duration > 0 else ""
    match name:
        case "Takeoff":
            how = "by" if setpoint.get("relative") else "to"
            return "take-off", f"take off {how} {float(setpoint['height']):.2f} m{within}"
        case "Land":
            height = float(setpoint.get("height") or 0.0)
            return "landing", f"land{f' at {height:.2f} m' if height else ''}{within}"
        case "GoTo":
            how = "by" if setpoint.get("relative") else "to"
            return "go_to", f"go {how} {place(setpoint['pos'])} m{within}"
        case "Pose" | "Position" | "FullState":
            return "position", f"fly to {place(setpoint['pos'])} m"
        case "Goal":
            return "goal", f"fly to {place(setpoint['place'])} m at its height"
        case "Velocity" | "VelocityWorld":
            return "velocity", f"fly with {place(setpoint['vel'])} m/s"
        case "Hover":
            height = float(setpoint["height"])
            return "hover", f"fly with {place(setpoint['vel'])} m/s at {height:.2f} m"
        case "Arm":
            is_armed = bool(setpoint["armed"])
            return ("arm", "arm") if is_armed else ("disarm", "disarm: the rotors stop")
    return _PLAIN.get(name, (name, name))


def disturbance_words(disturbance: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return drone, kind and text of a recorded disturbance; wind has no drone."""
    kind, drone = str(disturbance.get("kind", ""))[:_LONGEST], str(disturbance.get("drone", ""))
    try:
        match kind:
            case "Wind":
                gusts = float(disturbance["gust_intensity"])
                text = f"mean wind {place(disturbance['mean'])} m/s"
                return "", "wind", text + (f", gusts of {gusts:.3g} m/s" if gusts else "")
            case "MotorEfficiency":
                name, share = motor(int(disturbance["motor"])), float(disturbance["efficiency"])
                how = "is intact again" if share == 1 else f"gives {share:.0%} thrust"
                return drone, "motor", f"{name} {how}"
            case "BatteryCharge":
                charge = float(disturbance["charge"])
                return drone, "battery replaced", f"battery with {charge:.0%} charge"
    except (KeyError, TypeError, ValueError):
        pass
    return drone, kind or "disturbance", kind or "disturbance"


def _goal(message: Any) -> str:
    at = message.pose.position if hasattr(message, "pose") else message.point
    return f"fly to {place((at.x, at.y))} m at its height"


def _pose(message: Any) -> str:
    return f"fly to {place(xyz(message.pose.position))} m"


_OF_TOPICS: dict[str, Callable[[Any], str]] = {
    "clicked_point": _goal,
    "cmd_full_state": _pose,
    "cmd_hover": lambda m: f"fly with {place((m.vx, m.vy))} m/s at {m.z_distance:.2f} m",
    "cmd_pose": _pose,
    "cmd_position": lambda m: f"fly to {place(xyz(m))} m",
    "cmd_trajectory": lambda m: f"fly a trajectory of {len(m.points)} points",
    "cmd_vel": lambda m: f"fly with {place(xyz(getattr(m, 'twist', m).linear))} m/s",
    "cmd_vel_legacy": lambda _: "attitude and thrust",
    "cmd_velocity_world": lambda m: f"fly with {place(xyz(m.vel))} m/s",
    "command": lambda m: f"numbers for the controller: {place(m.data[:8])}",
    "goal_pose": _goal,
    "wrench": lambda m: f"push with {place(xyz(m.wrench.force))} N",
}
COMMANDS = frozenset(_OF_TOPICS)
"""Topics below a drone's name by which it is commanded."""


def message_words(topic: str, kind: str, data: bytes) -> str:
    """Return a message of a command topic as text.

    Args:
        topic: Name of the topic below the drone's, one of `COMMANDS`.
        kind: Type of the message.
        data: The serialised message.
    """
    try:
        text = _OF_TOPICS[topic](deserialised(data, type_of(kind)))
    except Exception:  # the file may hold anything, also types that are not installed
        text = "a command"
    return text[:_LONGEST]


def is_push(force: Any) -> bool:
    """Return whether a force is finite and not zero."""
    size = math.hypot(force.x, force.y, force.z)
    return math.isfinite(size) and size > 0
