"""ROS in a script in simulated time: time runs when no callback is due.

The clocks of nodes follow the script's time, without the clock topic. What the
script has sent, the simulator takes before time runs; what the simulator publishes, it publishes
before it answers. Both pass through the middleware: whatever was sent before a call of the
simulator's service arrives before it, and so with the answer.
"""

from __future__ import annotations

import atexit
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakSet

import rclpy
import rclpy.experimental
from rclpy.action import ActionClient
from rclpy.client import Client
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.event_handler import EventHandler
from rclpy.executors import Executor, SingleThreadedExecutor, TimeoutException
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.time import Time
from rclpy.time_source import TimeSource
from simulated_time.channel import Advance, Endpoint, Reached
from simulated_time.clocks import wall_sleep, wall_time
from simulated_time.kernel import Kernel, ScriptThread, Wait
from simulated_time.locks import nanoseconds, replace
from simulated_time.outside import Outside
from std_srvs.srv import Trigger

_PATIENCE = 60.0  # s of wall time for which time stands still until a service answers
_LOOK = 0.05  # s of wall time between two looks of other threads meanwhile
_OTHERS = 5  # questions to the simulator between two looks for messages of other programs
# A script that only looks around asks the simulator when the next messages are due, as far as their
# recent intervals tell: others arrive late by up to a stretch.
_INTERVALS, _SILENCE, _STRETCH = 8, 200_000_000, 100_000_000  # the latter in ns of simulated time
_EVENTS = 50  # looks for callbacks between two in which those of the middleware's events are called
_SHORT = 2e-3  # s of wall time between two looks for a service


class _Connection(Protocol):
    """The connection to the simulator."""

    def send(self, message: Any) -> None:
        """Send a message."""

    def reached(self) -> Reached:
        """Return the answer to `Advance`."""


def begin(
    kernel: Kernel, outside: Outside, simulator: _Connection, service: str, period_ns: int
) -> None:
    """Let ROS live in simulated time.

    Args:
        kernel: The threads of the script.
        outside: Waits for other programs.
        simulator: The connection to the simulator.
        service: Service of the simulator's node.
        period_ns: Time between two looks of an executor that finds no callback due.
    """
    ros = _Ros(kernel, outside, simulator, service)
    kernel.simulator = ros
    _Executors(kernel, outside, ros, period_ns).install()
    _install_clocks(kernel, ros)
    replace(Client, wait_for_service=_wait_for_service)
    waits = (Client, "wait_for_service"), (ActionClient, "wait_for_server"), (Node, "wait_for_node")
    for cls, name in waits:
        replace(cls, **{name: _in_wall_time(kernel, outside, getattr(cls, name))})


