"""The real PX4 flies the same mission twice, and hovers without a receiver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import physics_helpers
import px4_process
import pytest
from px4_process import MISSING, GroundStation, T, Waypoint

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.px4 import Px4
from crazyflow_ros.doors.px4.px4_build import FIRST_PORT
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot
from crazyflow_ros.runtime.door_settings import AutopilotStart

pytestmark = pytest.mark.skipif(px4_process.build() is None, reason=MISSING)
until = partial(physics_helpers.until, timeout=T)
CONFIG = SimulationConfig.of(
    RealisticOptions(drone_model="hb_x500", real_time_factor=0.0, start_paused=True)
)
RATE = 50  # of the recorded path [Hz]
WAYPOINTS = (
    Waypoint(0.0, 0.0, 3.0, 12.0),
    Waypoint(4.0, 0.0, 3.0),
    Waypoint(4.0, 4.0, 4.0),
    Waypoint(0.0, 5.0, 3.0),
    Waypoint(-3.0, 2.0, 2.5),
)


class Flight:
    """A drone with a real PX4.

    Attributes:
        path: Times [s] and positions [m], 50 a second.
    """

    def __init__(self, folder: Path, **options: bool) -> None:
        program = px4_process.build()
        assert program is not None
        self.instance = px4_process.free_instance()
        logger = logging.getLogger("px4")
        settings = Px4(port=FIRST_PORT + self.instance, **options)
        self._build = settings.autopilots(AutopilotStart(program, folder, CONFIG, ("cf0",), logger))
        self.door = settings.open(DoorContext.of(CONFIG, ["cf0"], logger))
        self.physics = PhysicsThread(CONFIG, ["cf0"], self.door)
        self.path: list[tuple[float, ...]] = []
        self.physics.every(RATE, self._note, "test")
        self.physics.start()

    def _note(self, snapshot: Snapshot) -> None:
        self.path.append((snapshot.tick / CONFIG.freq, *snapshot.pos[0].tolist()))

    def px4(self) -> None:
        """Start its PX4."""
        list(self._build.start())

    def end(self) -> None:
        self.physics.stop()
        self._build.close()
        assert self.physics.failed is None
        assert not self.physics.statistics().failures


Start = Callable[..., Flight]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    flights: list[Flight] = []

    def start(name: str, **settings: bool) -> Flight:
        flights.append(Flight(tmp_path / name, **settings))
        flights[-1].px4()
        return flights[-1]

    yield start
    for flight in flights:
        flight.end()


def fly_the_mission(flight: Flight) -> np.ndarray:
    """Fly it, and return the path from home on: times [s] since the take-off and places [m]."""
    physics = flight.physics
    station = GroundStation(flight.instance, lambda: physics.failed is None)
    physics.resume().result(T)
    station.upload(WAYPOINTS)
    station.arm()
    station.ratios.clear()
    home = physics.snapshot.pos[0]
    station.fly()
    until(lambda: physics.snapshot.pos[0, 2] > 1.0, "its take-off")
    station.wait("HEARTBEAT", lambda beat: beat.autopilot == 12 and not beat.base_mode & 128)
    station.close()
    flight.end()
    assert station.ratios
    assert (np.array(station.ratios) < 1.0).all()  # no innovation is beyond its gate
    path = np.array(flight.path) - (0.0, *home)
    path[:, 0] -= path[(path[:, 3] > 0.5).argmax(), 0]
    return path


def test_px4_flies_a_mission_returns_and_lands_twice(start: Start) -> None:
    paths = [fly_the_mission(start(name)) for name in ("first", "second")]
    for path in paths:
        places, first = path[:, 1:], 0
        for east, north, up, _ in WAYPOINTS:  # in this order
            distances = np.linalg.norm(places[first:] - (east, north, up), axis=1)
            assert distances.min() < 0.5
            first += int((distances < 0.5).argmax())
        leaves = int((np.linalg.norm(places[:, :2], axis=1) > 0.5).argmax())
        hover = places[leaves - 6 * RATE : leaves - RATE]
        # PX4's home is a reading of the receiver, so that its waypoints are some centimetres off.
        np.testing.assert_allclose(hover.mean(axis=0), (0.0, 0.0, 3.0), atol=0.3)
        assert hover.std(axis=0).max() < 0.05
        np.testing.assert_array_less(np.abs(places[-1]), (0.5, 0.5, 0.05))
    # No two flights have the same bits: see docs/guides/autopilots.md. They take the same way.
    first, second = (path[path[:, 0] > 0, None, 1:] for path in paths)
    apart = np.linalg.norm(first - second[:, 0], axis=2)
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 0.4


@pytest.mark.parametrize(
    ("sensors", "parameters", "drift"),
    [
        (("optical_flow", "range_finder"), {"EKF2_OF_CTRL": 1, "EKF2_RNG_CTRL": 2}, 3.0),
        (("odometry",), {"EKF2_EV_CTRL": 15}, 0.2),
    ],
    ids=["flow", "odometry"],
)
def test_px4_hovers_for_a_minute_without_its_receiver(
    start: Start, sensors: Sequence[str], parameters: dict[str, int], drift: float
) -> None:
    flight = start("hover", **dict.fromkeys(sensors, True))
    physics = flight.physics
    now = lambda: physics.snapshot  # noqa: E731
    station = GroundStation(flight.instance, lambda: physics.failed is None)
    physics.resume().result(T)
    station.wait("HEARTBEAT", lambda beat: beat.autopilot == 12)
    for name, value in ({"SYS_HAS_GPS": 0, "EKF2_GPS_CTRL": 0} | parameters).items():
        station.set(name, value)

    def fly(seconds: float) -> None:
        ends = now().time_ns + seconds * 1e9
        while now().time_ns < ends and physics.failed is None:
            station.read(0.1)

    fly(10.0)
    station.arm()
    station.mode(2)
    fly(20.0)
    before = now().pos[0]
    assert before[2] == pytest.approx(2.5, abs=0.4)
    begins = len(flight.path)
    fly(60.0)
    moved = np.abs(np.array(flight.path[begins:])[:, 1:] - before)
    assert moved[:, :2].max() < drift
    assert moved[:, 2].max() < 0.15
    station.mode(6)
    station.wait("HEARTBEAT", lambda beat: beat.autopilot == 12 and not beat.base_mode & 128)
    assert now().pos[0, 2] < 0.1
    station.close()
