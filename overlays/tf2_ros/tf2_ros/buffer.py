"""A buffer of transforms, with lookups at a time."""

from __future__ import annotations

import threading
import time as wall_time
from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.duration import Duration
from rclpy.task import Future

from crazyflow_ros.client.transform_tree import (
    KEPT,
    OutOfTime,
    Transform,
    TransformError,
    TransformTree,
    Unconnected,
    UnknownFrame,
)
from crazyflow_ros.client.transforms import add_message
from crazyflow_ros.ros.messages.times import time_of
from tf2_ros.exceptions import (
    ConnectivityException,
    ExtrapolationException,
    InvalidArgumentException,
    LookupException,
    TransformException,
)

_POLL = 0.01  # s of wall time
_EXCEPTIONS = {
    UnknownFrame: LookupException,
    Unconnected: ConnectivityException,
    OutOfTime: ExtrapolationException,
}


class Buffer:
    """Transforms of the last seconds.

    Args:
        cache_time: How long transforms are kept, by default 10 s.
        node: Ignored; tf2_ros offers the tree of frames as a service of this node.
    """

    def __init__(self, cache_time: Duration | None = None, node: Any = None) -> None:
        del node
        self._tree = TransformTree(KEPT if cache_time is None else cache_time.nanoseconds * 1e-9)
        self._lock = threading.Lock()
        self._waiting: list[tuple[Future[Any], str, str, int | None]] = []

    def set_transform(self, transform: TransformStamped, authority: str = "") -> None:
        """Add a transform; `authority` is not used."""
        del authority
        self._set(transform, is_static=False)

    def set_transform_static(self, transform: TransformStamped, authority: str = "") -> None:
        """Add a transform that holds at all times; `authority` is not used."""
        del authority
        self._set(transform, is_static=True)

    def lookup_transform(
        self, target_frame: str, source_frame: str, time: Any, timeout: Duration | None = None
    ) -> TransformStamped:
        """Return the transform from the source to the target frame.

        Args:
            target_frame: Name of the frame into which it transforms.
            source_frame: Name of the frame from which.
            time: A time of rclpy or a message; 0 is the latest.
            timeout: Wall time to wait for it, while another thread spins the node.

        Raises:
            TransformException: There is none, see the exceptions of this package.
        """
        self.can_transform(target_frame, source_frame, time, timeout)
        return self._lookup(target_frame, source_frame, _ns(time))

    async def lookup_transform_async(
        self, target_frame: str, source_frame: str, time: Any
    ) -> TransformStamped:
        """Wait for the transform from the source to the target frame, and return it."""
        await self.wait_for_transform_async(target_frame, source_frame, time)
        return self._lookup(target_frame, source_frame, _ns(time))

    def can_transform(
        self,
        target_frame: str,
        source_frame: str,
        time: Any,
        timeout: Duration | None = None,
        return_debug_tuple: bool = False,
    ) -> Any:
        """Return whether there is a transform; with `return_debug_tuple` also why not.

        Args:
            target_frame: Name of the frame into which it transforms.
            source_frame: Name of the frame from which.
            time: A time of rclpy or a message; 0 is the latest.
            timeout: Wall time to wait for it, while another thread spins the node.
            return_debug_tuple: Whether to return a tuple.
        """
        end = wall_time.monotonic() + (0.0 if timeout is None else timeout.nanoseconds * 1e-9)
        while True:
            try:
                self._lookup(target_frame, source_frame, _ns(time))
                found, reason = True, ""
            except TransformException as error:
                found, reason = False, str(error)
            if found or wall_time.monotonic() >= end:
                return (found, reason) if return_debug_tuple else found
            wall_time.sleep(_POLL)

    def wait_for_transform_async(
        self, target_frame: str, source_frame: str, time: Any
    ) -> Future[Any]:
        """Return a future that is done as soon as there is a transform."""
        future: Future[Any] = Future()
        wanted = target_frame, source_frame, _ns(time)
        with self._lock:
            self._waiting.append((future, *wanted))
        self._answer_waiting()
        return future

    def all_frames_as_yaml(self) -> str:
        """Return the frames with their parents as YAML."""
        lines = (f"{name}:\n  parent: '{p}'" for name, p in self._tree.parents().items())
        return "\n".join(lines) or "{}"

    def all_frames_as_string(self) -> str:
        """Return the frames with their parents as text."""
        parents = self._tree.parents().items()
        return "".join(f"Frame {name} exists with parent {parent}.\n" for name, parent in parents)

    def clear(self) -> None:
        """Forget all transforms but the static ones."""
        self._tree.clear()

    def _set(self, transform: TransformStamped, *, is_static: bool) -> None:
        try:
            add_message(self._tree, transform, is_static=is_static)
        except ValueError as error:
            raise InvalidArgumentException(str(error)) from None
        self._answer_waiting()

    def _answer_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for future, *wanted in waiting:
            if future.cancelled():
                continue
            try:
                self._lookup(*wanted)
                future.set_result(True)
            except TransformException:
                with self._lock:
                    self._waiting.append((future, *wanted))

    def _lookup(self, target: str, source: str, time_ns: int | None) -> TransformStamped:
        for name in (target, source):
            if not name or name.startswith("/"):
                raise InvalidArgumentException(f"{name!r} is not the name of a frame")
        try:
            found = self._tree.lookup(target, source, time_ns)
        except TransformError as error:
            raise _EXCEPTIONS.get(type(error), TransformException)(str(error)) from None
        return _message(target, source, found)


def _ns(time: Any) -> int | None:
    """Return a time of rclpy or of a message in ns; None for 0, which is the latest."""
    nanoseconds = getattr(time, "nanoseconds", None)
    if nanoseconds is None:
        nanoseconds = time.sec * 1_000_000_000 + time.nanosec
    return int(nanoseconds) or None


def _message(target: str, source: str, found: Transform) -> TransformStamped:
    message = TransformStamped(child_frame_id=source)
    message.header.frame_id, message.header.stamp = target, time_of(found.time_ns)
    at, turned = message.transform.translation, message.transform.rotation
    at.x, at.y, at.z = found.pos.tolist()
    turned.x, turned.y, turned.z, turned.w = found.quat.tolist()
    return message
