"""ROS in a script in simulated time: time runs when no callback is due.

Each time it runs, a service of the simulator is called first. It is served after all that the
script has sent before, and answers after all that the simulator has published until then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

import rclpy
import rclpy.clock
import rclpy.executors
import rclpy.experimental
from rclpy.action import ActionClient
from rclpy.client import Client
from rclpy.clock_type import ClockType
from rclpy.event_handler import EventHandler
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from simulated_time.channel import Advance, Endpoint
from simulated_time.kernel import Kernel, Task, Wait
from simulated_time.locks import nanoseconds, replace
from simulated_time.outside import Outside
from std_srvs.srv import Trigger

_PATIENCE = 60.0  # s of wall time for which time stands still until a service answers
_LOOK = 0.05  # s of wall time between two looks of other threads meanwhile
_EVENTS = 50  # looks for callbacks between two in which those of the middleware's events are called
_real_time = time.monotonic


class Simulator(Protocol):
    """The connection to the simulator."""

    advance_by: Callable[[int, int], None]

    def send(self, message: Any) -> None:
        """Send a message."""


def begin(kernel: Kernel, outside: Outside, simulator: Simulator, service: str, ns: int) -> None:
    """Let ROS live in simulated time.

    Args:
        kernel: The threads of the script.
        outside: Waits for other programs.
        simulator: The connection to the simulator.
        service: Service of the simulator's node.
        ns: Period of the simulator's clock.
    """
    ros = _Ros(kernel, outside, simulator, service, ns)
    ros.install()
    simulator.advance_by = ros.advance


class _Ros:
    """The connection to the simulator's node, and what waits in rclpy."""

    def __init__(
        self, kernel: Kernel, outside: Outside, simulator: Simulator, service: str, ns: int
    ) -> None:
        self._kernel, self._outside, self._simulator = kernel, outside, simulator
        self._service, self._period = service, ns
        self._node: Any = None
        self._client: Any = None
        self._polled = -1  # time at which a look without a timeout has found no callback
        self._acts = self._looks = 0  # of the script
        self._idle: object = None  # executor, time and acts at which a look has found none

    # The simulator's node.

    def advance(self, now_ns: int, until_ns: int) -> None:
        """Ask the simulator to let time run, and wait until it has."""
        connected = self._connect()
        self._simulator.send(Advance(now_ns, until_ns, by_service=connected))
        if not connected:
            return
        client, context = self._client.handle, self._node.context.handle
        with client, context:
            client.send_request(Trigger.Request())
            answer = None
            while answer is None:
                # An executor of rclpy would take longer than all the rest.
                wait_set = rclpy_implementation.WaitSet(0, 0, 0, 1, 0, 0, context)
                wait_set.clear_entities()
                wait_set.add_client(client)
                wait_set.wait(round(_PATIENCE * 1e9))
                answer, _ = client.take_response(Trigger.Response)
                if answer is None:
                    _say(f"{self._service} has not answered for {_PATIENCE:g} s")

    def _connect(self) -> bool:
        """Connect to the simulator's node, if ROS runs; return whether it does."""
        if not rclpy.ok():
            self._node = None
        elif self._node is None:
            with self._outside.section(self._kernel.running, settled=False):
                self._node = Node(
                    "_lock_step",
                    enable_rosout=False,
                    use_global_arguments=False,
                    start_parameter_services=False,
                )
                self._client = self._node.create_client(Trigger, self._service)
                while not self._client.wait_for_service(_PATIENCE):
                    _say(f"there is no service {self._service}: is ROS_DOMAIN_ID the simulator's?")
        return self._node is not None

    # rclpy.

    def install(self) -> None:
        """Replace what waits in rclpy."""
        timed_out = rclpy.executors.TimeoutException
        wait = rclpy.executors.Executor.wait_for_ready_callbacks
        sleep_until = rclpy.clock.Clock.sleep_until

        def wait_for_ready_callbacks(
            this: Any,
            timeout_sec: Any = None,
            nodes: Any = None,
            condition: Callable[[], bool] = _never,
        ) -> Any:
            task = self._kernel.task()
            if task is None:
                return wait(this, timeout_sec, nodes, condition)
            timeout = getattr(timeout_sec, "timeout", timeout_sec)
            endless = timeout is None or timeout < 0
            deadline = None if endless else self._kernel.now + nanoseconds(timeout)
            late = _real_time() + _PATIENCE
            while True:
                state = this, self._kernel.reached, self._acts
                if state != self._idle:
                    self._looks += 1
                    is_new = this._cb_iter is None  # otherwise this look only ends an earlier one
                    with suppress(timed_out):
                        found = wait(this, 0, nodes, condition)
                        self._acts += 1
                        return found
                    this._cb_iter = None
                    if not is_new:
                        continue
                    self._idle = state
                unanswered = _unanswered(nodes or this.get_nodes()) if _real_time() < late else []
                if not unanswered:
                    self._let_time_run(task, deadline, timed_out)
                    continue
                with self._outside.section(task), suppress(timed_out):
                    return wait(this, _LOOK, nodes, condition)
                if _real_time() >= late:
                    _say(f"{unanswered[0]} has not answered for {_PATIENCE:g} s: time goes on")

        def sleep(this: Any, until: Any, context: Any = None) -> bool:
            task = self._kernel.task()
            if task is None:
                return bool(sleep_until(this, until, context))
            if this.clock_type is not ClockType.ROS_TIME:
                self._kernel.sleep(task, max(0, (until - this.now()).nanoseconds))
                return True
            while this.now() < until:
                self._kernel.block(task, Wait(task), self._next_period())
                if not rclpy.ok(context=context):
                    return False
            return True

        replace(rclpy.executors.Executor, wait_for_ready_callbacks=wait_for_ready_callbacks)
        can_execute = rclpy.executors.Executor.can_execute

        def can_execute_now(this: Any, entity: Any) -> bool:
            # The more entities are waited for, the longer it takes, and there are many.
            if isinstance(entity, Client) and not entity._pending_requests:
                return False
            if isinstance(entity, EventHandler) and self._looks % _EVENTS:
                return False
            return bool(can_execute(this, entity))

        replace(rclpy.executors.Executor, can_execute=can_execute_now)
        acts = ((Publisher, "publish"), (Client, "call_async"), (GuardCondition, "trigger"))
        for cls, name in acts:
            replace(cls, **{name: self._counted(getattr(cls, name))})
        replace(rclpy.clock.Clock, sleep_until=sleep)
        if hasattr(rclpy.experimental, "EventsExecutor"):  # it waits outside of Python
            replace(rclpy.experimental, EventsExecutor=rclpy.executors.SingleThreadedExecutor)
        waits = ((Client, "wait_for_service"), (ActionClient, "wait_for_server"))
        for cls, name in (*waits, (Node, "wait_for_node")):
            replace(cls, **{name: self._in_wall_time(getattr(cls, name))})
        for name in ("create_publisher", "create_subscription"):
            method = self._announcing(getattr(Node, name), name == "create_publisher")
            replace(Node, **{name: method})

    def _let_time_run(
        self, task: Task, deadline: int | None, timed_out: type[Exception]
    ) -> None:
        """Let time run, because no callback is due.

        Raises:
            TimeoutException: The deadline has passed. A first look at a time only looks.
        """
        kernel = self._kernel
        if deadline is not None and deadline <= kernel.now and self._polled != kernel.reached:
            self._polled = kernel.reached
            raise timed_out
        until = self._next_period()
        if deadline is not None and deadline > kernel.now:
            until = min(until, deadline)
        kernel.block(task, Wait(task), until)

    def _next_period(self) -> int:
        return (self._kernel.now // self._period + 1) * self._period

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Note that a callback may become due."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self._acts += 1
            return method(*args, **kwargs)

        return call

    def _in_wall_time(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            task = self._kernel.task()
            if task is None:
                return method(*args, **kwargs)
            with self._outside.section(task):
                return method(*args, **kwargs)

        return call

    def _announcing(self, method: Callable[..., Any], publishes: bool) -> Callable[..., Any]:
        """Let a method of a node return once the simulator has found what it creates."""

        def create(node: Any, *args: Any, **kwargs: Any) -> Any:
            task, created = self._kernel.task(), method(node, *args, **kwargs)
            if task is not None and node is not self._node:
                names = node.get_name(), node.get_namespace()
                self._simulator.send(Endpoint(publishes, created.topic_name, *names))
                self._kernel.refresh()
            return created

        return create


def _unanswered(nodes: Iterable[Any]) -> list[str]:
    """Return the services that were called, and have not answered."""
    clients = [client for node in nodes for client in node.clients]
    return [c.srv_name for c in clients if c._pending_requests and c.service_is_ready()]


def _never() -> bool:
    return False


def _say(text: str) -> None:
    print(f"lock-step: {text}", file=sys.__stderr__, flush=True)
