"""The real ArduPilot flies missions, alone and beside others: it takes off, returns and lands."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fake_px4
import numpy as np
import pytest
from ardupilot_pilot import AUTO, BUILD, MISSING, Pilot, nearest

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.ardupilot import ArduPilot
from crazyflow_ros.doors.ardupilot.ardupilot_build import FIRST_PORT
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot
from crazyflow_ros.runtime.door_settings import AutopilotStart

INSTANCE, RATE = 20, 50
APART = 30.0  # m, between the places where drones start
PAUSE = 60.0  # s of wall time
WAYPOINTS = [(8, 0, 3), (8, 8, 4), (0, 8, 5), (-8, 4, 4), (-4, -4, 3)]  # m, east, north, up
pytestmark = pytest.mark.skipif(BUILD is None, reason=MISSING)


class Flight:
    """A simulation, and the ArduPilot of each drone.

    Attributes:
        pilots: Their ground stations.
        path: Places of the drones [m], 50 times a second.
    """

    def __init__(self, work: Path, n: int) -> None:
        fake_px4.dialect()
        poses = np.zeros((n, 7))
        poses[:, 1], poses[:, 2], poses[:, 6] = APART * np.arange(n), 0.08, 1.0
        config = SimulationConfig.of(
            RealisticOptions(drone_model="hb_x500", real_time_factor=0.0), initial_poses=poses
        )
        settings = ArduPilot(port=FIRST_PORT + 10 * INSTANCE)
        logger, drones = logging.getLogger("ardupilot"), tuple(f"cf{i}" for i in range(n))
        self.door = settings.open(DoorContext.of(config, drones, logger))
        self.physics = PhysicsThread(config, drones, self.door)
        self.path: list[np.ndarray] = []
        self.physics.every(RATE, self._note, "test")
        assert BUILD is not None
        self.build = settings.autopilots(AutopilotStart(BUILD, work, config, drones, logger))
        self.physics.start()
        list(self.build.start())
        ports = [5760 + 10 * instance for instance in range(INSTANCE, INSTANCE + n)]
        with ThreadPoolExecutor(n) as pool:
            self.pilots = list(pool.map(Pilot, ports))
        self.starts = self.physics.snapshot.pos

    def _note(self, snapshot: Snapshot) -> None:
        self.path.append(snapshot.pos.copy())

    def waypoints(self, drone: int) -> np.ndarray:
        """Return the waypoints [m], (5, 3), which are the same as seen from each start."""
        return np.add(WAYPOINTS, [*self.starts[drone, :2], 0.0])

    def fly_the_mission(self, drone: int, airborne: Callable[[], None] = lambda: None) -> None:
        """Fly it, and check that it was flown.

        Args:
            drone: Index of the drone.
            airborne: Called on the way to the third waypoint.
        """
        pilot, wanted = self.pilots[drone], self.waypoints(drone)
        pilot.take_off(3.0)
        assert self.physics.snapshot.pos[drone, 2] == pytest.approx(3.0, abs=0.6)
        pilot.load(wanted)
        pilot.mode(AUTO)
        pilot.until(lambda: 2 in pilot.reached, "its second waypoint")
        airborne()
        pilot.until(lambda: not pilot.armed, "its landing")
        assert [n for n in range(1, 6) if n not in pilot.reached] == []
        assert nearest([places[drone] for places in self.path], wanted).max() < 0.5
        landed = self.physics.snapshot.pos[drone]
        np.testing.assert_allclose(landed, self.starts[drone], atol=0.5)

    def pause(self) -> None:
        """Let time stand still for a minute."""
        before = self.physics.pause().result(60)
        began = time.monotonic()
        while time.monotonic() - began < PAUSE:
            for pilot in self.pilots:
                pilot.receive()
        assert self.physics.resume().result(60).tick == before.tick

    def end(self) -> None:
        for pilot in self.pilots:
            pilot.close()
        self.physics.stop()
        self.build.close()
        assert self.physics.failed is None
        assert not self.physics.statistics().failures


Start = Callable[[int], Flight]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    flights: list[Flight] = []

    def start(n: int) -> Flight:
        flights.append(Flight(tmp_path, n))
        return flights[-1]

    yield start
    for flight in flights:
        flight.end()


def test_a_mission_of_five_waypoints_within_half_a_metre_with_a_pause_in_it(start: Start) -> None:
    flight = start(1)
    flight.fly_the_mission(0, flight.pause)
    assert flight.door.status().timeouts == 0


def test_three_fly_missions_at_once(start: Start) -> None:
    flight = start(3)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(flight.fly_the_mission, range(3)))
    assert flight.door.status().timeouts == 0
