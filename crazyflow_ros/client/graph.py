"""Topics and services of a ROS domain; their types come from its graph."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from rclpy.duration import Duration
from rclpy.qos import QoSProfile

from crazyflow_ros.checks.limits import suggestion
from crazyflow_ros.client.connection import Connection
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.service_calls import ANSWER, problem_of
from crazyflow_ros.client.session import SLICE
from crazyflow_ros.client.values import message_from_values
from crazyflow_ros.ros.messages import NS, qos_for, type_of

_DISCOVERY = 3.0  # s of wall time after which a topic or a service counts as missing
_DELIVERY = 10.0  # s of wall time for messages to reach their subscribers
_DEPTH = 100
_TICKS = 2  # until a drone has surely obeyed a message, or refused it
_TOLD = 0.5  # s of wall time for the next tick, unless the simulator is paused


class Graph:
    """The topics and services of a simulator's ROS domain.

    Names without a slash at the start are in the namespace of the simulator.
    """

    def __init__(self, simulation: Connection) -> None:
        self._simulation, self._node = simulation, simulation.node

    def topics(self) -> dict[str, str]:
        """Return the types of all topics by name."""
        return {name: types[0] for name, types in sorted(self._node.get_topic_names_and_types())}

    def services(self) -> dict[str, str]:
        """Return the types of all services by name."""
        found = self._node.get_service_names_and_types()
        return {name: types[0] for name, types in sorted(found)}

    def messages(self, topic: str, *, raw: bool = False) -> Iterator[Any]:
        """Yield the messages of a topic, without end; None when there has been none for a while.

        Args:
            topic: Name of the topic.
            raw: Whether to yield serialised messages.

        Raises:
            SimulationError: The topic does not exist, or its type is not installed.
        """
        full = self._node.resolve_topic_name(topic)
        kind = _type(self._find("topic", full, self.topics))
        received: list[Any] = []
        subscription = self._node.create_subscription(
            kind, full, received.append, self._qos(full), raw=raw
        )
        try:
            while True:
                self._simulation.spin(SLICE)
                if not received:
                    yield None
                while received:
                    yield received.pop(0)
        finally:
            self._node.destroy_subscription(subscription)

    def publish(
        self, topic: str, values: Any, *, kind: str = "", times: int | None = 1, rate: float = 10.0
    ) -> int:
        """Publish a message once, or several times.

        It returns when the subscribers have received the last message.

        Args:
            topic: Name of the topic.
            values: Fields of the message.
            kind: Type of the message; empty: the one that the topic has in the graph.
            times: Number of messages; None: without end.
            rate: Messages per simulated second.

        Returns:
            The number of subscribers.

        Raises:
            ValueError: The values do not fit the type.
            SimulationError: The topic has no type yet or no subscriber, or the simulator refuses
                the message.
        """
        full = self._node.resolve_topic_name(topic)
        message_type = _type(kind or self._find("topic", full, self.topics))
        message = message_from_values(message_type, values)
        publisher = self._node.create_publisher(message_type, full, QoSProfile(depth=_DEPTH))
        simulation = self._simulation
        try:
            try:
                found = publisher.get_subscription_count
                simulation.wait(found, f"nobody subscribes to {full}", _DISCOVERY)
            except SimulationError as error:
                hint = suggestion(full, self._subscribed())
                raise SimulationError(f"{error}; {hint}" if hint else str(error)) from None
            sent = 0
            simulation.warnings()
            while times is None or sent < times:
                if sent:
                    simulation.sleep(1 / rate)
                publisher.publish(message)
                sent += 1
            if not publisher.wait_for_all_acked(Duration(seconds=_DELIVERY)):
                raise SimulationError(f"nobody has received the message within {_DELIVERY:g} s")
            if refused := self._refusal(full):
                raise SimulationError(refused)
            return publisher.get_subscription_count()
        finally:
            self._node.destroy_publisher(publisher)

    def call(self, service: str, values: Any, timeout: float = ANSWER) -> Any:
        """Call a service, and return its answer.

        Args:
            service: Name of the service.
            values: Fields of the request; None for none.
            timeout: Wall time to wait for the answer [s].

        Raises:
            ValueError: The values do not fit the type.
            SimulationError: There is no such service, its type is not installed, or it does not
                answer; or its answer, or the log, says that it failed.
        """
        full = self._node.resolve_service_name(service)
        kind = _type(self._find("service", full, self.services))
        request = message_from_values(kind.Request, values)
        self._simulation.warnings()
        answer = self._simulation.result(
            self._simulation.send_request(kind, full, request, timeout)
        )
        if problem := problem_of(answer) or self._simulation.refusal(full):
            raise SimulationError(problem)
        return answer

    def rate(self, topic: str) -> Iterator[tuple[float, float]]:
        """Yield how often messages come, once a second.

        Yields:
            Messages in a second of wall time, and in a simulated second (NaN if time stands still).
        """
        is_found, count, begin, begin_ns = False, 0, time.monotonic(), self._simulation.time_ns
        for message in self.messages(topic, raw=True):
            if not is_found and message is not None:  # publishers have just found this subscriber
                is_found, begin, begin_ns = True, time.monotonic(), self._simulation.time_ns
                continue
            count += message is not None
            took = time.monotonic() - begin
            if took >= 1.0:
                simulated = (self._simulation.time_ns - begin_ns) / NS
                yield count / took, count / simulated if simulated > 0 else float("nan")
                count, begin, begin_ns = 0, time.monotonic(), self._simulation.time_ns

    def _find(self, what: str, name: str, known: Any) -> str:
        """Return the type of a topic or a service, which the graph may not have at once."""
        found: Mapping[str, str] = {}

        def is_there() -> bool:
            nonlocal found
            found = known()
            return name in found

        try:
            self._simulation.wait(is_there, f"there is no {what} {name}", _DISCOVERY)
        except SimulationError:
            hint = suggestion(name, found) or f"{what}s lists all"
            raise SimulationError(f"there is no {what} {name}; {hint}") from None
        return found[name]

    def _subscribed(self) -> list[str]:
        return [name for name in self.topics() if self._node.count_subscribers(name)]

    def _qos(self, topic: str) -> QoSProfile:
        offered = [one.qos_profile for one in self._node.get_publishers_info_by_topic(topic)]
        return qos_for(offered, _DEPTH)

    def _refusal(self, topic: str) -> str:
        """Return why the simulator refuses the latest message of a topic, or an empty string.

        The simulator refuses a message when it arrives, or when the drone is to follow it, which is
        at the tick after the present one unless time stands still.
        """
        simulation = self._simulation
        for _ in range(_TICKS):
            if refused := simulation.refusal(topic, is_topic=True):
                return refused
            before, end = simulation.time_ns, time.monotonic() + _TOLD
            while simulation.time_ns == before:
                if time.monotonic() > end:
                    return ""
                simulation.spin(SLICE)
        return simulation.refusal(topic, is_topic=True)


def _type(name: str) -> Any:
    """Return a type of messages or services.

    Raises:
        SimulationError: It is not installed.
    """
    try:
        return type_of(name)
    except ValueError as error:
        raise SimulationError(str(error)) from None
