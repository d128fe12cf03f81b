"""The program `crazyflie_firmware`: it starts what a build has, here a fake, and says what ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from autopilot_program import output
from paths import ROOT
from ports import free_ports

from crazyflow_ros.doors.crazyflie_firmware.build import FIRST_PORT

FIRMWARE = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT / "test")!r})
from fake_firmware import FakeFirmware
firmware = FakeFirmware(int(sys.argv[1]))
while firmware.counts.get(b"\\x90\\x00", 0) < 200:
    firmware.join(0.02)
print("flew at", sys.argv[2])
firmware.end()
sys.exit(7)
"""


@pytest.fixture
def build(tmp_path: Path) -> Path:
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / "cf2").write_text(FIRMWARE)
    (folder / "cf2").chmod(0o755)
    return folder


def test_it_starts_firmwares_and_says_that_they_have_ended(build: Path, tmp_path: Path) -> None:
    port = free_ports(4)
    names = [f"crazyflie_firmware_{port - FIRST_PORT + i}" for i in range(2)]
    words = ["--build", str(build), "--work", str(tmp_path / "work")]
    words += ["--port", str(port), "--cflib_port", str(port + 2)]
    text = output("crazyflie_firmware", words)
    for i, name in enumerate(names):
        assert f"{name}: its firmware, `cf2 {port + i} 127.0.0.1`, on UDP {port + i}" in text
        assert f"{name}: waits for its firmware" in text
        assert f"cflib: udp://127.0.0.1:{port + 2 + i}" in text
        assert f"{name}: a firmware has connected to UDP {port + i}" in text
        assert f"{name}: its firmware runs its motors" in text
        console = (tmp_path / "work" / name / "console.log").read_text()
        assert "flew at 127.0.0.1" in console
    assert "Traceback" not in text
