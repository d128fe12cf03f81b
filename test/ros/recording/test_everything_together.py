"""Lidars, pictures, positioning, a real drone, guests and a recording, all in one node."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, PoseStamped
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, numbers, own_domain
from rosbags.highlevel import AnyReader
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import ResetSimulation, SpawnEntity

from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.recording.replay import replay

motion_capture = pytest.importorskip("motion_capture_tracking_interfaces.msg")

DOMAIN = own_domain(__name__)
COMPILE_TIMEOUT = 300.0  # s; a machine may be busy
SENSORS = """
cf0:
  lidar: {type: vlp16, samples: 90}
  eye: {type: camera, rate: 25, width: 32, height: 24, renderer: rays, data_types: [depth]}
"""
READ = {
    "cf0/lidar": PointCloud2,
    "cf0/eye/depth/image_raw": Image,
    "cf0/eye/depth/camera_info": CameraInfo,
    "cf0/odom": Odometry,
}


def test_what_a_perception_engineer_has_on_a_day(tmp_path: Path) -> None:
    """Readers come and go; what was flown is recorded as three flights, and replays to the bit."""
    (tmp_path / "sensors.yaml").write_text(SENSORS)
    flight = tmp_path / "flight"
    arguments = [
        *("drones:=[cf0,cf9]", "real.drones:=[cf9]", "max_drones:=3", "start_paused:=true"),
        *("estimator:=kalman", "crazyflie.decks:=[bcLighthouse4]"),
        *(f"sensors:={tmp_path / 'sensors.yaml'}", f"record:={flight}"),
    ]
    with SimulatorProcess(DOMAIN, arguments, ready_timeout=COMPILE_TIMEOUT) as simulator:
        with Client(DOMAIN) as client:
            fly(client, x=0.0)
            guest = {"name": "guest", "entity_resource": Resource(uri="cf2x_L250")}
            pose = PoseStamped(pose=Pose(position=Point(x=-2.0)))
            client.call(SpawnEntity, "crazyflow/spawn_entity", initial_pose=pose, **guest)
            client.call(ResetSimulation, "crazyflow/reset_simulation")
        with Client(DOMAIN) as client:  # another reader
            fly(client, x=0.2)
            client.call(ResetSimulation, "crazyflow/reset_simulation")
            fly(client, x=0.4)
        assert simulator.end(signal.SIGINT)[0] == 0
        log = simulator.log
    unprovoked = [
        line
        for line in log.splitlines()
        if ("[WARN]" in line or "ERROR" in line) and "no pose of the real drone" not in line
    ]
    assert not unprovoked, log
    for name in ("flight", "flight_1", "flight_2"):
        with AnyReader([tmp_path / name]) as reader:
            times = [time for _, time, _ in reader.messages()]
            kinds = {connection.topic for connection in reader.connections}
        assert times == sorted(times) and {f"/{topic}" for topic in READ} <= kinds
    report = replay(flight / "flight_0.mcap")  # and the other two, which it names
    assert not report.difference and report.states > 900, report


def fly(client: Client, x: float) -> None:
    """cf0 flies below the real drone, and everything that looks sees something."""
    heard = {topic: client.collect(kind, topic) for topic, kind in READ.items()}
    command = PoseStamped(pose=Pose(position=Point(x=x, z=0.8)))
    client.publish("cf0/cmd_pose", command)
    for i in range(4):
        message = motion_capture.NamedPoseArray()
        message.header.stamp = time_of(i * 750_000_000)
        place = Pose(position=Point(x=1.0, y=0.1 * i, z=1.4))
        place.orientation.w = 1.0
        message.poses = [motion_capture.NamedPose(name="cf9", pose=place)]
        client.publish("poses", message)
        client.advance(375)
    for topic, messages in heard.items():
        client.until(lambda m=messages: len(m) > 3, topic, COMPILE_TIMEOUT)
    end = heard["cf0/odom"][-1].pose.pose.position
    assert 0.2 < end.z < 1.2
    cloud = heard["cf0/lidar"][-1]
    assert cloud.width and "intensity" in [field.name for field in cloud.fields]
    depth = np.frombuffer(heard["cf0/eye/depth/image_raw"][-1].data, np.float32)
    assert np.isfinite(depth).any()
    assert numbers(end)[0] == pytest.approx(x, abs=0.3)
