"""Recordings of ROS topics in MCAP files: those of the simulator, and others with poses."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.extras import extra
from crazyflow_ros.flight_logs.flight_log import SAMPLES, FlightLog, TimedValues

MAGIC = b"\x89MCAP0\r\n"
_MESSAGE_BYTES = 1 << 20
_RPM = 30 / math.pi  # in 1 rad/s
_N_ROTORS = 4

_Row = tuple[float, ...]  # numbers of a message
_Timed = tuple[float, _Row]  # time [s] and numbers


class _Reader(NamedTuple):
    """How to read messages of a topic."""

    ending: str
    """Of the topic, with a place for the drone's name."""
    quantity: str
    row: Callable[[Any, str], _Row | None]
    """Takes the message and the drone's name."""


def _pose(pose: Any) -> _Row:
    q = pose.orientation
    return *_xyz(pose.position), q.x, q.y, q.z, q.w


def _named_pose(message: Any, drone: str) -> _Row | None:
    return next((_pose(robot.pose) for robot in message.poses if robot.name == drone), None)


def _transform(message: Any, drone: str) -> _Row | None:
    for edge in message.transforms:
        if edge.child_frame_id.lstrip("/") in (drone, f"{drone}/base_link"):
            q = edge.transform.rotation
            return *_xyz(edge.transform.translation), q.x, q.y, q.z, q.w
    return None


def _xyz(vector: Any) -> _Row:
    return vector.x, vector.y, vector.z


def _rotors(message: Any, _: str) -> _Row | None:
    speeds = tuple(abs(speed) * _RPM for speed in message.velocity)
    return speeds if len(speeds) == _N_ROTORS else None


def _full_state(message: Any, _: str) -> _Row:
    q, twist = message.pose.orientation, message.twist
    place, rates = _xyz(message.pose.position), _xyz(twist.angular)
    return *place, *_xyz(twist.linear), *_xyz(message.acc), q.x, q.y, q.z, q.w, *rates


def _position(message: Any, _: str) -> _Row:
    yaw = math.radians(message.yaw)
    return _with_quaternion((message.x, message.y, message.z, *6 * (0.0,), yaw, *3 * (0.0,)))


def _with_quaternion(numbers: _Row) -> _Row:
    """Return 16 numbers of a setpoint of 13, which has a yaw in place of the quaternion."""
    half = numbers[9] / 2
    return *numbers[:9], 0.0, 0.0, math.sin(half), math.cos(half), *numbers[10:]


_POSES = ("poses", "{}/odom", "{}/pose", "tf")
"""Topics of poses; the first one that is there counts, as with crazyswarm2 `/poses` is motion
capture and `odom` an estimate."""
_READERS = (
    _Reader("/poses", "poses", _named_pose),
    _Reader("/{}/odom", "{}/odom", lambda message, _: _pose(message.pose.pose)),
    _Reader("/{}/pose", "{}/pose", lambda message, _: _pose(message.pose)),
    _Reader("/tf", "tf", _transform),
    _Reader("/{}/imu", "gyro", lambda message, _: _xyz(message.angular_velocity)),
    _Reader("/{}/imu", "accelerometer", lambda message, _: _xyz(message.linear_acceleration)),
    _Reader("/{}/joint_states", "rotor_vel", _rotors),
    _Reader("/{}/battery", "voltage", lambda message, _: (message.voltage,)),
    _Reader("/{}/command", "command", lambda message, _: tuple(message.data)),
    _Reader("/{}/cmd_full_state", "setpoint", _full_state),
    _Reader("/{}/cmd_position", "setpoint", _position),
)


def flight_log(name: str, file: BinaryIO, drone: str) -> FlightLog:
    """Return the flight of a drone. Times are those at which messages were recorded.

    Args:
        name: Name of the flight.
        file: The open file; one that is not complete is read as far as it goes.
        drone: Name of the drone.

    Raises:
        ValueError: It is damaged, has no pose of the drone, or a value is out of its limits.
        ModuleNotFoundError: The package that reads MCAP is not installed.
    """
    found = defaultdict[str, list[_Timed]](list)
    parameters: dict[str, Any] = {}
    try:
        for reader, time, message in _messages(file, drone, parameters):
            if (row := reader.row(message, drone)) is not None:
                found[reader.quantity].append((time, row))
                if len(found[reader.quantity]) > SAMPLES:
                    raise ValueError(f"more than {SAMPLES} messages {reader.ending}")
    except ModuleNotFoundError:
        raise
    except Exception as error:  # a damaged file may contain anything
        raise ValueError(f"not a readable MCAP file: {shown(str(error), 300)}") from None
    poses = next((found.pop(source) for source in _POSES if source in found), None)
    if poses is None:
        topics = ", ".join(f"{source.format(drone)}" for source in _POSES)
        raise ValueError(f"there are no messages of {topics} with poses of {drone}")
    quantities = {"pose": poses, **_commands(found.pop("command", []), parameters.get("control"))}
    quantities |= {quantity: found[quantity] for quantity in found if quantity not in _POSES}
    samples: dict[str, Any] = {name: _samples(rows) for name, rows in quantities.items()}
    controller = parameters.get("controller")
    return FlightLog(name, controller=str(controller) if controller else None, **samples)


def _messages(
    file: BinaryIO, drone: str, parameters: dict[str, Any]
) -> Iterator[tuple[_Reader, float, Any]]:
    """Yield messages with their readers and times [s]; note the simulator's parameters."""
    from crazyflow_ros.checks.mcap_file import recorded
    from crazyflow_ros.checks.mcap_records import Message

    with extra("record"):
        from mcap_ros2.decoder import DecoderFactory
    decoders = DecoderFactory()
    known: dict[int, tuple[list[_Reader], Any]] = {}  # by channel
    for item in recorded(file):
        if not isinstance(item, Message):
            if "parameters" in item.metadata:
                parameters.update(json.loads(item.metadata["parameters"]))
            continue
        if item.channel.id not in known:
            topic = f"/{item.topic.lstrip('/')}"
            readers = [r for r in _READERS if topic.endswith(r.ending.format(drone))]
            encoding = item.channel.message_encoding
            decoder = decoders.decoder_for(encoding, item.schema) if readers else None
            known[item.channel.id] = readers if decoder else [], decoder
        readers, decoder = known[item.channel.id]
        if readers:
            if len(item.data) > _MESSAGE_BYTES:  # whose elements may take 500 times as much
                size = f"{len(item.data)} bytes, expected at most {_MESSAGE_BYTES}"
                raise ValueError(f"a message on {shown(item.topic)} has {size}")
            message = decoder(item.data)
            for reader in readers:
                yield reader, item.time_ns * 1e-9, message


def _commands(rows: list[_Timed], control: object) -> dict[str, list[_Timed]]:
    """Return the commands of `<drone>/command`, by what they are.

    Args:
        rows: Time and numbers of each.
        control: Parameter of the simulator; None if unknown: four numbers are an attitude command.
    """
    sizes = {len(row) for _, row in rows}
    if sizes == {4} and control in (None, "attitude"):
        return {"attitude_command": rows}
    if sizes and sizes <= {13, 16}:
        whole = [(time, row if len(row) == 16 else _with_quaternion(row)) for time, row in rows]
        return {"setpoint": whole}
    return {}


def _samples(rows: list[_Timed]) -> TimedValues:
    """Return the samples; of messages at the same time, as while paused, the last one."""
    time = np.array([time for time, _ in rows])
    is_last = np.append(np.diff(time) != 0, True)
    return TimedValues(time[is_last], np.array([row for _, row in rows], float)[is_last])
