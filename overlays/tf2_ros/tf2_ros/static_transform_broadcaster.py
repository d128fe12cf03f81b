"""Publishes transforms on /tf_static."""

from __future__ import annotations

from collections.abc import Sequence

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class StaticTransformBroadcaster:
    """A publisher of /tf_static; each message has all transforms so far.

    Args:
        node: The node that publishes.
        qos: Quality of service.
    """

    def __init__(self, node: Node, qos: QoSProfile = _LATCHED) -> None:
        self.pub_tf = node.create_publisher(TFMessage, "/tf_static", qos)
        self._all: dict[str, TransformStamped] = {}

    def sendTransform(self, transform: TransformStamped | Sequence[TransformStamped]) -> None:
        """Publish one transform, or several, and all before."""
        several = [transform] if isinstance(transform, TransformStamped) else list(transform)
        self._all |= {one.child_frame_id: one for one in several}
        self.pub_tf.publish(TFMessage(transforms=list(self._all.values())))
