"""Real drones among simulated ones, where motion capture says.

Simulated drones see them, meet them and feel the air that they push down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Pose
from motion_capture_tracking_interfaces.msg import NamedPoseArray
from rclpy.exceptions import InvalidTopicNameException
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.validate_topic_name import validate_topic_name
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.checks.plain_values import Names, ParameterError, Spec
from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.crazyswarm.mocap_poses import tell_each
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.ros.host import Host
from crazyflow_ros.ros.messages.geometry import attitude, xyz
from crazyflow_ros.ros.messages.times import nanoseconds
from crazyflow_ros.runtime import Extension, PhysicsThread

_UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
_LONGEST = 0.5  # s between two poses from which velocities are computed
_FASTEST = 30.0  # m/s, above which there are none
_ALONE = {"door": "", "ros2_control.mode": "off", "hosts.name": ""}
"""Parameters that nobody may set beside real drones, and what they are otherwise."""


class MixedWorld(PhysicsThread):
    """A physics thread some of whose drones stand for real ones, which obey nobody here.

    Args:
        config: The simulation.
        drones: Names of all drones.
        real: Names of those that are real.
        logger: Logs failures.
    """

    def __init__(
        self,
        config: SimulationConfig,
        drones: Sequence[str],
        real: Sequence[str],
        logger: Logger,
    ) -> None:
        super().__init__(config, drones, logger=logger)
        self._real = frozenset(real)
        self.masters = dict.fromkeys(real, "the real drone")

    def owns(self, name: str) -> bool:
        """Return whether a drone is simulated."""
        return name not in self._real


def _check_topic(name: str, value: str) -> None:
    try:
        validate_topic_name(value)
    except InvalidTopicNameException:
        raise ParameterError(name, "the name of a topic", value) from None


@dataclass(frozen=True)
class RealDrones(Extension):
    """Which drones are real, and who sees them."""

    drones: Annotated[Names, Spec("Drones among `drones` that stand for real ones")] = ()
    topic: Annotated[
        str,
        Spec("Topic of motion capture with their poses, a NamedPoseArray", check=_check_topic),
    ] = "/poses"
    timeout: Annotated[
        float, Spec("Wall time without a pose after which the log says so [s]", 0.05, 60.0)
    ] = 1.0

    def configured(self, config: SimulationConfig, values: Mapping[str, Any]) -> SimulationConfig:
        """See `Extension`."""
        for name in self.drones:
            if name not in values["drones"]:
                raise ParameterError("real.drones", unknown("drone", name, values["drones"]))
        for name, unset in _ALONE.items():
            if self.drones and (value := values.get(name, unset)) != unset:
                raise ParameterError(name, f"{unset!r} with real.drones", value)
        return config

    def physics(
        self, config: SimulationConfig, drones: Sequence[str], logger: Logger
    ) -> PhysicsThread | None:
        """See `Extension`."""
        return MixedWorld(config, drones, self.drones, logger) if self.drones else None

    def add(self, host: Host) -> None:
        """See `Extension`."""
        if self.drones:
            PosesOfRealDrones(host, self)


class PosesOfRealDrones:
    """Leads drones where motion capture sees real ones, and says which it does not see."""

    def __init__(self, host: Host, real: RealDrones) -> None:
        self._host, self._real = host, real
        self._seen: dict[str, tuple[int, np.ndarray, np.ndarray]] = {}  # time [ns], pose
        self._fresh, self._missing = set[str](), set[str]()
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        host.create_subscription(NamedPoseArray, real.topic, self._see, qos)
        host.create_timer(real.timeout, self._look)

    def _see(self, message: NamedPoseArray) -> None:
        present = set(self._real.drones).intersection(self._host.drones)
        tell_each(message, present, partial(self._lead, nanoseconds(message.header.stamp)))

    def _lead(self, time_ns: int, name: str, seen: Pose) -> None:
        pos, orientation = xyz(seen.position), seen.orientation
        before_ns, before, turned = self._seen.get(name, (time_ns, pos, _UPRIGHT))
        quat = turned if isnan(orientation.w) else attitude(orientation)  # unknown for one marker
        seconds = (time_ns - before_ns) * 1e-9
        vel, ang_vel = np.zeros(3), np.zeros(3)
        if 0 < seconds < _LONGEST:
            turn = Rotation.from_quat(turned).inv() * Rotation.from_quat(quat)
            vel, ang_vel = (pos - before) / seconds, turn.as_rotvec() / seconds
            if np.linalg.norm(vel) > _FASTEST:  # it was taken for another one, or put elsewhere
                vel, ang_vel = np.zeros(3), np.zeros(3)
        self._host.physics.firmware.lead(name, pos, quat, vel, ang_vel)
        self._seen[name] = time_ns, pos, quat
        self._fresh.add(name)

    def _look(self) -> None:
        """Say which drones motion capture has lost or found since the last look."""
        missing = set(self._real.drones).intersection(self._host.drones) - self._fresh
        self._fresh = set()
        log, topic = self._host.log, self._real.topic
        for name in sorted(missing - self._missing):
            where = "where it starts"
            if name in self._seen:
                where, (_, pos, quat) = "where it was seen last", self._seen[name]
                self._host.physics.firmware.lead(name, pos, quat)  # at rest
            log.warning(f"no pose of the real drone {name} on {topic}: it stays {where}")
        for name in sorted(self._missing - missing):
            log.info(f"{topic} has poses of the real drone {name}")
        self._missing = missing
