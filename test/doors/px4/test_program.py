"""The program `px4`: it starts what a build has, here a fake, and says what happens to it."""

from __future__ import annotations

from pathlib import Path

import fake_px4
import pytest
from autopilot_program import output

from crazyflow_ros.doors.px4.build import FIRST_PORT


@pytest.fixture
def build(tmp_path: Path) -> Path:
    return fake_px4.build(tmp_path / "px4_sitl_default")


def test_it_starts_px4_and_says_that_it_has_ended(build: Path, tmp_path: Path) -> None:
    instance = fake_px4.free_instance()
    names = [f"px4_{instance + i}" for i in range(2)]
    words = ["--view", "--build", str(build), "--work", str(tmp_path / "work")]
    words += ["--real-time-factor", "0", "--port", str(FIRST_PORT + instance)]
    text = output("px4", words)
    assert "the page is at http://" in text
    for i, name in enumerate(names):
        assert f"{name}: PX4 -i {instance + i} on TCP {FIRST_PORT + instance + i}; " in text
        assert f"{name}: a PX4 has connected" in text
        assert f"{name}: PX4 has armed it" in text
        console = (tmp_path / "work" / name / "console.log").read_text()
        assert "airframes ['10016_none_iris', '22000_none_hb_x500'] True" in console
        assert "scripts rcS extras" in console
        assert "times real time" in console
    assert "Traceback" not in text
    assert not (build / "etc" / "init.d-posix" / "airframes" / "22000_none_hb_x500").exists()
