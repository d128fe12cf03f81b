"""Signals end programs; output that nobody reads ends them without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from paths import ROOT

from crazyflow_ros.checks.program_end import ENDING, UNREAD, on_end, quiet_if_unread

TIMEOUT = 60.0  # s


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """No signal is blocked, and the handlers are as before after the test."""
    before = {number: signal.getsignal(number) for number in ENDING}
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)  # as after some programs
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
def test_each_of_them_ends_a_program(number: signal.Signals) -> None:
    ends: list[int] = []
    signal.signal(number, signal.SIG_DFL)
    on_end(lambda: ends.append(1))
    signal.raise_signal(number)
    assert ends == [1]


def test_with_nohup_a_program_survives_its_terminal() -> None:
    ends: list[int] = []
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    on_end(lambda: ends.append(1))
    signal.raise_signal(signal.SIGHUP)
    assert not ends
    signal.raise_signal(signal.SIGINT)
    assert ends == [1]


def test_with_nohup_the_crazyflie_program_survives_its_terminal() -> None:
    program = """if True:
        import signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        from crazyflow_ros.crazyflie.signals import Signals
        Signals(exits_with_signal=True)
        print("up", flush=True)
        print(input(), flush=True)
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGHUP)
        assert process.communicate("alive\n", timeout=60) == ("alive\n", None)
    assert process.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["crazyflow_ros", "--help"],
        ["crazyflow_ros", "takeoff", "--help"],
        ["crazyflow_ros.crazyflie", "--help"],
        ["crazyflow_ros.learn", "--help"],
        ["crazyflow_ros.view", "--help"],
    ],
)
def test_a_reader_that_has_gone_is_no_error(words: list[str]) -> None:
    """What is printed is only written when the process ends, unless it is much."""
    reads, writes = os.pipe()
    os.close(reads)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", *words], stdout=writes, stderr=subprocess.PIPE, text=True,
            cwd=ROOT, env=buffered, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (UNREAD, "")


@pytest.mark.parametrize(("code", "exit_code"), [(None, 0), (0, 0), (2, 2)])
def test_exit_codes_are_kept(code: int | None, exit_code: int) -> None:
    assert quiet_if_unread(lambda: code) == exit_code
