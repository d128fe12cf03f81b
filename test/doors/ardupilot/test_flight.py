"""The real ArduPilot flies: it arms, takes off, flies a mission, returns and lands."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import fake_px4
import numpy as np
import pytest
from ardupilot_pilot import AUTO, Pilot, nearest

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.ardupilot import ArduPilot
from crazyflow_ros.doors.ardupilot.build import FIRST_PORT, ArduPilotBuild
from crazyflow_ros.doors.program import AutopilotStart
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot

VARIABLE = "CRAZYFLOW_ROS_ARDUPILOT"
FOLDER = os.environ.get(VARIABLE, "")
INSTANCE, RATE = 20, 50
WAYPOINTS = [(8, 0, 3), (8, 8, 4), (0, 8, 5), (-8, 4, 4), (-4, -4, 3)]  # m, east, north, up
pytestmark = pytest.mark.skipif(
    not FOLDER, reason=f"{VARIABLE} does not name a build/sitl of ArduPilot: no registry has one"
)


class Flight:
    """A simulation, and the ArduPilot that flies its drone."""

    def __init__(self, work: Path) -> None:
        fake_px4.dialect()
        config = SimulationConfig.of(RealisticOptions(drone_model="hb_x500", real_time_factor=0.0))
        settings, logger = (
            ArduPilot(port=FIRST_PORT + 10 * INSTANCE),
            logging.getLogger("ardupilot"),
        )
        self.door = settings.open(DoorContext.of(config, ["cf0"], logger))
        self.physics = PhysicsThread(config, ["cf0"], self.door)
        self.path: list[np.ndarray] = []
        self.physics.every(RATE, self._note, "test")
        self.build = ArduPilotBuild(AutopilotStart(Path(FOLDER), work, config, settings, logger))
        self.physics.start()
        self.build.start(INSTANCE)
        self.pilot = Pilot(5760 + 10 * INSTANCE)

    def _note(self, snapshot: Snapshot) -> None:
        self.path.append(snapshot.pos[0].copy())

    def end(self) -> None:
        self.pilot.close()
        self.physics.stop()
        self.build.close()
        assert self.physics.failed is None
        assert not self.physics.statistics().failures


@pytest.fixture
def flight(tmp_path: Path) -> Iterator[Flight]:
    flight = Flight(tmp_path)
    yield flight
    flight.end()


def test_a_mission_of_five_waypoints_within_half_a_metre(flight: Flight) -> None:
    pilot, start = flight.pilot, flight.physics.snapshot.pos[0]
    pilot.take_off(3.0)
    assert flight.physics.snapshot.pos[0, 2] == pytest.approx(3.0, abs=0.6)
    pilot.load(WAYPOINTS)
    pilot.mode(AUTO)
    pilot.until(lambda: not pilot.armed, "its landing")
    assert [n for n in range(1, 6) if n not in pilot.reached] == []
    assert nearest(flight.path, WAYPOINTS).max() < 0.5
    landed = flight.physics.snapshot.pos[0]
    np.testing.assert_allclose(landed, start, atol=0.5)
    assert flight.door.status().timeouts == 0
