"""/poses: the drones as a motion capture system sees them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import Pose
from motion_capture_tracking_interfaces.msg import NamedPose, NamedPoseArray
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, ReliabilityPolicy

from crazyflow_ros.crazyswarm.identities import Identities
from crazyflow_ros.ros.messages.geometry import pose, xyz, xyzw
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.sensors.device_topics import Audience, Scene
from crazyflow_ros.ros.sensors.devices import ALL, DRONE, Device, Kind, SensorFile, Topic
from crazyflow_ros.ros.sensors.sampled_topics import SampleTopics
from crazyflow_ros.sensors import MotionCaptureSensorCfg, NoiseCfg, ObjRef
from crazyflow_ros.sensors.sampled import SampledSensor

if TYPE_CHECKING:
    from crazyflow_ros.crazyswarm.crazyflies import Crazyflies
    from crazyflow_ros.crazyswarm.swarm_configuration import (
        MotionCaptureParameters,
        SwarmConfiguration,
    )
    from crazyflow_ros.ros.host import Host
    from crazyflow_ros.ros.parameters.node_parameters import Parameters

TOPIC = "poses"
_MOST_POSES = 1000  # in a message


@dataclass(frozen=True)
class PosesDevice(Device[MotionCaptureSensorCfg]):
    """The motion capture system."""

    swarm: SwarmConfiguration
    frame_id: str
    """Frame of the poses."""
    confusion: float
    """See `Identities`, m."""


class PosesTopic(SampleTopics):
    """One message with the poses of all drones that are tracked and seen."""

    _device: PosesDevice

    def __init__(self, simulator: Host, file: SensorFile, device: PosesDevice) -> None:
        self._swarm, self._owns = device.swarm, simulator.owns
        super().__init__(simulator, file, device)
        rate = self._swarm.poses_rate
        qos = QoSProfile(
            depth=1,
            reliability=ReliabilityPolicy.BEST_EFFORT,
            deadline=Duration(nanoseconds=round(1e9 / rate)),  # requested by subscribers
        )
        self._topics = [Topic(NamedPoseArray, qos=qos)]

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """Return the only topic; its QoS follows from the configuration."""
        del device
        return [Topic(NamedPoseArray)]

    def names(self, drones: Iterable[str]) -> list[str]:
        """Return the topic once for each tracked drone."""
        return [TOPIC for drone in drones if self._is_seen(drone)]

    def initialize(self, scene: Scene) -> None:
        """Prepare to sense in this scene."""
        self._drones = tuple(filter(self._is_seen, scene.names))
        device = self._device
        self._identities = Identities(len(self._drones), device.confusion, device.cfg.seed)
        if self._drones:
            self._initialize(scene)

    def _is_seen(self, drone: str) -> bool:
        return self._owns(drone) and self._swarm.settings(drone).is_tracked

    def _prepare_messages(self) -> None:
        """Do nothing: the number of poses in a message varies."""

    def _send(
        self,
        times_ns: Sequence[int],
        sensor: SampledSensor[Any, Any],
        listeners: Audience,
    ) -> None:
        publisher, data = next(iter(listeners.values())), sensor.data
        shape = len(times_ns), len(self._drones)
        ages_ns = (sensor.ages.max(axis=1) * 1e9).round().astype(int)
        for time_ns, age_ns, valid, pos, quat in zip(
            times_ns,
            ages_ns.tolist(),
            data.valid.reshape(shape),
            data.pos.reshape(*shape, 3),
            data.quat.reshape(*shape, 4),
        ):
            seen_as, message = self._identities.see(pos), NamedPoseArray()
            message.header.frame_id = self._device.frame_id
            message.header.stamp = time_of(time_ns - age_ns)
            for i in valid.nonzero()[0].tolist():
                name = self._drones[seen_as[i]]
                message.poses.append(NamedPose(name=name, pose=pose(pos[i], quat[i])))
            if message.poses:
                publisher.publish(message)


class ExternalPoses:
    """Passes the poses that another node publishes on to the drones."""

    def __init__(self, crazyflies: Crazyflies) -> None:
        self._crazyflies, self._simulator = crazyflies, crazyflies.host
        # No deadline, because publishers would have to offer one.
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._simulator.create_subscription(NamedPoseArray, TOPIC, self._tell, qos)

    def _tell(self, message: NamedPoseArray) -> None:
        time_ms = self._simulator.physics.snapshot.time_ns // 1_000_000

        def tell(name: str, seen: Pose) -> None:
            quat = None if isnan(seen.orientation.w) else xyzw(seen.orientation)
            localisation = self._crazyflies.firmware(name).localisation
            localisation.tell_pose(xyz(seen.position), quat, time_ms)

        tell_each(message, self._simulator.drones, tell)


def tell_each(
    message: NamedPoseArray, drones: Collection[str], tell: Callable[[str, Pose], None]
) -> None:
    """Call a function for each of these drones in a message; ValueError says which it refused."""
    if len(message.poses) > _MOST_POSES:
        raise ValueError(f"expected at most {_MOST_POSES} poses, got {len(message.poses)}")
    refused = []
    for named in message.poses:
        if named.name in drones:
            try:
                tell(named.name, named.pose)
            except ValueError as error:
                refused.append(f"{named.name}: {error}")
    if refused:
        raise ValueError("; ".join(refused))


def with_poses(
    file: SensorFile | None,
    given: MotionCaptureParameters,
    swarm: SwarmConfiguration,
    parameters: Parameters,
) -> SensorFile | None:
    """Return the sensors of the drones, and a motion capture system that sees those it tracks."""
    if given.external or not any(robot.settings.is_tracked for robot in swarm.robots):
        return file
    freq, wanted = parameters.freq, swarm.poses_rate
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
    frame = given.frame_id or swarm.poses_frame
    device = PosesDevice(ALL, TOPIC, kind, rate, cfg, None, swarm, frame, given.confusion)
    return SensorFile((*(file.devices if file else ()), device), parameters.drone_model)
