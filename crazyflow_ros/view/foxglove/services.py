"""ROS services for Foxglove: each call returns the response or the reason of its failure."""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from functools import partial
from typing import TYPE_CHECKING, Any

import foxglove
from rclpy.serialization import deserialize_message

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.messages.serialisation import serialised
from crazyflow_ros.ros.recording.message_definitions import type_of
from crazyflow_ros.view.foxglove.topics import CDR, HIDDEN

if TYPE_CHECKING:
    from crazyflow_ros.view.foxglove.server import Bridge

# Every node has services of these packages; parameters are served separately.
_LEFT_OUT = ("rcl_interfaces/", "type_description_interfaces/")
_READY = 5.0  # s for a service to be found
_ANSWER = 60.0  # s for its response
# The same for parameters and buttons. A simulator that has just started may miss a request, which
# Fast DDS sends again after its heartbeat period of 3 s.
_SETTING = 8.0
_LOOK = 0.02  # s


class Services:
    """The services of all nodes."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge, self._node = bridge, bridge.node
        self._offered: dict[str, str] = {}
        self._clients: dict[tuple[str, Any], Any] = {}

    def update(self) -> None:
        """Offer new services, and withdraw those that are gone. Runs in the executor's thread."""
        found = {
            name: types[0]
            for name, types in self._node.get_service_names_and_types()
            if not types[0].startswith(_LEFT_OUT) and HIDDEN not in name
        }
        gone = [name for name, kind in self._offered.items() if found.get(name) != kind]
        self._bridge.server.remove_services(gone)
        for name in gone:
            del self._offered[name]
        new = [self._service(name, found[name]) for name in found.keys() - self._offered.keys()]
        self._bridge.server.add_services([service for service in new if service is not None])
        self._offered = found

    def _service(self, name: str, kind: str) -> foxglove.Service | None:
        request = self._bridge.schema_of(kind, "Request")
        response = self._bridge.schema_of(kind, "Response")
        if request is None or response is None:
            return None
        schema = foxglove.ServiceSchema(
            kind,
            request=foxglove.MessageSchema(encoding=CDR, schema=request),
            response=foxglove.MessageSchema(encoding=CDR, schema=response),
        )
        return foxglove.Service(
            name, schema=schema, handler=partial(self._answer, name, type_of(kind))
        )

    def _answer(self, name: str, kind: Any, request: foxglove.ServiceRequest) -> bytes:
        """Answer a call of a client, in a thread of the server.

        Raises:
            ValueError: The request is damaged or too large.
            TimeoutError: The service does not respond.
        """
        if len(request.payload) > limits.MESSAGE_BYTES:
            expected = f"at most {limits.MESSAGE_BYTES} bytes"
            raise ValueError(f"expected {expected}, got {len(request.payload)}")
        try:
            message = deserialize_message(request.payload, kind.Request)
        except Exception as error:  # rclpy has no common base class
            raise ValueError(f"the request is damaged: {error}") from None
        return serialised(self.call(name, kind, message, _ANSWER))

    def call(self, name: str, kind: Any, request: Any, timeout: float = _SETTING) -> Any:
        """Call a service from any thread but the executor's, and return its response.

        Args:
            name: Name of the service.
            kind: Its type.
            request: The request.
            timeout: Time to wait for the response [s].

        Raises:
            TimeoutError: The service does not exist, disappears or does not respond.
        """
        client = self._bridge.run(self._client, name, kind).result(_READY)
        deadline = time.monotonic() + min(_READY, timeout)
        while not client.service_is_ready():
            if time.monotonic() > deadline:
                raise TimeoutError(f"there is no service {name}")
            time.sleep(_LOOK)
        answer: Future[Any] = Future()

        def send() -> Any:
            try:
                pending = client.call_async(request)
            except Exception as error:  # of rclpy, when the service disappears at this moment
                raise TimeoutError(f"{name} cannot be called: {error}") from None
            pending.add_done_callback(lambda done: answer.set_result(done.result()))
            return pending

        pending = self._bridge.run(send).result(_READY)
        try:
            return answer.result(timeout)
        except Late:
            self._bridge.call_soon(client.remove_pending_request, pending)
            raise TimeoutError(f"{name} does not respond within {timeout:g} s") from None

    def _client(self, name: str, kind: Any) -> Any:
        if (name, kind) not in self._clients:
            self._clients[name, kind] = self._node.create_client(kind, name)
        return self._clients[name, kind]
