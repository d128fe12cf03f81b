"""/poses: the drones as a motion capture system sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from motion_capture_tracking_interfaces.msg import NamedPose, NamedPoseArray
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, ReliabilityPolicy

from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.sensors import sensors_file
from crazyflow_ros.ros.sensors.device_topics import Scene
from crazyflow_ros.ros.sensors.devices import ALL, DRONE, Device, Kind, SensorFile, Topic
from crazyflow_ros.ros.sensors.sampled_topics import SampleTopics
from crazyflow_ros.sensors import MotionCaptureSensorCfg, NoiseCfg, ObjRef
from crazyflow_ros.sensors.sampled import SampledSensor

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.server import CrazyswarmServer

TOPIC = "poses"
_MOST_POSES = 1000  # in a message


class PosesTopic(SampleTopics):
    """One message with the poses of all drones that are tracked and seen."""

    def __init__(self, simulator: CrazyswarmServer, file: SensorFile, device: Device[Any]) -> None:
        self._swarm = simulator.swarm
        super().__init__(simulator, file, device)
        rate = self._swarm.poses_rate
        qos = QoSProfile(
            depth=1,
            reliability=ReliabilityPolicy.BEST_EFFORT,
            deadline=Duration(nanoseconds=round(1e9 / rate)),  # requested by subscribers
        )
        self._topics = [Topic(NamedPoseArray, qos=qos)]
        self._frame = simulator.settings.motion_capture.frame_id or self._swarm.poses_frame

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """Return the only topic; its QoS follows from the configuration."""
        del device
        return [Topic(NamedPoseArray)]

    def names(self, drones: Iterable[str]) -> list[str]:
        """Return the topic once for each tracked drone."""
        return [TOPIC for drone in drones if self._swarm.settings(drone).is_tracked]

    def initialize(self, scene: Scene) -> None:
        """Prepare to sense in this scene."""
        self._drones = tuple(d for d in scene.names if self._swarm.settings(d).is_tracked)
        if self._drones:
            self._initialize(scene)

    def _prepare_messages(self) -> None:
        """Do nothing: the number of poses in a message varies."""

    def _send(
        self,
        times_ns: Sequence[int],
        sensor: SampledSensor[Any, Any],
        listeners: Mapping[tuple[str, int], Any],
    ) -> None:
        publisher, data = next(iter(listeners.values())), sensor.data
        shape = len(times_ns), len(self._drones)
        ages_ns = (sensor.ages.max(axis=1) * 1e9).round().astype(int)
        for time_ns, age_ns, valid, pos, quat in zip(
            times_ns,
            ages_ns.tolist(),
            data.valid.reshape(shape),
            data.pos.reshape(*shape, 3).tolist(),
            data.quat.reshape(*shape, 4).tolist(),
        ):
            message = NamedPoseArray()
            message.header.frame_id = self._frame
            message.header.stamp = time_of(time_ns - age_ns)
            for i in valid.nonzero()[0].tolist():
                named = NamedPose(name=self._drones[i])
                p, q = named.pose.position, named.pose.orientation
                p.x, p.y, p.z = pos[i]
                q.x, q.y, q.z, q.w = quat[i]
                message.poses.append(named)
            if message.poses:
                publisher.publish(message)


class ExternalPoses:
    """Passes the poses that another node publishes on to the drones."""

    def __init__(self, simulator: CrazyswarmServer) -> None:
        self._simulator = simulator
        # No deadline, because publishers would have to offer one.
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        simulator.create_subscription(NamedPoseArray, TOPIC, self._tell, qos)

    def _tell(self, message: NamedPoseArray) -> None:
        if len(message.poses) > _MOST_POSES:
            raise ValueError(f"expected at most {_MOST_POSES} poses, got {len(message.poses)}")
        simulator = self._simulator
        time_ms = simulator.physics.snapshot.time_ns // 1_000_000
        for named in message.poses:
            if named.name not in simulator.drones:  # another object
                continue
            p, q = named.pose.position, named.pose.orientation
            quat = None if isnan(q.w) else (q.x, q.y, q.z, q.w)
            try:
                simulator.firmware(named.name).tell_pose((p.x, p.y, p.z), quat, time_ms)
            except ValueError as error:
                raise ValueError(f"{named.name}: {error}") from None


def declare(simulator: CrazyswarmServer) -> None:
    """Read the file of the parameter `sensors`, and add the motion capture system."""
    sensors_file.declare(simulator)
    if simulator.settings.motion_capture.external:
        ExternalPoses(simulator)
        return
    if not any(robot.settings.is_tracked for robot in simulator.swarm.robots):
        return
    parameters, given = simulator.parameters, simulator.settings.motion_capture
    freq, wanted = parameters.freq, simulator.swarm.poses_rate
    rate = next(r for r in range(1, freq + 1) if freq % r == 0 and r >= min(wanted, freq))
    cfg = MotionCaptureSensorCfg(
        name=f"{ALL}/{TOPIC}",
        frame=ObjRef("site", "CoM", DRONE),
        position=NoiseCfg(std=given.position_noise),
        attitude=NoiseCfg(std=given.attitude_noise),
        dropout=given.dropout,
        delay=given.delay,
        seed=parameters.seed,
        debug_vis=False,
    )
    kind = Kind(cfg=MotionCaptureSensorCfg, rate=rate, topics=PosesTopic)
    device = Device(ALL, TOPIC, kind, rate, cfg, None)
    file = simulator.sensor_file
    simulator.sensor_file = SensorFile((*file.devices, device), parameters.drone_model)
