"""The programs `px4`, `ardupilot` and `crazyflie_firmware`: what they refuse, start and say."""

from __future__ import annotations

import importlib
import logging
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import fake_px4
import physics_helpers
import pytest
from door_flight import CONFIG, T
from paths import ROOT

from crazyflow_ros.doors import AutopilotStart, door_settings

PROGRAMS = {"ardupilot": "bin/arducopter", "px4": "bin/px4", "crazyflie_firmware": "cf2"}
FAKE = f"""#!{sys.executable}
import sys
from pathlib import Path
print(sys.argv[1:], *(file.read_text() for file in Path().glob("*.parm")))
sys.exit(7)
"""
ENDED = "ended with the exit code 7"
until = partial(physics_helpers.until, timeout=T)


def started(door: str, words: list[str]) -> int:
    program = importlib.import_module(f"crazyflow_ros.doors.{door}.program")
    status: int = program.main(words)
    return status


@pytest.mark.parametrize(
    ("door", "words", "expected"),
    [
        ("ardupilot", "--build nowhere", "nowhere has no ArduPilot: .*bin/arducopter; build"),
        ("px4", "--build nowhere", "nowhere has no PX4: there is no .*bin/px4; build PX4 with"),
        ("crazyflie_firmware", "--build nowhere", "nowhere has no Crazyflie firmware: .*cf2; bui"),
        ("ardupilot", "-n 0", "--drones .* 1 .*100, got 0"),
        ("ardupilot", "--build x --port 9003", "port .*9002.*10.*got 9003"),
        ("px4", "--build x --port 4000", "port .*4560.*got 4000"),
        ("crazyflie_firmware", "--build x --port 4000", "port .*19950.*4000"),
        ("ardupilot", "-n 2 --port 65535", "ardupilot.port.*65545"),
        ("px4", "-n 2 --port 65535", "px4.port.*65536"),
        ("crazyflie_firmware", "-n 2 --port 65535", "crazyflie_firmware.port.*65536.*65535"),
        ("px4", "--port 80", "port.*1024.*80"),
        ("ardupilot", "--rate 300", "ardupilot.rate.*300.*250 or 500"),
        ("px4", "--rate 300", "px4.rate.*300"),
        ("px4", "--rate 125", "magnetometer.*125.*50"),
        ("crazyflie_firmware", "--freq 500", "crazyflie_firmware.rate.*500 Hz, got 1000"),
        ("crazyflie_firmware", "--rate 500 --pose_rate 200", "pose_rate.*500.*200"),
        ("crazyflie_firmware", "--cflib_port 19950", "19950.*19950.*none of them twice"),
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


@pytest.mark.parametrize(
    ("door", "settings", "said", "words"),
    [
        (
            "ardupilot",
            {"port": 9002 + 10 * 200, "latitude": 10.0, "range_finder": True},
            [f"ArduPilot -I {n} on UDP {9002 + 10 * n}; .*tcp:127.0.0.1:{5760 + 10 * n}"
             for n in (200, 201)],
            [f"'JSON:127.0.0.1', '-I', '{n}', '--sysid', '{n + 1}', '--home', '10,8.545594,488,90',"
             " '--defaults', 'drone.parm', '--speedup', '1000', .*FRAME_TYPE 1.*RNGFND1_TYPE 100"
             for n in (200, 201)],
        ),
        (
            "crazyflie_firmware",
            {"address": "0.0.0.0"},
            [f"its firmware, `cf2 {port} 127.0.0.1`, on UDP {port}" for port in (19950, 19951)],
            [rf"\['{port}', '127.0.0.1'\]" for port in (19950, 19951)],
        ),
    ],
)  # fmt: skip
def test_a_build_is_started_for_each_drone_and_its_end_is_reported(
    door: str,
    settings: dict[str, Any],
    said: list[str],
    words: list[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    program = tmp_path / "build" / PROGRAMS[door]
    program.parent.mkdir(parents=True)
    program.write_text(FAKE)
    program.chmod(0o755)
    start = AutopilotStart(
        *(tmp_path / "build", tmp_path / "work", CONFIG, ("a", "b"), logging.getLogger("door"))
    )
    chosen: Any = door_settings(door)(**settings)
    autopilots = chosen.autopilots(start)
    lines = list(autopilots.start())
    until(lambda: sum(ENDED in r.getMessage() for r in caplog.records) == 2, "their end")
    autopilots.close()
    for drone, who, where, expected, printed in zip("ab", lines[::2], lines[1::2], said, words):
        assert re.match(f"{drone}: {expected}", who)
        console = Path(where.rpartition(" prints to ")[2])
        assert re.search(printed, console.read_text(), re.DOTALL)


def test_the_program_of_px4_starts_it_and_says_that_it_has_ended(tmp_path: Path) -> None:
    build, instance = fake_px4.build(tmp_path / "px4_sitl_default"), fake_px4.free_instance()
    command = [sys.executable, "-m", "crazyflow_ros", "px4", "-n", "2", "--view"]
    command += ["--build", str(build), "--work", str(tmp_path / "work")]
    command += ["--real-time-factor", "0", "--port", str(fake_px4.FIRST_PORT + instance)]
    said: list[str] = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if sum(ENDED in one for one in said) == 2:
                break
        process.send_signal(signal.SIGTERM)
        said += process.stdout
        assert process.wait(T) == 0
    text = "".join(said)
    assert "the page is at http://" in text
    for i in (instance, instance + 1):
        assert f"px4_{i}: PX4 -i {i} on TCP {fake_px4.FIRST_PORT + i}; " in text
        assert f"px4_{i}: a PX4 has connected" in text
        assert f"px4_{i}: PX4 has armed it" in text
        console = (tmp_path / "work" / f"px4_{i}" / "console.log").read_text()
        assert "airframes ['10016_none_iris', '22000_none_hb_x500'] True" in console
        assert "scripts rcS extras" in console
        assert "times real time" in console
    assert "Traceback" not in text
    assert not (build / "etc" / "init.d-posix" / "airframes" / "22000_none_hb_x500").exists()
