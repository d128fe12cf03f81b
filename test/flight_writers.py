"""Flights with known content, written in the formats in which flights are logged.

Names, units and layouts are those of the programs that write such files, and not taken from the
readers.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.flight_logs import FlightLog, TimedValues

GRAVITY = 9.81  # m/s^2
PERIODIC = 0xFFFF
"""Number of the event of periodic variables."""
POSE_BY_RADIO = (*(f"stateEstimate.{axis}" for axis in "xyz"), "stabilizer.roll",
                 "stabilizer.pitch", "stabilizer.yaw")  # fmt: skip
"""Variables of a log block with a pose."""


def flight(seconds: float = 3.0, rate: int = 500) -> FlightLog:
    """A flight along a spiral, of which everything was logged at one rate, without noise."""
    n = round(seconds * rate)
    time = np.arange(n) / rate
    angle = 1.5 * time
    pos = np.stack([np.cos(angle), np.sin(angle), 1 + 0.2 * time], axis=1)
    vel = np.stack([-1.5 * np.sin(angle), 1.5 * np.cos(angle), 0.2 + 0 * time], axis=1)
    rpy = np.stack([0.3 * np.sin(2 * time), 0.2 * np.cos(3 * time), 0.1 + 0.4 * time], axis=1)
    quat = Rotation.from_euler("xyz", rpy).as_quat()
    yaw = Rotation.from_euler("z", rpy[:, 2:]).as_quat()
    rates = np.stack([0 * time, 0 * time, 0.4 + 0 * time], axis=1)
    waves = np.sin(time[:, None] + np.arange(4))
    parts = {
        "pose": np.hstack((pos, quat)),
        "setpoint": np.hstack((pos + 0.1, vel, 0 * pos, yaw, rates)),
        "attitude_command": np.hstack((rpy, 0.3 + 0.05 * waves[:, :1])),
        "gyro": waves[:, :3],
        "accelerometer": np.array([0, 0, GRAVITY]) + waves[:, 1:],
        "pwm": np.round(30000 + 10000 * waves),
        "rotor_vel": np.round(15000 + 3000 * waves),
        "voltage": np.round(3.9 - 0.01 * time[:, None], 3),
        "estimate": np.hstack((pos + 0.01, quat, vel)),
    }
    return FlightLog(
        "flight", **{name: TimedValues(time, values) for name, values in parts.items()}
    )


def measured(log: FlightLog, rng: np.random.Generator, delay: float, noise: float) -> FlightLog:
    """The flight with poses that arrive late [s], with errors of their positions [m]."""
    values = log.pose.values.copy()
    values[:, :3] += noise * rng.standard_normal((len(values), 3))
    return replace(log, pose=TimedValues(log.pose.time + delay, values))


def variables(log: FlightLog, time: np.ndarray) -> dict[str, tuple[str, np.ndarray]]:
    """The firmware's variables: type character and values (n,), by name."""

    def at(name: str) -> np.ndarray:
        return getattr(log, name).at(time)

    target = np.hstack((at("setpoint")[:, :9], np.degrees(at("setpoint")[:, 15:])))
    yaw = Rotation.from_quat(at("setpoint")[:, 9:13]).as_euler("xyz", degrees=True)[:, 2:]
    groups = (
        ("stateEstimate", "x y z qx qy qz qw vx vy vz", "f", at("estimate")),
        ("ctrltarget", "x y z vx vy vz ax ay az yaw", "f", target),
        ("controller", "yaw", "f", yaw),
        ("gyro", "x y z", "f", np.degrees(at("gyro"))),
        ("acc", "x y z", "f", at("accelerometer") / GRAVITY),
        ("motor", "m1 m2 m3 m4", "H", at("pwm")),
        ("rpm", "m1 m2 m3 m4", "H", at("rotor_vel")),
        ("pm", "vbatMV", "H", np.round(1e3 * at("voltage"))),
    )
    return {
        f"{group}.{name}": (kind, column)
        for group, names, kind, values in groups
        for name, column in zip(names.split(), values.T, strict=True)
    }


