"""Fills a buffer from /tf and /tf_static."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from tf2_ros.buffer import Buffer
from tf2_ros.exceptions import InvalidArgumentException

_DEPTH = 100


class TransformListener:
    """Subscribes to transforms. After a jump of time back, the buffer begins anew.

    Args:
        buffer: The buffer to fill.
        node: The node that subscribes.
        spin_thread: Whether to spin the node in a thread.
        qos: Quality of service of /tf.
        static_qos: Quality of service of /tf_static.
    """

    def __init__(
        self,
        buffer: Buffer,
        node: Node,
        *,
        spin_thread: bool = False,
        qos: QoSProfile | None = None,
        static_qos: QoSProfile | None = None,
        **options: Any,
    ) -> None:
        del options  # of newer versions: the names of the topics only
        self.buffer, self.node = buffer, node
        latched = QoSProfile(depth=_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.group = ReentrantCallbackGroup()
        self.tf_sub = node.create_subscription(
            TFMessage, "/tf", self.callback, qos or QoSProfile(depth=_DEPTH),
            callback_group=self.group,
        )  # fmt: skip
        self.tf_static_sub = node.create_subscription(
            TFMessage, "/tf_static", self.static_callback, static_qos or latched,
            callback_group=self.group,
        )  # fmt: skip
        back = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True
        )
        self._jump = node.get_clock().create_jump_callback(
            back, post_callback=lambda _: buffer.clear()
        )
        if spin_thread:
            self.executor = SingleThreadedExecutor(context=node.context)
            self.executor.add_node(node)
            self.dedicated_listener_thread = threading.Thread(target=self._spin, daemon=True)
            self.dedicated_listener_thread.start()

    def unregister(self) -> None:
        """End the subscriptions."""
        self.node.destroy_subscription(self.tf_sub)
        self.node.destroy_subscription(self.tf_static_sub)
        self._jump.unregister()

    def callback(self, data: TFMessage) -> None:
        """Take a message of /tf."""
        for transform in data.transforms:
            self._take(self.buffer.set_transform, transform)

    def static_callback(self, data: TFMessage) -> None:
        """Take a message of /tf_static."""
        for transform in data.transforms:
            self._take(self.buffer.set_transform_static, transform)

    def _take(self, take: Any, transform: Any) -> None:
        try:
            take(transform)
        except InvalidArgumentException as error:
            self.node.get_logger().warning(
                f"a transform is left out: {error}", throttle_duration_sec=1.0
            )

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self.executor.spin()
