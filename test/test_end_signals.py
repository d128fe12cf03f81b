"""Signals that end programs."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from crazyflow_ros.end_signals import ENDING, on_end


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
        from crazyflow_ros.crazyflie.script import Signals
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
