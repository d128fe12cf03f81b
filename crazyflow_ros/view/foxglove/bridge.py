"""The connection of a ROS node and a server of the Foxglove SDK."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import foxglove
from foxglove.websocket import ServerListener
from rclpy.executors import Executor
from rclpy.node import Node

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.ros.messages import definition, type_of

_COMPLAINT = 500  # characters


class Bridge:
    """A node and a Foxglove server, with what both sides need.

    Args:
        node: The node.
        executor: Runs its callbacks.
        name: Name of the server.
        address: Address on which the server listens, at any free port.
        listener: Handles requests of clients, in threads of the server.
        options: Further arguments of `foxglove.start_server`.

    Attributes:
        node: As given.
        context: Holds the server's channels.
        server: The server.
        time_ns: Latest simulated time [ns]; None before the first.
        log: Logger that limits repeated messages.
    """

    def __init__(
        self,
        node: Node,
        executor: Executor,
        name: str,
        address: str,
        listener: ServerListener,
        **options: Any,
    ) -> None:
        self.node, self._executor = node, executor
        self.context = foxglove.Context()
        self.time_ns: int | None = None
        self.log = ThrottledLogger(node.get_logger())
        self._schemas: dict[tuple[str, str], foxglove.Schema | None] = {}
        self.server = foxglove.start_server(
            name=name,
            host=address,
            port=0,
            server_listener=listener,
            context=self.context,
            **options,
        )

    def run(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in the executor's thread, from any thread; return its future result."""
        result: Future[Any] = Future()

        def call() -> None:
            try:
                result.set_result(function(*arguments))
            except Exception as error:
                result.set_exception(error)
                self.log.error(f"{function.__qualname__} failed: {error!r}")

        self._executor.create_task(call)
        return result

    def complain(self, text: str) -> None:
        """Log a refusal, and show it to clients unless it recurs."""
        text = limits.shown(text, _COMPLAINT)
        if self.log.warning(text):
            self.server.publish_status(text, foxglove.StatusLevel.Error)

    def schema_of(self, name: str, part: str = "") -> foxglove.Schema | None:
        """Return the definition of a type; None if it is not installed.

        Args:
            name: Name of a type of messages or services.
            part: Request or Response, of a service.
        """
        if (name, part) not in self._schemas:
            try:
                kind = getattr(type_of(name), part) if part else type_of(name)
                full = f"{name}_{part}" if part else name
                text = definition(kind).encode()
                schema = foxglove.Schema(name=full, encoding="ros2msg", data=text)
            except (ValueError, ImportError, AttributeError, FileNotFoundError) as error:
                self.node.get_logger().warning(f"{name} cannot be shown: {error}")
                schema = None
            self._schemas[name, part] = schema
        return self._schemas[name, part]
