"""/tf and /tf_static: map -> <drone>/odom -> <drone>/base_link -> frames on the drone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from geometry_msgs.msg import Transform, TransformStamped
from tf2_msgs.msg import TFMessage

from crazyflow_ros.description.urdf import fixed_frames
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW
from crazyflow_ros.ros.messages.geometry import quaternion, vector
from crazyflow_ros.ros.messages.numeric_message import NumericMessage, elements, in_elements
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.topics.state_topics import ALL, LATCHED_QOS, StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host
    from crazyflow_ros.ros.sensors.devices import SensorFile


TOPIC = "/tf"


class Edge(NamedTuple):
    """A transform between two frames."""

    parent: str
    child: str


def add_moving(topics: StateTopics, edges: Sequence[Edge]) -> None:
    """Add /tf: the poses of all drones in one message.

    Args:
        topics: Topics with the state of the drones.
        edges: From the world to each drone.
    """
    topics.add("tf", moving(edges, lambda snapshot: (snapshot.pos, snapshot.quat)), {TOPIC: ALL})


def moving(
    edges: Sequence[Edge], poses: Callable[[Snapshot], Sequence[np.ndarray]]
) -> NumericMessage[Snapshot]:
    """Return a message with moving transforms.

    Args:
        edges: The frames.
        poses: Returns positions (n, 3) [m] and attitudes xyzw (n, 4).
    """
    n, transforms = len(edges), TFMessage(transforms=[transform(*edge) for edge in edges])
    return NumericMessage[Snapshot](
        lambda _: transforms,
        [
            in_elements("transforms", n, "transform.translation", XYZ),
            in_elements("transforms", n, "transform.rotation", XYZW),
        ],
        poses,
        [f"{path}.header.stamp" for path in elements("transforms", n)],
    )


def publish_static(simulator: Host, edges: Sequence[Edge], sensors: SensorFile | None) -> None:
    """Publish /tf_static, latched for late subscribers.

    Args:
        simulator: The node.
        edges: Frames that are equal; the frames on the drones are added.
        sensors: Sensors of the drones, if there are any, with frames of their own.
    """
    publisher = simulator.listeners.create_publisher(TFMessage, "/tf_static", LATCHED_QOS)
    stamp = time_of(simulator.physics.snapshot.time_ns)
    transforms = [transform(*edge) for edge in edges]
    for drone in simulator.drones:
        frames = fixed_frames(simulator.parameters.drone_model, drone)
        transforms += [
            transform(frame.parent, frame.child, frame.pos, frame.quat)
            for frame in (*frames, *(sensors.frames(drone) if sensors else ()))
        ]
    for message in transforms:
        message.header.stamp = stamp
    publisher.publish(TFMessage(transforms=transforms))


def transform(
    parent: str,
    child: str,
    pos: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
    quat: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0, 1.0),
) -> TransformStamped:
    """Return a transform between two frames, with position [m] and attitude xyzw."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    message.transform = Transform(translation=vector(pos), rotation=quaternion(quat))
    return message


def declare(simulator: Host, topics: StateTopics, sensors: SensorFile | None) -> None:
    """Add both topics."""
    drones = simulator.drones
    add_moving(topics, [Edge(frame_ids.odom(d), frame_ids.base_link(d)) for d in drones])
    publish_static(simulator, [Edge(frame_ids.MAP, frame_ids.odom(d)) for d in drones], sensors)