def compressed(log: FlightLog, time: np.ndarray) -> dict[str, tuple[str, np.ndarray]]:
    """The firmware's compressed estimate, setpoint and rates; see `variables`."""
    estimate, setpoint = log.estimate.at(time), log.setpoint.at(time)
    milli = 1e3 * np.hstack((estimate[:, :3], estimate[:, 7:]))
    columns = dict(zip(["x", "y", "z", "vx", "vy", "vz"], milli.T))
    columns |= dict(zip(["rateRoll", "ratePitch", "rateYaw"], 1e3 * log.gyro.at(time).T))
    columns["ratePitch"] = -columns["ratePitch"]
    found = {f"stateEstimateZ.{name}": ("h", column) for name, column in columns.items()}
    found["stateEstimateZ.quat"] = "I", np.array([_compressed(q) for q in estimate[:, 3:7]])
    names = ["x", "y", "z", "vx", "vy", "vz", "ax", "ay", "az"]
    for name, column in zip(names, 1e3 * setpoint[:, :9].T):
        found[f"ctrltargetZ.{name}"] = "h", column
    return found


def _compressed(quat: np.ndarray) -> int:
    """A quaternion in 32 bits, as `quatcompress.h` of the firmware has it."""
    largest = int(np.argmax(np.abs(quat)))
    number = largest
    for i in (i for i in range(4) if i != largest):
        x = quat[i] * np.sign(quat[largest])
        number = number << 10 | (x < 0) << 9 | int(511 * abs(x) * np.sqrt(2) + 0.5)
    return number


Events = list[tuple[int, str, np.ndarray, dict[str, tuple[str, np.ndarray]]]]
"""Number, name, times (n,) [s] of the log's clock, and variables of each event."""


def sd_card(events: Events, version: int = 2) -> bytes:
    """A log as `usddeck.c` of the firmware writes it."""
    header, records = struct.pack("<BHH", 0xBC, version, len(events)), list[tuple[float, bytes]]()
    for number, name, times, columns in events:
        header += struct.pack("<H", number) + name.encode() + b"\0"
        header += struct.pack("<H", len(columns))
        for variable, (kind, _) in columns.items():
            header += f"{variable}({kind})".encode() + b"\0"
        layout = f"<H{'Q' if version == 2 else 'I'}" + "".join(kind for kind, _ in columns.values())
        unit = 1e6 if version == 2 else 1e3
        rows = [column if kind in "fe" else column.astype(int) for kind, column in columns.values()]
        for i, time in enumerate(times.tolist()):
            row = (column[i] for column in rows)
            records.append((time, struct.pack(layout, number, round(unit * time), *row)))
    content = header + b"".join(record for _, record in sorted(records, key=lambda r: r[0]))
    return content + struct.pack("<I", zlib.crc32(content))


def sd_events(log: FlightLog, clock: float, start: float = 100.0) -> Events:
    """All of a flight, the poses of a motion capture as events of their own."""
    time, poses = log.gyro.time, log.pose
    columns = dict(zip(["x", "y", "z", "qx", "qy", "qz", "qw"], poses.values.T))
    captured = {f"locSrv.{name}": ("f", column) for name, column in columns.items()}
    return [
        (PERIODIC, "fixedFrequency", start + time / clock, variables(log, time)),
        (3, "estPose", start + poses.time / clock + 1e-5, captured),
    ]


def write_sd_card(log: FlightLog, path: Path, clock: float = 85 / 84) -> Path:
    """Write a flight as the SD card has it, with a clock that is slow."""
    path.write_bytes(sd_card(sd_events(log, clock)))
    return path


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> Path:
    """Write a table with a line of names."""
    table = np.stack([*columns.values()], axis=1)
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="", fmt="%.12g")
    return path


