"""The executor of the node: what it looks at, and that nobody waits in vain."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.context import Context
from rclpy.node import Node
from ros_client import Client, own_domain
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from crazyflow_ros.ros.serving import ServingExecutor

DOMAIN = own_domain("test_ros_serving")
PATIENCE = 60.0  # s of wall time
N_IDLE = 100


class Executor(ServingExecutor):
    """Counts how often it looks at an entity."""

    def __init__(self, fail: Callable[[BaseException], object], context: Context) -> None:
        self.looks = Counter[Any]()
        super().__init__(fail, context=context)

    def can_execute(self, entity: Any) -> bool:
        can = super().can_execute(entity)
        self.looks[entity] += can
        return can


class Served:
    """A node with topics, a service and a timer, and the thread in which it is served."""

    def __init__(self) -> None:
        self.context = Context()
        self.context.init(domain_id=DOMAIN)
        self.node = Node("served", context=self.context)
        listen = self.node.create_subscription
        self.idle = [listen(Empty, f"idle{i}", self.alone, 10) for i in range(N_IDLE)]
        self.busy = listen(Empty, "busy", self.hear, 10)
        self.node.create_service(Trigger, "ask", self.answer)
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.timer = self.node.create_timer(0.01, self.tick, clock=clock)
        self.heard = self.ticks = 0
        self.failures = list[BaseException]()
        self.executor = Executor(self.failures.append, self.context)
        self.executor.add_node(self.node)
        self._running, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            self.executor.serve(PATIENCE, self._ended.is_set)

    def alone(self, _: object = None) -> None:
        if not self._running.acquire(blocking=False):
            self.failures.append(AssertionError("two callbacks run at a time"))
            return
        for _ in range(1000):  # long enough for another thread to begin
            pass
        self._running.release()

    def hear(self, _: Empty) -> None:
        self.alone()
        self.heard += 1

    def answer(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.alone()
        return response

    def tick(self) -> None:
        self.alone()
        self.ticks += 1

    def close(self) -> None:
        self._ended.set()
        self.executor.wake()
        self._thread.join(PATIENCE)
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()
        assert not self._thread.is_alive()
        assert not self.failures


@pytest.fixture
def served() -> Iterator[Served]:
    node = Served()
    yield node
    node.close()


@pytest.fixture
def client() -> Iterator[Client]:
    one = Client(DOMAIN)
    yield one
    one.close()


def test_timers_run_without_a_look_at_other_entities(served: Served, client: Client) -> None:
    client.until(lambda: served.ticks > 5, "it ticks", PATIENCE)
    looks, ticks = served.executor.looks[served.idle[0]], served.ticks
    client.until(lambda: served.ticks > ticks + 50, "it ticks on", PATIENCE)
    assert served.executor.looks[served.idle[0]] <= looks + 1
    served.timer.cancel()
    ticks = served.ticks + 1  # it may be at it
    client.call(Trigger, "ask", PATIENCE)
    assert served.ticks <= ticks
    served.timer.reset()
    client.until(lambda: served.ticks > ticks, "it ticks again", PATIENCE)


def test_while_a_topic_is_busy_the_others_are_seldom_looked_at_but_served(
    served: Served, client: Client
) -> None:
    publisher = client.publisher(Empty, "busy")
    looks = served.executor.looks
    answers = 0
    while served.heard < 300 or answers < 3:
        publisher.publish(Empty())
        client.spin(0.001)
        if served.heard > 100 * (answers + 1):
            before = served.heard
            call = client.call_async(Trigger, "ask", PATIENCE)
            while not call.done():
                publisher.publish(Empty())
                client.spin(0.001)
            call.result()
            answers += 1
            assert served.heard > before
    assert looks[served.idle[0]] < 0.5 * looks[served.busy]
    assert served.ticks
