"""The program `ardupilot`: it starts what a build has, here a fake, and says what happens to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from autopilot_program import output
from paths import ROOT

from crazyflow_ros.doors.ardupilot.build import FIRST_PORT

FIRST = 200  # instance, whose ports nobody else has
ARDUPILOT = f"""#!{sys.executable}
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "test")!r})
from fake_ardupilot import main
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print(options)
print(Path(options["--defaults"]).read_text())
main({FIRST_PORT} + 10 * int(options["-I"]), 2.0)
sys.exit(7)
"""


@pytest.fixture
def build(tmp_path: Path) -> Path:
    program = tmp_path / "sitl" / "bin" / "arducopter"
    program.parent.mkdir(parents=True)
    program.write_text(ARDUPILOT)
    program.chmod(0o755)
    return program.parent.parent


def test_it_starts_ardupilot_and_says_that_it_has_ended(build: Path, tmp_path: Path) -> None:
    port = FIRST_PORT + 10 * FIRST
    words = ["--build", str(build), "--work", str(tmp_path / "work")]
    words += ["--real-time-factor", "0", "--port", str(port), "--latitude", "10", "--range_finder"]
    text = output("ardupilot", words)
    for i in range(2):
        name, instance = f"ardupilot_{FIRST + i}", FIRST + i
        assert f"{name}: ArduPilot -I {instance} on UDP {port + 10 * i}; " in text
        assert f"tcp:127.0.0.1:{5760 + 10 * instance}" in text
        assert f"{name}: an ArduPilot has connected" in text
        console = (tmp_path / "work" / name / "console.log").read_text()
        assert "'--home': '10,8.545594,488,90'" in console
        assert f"'--sysid': '{instance + 1}'" in console
        assert "'--model': 'JSON:127.0.0.1'" in console
        assert "'--speedup': '1000'" in console
        assert "FRAME_TYPE 1" in console and "RNGFND1_TYPE 100" in console
        assert "times real time" in console
    assert "Traceback" not in text