def write_radio(log: FlightLog, folder: Path, period: int = 10) -> Path:
    """Write a folder of log blocks as cfclient does, with times in ms, at a period [ms]."""
    folder.mkdir()
    time = np.arange(log.gyro.time[0], log.gyro.time[-1], 1e-3 * period)
    found = {name: values for name, (_, values) in variables(log, time).items()}
    rpy = Rotation.from_quat(log.estimate.at(time)[:, 3:7]).as_euler("xyz", degrees=True)
    attitude = dict(zip(["roll", "pitch", "yaw"], (rpy * (1, -1, 1)).T))
    found |= {f"stabilizer.{name}": angle for name, angle in attitude.items()}
    blocks = (
        POSE_BY_RADIO[:3],
        ("stateEstimate.vx", "stateEstimate.vy", "stateEstimate.vz"),
        POSE_BY_RADIO[3:],
        ("ctrltarget.x", "ctrltarget.y", "ctrltarget.z", "controller.yaw"),
        ("gyro.x", "gyro.y", "gyro.z", "acc.x", "acc.y", "acc.z"),
        ("motor.m1", "motor.m2", "motor.m3", "motor.m4", "pm.vbatMV"),
    )
    for number, names in enumerate(blocks):
        stamps = {"Timestamp": np.round(1e3 * time) + 54321}
        write_csv(folder / f"block{number}.csv", stamps | {name: found[name] for name in names})
    return folder


def write_nanobench(log: FlightLog, path: Path, rate: int = 100) -> Path:
    """Write the table of NanoBench."""
    time = np.arange(log.pose.time[0], log.pose.time[-1], 1 / rate)
    names = ["px", "py", "pz", "qx", "qy", "qz", "qw"]
    columns = {"t": 7 + time} | dict(zip(names, log.pose.at(time).T))
    blocks = {
        "stateEstimate.q": "att", "stateEstimate": "est", "ctrltarget": "sp", "controller": "pid",
        "gyro": "imu", "acc": "imu", "motor": "motor", "pm": "pwr",
    }  # fmt: skip
    for name, (_, values) in variables(log, time).items():
        block = next((b for start, b in blocks.items() if name.startswith(start)), None)
        if block is not None and not name.startswith("ctrltarget.a"):
            column = np.radians(values) if name.startswith("gyro") else values
            columns[f"{block}_{name.replace('.', '_')}"] = column
    columns["pwr_pm_vbat"] = 1e-3 * columns.pop("pwr_pm_vbatMV")
    return write_csv(path, columns)


_DEFINITIONS = {
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/Transform": "geometry_msgs/Vector3 translation\n"
    "geometry_msgs/Quaternion rotation",
    "geometry_msgs/PoseStamped": "std_msgs/Header header\ngeometry_msgs/Pose pose",
    "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
    "geometry_msgs/TransformStamped": "std_msgs/Header header\nstring child_frame_id\n"
    "geometry_msgs/Transform transform",
    "nav_msgs/Odometry": "std_msgs/Header header\nstring child_frame_id\n"
    "geometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist",
    "sensor_msgs/Imu": "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n"
    "float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n"
    "float64[9] angular_velocity_covariance\ngeometry_msgs/Vector3 linear_acceleration\n"
    "float64[9] linear_acceleration_covariance",
    "sensor_msgs/JointState": "std_msgs/Header header\nstring[] name\nfloat64[] position\n"
    "float64[] velocity\nfloat64[] effort",
    "sensor_msgs/BatteryState": "std_msgs/Header header\nfloat32 voltage",
    "std_msgs/MultiArrayDimension": "string label\nuint32 size\nuint32 stride",
    "std_msgs/MultiArrayLayout": "std_msgs/MultiArrayDimension[] dim\nuint32 data_offset",
    "std_msgs/Float64MultiArray": "std_msgs/MultiArrayLayout layout\nfloat64[] data",
    "crazyflie_interfaces/FullState": "std_msgs/Header header\ngeometry_msgs/Pose pose\n"
    "geometry_msgs/Twist twist\ngeometry_msgs/Vector3 acc",
    "crazyflie_interfaces/Position": "std_msgs/Header header\nfloat32 x\nfloat32 y\nfloat32 z\n"
    "float32 yaw",
    "motion_capture_tracking_interfaces/NamedPose": "string name\ngeometry_msgs/Pose pose",
    "motion_capture_tracking_interfaces/NamedPoseArray": "std_msgs/Header header\n"
    "motion_capture_tracking_interfaces/NamedPose[] poses",
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms",
}
"""Of ROS messages; of the battery, the first fields alone."""


