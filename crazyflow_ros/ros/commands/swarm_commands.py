"""~/drones/cmd_pose and ~/drones/cmd_vel: commands to many drones in one message.

Their type is that of ~/odometry: names, and a transform or a twist for each. A drone is commanded
as by a message on its own topic, <drone>/cmd_pose or <drone>/cmd_vel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from sensor_msgs.msg import MultiDOFJointState

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.commands.command_topics import COMMAND_QOS, RecordCommand
from crazyflow_ros.ros.commands.setpoint_messages import POSE, VELOCITY, Command

if TYPE_CHECKING:
    from crazyflow_ros.flight import Setpoint
    from crazyflow_ros.ros.host import Host

_LISTED = 5  # drones in a message

Split = Callable[[MultiDOFJointState], Iterator[Any]]
"""Yields the message of each drone."""


class SwarmCommands:
    """Subscriptions for many drones: what one drone refuses does not keep others from flying."""

    def __init__(self, simulator: Host, record: RecordCommand | None) -> None:
        self._physics, self._record = simulator.physics, record
        for command, field, split in ((POSE, "transforms", _poses), (VELOCITY, "twist", _twists)):
            receive = partial(self._command, command, field, split)
            topic = f"~/drones/{command.topic}"
            simulator.create_subscription(MultiDOFJointState, topic, receive, COMMAND_QOS)

    def _command(
        self, command: Command, field: str, split: Split, message: MultiDOFJointState
    ) -> None:
        names = message.joint_names
        if len(given := getattr(message, field)) != len(names):
            expected = f"as many {field} as joint_names"
            raise ValueError(f"expected {expected}, {len(names)}, got {len(given)}")
        check_names("joint_names", names, self._physics.snapshot.names)
        setpoints: dict[str, Setpoint] = {}
        refused = []
        for drone, one in zip(names, split(message)):
            try:
                setpoints[drone] = command.convert(one, drone)
            except ValueError as error:
                refused.append(f"{drone}: {error}")
                continue
            if self._record is not None:  # as if it came on the drone's own topic
                self._record(drone, command.topic, one, setpoints[drone])
        self._physics.command_all(setpoints)
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


def check_names(field: str, names: Sequence[str], present: Sequence[str]) -> None:
    """Refuse names of drones that are missing, unknown or duplicate.

    Raises:
        ValueError: They are; the message names the field.
    """
    if not names:
        raise ValueError(f"{field} is empty, expected names of drones")
    known = frozenset(present)
    for name in names:
        if name not in known:
            raise ValueError(f"{field}: {limits.unknown('drone', name, present)}")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{field}: {twice} is there twice")


def refusal(refused: Sequence[str], n_drones: int) -> str:
    """Return a message with the first refusals of drones, when the others are commanded."""
    more = f"; and {len(refused) - _LISTED} more" if len(refused) > _LISTED else ""
    others = "; the others are commanded" if len(refused) < n_drones else ""
    return f"{'; '.join(refused[:_LISTED])}{more}{others}"
