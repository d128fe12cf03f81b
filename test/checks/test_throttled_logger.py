"""What recurs is said once, and then as a number."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from rclpy.logging import get_logger

from crazyflow_ros.checks import throttled_logger
from crazyflow_ros.checks.throttled_logger import LONGEST, MOST, PERIOD, SILENCE, ThrottledLogger

RATE = 20  # Hz


class Log:
    """Keeps what is logged, and when, by a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[tuple[float, str, str]] = []
        self.says = ThrottledLogger(self, lambda: self.now)

    def info(self, text: str) -> None:
        self.lines.append((self.now, "info", text))

    def warning(self, text: str) -> None:
        self.lines.append((self.now, "warning", text))

    def error(self, text: str) -> None:
        self.lines.append((self.now, "error", text))

    @property
    def texts(self) -> list[str]:
        return [text for _, _, text in self.lines]

    def pass_by(self, seconds: float) -> None:
        """Let time pass, in which the timer runs out whenever it can."""
        for _ in range(round(seconds * RATE)):
            self.now += 1 / RATE
            self.says.catch_up()


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_stream_of_refusals_is_said_once_and_then_counted_more_and_more_rarely(log: Log) -> None:
    for _ in range(100 * RATE):
        log.says.warning("cf0 is asleep")
        log.pass_by(1 / RATE)
    times = [time - 1000.0 for time, _, _ in log.lines]
    assert times == pytest.approx([0, 5, 15, 35, 75], abs=0.3)
    counts = [(99, 5), (200, 10), (400, 20), (800, 40)]
    for text, (count, seconds) in zip(log.texts[1:], counts):
        assert text.startswith("cf0 is asleep (") and f"in the last {seconds} s" in text
        assert int(text.split("(")[1].split()[0]) == pytest.approx(count, abs=2)


def test_it_never_waits_longer_than_a_minute(log: Log) -> None:
    for _ in range(300 * RATE):
        log.says.info("still")
        log.pass_by(1 / RATE)
    times = [time for time, _, _ in log.lines]
    assert max(b - a for a, b in pairwise(times)) == pytest.approx(LONGEST, abs=0.3)


def test_what_was_forgotten_is_said_at_once(log: Log) -> None:
    for _ in range(3):
        log.says.error("no")
        log.pass_by(0.1)
    log.says.forget()
    log.says.error("no")
    assert log.texts == ["no", "no"]
    log.pass_by(LONGEST)
    assert log.texts == ["no", "no"]


def test_all_that_was_left_out_is_counted_when_it_stops(log: Log) -> None:
    for _ in range(7):
        log.says.error("no")
        log.pass_by(0.1)
    assert log.texts == ["no"]
    log.pass_by(PERIOD)
    assert log.texts == ["no", "no (6 more in the last 5 s)"]
    log.pass_by(LONGEST)
    assert len(log.texts) == 2


def test_what_comes_after_a_silence_is_said_at_once(log: Log) -> None:
    for _ in range(3):
        assert log.says.warning("landed")
        log.pass_by(SILENCE + 0.1)
    log.says.warning("twice")
    log.says.warning("twice")
    log.pass_by(SILENCE + 0.1)
    assert log.says.warning("twice")
    assert log.texts == [*["landed"] * 3, "twice", "twice (1 more in the last 1 s)"]


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        (["x is 1.25 m", "x is -3e-7 m", "x is nan m", "x is .5 m"], 1),
        (["hit at (1.0, 2.0, 0.3) m", "hit at (-1, 2, 0) m"], 1),
        (["cf0 is lost", "cf1 is lost"], 2),
        (["pillar_0 is near", "pillar_12 is near"], 2),
        (["a is refused: too large", "a is refused: too small"], 2),
        (["it failed\n  line 3\nKeyError: a", "it failed\n  line 9\n  line 4\nKeyError: a"], 1),
        (["it failed\n  line 3\nKeyError: a", "it failed\n  line 3\nKeyError: b"], 2),
    ],
)
def test_messages_are_the_same_if_only_numbers_differ(
    log: Log, texts: list[str], kinds: int
) -> None:
    for text in texts * 3:
        log.says.warning(text)
    assert len(log.lines) == kinds


def test_messages_do_not_suppress_one_another_nor_do_severities(log: Log) -> None:
    for _ in range(5):
        log.says.info("a")
        log.says.warning("a")
        log.says.error("b")
    assert [line[1:] for line in log.lines] == [("info", "a"), ("warning", "a"), ("error", "b")]
    log.says.close()
    assert sorted(text for text in log.texts[3:]) == [
        f"{text} (4 more in the last 1 s)" for text in "aab"
    ]


def test_of_a_traceback_only_the_first_line_is_repeated(log: Log) -> None:
    for _ in range(2):
        log.says.error("step failed\nTraceback:\nKeyError")
    log.says.close()
    assert log.texts[1] == "step failed (1 more in the last 1 s)"


def test_messages_that_all_differ_do_not_flood_the_log_and_are_counted(log: Log) -> None:
    for i in range(100 * MOST):
        log.says.warning(f"no drone n{i}")
        log.pass_by(0.01 * PERIOD)  # all within 100 periods
    per_period = len(log.lines) / 100
    assert per_period <= MOST + 2
    left_out = [int(text.split()[0]) for text in log.texts if "other kinds" in text]
    log.says.close()
    left_out += [int(text.split()[0]) for text in log.texts[-1:] if "other kinds" in text]
    assert sum(left_out) + sum("no drone" in text for text in log.texts) == 100 * MOST


@pytest.mark.parametrize("worst", ["info", "warning", "error"])
def test_what_was_left_out_is_as_grave_as_the_gravest_of_it(log: Log, worst: str) -> None:
    for i in range(3 * MOST):
        (getattr(log.says, worst) if i == 2 * MOST else log.says.info)(f"n{i} flies")
    log.says.close()
    assert log.lines[-1][1:] == (worst, f"{2 * MOST} messages of other kinds were left out")


def test_a_thread_says_the_number_if_nobody_else_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttled_logger, "PERIOD", 0.05)
    log, heard = Log(), threading.Event()
    says = ThrottledLogger(log)
    log.warning = lambda text: heard.set() if "2 more" in text else None  # type: ignore[method-assign]
    for _ in range(3):
        says.warning("again")
    assert heard.wait(60.0)


def test_many_threads_lose_no_message(log: Log) -> None:
    def repeat() -> None:
        for _ in range(200):
            log.says.warning("again")

    threads = [threading.Thread(target=repeat) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    log.says.close()
    assert log.texts == ["again", "again (1599 more in the last 1 s)"]


def test_it_may_be_given_to_any_number_of_parts(log: Log) -> None:
    assert ThrottledLogger.of(log.says) is log.says
    assert isinstance(ThrottledLogger.of(log), ThrottledLogger)


def test_severities_may_alternate_in_the_log_of_ros() -> None:
    """It raises where one line of code logs with two severities."""
    says = ThrottledLogger(get_logger("test_throttled_logger"))
    for i in range(3):
        says.warning(f"warning {'abc'[i]}")
        says.error(f"error {'abc'[i]}")
        says.info(f"info {'abc'[i]}")
