"""Publishes transforms on /tf."""

from __future__ import annotations

from collections.abc import Sequence

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from tf2_msgs.msg import TFMessage

_DEPTH = 100


class TransformBroadcaster:
    """A publisher of /tf.

    Args:
        node: The node that publishes.
        qos: Quality of service.
    """

    def __init__(self, node: Node, qos: QoSProfile | int = _DEPTH) -> None:
        self.pub_tf = node.create_publisher(TFMessage, "/tf", qos)

    def sendTransform(self, transform: TransformStamped | Sequence[TransformStamped]) -> None:
        """Publish one transform, or several."""
        several = [transform] if isinstance(transform, TransformStamped) else list(transform)
        self.pub_tf.publish(TFMessage(transforms=several))
