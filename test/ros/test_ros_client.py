"""What the tests over ROS rest on."""

from __future__ import annotations

import signal
import subprocess
import sys

from paths import ROOT
from ros_client import RosProcess, own_domain


def test_no_two_processes_use_the_same_domain() -> None:
    mine = {own_domain(name) for name in "abcd"}
    code = "from ros_client import own_domain; print(*(own_domain(name) for name in 'abcd'))"
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "test",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    others = set(map(int, output.split()))
    assert len(mine) == len(others) == 4 and not mine & others
    assert all(1 <= domain <= 100 for domain in mine | others)


def test_processes_hear_signals_that_are_ignored_where_the_tests_run() -> None:
    code = "import signal, sys; print(signal.getsignal(signal.SIGINT), 'found', file=sys.stderr)"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with RosProcess([sys.executable, "-c", code], 1) as process:
            assert process.wait() == 0
            assert "default_int_handler" in process.log
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