class _Ros:
    """The connection to the simulator's node.

    Args:
        kernel: The threads of the script.
        outside: Waits for other programs.
        simulator: The connection to the simulator.
        service: Service of the simulator's node.

    Attributes:
        news: Counts what may have made callbacks due.
        sources: Sources of simulated time for the clocks of nodes.
    """

    def __init__(
        self, kernel: Kernel, outside: Outside, simulator: _Connection, service: str
    ) -> None:
        self._kernel, self._outside, self._simulator = kernel, outside, simulator
        self._service = service
        self._node: Any = None
        self._client: Any = None
        self._has_sent = self._is_ahead = False
        self._advances = self.news = 0
        self._asked = self._published = 0  # when the simulator was asked, and when it published, ns
        self._intervals: deque[int] = deque(maxlen=_INTERVALS)
        self.sources: WeakSet[Any] = WeakSet()
        atexit.register(self._catch_up)
        acts = ((Publisher, "publish"), (Client, "call_async"), (GuardCondition, "trigger"))
        for cls, name in acts:
            sends = cls is not GuardCondition
            replace(cls, **{name: self._noting(getattr(cls, name), sends=sends)})
        for name in ("create_publisher", "create_subscription"):
            replace(Node, **{name: self._announcing(getattr(Node, name), name)})

    def advance(self, now_ns: int, until_ns: int) -> Reached:
        """See `Simulator` of the kernel."""
        connected = self._connect()
        if now_ns < until_ns and self._is_quiet(until_ns):
            self._is_ahead, reached = True, Reached(until_ns, [])
        else:
            reached = self._ask(now_ns, until_ns, by_service=connected and self._has_sent)
            self._has_sent = self._is_ahead = False
            self._asked = reached.now_ns
            self._advances += 1
            if self._advances % _OTHERS == 0:
                self.news += 1
            if reached.published and connected:  # wait until the messages have arrived
                self.news += 1
                self._intervals.append(reached.now_ns - self._published)
                self._published = reached.now_ns
                self._ask(reached.now_ns, reached.now_ns, by_service=True)
        for source in self.sources:
            self.set_time(source, reached.now_ns)
        return reached

    def set_time(self, source: Any, now_ns: int) -> None:
        """Set the clocks that follow a source."""
        source._last_time_set = Time(nanoseconds=now_ns, clock_type=ClockType.ROS_TIME)
        for clock in source._associated_clocks:
            clock.set_ros_time_override(source._last_time_set)

    def _is_quiet(self, until_ns: int) -> bool:
        """Return whether the simulator need not be asked: no messages are expected until then."""
        if self._has_sent or until_ns > self._asked + _STRETCH:
            return False
        if len(self._intervals) == _INTERVALS and until_ns < self._published + min(self._intervals):
            return True
        return self._asked > self._published + _SILENCE

    def _catch_up(self) -> None:
        """Let the simulator reach the script's time, in which it may be ahead."""
        if self._is_ahead and self._kernel.task() is not None:
            self._kernel.refresh()

    def _ask(self, now_ns: int, until_ns: int, *, by_service: bool) -> Reached:
        self._simulator.send(Advance(now_ns, until_ns, by_service))
        if by_service:
            self._call()
        return self._simulator.reached()

    def _call(self) -> None:
        """Call the service, and wait for the answer."""
        client, context = self._client.handle, self._node.context.handle
        with client, context:
            client.send_request(Trigger.Request())
            header = None
            while header is None:
                # An executor of rclpy would take longer than all the rest.
                wait_set = rclpy_implementation.WaitSet(0, 0, 0, 1, 0, 0, context)
                wait_set.clear_entities()
                wait_set.add_client(client)
                wait_set.wait(round(_PATIENCE * 1e9))
                header, _ = client.take_response(Trigger.Response)
                if header is None:
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

    def _noting(self, method: Callable[..., Any], *, sends: bool) -> Callable[..., Any]:
        """Note that a callback may become due, or that the simulator has to take something."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.news += 1
            if sends:
                self._catch_up()  # what is sent takes effect now, not in the past
                self._has_sent = True
            return method(*args, **kwargs)

        return call

    def _announcing(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Let a method of a node return once the simulator has found what it creates."""

        def create(node: Any, *args: Any, **kwargs: Any) -> Any:
            task, created = self._kernel.task(), method(node, *args, **kwargs)
            if task is not None:
                names = created.topic_name, node.get_name(), node.get_namespace()
                self._simulator.send(Endpoint(name == "create_publisher", *names))
                self._has_sent = True
                self._kernel.refresh()
            return created

        return create


