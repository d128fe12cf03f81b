"""~/drones/cmd_pose and ~/drones/cmd_vel: commands to many drones in one message.

Their type is that of ~/odometry: names, and a transform or a twist for each. A drone is commanded
as by a message on its own topic, <drone>/cmd_pose or <drone>/cmd_vel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from sensor_msgs.msg import MultiDOFJointState

from crazyflow_ros.ros.commands import setpoint_messages
from crazyflow_ros.ros.commands.command_topics import COMMAND_QOS, Conversion, RecordedCommands
from crazyflow_ros.ros.commands.names import check_names, refusal

if TYPE_CHECKING:
    from crazyflow_ros.flight import Setpoint
    from crazyflow_ros.ros.host import Host

Split = Callable[[MultiDOFJointState], Iterator[Any]]
"""Yields the message of each drone."""


class SwarmCommands:
    """Subscriptions for many drones: what one drone refuses does not keep others from flying."""

    def __init__(self, simulator: Host, recorded: RecordedCommands | None) -> None:
        self._simulator, self._recorded = simulator, recorded
        self._conversions: dict[str, Conversion] = {}  # by topic of a drone
        for topic, kind, conversion, field, split in (
            ("cmd_pose", PoseStamped, setpoint_messages.pose, "transforms", _poses),
            ("cmd_vel", TwistStamped, setpoint_messages.velocity, "twist", _twists),
        ):
            conversion_of = partial(self._conversion, topic, kind, conversion)
            simulator.create_subscription(
                MultiDOFJointState,
                f"~/drones/{topic}",
                partial(self._command, conversion_of, field, split),
                COMMAND_QOS,
            )

    def _conversion(self, topic: str, kind: Any, conversion: Conversion, drone: str) -> Conversion:
        """Return the conversion for a drone, which records the command as one on its own topic."""
        if self._recorded is None:
            return conversion
        name = f"{drone}/{topic}"
        if name not in self._conversions:
            self._conversions[name] = self._recorded(conversion, name, kind)
        return self._conversions[name]

    def _command(
        self,
        conversion_of: Callable[[str], Conversion],
        field: str,
        split: Split,
        message: MultiDOFJointState,
    ) -> None:
        names = message.joint_names
        if len(given := getattr(message, field)) != len(names):
            expected = f"as many {field} as joint_names"
            raise ValueError(f"expected {expected}, {len(names)}, got {len(given)}")
        check_names("joint_names", names, self._simulator.physics.snapshot.names)
        setpoints: dict[str, Setpoint] = {}
        refused = []
        for drone, one in zip(names, split(message)):
            try:
                setpoints[drone] = conversion_of(drone)(one, drone)
            except ValueError as error:
                refused.append(f"{drone}: {error}")
        self._simulator.physics.command_all(setpoints)
        if refused:
            raise ValueError(refusal(refused, len(names)))


def _poses(message: MultiDOFJointState) -> Iterator[PoseStamped]:
    for transform in message.transforms:
        pose = PoseStamped(header=message.header)
        position, place = pose.pose.position, transform.translation
        position.x, position.y, position.z = place.x, place.y, place.z
        pose.pose.orientation = transform.rotation
        yield pose


def _twists(message: MultiDOFJointState) -> Iterator[TwistStamped]:
    for twist in message.twist:
        yield TwistStamped(header=message.header, twist=twist)


def declare(simulator: Host, recorded: RecordedCommands | None) -> None:
    """Create the subscriptions."""
    SwarmCommands(simulator, recorded)
