"""What users click on is asked for once at a time, and who clicked is told what is refused."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from crazyflie_interfaces.srv import Takeoff
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.client import SimulationError
from crazyflow_ros.view.panel.page_log import WARNING, Log, as_html
from crazyflow_ros.view.panel.service_requests import ServiceRequests, problem_of

PAUSE = "std_srvs/srv/SetBool", "~/pause"
RESET = "std_srvs/srv/Trigger", "~/reset"


class User:
    """Who uses a tab, with the notes that are shown there."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def tell(self, title: str, text: str, *, waits: bool = False) -> Callable[[], None]:
        note = f"{title}: {text}"
        self.shown.append(note)
        return lambda: self.shown.remove(note)


class Simulator:
    """In place of the connection: calls stay open until a test answers them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any], Future[Any]]] = []

    def call(self, kind: Any, name: str, timeout: float, /, **fields: Any) -> Future[Any]:
        self.calls.append((name, fields, Future()))
        return self.calls[-1][2]


@pytest.fixture
def simulator() -> Simulator:
    return Simulator()


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def requests(simulator: Simulator, log: Log) -> ServiceRequests:
    return ServiceRequests(simulator, log)  # type: ignore[arg-type]


@pytest.fixture
def user() -> User:
    return User()


def test_a_flood_is_one_call_at_a_time_and_the_latest(
    requests: ServiceRequests, simulator: Simulator, user: User
) -> None:
    for number in range(1000):
        requests.ask(user, "Pause", *PAUSE, {"data": number % 2 == 1})
        requests.send()
    assert [fields for _, fields, _ in simulator.calls] == [{"data": False}]
    simulator.calls[0][2].set_result(SetBool.Response(success=True))
    requests.send()
    requests.send()
    assert [fields for _, fields, _ in simulator.calls[1:]] == [{"data": True}]


def test_other_services_do_not_wait(
    requests: ServiceRequests, simulator: Simulator, user: User
) -> None:
    requests.ask(user, "Pause", *PAUSE, {"data": True})
    requests.ask(user, "Reset", *RESET)
    assert not simulator.calls
    requests.send()
    assert {name for name, *_ in simulator.calls} == {"~/pause", "~/reset"}


def test_too_many_at_once_are_refused(requests: ServiceRequests, user: User) -> None:
    for number in range(40):
        requests.ask(user, f"{number}", "std_srvs/srv/Trigger", f"cf{number}/reset")
    assert len(user.shown) == 8 and all("busy" in text for text in user.shown)


@pytest.mark.parametrize(
    "answer",
    [
        Trigger.Response(success=False, message="no: the reason"),
        SimulationError("no: the reason"),
        SetParameters.Response(results=[SetParametersResult(reason="no: the reason")]),
    ],
)
def test_a_refusal_is_told_to_the_user_and_the_log(
    requests: ServiceRequests, simulator: Simulator, log: Log, user: User, answer: Any
) -> None:
    requests.ask(user, "Reset", *RESET)
    requests.send()
    future = simulator.calls[0][2]
    is_error = isinstance(answer, Exception)
    (future.set_exception if is_error else future.set_result)(answer)
    assert user.shown == ["Reset: no: the reason"]
    assert [line.text for line in log.lines()] == ["Reset: no: the reason"]


def test_a_service_whose_package_is_missing_is_refused(
    requests: ServiceRequests, user: User
) -> None:
    requests.ask(user, "Try", "no_such_package/srv/Thing", "~/thing")
    requests.send()
    (shown,) = user.shown
    assert shown.startswith("Try: ") and "no_such_package" in shown


@pytest.mark.parametrize(
    ("topic", "line"),
    [
        ("cf1/land", "cf1/land is refused: it is locked"),
        ("cf1/cmd_pose", "cf1 ignores a pose: it is locked"),
        ("cf1/cmd_pose", "cf1/cmd_pose is ignored: it is locked"),
    ],
)
def test_a_refusal_in_the_log_of_the_simulator_is_told_once(
    requests: ServiceRequests, log: Log, user: User, topic: str, line: str
) -> None:
    requests.expect_refusal(user, "Fly: cf1", topic)
    log.add(line.replace("cf1", "cf0"), WARNING)
    log.add("cf1 ignores a velocity: another program sends it", WARNING)
    log.add("cf1: a pose is doubtful: it is in a wall", WARNING)
    assert not user.shown
    log.add(line, WARNING)
    log.add(line, WARNING)
    assert user.shown == ["Fly: cf1: it is locked"]


def test_a_number_of_refusals_before_is_no_refusal_of_what_has_succeeded(
    simulator: Simulator, log: Log, user: User
) -> None:
    """A drone refuses two clicks, is reset and takes off; then the log counts what it refused."""
    now = 100.0
    requests = ServiceRequests(simulator, log, lambda: now)  # type: ignore[arg-type]

    def take_off(*said: str) -> None:
        requests.ask(user, "Take off: cf1", "crazyflie_interfaces/srv/Takeoff", "cf1/takeoff")
        requests.send()
        for line in said:
            log.add(line, WARNING)
        simulator.calls[-1][2].set_result(Takeoff.Response())

    take_off("cf1/takeoff is refused: it is locked")
    take_off()  # the log has just said so
    now += 3.5
    take_off()
    assert len(simulator.calls) == 3
    now += 1.5
    requests.send()
    log.add("cf1/takeoff is refused: it is locked (1 more in the last 5 s)", WARNING)
    assert user.shown == ["Take off: cf1: it is locked"]


def test_a_refusal_is_told_however_long_a_call_takes(
    simulator: Simulator, log: Log, user: User
) -> None:
    """The log may say it before the answer, or just after."""
    now = 100.0
    requests = ServiceRequests(simulator, log, lambda: now)  # type: ignore[arg-type]
    for drone in ("cf0", "cf1"):
        requests.ask(user, drone, "crazyflie_interfaces/srv/Takeoff", f"{drone}/takeoff")
    requests.send()
    now += 9.0
    requests.send()
    log.add("cf0/takeoff is refused: it is locked", WARNING)
    for *_, future in simulator.calls:
        future.set_result(Takeoff.Response())
    requests.send()
    log.add("cf1/takeoff is refused: it is locked", WARNING)
    assert user.shown == ["cf0: it is locked", "cf1: it is locked"]


def test_slow_requests_say_that_they_are_under_way(
    requests: ServiceRequests, simulator: Simulator, user: User
) -> None:
    requests.ask(user, "Load", *RESET, timeout=300.0)
    requests.send()
    assert user.shown == ["Load: under way"]
    simulator.calls[0][2].set_result(Trigger.Response(success=True))
    assert not user.shown


def test_success_is_no_problem() -> None:
    assert not problem_of(Trigger.Response(success=True, message="done"))
    assert problem_of(Trigger.Response(success=False)) == "it failed"


def test_the_log_counts_repetitions_and_shows_no_html_of_others() -> None:
    log = Log()
    for _ in range(3):
        log.add("<img src=x onerror=alert(1)>", WARNING)
    (line,) = log.lines()
    assert line.times == 3
    html = as_html(log.lines())
    assert "<img" not in html and "&lt;img" in html and "×3" in html


def test_the_log_keeps_the_latest_lines() -> None:
    log = Log()
    for number in range(1000):
        log.add(f"{number}" + "x" * 10_000)
    lines = log.lines()
    assert len(lines) == 200 and lines[0].text.startswith("999") and len(lines[0].text) == 2000