class _Executors:
    """Lets the executors of rclpy wait in simulated time."""

    def __init__(self, kernel: Kernel, outside: Outside, ros: _Ros, period_ns: int) -> None:
        self._kernel, self._outside, self._ros, self._period = kernel, outside, ros, period_ns
        self._polled = -1  # time at which a look without a timeout has found no callback
        self._looks = 0
        self._idle: object = None  # executor, its nodes and news with which a look has found none

    def install(self) -> None:
        """Replace how executors wait."""
        wait, can_execute = Executor.wait_for_ready_callbacks, Executor.can_execute

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
            late = wall_time() + _PATIENCE
            while True:
                if found := self._look(this, lambda: wait(this, 0, nodes, condition)):
                    return found
                unanswered = _unanswered(nodes or this.get_nodes()) if wall_time() < late else []
                if not unanswered:
                    self._let_time_run(task, deadline)
                    continue
                with self._outside.section(task), suppress(TimeoutException):
                    return wait(this, _LOOK, nodes, condition)
                if wall_time() >= late:
                    _say(f"{unanswered[0]} has not answered for {_PATIENCE:g} s: time goes on")

        def can_execute_now(this: Any, entity: Any) -> bool:
            # The more entities are waited for, the longer it takes, and there are many.
            if isinstance(entity, Client) and not entity._pending_requests:
                return False
            if isinstance(entity, EventHandler) and self._looks % _EVENTS:
                return False
            return bool(can_execute(this, entity))

        replace(Executor, wait_for_ready_callbacks=wait_for_ready_callbacks)
        for name in ("add_node", "remove_node"):
            replace(Executor, **{name: self._quietly(getattr(Executor, name))})
        replace(Executor, can_execute=can_execute_now)
        if hasattr(rclpy.experimental, "EventsExecutor"):  # it waits outside of Python
            replace(rclpy.experimental, EventsExecutor=SingleThreadedExecutor)

    def _quietly(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Let a method make no news, although it wakes an executor: `rclpy.spin_once` calls it."""

        def call(*args: Any, **kwargs: Any) -> Any:
            before = self._ros.news
            result = method(*args, **kwargs)
            self._ros.news = before
            return result

        return call

    def _look(self, executor: Any, look: Callable[[], Any]) -> Any:
        """Return a callback that is due; None if there is none."""
        nodes = tuple(executor.get_nodes())
        while (executor, nodes, self._ros.news) != self._idle:
            self._looks += 1
            is_new = executor._cb_iter is None  # otherwise this look only ends an earlier one
            with suppress(TimeoutException):
                found = look()
                self._ros.news += 1
                return found
            executor._cb_iter = None
            if is_new:
                if not any(node._timers for node in nodes):
                    self._idle = executor, nodes, self._ros.news
                break
        return None

    def _let_time_run(self, task: ScriptThread, deadline: int | None) -> None:
        """Let time run, because no callback is due.

        Raises:
            TimeoutException: The deadline has passed. A first look at a time only looks.
        """
        kernel = self._kernel
        if deadline is not None and deadline <= kernel.now and self._polled != kernel.reached:
            self._polled = kernel.reached
            raise TimeoutException
        until = (kernel.now // self._period + 1) * self._period
        if deadline is not None and deadline > kernel.now:
            until = min(until, deadline)
        kernel.block(task, Wait(task), until)


def _install_clocks(kernel: Kernel, ros: _Ros) -> None:
    """Let the clocks of nodes show simulated time, and sleep in it."""
    sleep_until, attach_node = Clock.sleep_until, TimeSource.attach_node

    def attach(source: Any, node: Any) -> None:
        attach_node(source, node)
        source.ros_time_is_active = True  # whatever use_sim_time says

    def subscribe(source: Any) -> None:
        ros.sources.add(source)
        ros.set_time(source, kernel.now)

    def sleep(this: Any, until: Any, context: Any = None) -> bool:
        task = kernel.task()
        if task is None:
            return bool(sleep_until(this, until, context))
        if this.clock_type is not ClockType.ROS_TIME:
            kernel.sleep(task, max(0, (until - this.now()).nanoseconds))
            return True
        while rclpy.ok(context=context) and (left := (until - this.now()).nanoseconds) > 0:
            kernel.sleep(task, left)
        return bool(this.now() >= until)

    replace(TimeSource, _subscribe_to_clock_topic=subscribe, attach_node=attach)
    replace(Clock, sleep_until=sleep)


def _in_wall_time(
    kernel: Kernel, outside: Outside, method: Callable[..., Any]
) -> Callable[..., Any]:
    """Let time stand still while a method waits for other programs to be found."""

    def call(*args: Any, **kwargs: Any) -> Any:
        task = kernel.task()
        if task is None:
            return method(*args, **kwargs)
        with outside.section(task):
            return method(*args, **kwargs)

    return call


def _wait_for_service(client: Any, timeout_sec: float | None = None) -> bool:
    """Do what rclpy does, which looks only four times a second, for each of many services."""
    end = None if timeout_sec is None else wall_time() + timeout_sec
    while client.context.ok() and not client.service_is_ready():
        if end is not None and wall_time() >= end:
            break
        wall_sleep(_SHORT)
    return bool(client.service_is_ready())


def _unanswered(nodes: Iterable[Any]) -> list[str]:
    """Return the services that were called, and have not answered."""
    clients = [client for node in nodes for client in node.clients]
    return [c.srv_name for c in clients if c._pending_requests and c.service_is_ready()]


def _never() -> bool:
    return False


def _say(text: str) -> None:
    print(f"lock-step: {text}", file=sys.__stderr__, flush=True)
