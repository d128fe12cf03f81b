"""A node of a script and its calls of services, without a simulator."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from io import StringIO

import pytest
from rcl_interfaces.srv import GetParameters
from rclpy.duration import Duration
from ros_client import own_domain
from simulation_interfaces.srv import StepSimulation
from std_msgs.msg import UInt8
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.client import ServiceCall, Session, SimulationError, SimulatorClient, connection
from crazyflow_ros.client.service_calls import ServiceCalls

DOMAIN = own_domain(__name__)
SOON = 0.2  # s


class Pair:
    """A node with services, and another one that calls them."""

    def __init__(self, stack: ExitStack) -> None:
        self.answers, self.problem = True, ""
        self.server = stack.enter_context(Session("server", domain=DOMAIN))
        self.client = stack.enter_context(Session("client", domain=DOMAIN, check=self._check))
        for i in range(2):
            self.server.node.create_service(SetBool, f"set{i}", self._answer)

    def _check(self) -> None:
        if self.problem:
            raise RuntimeError(self.problem)
        if self.answers:
            self.server.spin(0.0)

    def _answer(self, request: SetBool.Request, answer: SetBool.Response) -> SetBool.Response:
        answer.success, answer.message = request.data, "told"
        return answer


@pytest.fixture(scope="module")
def module_pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(stack)


@pytest.fixture
def pair(module_pair: Pair) -> Pair:
    module_pair.answers, module_pair.problem = True, ""
    return module_pair


def test_several_calls_are_under_way_at_once(pair: Pair) -> None:
    calls = [pair.client.call_async(SetBool, f"set{i}", data=i == 1) for i in range(2)]
    assert [pair.client.result(call).success for call in calls] == [False, True]


def test_a_missing_service_is_named(pair: Pair) -> None:
    with pytest.raises(SimulationError, match=r"no service nothing.* 0\.2 s"):
        pair.client.call(Trigger, "nothing", SOON)


def test_a_service_that_does_not_respond_is_named(pair: Pair) -> None:
    pair.client.call(SetBool, "set0")
    pair.answers = False
    with pytest.raises(SimulationError, match=r"set0.* respond.* 0\.2 s"):
        pair.client.call(SetBool, "set0", SOON)
    pair.answers = True
    assert pair.client.call(SetBool, "set0", data=True).success


def test_a_value_that_cannot_be_is_named(pair: Pair) -> None:
    pair.server.node.create_service(StepSimulation, "step", lambda _, answer: answer)
    with pytest.raises(SimulationError, match=r"step.*-1"):
        pair.client.call(StepSimulation, "step", steps=-1)


def test_a_name_that_cannot_be_is_refused(pair: Pair) -> None:
    with pytest.raises(SimulationError, match="two words"):
        pair.client.call(SetBool, "two words")


def test_a_check_ends_a_wait(pair: Pair) -> None:
    pair.problem = "the process has ended"
    with pytest.raises(RuntimeError, match=pair.problem):
        pair.client.call(Trigger, "nothing")


def test_all_calls_end_with_a_reason_unless_they_are_cancelled(pair: Pair) -> None:
    calls = ServiceCalls(pair.client.node, discovery=60.0)
    given_up, cancelled = ServiceCall("nothing"), ServiceCall("nothing")
    for call in (given_up, cancelled):
        calls.start(call, Trigger, Trigger.Request())
    cancelled.cancel()
    calls.fail("has no simulator")
    assert str(given_up.exception()) == "nothing has no simulator"
    assert cancelled.cancelled()


def test_a_spin_takes_all_that_is_due(pair: Pair) -> None:
    got: list[int] = []
    pair.client.node.create_subscription(UInt8, "numbers", lambda m: got.append(m.data), 100)
    publisher = pair.server.node.create_publisher(UInt8, "numbers", 100)
    pair.client.wait(publisher.get_subscription_count, "nobody subscribes")
    numbers = list(range(20))
    for number in numbers:
        publisher.publish(UInt8(data=number))
    assert publisher.wait_for_all_acked(Duration(seconds=60.0))
    pair.client.spin(0.0)
    assert got == numbers


def test_a_session_needs_no_file_behind_its_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in some notebooks and editors."""
    monkeypatch.setattr(sys, "stderr", StringIO())
    with Session("quiet", domain=DOMAIN) as session:
        session.spin(0.0)


def test_words_of_a_program_are_no_arguments_of_ros(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only those after --ros-args are: rcl takes name:=value for a rule and warns of it."""
    monkeypatch.setattr(sys, "argv", ["script.py", "speed:=2.5", "--ros-args", "-p", "a:=1"])
    with Session("script", domain=DOMAIN) as session:
        assert session.node.get_name() == "script"
    assert capfd.readouterr().err == ""


def test_a_simulator_that_says_that_it_compiles_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And what it says is passed on. One that falls silent is not."""
    monkeypatch.setattr(connection, "COMPILING", 4.0)  # s, less than it compiles
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    lines, last = 0, time.monotonic()
    with Session("busy", domain=DOMAIN) as simulator:
        simulator.node.create_service(
            GetParameters, "busy/get_parameters", lambda _, answer: answer
        )

        def work() -> None:  # it takes no requests meanwhile
            nonlocal lines, last
            if lines < 6 and time.monotonic() > last + 1.0:
                lines, last = lines + 1, time.monotonic()
                simulator.node.get_logger().info(f"still compiling the physics, line {lines}")

        with pytest.raises(SimulationError, match="may be compiling, does not answer, waited 4 s"):
            SimulatorClient("busy", check=work)
    assert lines == 6
    told = capfd.readouterr().err
    assert all(f"/busy: still compiling the physics, line {i}" in told for i in range(2, 7))


def test_a_client_of_many_busy_topics_hears_all_of_them_and_its_answers(pair: Pair) -> None:
    n_topics = 40  # more than an executor of rclpy serves after one look
    client, server = pair.client.node, pair.server.node
    publishers = [server.create_publisher(UInt8, f"busy{i}", 9) for i in range(n_topics)]
    heard = Counter[int]()

    def hear(topic: int, _: UInt8) -> None:
        heard[topic] += 1
        publishers[topic].publish(UInt8())  # news at once

    subscriptions = [
        client.create_subscription(UInt8, f"busy{i}", partial(hear, i), 9) for i in range(n_topics)
    ]
    pair.client.wait(lambda: all(p.get_subscription_count() for p in publishers), "topics", 60.0)
    for publisher in 9 * publishers:
        publisher.publish(UInt8())
    call = pair.client.call_async(SetBool, "set1", 60.0, data=True)
    for _ in range(200):
        pair.client.spin(0.1)
        if call.done() and len(heard) == n_topics:
            break
    assert call.result().success
    assert len(heard) == n_topics
    for subscription in subscriptions:
        client.destroy_subscription(subscription)
    for publisher in publishers:
        server.destroy_publisher(publisher)
