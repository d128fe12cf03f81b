"""Concurrent service calls of a node, and the errors in their answers."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from crazyflow_ros.client.errors import SimulationError

ANSWER = 30.0  # s of wall time for a service's response

# Every client is sent the responses to all; with rclpy's default it loses its own among them.
_ANSWERS = QoSProfile(depth=1000)
_OK = 1  # simulation_interfaces/msg/Result.RESULT_OK


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

    @property
    def problem(self) -> str:
        """Error message if there is no response."""
        if self.is_sent:
            return f"{self.service} does not respond"
        return f"there is no service {self.service}"

    def fail(self, why: str) -> None:
        """End the call with an error."""
        self.set_exception(SimulationError(why))


@dataclass
class _Open:
    client: Any
    request: Any
    deadline: float
    answer: Any = None


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
        self._open: dict[ServiceCall, _Open] = {}

    def is_ready(self, kind: Any, service: str) -> bool:
        """Return whether a service has been found."""
        return bool(self._client(kind, service).service_is_ready())

    def start(self, call: ServiceCall, kind: Any, request: Any) -> None:
        """Call a service as soon as it is found."""
        try:
            client = self._client(kind, call.service)
        except Exception as error:  # rclpy has no public base class for invalid names
            call.fail(f"{call.service} cannot be called: {reason(error)}")
            return
        self._open[call] = _Open(client, request, time.monotonic() + self._patience(call))
        call.add_done_callback(self._forget)
        self.attend()

    def attend(self) -> None:
        """Send the calls whose services have been found, and end calls that have waited too long.

        Call it periodically.
        """
        for call, found in list(self._open.items()):
            if call.done():  # because of another one's callback
                continue
            if not call.is_sent and found.client.service_is_ready():
                self._send(call, found)
            elif time.monotonic() > found.deadline:
                call.fail(f"{call.problem}, waited {self._patience(call):g} s")

    def fail(self, why: str) -> None:
        """End all calls; the errors have the names of the services and a reason."""
        for call in list(self._open):
            if not call.done():
                call.fail(f"{call.service} {why}")

    def _send(self, call: ServiceCall, found: _Open) -> None:
        try:
            found.answer = found.client.call_async(found.request)
        except Exception as error:  # from rclpy's conversion, or because the service disappears
            call.fail(f"{call.service} cannot be called with {found.request}: {reason(error)}")
            return
        call.is_sent = True
        found.deadline = time.monotonic() + self._patience(call)
        found.answer.add_done_callback(partial(self._end, call))

    def _end(self, call: ServiceCall, answer: Any) -> None:
        if call.done():
            return
        if error := answer.exception():
            call.fail(str(error))
        else:
            call.set_result(answer.result())

    def _forget(self, call: Any) -> None:
        found = self._open.pop(call)
        if found.answer is not None:
            found.client.remove_pending_request(found.answer)

    def _patience(self, call: ServiceCall) -> float:
        return call.timeout if call.is_sent else min(self._discovery, call.timeout)

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


def problem_of(answer: Any) -> str:
    """Return why a service did not fulfil a request; an empty text if it did.

    Args:
        answer: The answer of a service of any type.
    """
    reasons = [
        one.reason  # of rcl_interfaces/srv/SetParameters
        for one in getattr(answer, "results", ())
        if not getattr(one, "successful", True)
    ]
    if reasons:
        return "; ".join(reasons)
    if hasattr(answer, "success"):
        return "" if answer.success else getattr(answer, "message", "") or "it failed"
    result: Any = getattr(answer, "result", None)
    if hasattr(result, "successful"):  # of rcl_interfaces/srv/SetParametersAtomically
        return "" if result.successful else result.reason or "it failed"
    if hasattr(result, "error_message") and result.result != _OK:
        return result.error_message or f"it failed, result {result.result}"
    return ""
