"""Calls of services by a node, several at a time."""

from __future__ import annotations

import time
from concurrent.futures import Future
from functools import partial
from math import inf
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import QoSProfile

from crazyflow_ros.client.errors import SimulationError

ANSWER = 30.0  # s of wall time for a service's response

# Every client is sent the responses to all; with rclpy's default it loses its own among them.
_ANSWERS = QoSProfile(depth=1000)


class ServiceCall(Future[Any]):
    """A call of a service: a future with the response, or with a `SimulationError`.

    Args:
        service: Name of the service.
        timeout: Wall time to wait for the service, and again for its response [s].

    Attributes:
        service: As given.
        timeout: As given.
        is_sent: Whether the service has been found and called.
    """

    def __init__(self, service: str, timeout: float = ANSWER) -> None:
        super().__init__()
        self.service, self.timeout, self.is_sent = service, timeout, False

    def fail(self, why: str) -> None:
        """End the call with an error, unless it has ended."""
        if not self.done():
            self.set_exception(SimulationError(why))


class _Waiting(NamedTuple):
    client: Any
    request: Any
    deadline: float


class _Sent(NamedTuple):
    client: Any
    answer: Any
    deadline: float


class ServiceCalls:
    """The calls of one node. Use it in the thread that runs the node's callbacks.

    Args:
        node: The node.
        discovery: Wall time after which a service that was not found counts as missing, if the
            call's timeout is longer [s].
    """

    def __init__(self, node: Node, discovery: float = inf) -> None:
        self._node, self._discovery = node, discovery
        self._clients: dict[tuple[str, Any], Any] = {}
        self._waiting: dict[ServiceCall, _Waiting] = {}
        self._sent: dict[ServiceCall, _Sent] = {}

    def is_ready(self, kind: Any, service: str) -> bool:
        """Return whether a service has been found."""
        return bool(self._client(kind, service).service_is_ready())

    def start(self, call: ServiceCall, kind: Any, request: Any) -> None:
        """Call a service as soon as it is found.

        Args:
            call: The call.
            kind: Type of the service.
            request: The request.
        """
        try:
            client = self._client(kind, call.service)
        except Exception as error:  # rclpy has no public base class for invalid names
            call.fail(f"{call.service} cannot be called: {reason(error)}")
            return
        deadline = time.monotonic() + min(self._discovery, call.timeout)
        self._waiting[call] = _Waiting(client, request, deadline)
        self.attend()

    def attend(self) -> None:
        """Send what waits for its service, and end what has waited for too long.

        Call it periodically.
        """
        now = time.monotonic()
        for call, waiting in list(self._waiting.items()):
            if waiting.client.service_is_ready():
                if (
                    self._waiting.pop(call, None) is not None
                ):  # unless a callback of another one has sent it
                    self._send(call, waiting)
            elif now > waiting.deadline and self._waiting.pop(call, None) is not None:
                patience = min(self._discovery, call.timeout)
                call.fail(f"there is no service {call.service}, waited {patience:g} s")
        for call, sent in list(self._sent.items()):
            if now > sent.deadline and self._sent.pop(call, None) is not None:
                sent.client.remove_pending_request(sent.answer)
                call.fail(f"{call.service} does not respond, waited {call.timeout:g} s")

    def fail(self, why: str) -> None:
        """End all calls; the errors have the names of the services and a reason."""
        calls = [*self._waiting, *self._sent]
        self._waiting.clear()
        self._sent.clear()
        for call in calls:
            call.fail(f"{call.service} {why}")

    def _send(self, call: ServiceCall, waiting: _Waiting) -> None:
        try:
            answer = waiting.client.call_async(waiting.request)
        except Exception as error:  # from rclpy's conversion, or because the service disappears
            call.fail(f"{call.service} cannot be called with {waiting.request}: {reason(error)}")
            return
        call.is_sent = True
        self._sent[call] = _Sent(waiting.client, answer, time.monotonic() + call.timeout)
        answer.add_done_callback(partial(self._end, call))

    def _end(self, call: ServiceCall, answer: Any) -> None:
        if self._sent.pop(call, None) is None:
            return
        if error := answer.exception():
            call.fail(str(error))
        elif not call.done():  # nobody has cancelled it
            call.set_result(answer.result())

    def _client(self, kind: Any, service: str) -> Any:
        if (service, kind) not in self._clients:
            self._clients[service, kind] = self._node.create_client(
                kind, service, qos_profile=_ANSWERS
            )
        return self._clients[service, kind]


def request_of(kind: Any, service: str, fields: dict[str, Any]) -> Any:
    """Return a request with these fields.

    Raises:
        SimulationError: There is no such field, or it cannot have this value.
    """
    try:
        return kind.Request(**fields)
    except (AssertionError, OverflowError) as error:
        raise SimulationError(
            f"{service} cannot be called with {fields}: {reason(error)}"
        ) from None


def reason(error: Exception) -> str:
    """Return the text of an error of rclpy, or of its cause, which says more."""
    return str(error.__cause__ or error)
