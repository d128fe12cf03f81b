"""`ros2 launch` starts the node, which starts the real ArduPilot, which flies a mission."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ardupilot_pilot import AUTO, BUILD, MISSING, Pilot
from launching import Launcher
from nav_msgs.msg import Odometry
from ros_client import Client, numbers, own_domain

DOMAIN = own_domain(__name__)
INSTANCE = 25
WAYPOINTS = [(4, 0, 3), (4, 4, 4)]  # m, east, north, up
pytestmark = pytest.mark.skipif(BUILD is None, reason=MISSING)


def test_ardupilot_flies_a_mission_in_the_node_that_launch_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    path: list[np.ndarray] = []

    def fly() -> None:
        client, pilot = Client(DOMAIN), Pilot(5760 + 10 * INSTANCE)
        odometry = client.collect(Odometry, "cf0/odom")
        client.until(lambda: odometry, "where it stands")

        def has_landed() -> bool:
            pilot.receive()
            return not pilot.armed

        pilot.take_off(3.0)
        pilot.load(WAYPOINTS)
        pilot.mode(AUTO)
        client.until(has_landed, "its landing", 600.0)
        path.extend(numbers(message.pose.pose.position) for message in odometry)
        pilot.close()
        client.close()

    work = tmp_path / "work"
    launcher = Launcher("ardupilot.launch.py", tmp_path, monkeypatch, simulates=True)
    launcher.during(
        fly, build=str(BUILD), work=str(work), instance=str(INSTANCE), real_time_factor="0"
    )
    assert (work / f"ardupilot_{INSTANCE}" / "eeprom.bin").is_file()
    for waypoint in WAYPOINTS:
        assert np.linalg.norm(np.array(path) - waypoint, axis=1).min() < 0.5
    np.testing.assert_allclose(path[-1], path[0], atol=0.5)
