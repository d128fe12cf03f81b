"""Answers whose client the middleware does not know yet are sent again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
from rclpy.exceptions import InvalidHandle

from crazyflow_ros.ros.service_answers import Answers

DROPPED = "failed to send response (timeout): client will not receive response"


@pytest.fixture(autouse=True)
def usual_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        yield


class Service:
    """Drops the first answers, in the way in which rclpy does."""

    service_name = "/crazyflow/pause"

    def __init__(self, n_dropped: int) -> None:
        self.left, self.sent = n_dropped, []

    def send_response(self, response: str, header: int) -> None:
        if self.left:
            self.left -= 1
            warnings.warn(DROPPED, RuntimeWarning, stacklevel=1)
        else:
            self.sent.append((response, header))


class Delays:
    """Calls at once, and notes when."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, delay: float, callback: Callable[[], object]) -> None:
        self.seconds.append(delay)
        callback()


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.parametrize("n_dropped", [0, 1, 6])
def test_a_dropped_answer_is_sent_again(n_dropped: int) -> None:
    service, delays, log = Service(n_dropped), Delays(), Log()
    answers = Answers(delays, log)
    answers.ensure(service)
    service.send_response("done", 7)
    assert service.sent == [("done", 7)] and answers.resent == n_dropped
    assert len(delays.seconds) == n_dropped and delays.seconds == sorted(delays.seconds)
    assert not log.lines


def test_an_answer_to_a_client_that_never_appears_is_given_up_with_a_warning() -> None:
    service, delays, log = Service(1000), Delays(), Log()
    Answers(delays, log).ensure(service)
    service.send_response("done", 7)
    assert not service.sent and 5 < sum(delays.seconds) < 20
    (line,) = log.lines
    assert "/crazyflow/pause" in line and "is dropped" in line


def test_other_warnings_are_shown_as_before() -> None:
    shown: list[str] = []
    warnings.showwarning = lambda message, *_, **__: shown.append(str(message))
    service = Service(1)
    Answers(Delays(), Log()).ensure(service)
    service.send_response("done", 7)
    assert service.sent and not shown
    warnings.warn(DROPPED, RuntimeWarning, stacklevel=1)  # of an action, which nobody sends again
    warnings.warn("another", UserWarning, stacklevel=1)
    assert shown == [DROPPED, "another"]


def test_other_errors_are_not_hidden() -> None:
    service = Service(0)

    def fail(response: str, header: int) -> None:
        raise TypeError("type")

    service.send_response = fail  # type: ignore[method-assign]
    Answers(Delays(), Log()).ensure(service)
    with pytest.raises(TypeError, match="type"):
        service.send_response("done", 7)


def test_a_service_that_is_gone_needs_no_answer() -> None:
    service = Service(0)

    def fail(response: str, header: int) -> None:
        raise InvalidHandle("destroyed")

    service.send_response = fail  # type: ignore[method-assign]
    Answers(Delays(), Log()).ensure(service)
    service.send_response("done", 7)
