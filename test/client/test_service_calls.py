"""Calls of services, of which several may be under way, without a simulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from ros_client import own_domain
from simulation_interfaces.srv import StepSimulation
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.client import ServiceCall, Session, SimulationError
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
