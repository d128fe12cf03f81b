"""A node whose callbacks may refuse or fail, and whose messages can be tapped and recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.logging import get_logger
from rclpy.qos import QoSProfile

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.ros.callback_guard import SERVICE_QOS, CallbackGuard
from crazyflow_ros.ros.messages.tapped_publisher import Tap, TappedPublisher
from crazyflow_ros.ros.messages.times import STEADY
from crazyflow_ros.ros.parameters.declaration import ParameterNode
from crazyflow_ros.ros.regular_calls import PERIOD, RegularCalls
from crazyflow_ros.ros.service_answers import Answers, Retirement, Waiting


class GuardedNode(ParameterNode):
    """A node that no message or request can end.

    Its topics and services are created and destroyed in the executor's thread. They have no event
    handlers: an executor walks over these whenever it wakes up.

    Args:
        name: Name of the node, unless it is remapped.
        tap: Called before each message is published, in any thread.

    Attributes:
        log: Its logger, which says the same thing only now and then.
        guard: Guard of all callbacks.
        answers: Retries service responses until they are delivered.
        waiting: Lets service callbacks wait for other threads.
        regular_calls: Calls functions at intervals of wall time.
        record: Wraps new publishers whose messages are recorded, or None.
    """

    record: Callable[[Any], Any] | None = None  # needed while the base class creates its publishers

    def __init__(self, name: str, tap: Tap | None = None) -> None:
        self._tap = tap
        self.log = ThrottledLogger(get_logger(name))
        self.guard = CallbackGuard(self.log)  # rclpy's own services need these, too
        self.regular_calls = RegularCalls(self.guard)
        self.answers = Answers(self.regular_calls.once, self.log)
        self._retirement = Retirement(self.guard, self.regular_calls.once, self.destroy_service)
        self.waiting = Waiting()
        super().__init__(name)
        # Its name includes the namespace; only the node's own logger writes to /rosout.
        self.log.logger = self.get_logger()
        self.create_timer(PERIOD, self.regular_calls.make)

    def create_publisher(
        self,
        msg_type: Any,
        topic: str,
        qos_profile: QoSProfile | int,
        *,
        recorded: bool = True,
        **options: Any,
    ) -> Any:
        """Create a publisher; with a recorder its messages are recorded, unless told otherwise."""
        events = PublisherEventCallbacks(use_default_callbacks=False)
        bare = super().create_publisher(
            msg_type, topic, qos_profile, **{"event_callbacks": events, **options}
        )
        publisher = TappedPublisher.by(self._tap, bare)
        return self.record(publisher) if self.record and recorded else publisher

    def destroy_publisher(self, publisher: Any) -> bool:
        """Destroy a publisher, as `create_publisher` has returned it."""
        while isinstance(publisher, TappedPublisher):
            publisher = publisher.publisher
        return bool(super().destroy_publisher(publisher))

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Any,
        qos_profile: QoSProfile | int,
        **options: Any,
    ) -> Any:
        """Create a subscription whose callback may raise ValueError to refuse a message."""
        named = topic.replace("~", self.get_name(), 1)  # as clients know it
        receive = self.guard.on_message(callback, msg_type, named)
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        return super().create_subscription(
            msg_type, topic, receive, qos_profile, raw=True, event_callbacks=events, **options
        )

    def create_service(
        self,
        srv_type: Any,
        srv_name: str,
        callback: Any,
        *,
        callback_group: Any = None,
        **options: Any,
    ) -> Any:
        """Create a service, see `CallbackGuard.on_request`; it may wait while others are served."""
        guarded = self.guard.on_request(callback, srv_name)
        kept = self._retirement.end(self._expanded(srv_name), guarded)
        if kept is not None:
            return kept
        service = super().create_service(
            srv_type,
            srv_name,
            guarded,
            callback_group=self.waiting.group if callback_group is None else callback_group,
            **{"qos_profile": SERVICE_QOS, **options},
        )
        self.answers.ensure(service)
        return service

    def create_timer(
        self, timer_period_sec: float, callback: Any, *args: Any, **options: Any
    ) -> Any:
        """Create a timer of wall time; exceptions from its callback are logged."""
        guarded = self.guard.on_timer(callback)
        given = {"clock": STEADY, **options}
        return super().create_timer(timer_period_sec, guarded, *args, **given)

    def remove_entities(self, prefix: str) -> None:
        """Destroy topics and services whose full names, without remapping, have a prefix."""
        full = self._expanded
        for publisher in [p for p in self.publishers if full(p.topic).startswith(prefix)]:
            self.destroy_publisher(publisher)
        for subscription in [s for s in self.subscriptions if full(s.topic).startswith(prefix)]:
            self.destroy_subscription(subscription)
        services = {full(service.srv_name): service for service in self.services}
        self._retirement.begin({n: s for n, s in services.items() if n.startswith(prefix)})
        # rclpy keeps a weak reference to every entity ever added to a group.
        for group in (self.default_callback_group, self.waiting.group):
            group.entities = {entity for entity in group.entities if entity() is not None}

    def _expanded(self, name: str) -> str:
        """Return the full name of a topic or service, without remapping."""
        return self.resolve_topic_name(name, only_expand=True)
