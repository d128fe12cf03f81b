"""Publishers that pass their messages on to a second receiver."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.publisher import Publisher

from crazyflow_ros.ros.messages.serialisation import serialised

Tap = Callable[[Any, bytes], None]
"""Takes a publisher and the message that it publishes."""


class TappedPublisher:
    """Behaves as a publisher, and passes on what it publishes.

    Args:
        publisher: The publisher.
        see: Takes each serialised message, before it is published.
    """

    def __init__(self, publisher: Publisher[Any], see: Callable[[bytes], None]) -> None:
        self.publisher, self._see = publisher, see
        self._publish_raw = publisher.handle.publish_raw

    @classmethod
    def by(cls, tap: Tap | None, publisher: Publisher[Any]) -> Any:
        """Return a publisher whose messages a tap takes; without a tap, the given one."""
        return publisher if tap is None else cls(publisher, partial(tap, publisher))

    @property
    def handle(self) -> TappedPublisher:
        """The object with `publish_raw`; within its context the publisher is not destroyed."""
        return self

    def __enter__(self) -> None:
        self.publisher.handle.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.publisher.handle.__exit__(*error)

    def publish(self, message: Any) -> None:
        """Publish a message, serialised or not.

        Raises:
            InvalidHandle: The publisher has been destroyed.
        """
        payload = message if isinstance(message, bytes) else serialised(message)
        with self:
            self.publish_raw(payload)

    def publish_raw(self, payload: bytes) -> None:
        """Publish a serialised message."""
        self._see(payload)
        self._publish_raw(payload)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.publisher, name)
