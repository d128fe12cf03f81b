"""ROS services for Foxglove: each call returns the response or the reason for its failure."""

from __future__ import annotations

from functools import partial
from typing import Any

import foxglove
from rclpy.serialization import deserialize_message

from crazyflow_ros.checks import limits
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.service_calls import ServiceCall, ServiceCalls
from crazyflow_ros.ros.messages import STEADY, serialised, type_of
from crazyflow_ros.view.foxglove.bridge import Bridge
from crazyflow_ros.view.foxglove.topics import CDR, HIDDEN

# Every node has services of these packages; parameters are served separately.
_LEFT_OUT = ("rcl_interfaces/", "type_description_interfaces/")
_READY = 5.0  # s for a service to be found
_ANSWER = 60.0  # s for its response
# The same for parameters and buttons. A simulator that has just started may miss a request, which
# Fast DDS sends again after its heartbeat period of 3 s.
_SETTING = 8.0
_LOOK = 0.1  # s of wall time between two looks for services and for late responses


class Services:
    """The services of all nodes."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge, self._node = bridge, bridge.node
        self._offered: dict[str, str] = {}
        self._calls = ServiceCalls(self._node, _READY)
        self._node.create_timer(_LOOK, self._calls.attend, clock=STEADY)

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
        call = ServiceCall(name, timeout)
        self._bridge.run(self._calls.start, call, kind, request).result(_READY)
        try:
            return call.result()
        except SimulationError as error:
            raise TimeoutError(str(error)) from None
