"""What the programs `px4`, `ardupilot` and `crazyflie_firmware` refuse."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PROGRAMS = {"ardupilot": "bin/arducopter", "px4": "bin/px4", "crazyflie_firmware": "cf2"}


def started(door: str, words: list[str]) -> int:
    program = importlib.import_module(f"crazyflow_ros.doors.{door}.program")
    status: int = program.main(words)
    return status


@pytest.mark.parametrize(
    ("door", "words", "expected"),
    [
        ("ardupilot", "--build nowhere", "nowhere has no ArduPilot: .*bin/arducopter; build"),
        ("px4", "--build nowhere", "nowhere has no PX4: there is no .*bin/px4; build PX4 with"),
        ("crazyflie_firmware", "--build nowhere", "nowhere has no firmware: .*cf2; build"),
        ("ardupilot", "-n 0", "--drones must be from 1 to 100, got 0"),
        ("ardupilot", "--build x --port 9003", "port must be at least 9002.*10.*got 9003"),
        ("px4", "--build x --port 4000", "port must be at least 4560 with a build.*got 4000"),
        ("crazyflie_firmware", "--build x --port 4000", "port must be at least 19950 with.*4000"),
        ("ardupilot", "--rate 300", "ardupilot.rate.*300"),
        ("px4", "--rate 300", "px4.rate.*300"),
        ("crazyflie_firmware", "--freq 500", "crazyflie_firmware.rate.*500 Hz, got 1000"),
        ("crazyflie_firmware", "--cflib_port 19950", "none of them twice"),
        ("px4", "--model hb_x50", "hb_x50.*hb_x500"),
        ("px4", "--scene nowhere", "nowhere"),
        ("px4", "--latitude 100", "latitude.*90.*100"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_is_refused(
    door: str, words: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(door, words.split()) == 2
    assert re.search(expected, capsys.readouterr().err)


@pytest.mark.parametrize("door", PROGRAMS)
def test_a_build_that_cannot_be_run_is_named(
    door: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / PROGRAMS[door]
    program.parent.mkdir(exist_ok=True)
    (tmp_path / "etc/init.d-posix/airframes").mkdir(parents=True)  # of PX4
    program.touch(0o644)
    assert started(door, ["--build", str(tmp_path)]) == 2
    assert f"{PROGRAMS[door]} cannot be run" in capsys.readouterr().err
