"""Recordings with known content, written with nothing but the library for MCAP files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3
from mcap.writer import Writer
from rclpy.serialization import serialize_message
from sensor_msgs.msg import MultiDOFJointState
from std_msgs.msg import String

NS = 1_000_000_000
NODE = "/crazyflow"
STATES = f"{NODE}/odometry"

Entry = tuple[int, str, Any]
"""Time [ns], topic and message."""


def states(time_ns: int, places: Mapping[str, Sequence[float]]) -> Entry:
    """The states of level drones at their places [m]."""
    message = MultiDOFJointState(joint_names=list(places))
    message.header.frame_id = "map"
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(time_ns, NS)
    for x, y, z in places.values():
        at = Vector3(x=float(x), y=float(y), z=float(z))
        message.transforms.append(Transform(translation=at, rotation=Quaternion(w=1.0)))
        message.twist.append(Twist())
    return time_ns, STATES, message


def flight_event(time_ns: int, drone: str, kind: str, text: str) -> Entry:
    """An event of the simulator."""
    values = [KeyValue(key="kind", value=kind), KeyValue(key="time_ns", value=str(time_ns))]
    message = DiagnosticStatus(name=drone, message=text, values=values)
    return time_ns, f"{NODE}/flight_events", message


def status(
    time_ns: int, values: Mapping[str, str], others: Mapping[str, str] | None = None
) -> Entry:
    """`~/status`, with the messages of what has failed by its name."""
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    first = DiagnosticStatus(name=f"{NODE}: simulation", values=pairs)
    rest = [
        DiagnosticStatus(level=DiagnosticStatus.ERROR, name=f"{NODE}: {name}", message=why)
        for name, why in (others or {}).items()
    ]
    return time_ns, f"{NODE}/status", DiagnosticArray(status=[first, *rest])


def reset(time_ns: int, drones: str) -> Entry:
    """`~/reset_event`."""
    pairs = [KeyValue(key="scope", value="state"), KeyValue(key="drones", value=drones)]
    message = DiagnosticArray(status=[DiagnosticStatus(values=pairs)])
    return time_ns, f"{NODE}/reset_event", message


def change(time_ns: int, **content: Any) -> Entry:
    """An entry of the recorder of its own."""
    return time_ns, f"{NODE}/changes", String(data=json.dumps(content))


def command(time_ns: int, drone: str, kind: str, **values: Any) -> Entry:
    """A command that came through a service."""
    return change(time_ns, command={"drone": drone, "setpoint": {"kind": kind, **values}})


def write(
    path: Path,
    entries: Iterable[Entry],
    parameters: Mapping[str, Any] | None = None,
    chunk: int = 2000,
    definition: Callable[[Any], str] = lambda _: "",
    **options: Any,
) -> Path:
    """Write a file, with the parameters of a simulator and definitions if they are given."""
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=chunk, **options)
        writer.start(profile="ros2")
        if parameters is not None:
            metadata = {"parameters": json.dumps(parameters), "origin_ns": "0"}
            writer.add_metadata("crazyflow_ros", metadata)
        channels: dict[str, int] = {}
        for time_ns, topic, message in entries:
            if topic not in channels:
                kind = type(message)
                name = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
                schema = writer.register_schema(name, "ros2msg", definition(kind).encode())
                channels[topic] = writer.register_channel(topic, "cdr", schema)
            writer.add_message(channels[topic], time_ns, serialize_message(message), time_ns)
        writer.finish()
    return path
