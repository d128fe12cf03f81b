"""Stock broadcasters of a real controller manager show the sensors of the sensors file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from real_manager import DynamicJointState, Flight, Manager, flight, has_package
from ros_client import numbers, own_domain, time_ns
from sensor_msgs.msg import BatteryState, Imu, MagneticField

from crazyflow_ros.drones import load_drone

DOMAIN = own_domain(__name__)
RATE = 100  # Hz
WEIGHT = load_drone("cf2x_L250")["mass"] * 9.81
FILE = """
all:
  imu: {type: imu, rate: 100, gyro: {density: 0.01}}
  compass: {type: magnetometer, rate: 50, noise: {std: 1.0e-6}}
  cell: {type: battery, rate: 10}
  vicon: {type: motion_capture, rate: 50}
  skin: {type: contact, rate: 100}
"""


def same(flying: Flight, kind: Any, ours: str, theirs: str) -> None:
    """What the simulator publishes and what the broadcaster does are the same numbers."""
    client = flying.client
    pairs = client.collect(kind, ours), client.collect(kind, theirs)

    def common() -> list[tuple[Any, Any]]:
        truth, seen = ({time_ns(m.header.stamp): m for m in messages} for messages in pairs)
        return [(truth[stamp], seen[stamp]) for stamp in truth.keys() & seen.keys()]

    client.until(lambda: len(common()) >= 10, f"messages of {theirs}")
    for told, seen in common():
        np.testing.assert_allclose(read(seen, 100), read(told), rtol=1e-6, err_msg=theirs)


def read(message: Any, percent: float = 1.0) -> np.ndarray:
    """The numbers of a message; ros2_control's batteries have a charge in percent."""
    if isinstance(message, BatteryState):
        return np.array([message.voltage, message.current, message.percentage * 100 / percent])
    fields = {
        Imu: ("angular_velocity", "linear_acceleration"),
        MagneticField: ("magnetic_field",),
        PoseStamped: (),
    }[type(message)]
    parts = [getattr(message, name) for name in fields]
    if isinstance(message, PoseStamped):
        parts = [message.pose.position, message.pose.orientation]
    return np.concatenate([numbers(part) for part in parts])


def test_broadcasters_show_the_sensors_that_a_drone_carries(tmp_path: Path) -> None:
    (tmp_path / "sensors.yaml").write_text(FILE)
    given = {"ros2_control.rate": RATE, "battery": True, "sensors": tmp_path / "sensors.yaml"}
    with (
        flight(DOMAIN, **given, real_time_factor=1.0) as flying,
        Manager(flying.client, tmp_path, ["cf0"], RATE) as manager,
    ):
        shown = [
            (Imu, "/cf0/imu/data_raw", "imu", "imu"),
            (PoseStamped, "/cf0/vicon", "vicon", "pose"),
        ]
        if has_package("magnetometer_broadcaster"):
            shown.append((MagneticField, "/cf0/compass", "compass", "magnetic_field"))
        if has_package("battery_state_broadcaster"):
            shown.append((BatteryState, "/cf0/cell", "cell", "battery_state"))
        manager.start(*(f"cf0_{name}_broadcaster" for *_, name, _ in shown), "all_states")
        for kind, ours, name, topic in shown:
            same(flying, kind, ours, f"/cf0_{name}_broadcaster/{topic}")
        told = flying.client.latest(DynamicJointState, "/all_states/dynamic_joint_states")
        values = told.interface_values[told.joint_names.index("cf0_skin")]
        skin = dict(zip(values.interface_names, values.values))
        assert set(skin) == {f"{part}.{axis}" for part in ("force", "torque") for axis in "xyz"}
        assert 0.0 <= skin["force.z"] < 2 * WEIGHT
