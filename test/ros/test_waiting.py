"""Service callbacks that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros_client import TIMEOUT, Client, own_domain
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.ros.service_answers import Waiting

DOMAIN = own_domain("test_waiting")
LIMIT = 0.2  # s


class Server(NamedTuple):
    """A node with the services /wait, and /now, which answers at once."""

    node: Node
    pending: Future[str]
    """What /wait waits for."""


@pytest.fixture
def server() -> Iterator[Server]:
    context = Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    node, waiting = Node("server", context=context), Waiting()
    future: Future[str] = Future()

    async def wait(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        try:
            limit = LIMIT if request.data else TIMEOUT
            response.message = await waiting.result(future, limit)
        except (TimeoutError, ValueError) as error:
            response.message = type(error).__name__
        return response

    def now(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return response

    node.create_service(SetBool, "wait", wait, callback_group=waiting.group)
    node.create_service(Trigger, "now", now)
    executor, ended = SingleThreadedExecutor(context=context), threading.Event()
    executor.add_node(node)
    waiting.wake = executor.wake

    def spin() -> None:
        while not ended.is_set():
            executor.spin_once(0.1)

    thread = threading.Thread(target=spin)
    thread.start()
    yield Server(node, future)
    ended.set()
    thread.join(TIMEOUT)
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(DOMAIN) as client:
        yield client


def call(client: Client, server: Server, give_up: bool = False) -> Any:
    known = server.node.count_clients("wait")
    service = client.node.create_client(SetBool, "wait")
    client.until(service.service_is_ready, "service")
    # Fast DDS drops the answer to a client that the server has not found within 0.1 s.
    client.until(lambda: server.node.count_clients("wait") > known, "client")
    return service.call_async(SetBool.Request(data=give_up))


@pytest.mark.parametrize(
    ("complete", "answer"),
    [
        (lambda future: future.set_result("done"), "done"),
        (lambda future: future.set_exception(ValueError()), "ValueError"),
    ],
)
def test_others_are_served_while_one_waits(
    client: Client, server: Server, complete: Callable[[Future[str]], None], answer: str
) -> None:
    first, second = call(client, server), call(client, server)
    for _ in range(3):
        client.call(Trigger, "now")
    assert not first.done() and not second.done()
    complete(server.pending)
    assert client.response(first, "wait").message == answer
    assert client.response(second, "wait").message == answer


def test_waiting_ends_in_time(client: Client, server: Server) -> None:
    answer = client.response(call(client, server, give_up=True), "wait")
    assert answer.message == "TimeoutError"
    assert server.pending.cancelled()
