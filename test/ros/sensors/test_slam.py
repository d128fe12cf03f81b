"""Other people's programs find the drone's way through the room from a recording.

SLAM_PYTHON names a Python that has kiss-icp, open3d, mcap-ros2-support and SciPy.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import room
from paths import ROOT
from ros_client import FREQ, Client, SimulatorProcess, own_domain

DOMAIN = own_domain("test_ros_slam")
PYTHON = os.environ.get("SLAM_PYTHON", "")
NEEDED = "kiss-icp, open3d, mcap-ros2-support and SciPy"
pytestmark = pytest.mark.skipif(not PYTHON, reason=f"SLAM_PYTHON names no Python that has {NEEDED}")
SENSORS = """
cf0:
  points: {type: os0, pos: [0, 0, 0.03]}
  camera: {type: camera, width: 320, height: 240, fovy: 60, data_types: [rgb, depth],
           renderer: rays}
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round through the room, in exact steps, recorded by the node."""
    folder: Path = tmp_path_factory.mktemp("slam")
    (folder / "sensors.yaml").write_text(SENSORS)
    _, pos, yaw = room.plan()
    arguments = [
        "scene:=room",
        f"sensors:={folder / 'sensors.yaml'}",
        f"initial_poses:=[{pos[0, 0]}, {pos[0, 1]}, 0.02, {yaw[0]}]",
        f"record:={folder / 'flight.mcap'}",
        "start_paused:=true",
    ]
    with SimulatorProcess(DOMAIN, arguments) as simulator:
        client = Client(DOMAIN)
        tick = client.advance(FREQ // 10)
        start_ns = (tick + FREQ // 10) * room.NS // FREQ
        client.publish("cf0/cmd_trajectory", room.trajectory(start_ns))
        for _ in range(int(room.RISE + room.ROUND + room.REST) + 1):
            client.advance(FREQ)
        client.close()
        assert simulator.end()[0] == 0
        assert "WARN" not in simulator.log and "ERROR" not in simulator.log
    return folder / "flight.mcap"


def judged(judge: str, recording: Path) -> tuple[float, float, float]:
    """Length of the flight, root mean square and largest error [m]."""
    command = [PYTHON, str(ROOT / "test" / "slam_judges.py"), judge, str(recording)]
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    length, mean, largest = map(float, result.stdout.split()[-3:])
    return length, mean, largest


@pytest.mark.parametrize(("judge", "bound"), [("kiss_icp", 0.05), ("open3d", 0.1)])
def test_the_way_through_the_room_is_found(recording: Path, judge: str, bound: float) -> None:
    length, mean, largest = judged(judge, recording)
    assert length > 10.0 and largest < bound, (judge, length, mean, largest)


def test_points_of_the_camera_are_those_of_open3d(recording: Path) -> None:
    count, _, largest = judged("points", recording)
    assert count > 500_000 and largest < 1e-3