def _definition(kind: str) -> str:
    """The definition of a message with those that it needs, as MCAP holds it."""
    needed, found = [kind], dict[str, str]()
    while needed:
        name = needed.pop()
        if name not in found:
            found[name] = _DEFINITIONS[name]
            fields = (line.split()[0].partition("[")[0] for line in found[name].splitlines())
            needed += [field for field in fields if field in _DEFINITIONS]
    own, *others = found.items()
    parts = [own[1], *(f"MSG: {name}\n{text}" for name, text in others)]
    return f"\n{80 * '='}\n".join(parts)


def xyz(values: np.ndarray) -> dict[str, float]:
    """A vector of a message."""
    return dict(zip("xyz", values.tolist()))


def xyzw(values: np.ndarray) -> dict[str, float]:
    """A quaternion of a message."""
    return dict(zip("xyzw", values.tolist()))


def pose(values: np.ndarray) -> dict[str, Any]:
    """A pose of a message."""
    return {"position": xyz(values[:3]), "orientation": xyzw(values[3:7])}


Entry = tuple[float, str, str, dict[str, Any]]
"""Time [s], topic, kind and content of a message."""


def entries(log: FlightLog, drone: str = "cf0", poses: str = "odom") -> list[Entry]:
    """The messages of the simulator's recording, and of others, with poses on one topic."""
    rows = lambda name: zip(getattr(log, name).time.tolist(), getattr(log, name).values)  # noqa: E731
    found: list[Entry] = []
    for time, row in rows("pose"):
        edge = {
            "child_frame_id": f"{drone}/base_link",
            "transform": {"translation": xyz(row[:3]), "rotation": xyzw(row[3:])},
        }
        named = {"name": drone, "pose": pose(row)}
        kinds: dict[str, tuple[str, str, dict[str, Any]]] = {
            "odom": (f"/{drone}/odom", "nav_msgs/Odometry", {"pose": {"pose": pose(row)}}),
            "pose": (f"/{drone}/pose", "geometry_msgs/PoseStamped", {"pose": pose(row)}),
            "tf": ("/tf", "tf2_msgs/TFMessage", {"transforms": [edge]}),
            "poses": (
                "/poses",
                "motion_capture_tracking_interfaces/NamedPoseArray",
                {"poses": [{"name": "other", "pose": pose(row + 1)}, named]},
            ),
        }
        found.append((time, *kinds[poses]))
    readings = zip(log.gyro.time.tolist(), log.gyro.values, log.accelerometer.values)
    for time, gyro, acc in readings:
        content = {"angular_velocity": xyz(gyro), "linear_acceleration": xyz(acc)}
        found.append((time, f"/{drone}/imu", "sensor_msgs/Imu", content))
    for time, speeds in rows("rotor_vel"):
        content = {"velocity": (speeds * np.pi / 30).tolist()}
        found.append((time, f"/{drone}/joint_states", "sensor_msgs/JointState", content))
    for time, row in rows("voltage"):
        content = {"voltage": float(row[0])}
        found.append((time, f"/{drone}/battery", "sensor_msgs/BatteryState", content))
    return found


def write_mcap(
    path: Path, messages: list[Entry], parameters: str | None = None, **options: Any
) -> Path:
    """Write messages into an MCAP file, with the simulator's parameters as JSON."""
    from mcap_ros2.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file, **options)
        if parameters is not None:
            writer._writer.add_metadata("crazyflow_ros", {"parameters": parameters})
        schemas: dict[str, Any] = {}
        for time, topic, kind, content in sorted(messages, key=lambda entry: entry[0]):
            if kind not in schemas:
                schemas[kind] = writer.register_msgdef(kind, _definition(kind))
            at = round(1e9 * time)
            writer.write_message(topic, schemas[kind], content, at, at)
        writer.finish()
    return path
