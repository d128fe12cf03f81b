"""The Crazyflie's real firmware flies: cflib takes off, goes to a point, and lands."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import physics_helpers
import pytest
from ports import free_ports

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.crazyflie_firmware import CrazyflieFirmware
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene.frames import rpy

VARIABLE = "CRAZYFLOW_ROS_CRAZYFLIE_FIRMWARE"
PROGRAM = Path(os.environ.get(VARIABLE, ""))
pytestmark = pytest.mark.skipif(
    not PROGRAM.is_file(),
    reason=f"{VARIABLE} names no program cf2, the Crazyflie's firmware built for a computer",
)
pytest.importorskip("cflib", reason="cflib is not installed")
import cflib.crtp  # noqa: E402
from cflib.crazyflie import Crazyflie  # noqa: E402
from cflib.crazyflie.log import LogConfig  # noqa: E402
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie  # noqa: E402

until = partial(physics_helpers.until, timeout=120.0)
GOALS = np.array([(0.4, 0.3, 0.8), (-0.6, 0.4, 0.6)])  # m, from where a drone stands
ESTIMATE = ("stateEstimate.x", "stateEstimate.y", "stateEstimate.z")
APART = 3.0  # m
BOOTS, STARTS = 20.0, 5  # s of simulated time, and how often a firmware is started


class Flight:
    """Drones, and the firmware of each.

    Attributes:
        physics: The simulation.
        door: Its door.
    """

    def __init__(self, work: Path, n: int) -> None:
        self._work, self._port = work, free_ports(2 * n)
        poses = np.zeros((n, 7))
        poses[:, 1], poses[:, 6] = APART * np.arange(n), 1.0
        config = SimulationConfig.of(
            RealisticOptions(drone_model="cf2x_L250", freq=1000), initial_poses=poses
        )
        drones = [f"cf{i}" for i in range(n)]
        context = DoorContext.of(config, drones, logging.getLogger("firmware"))
        settings = CrazyflieFirmware(port=self._port, cflib_port=self._port + n)
        self.door: Any = settings.open(context)
        self.physics = PhysicsThread(config, drones, self.door)
        self.physics.start()
        self.processes = [self._started(i) for i in range(n)]

    def _started(self, drone: int) -> subprocess.Popen[bytes]:
        with (self._work / f"console_{drone}.log").open("ab") as log:
            command = [PROGRAM, str(self._port + drone), "127.0.0.1"]
            return subprocess.Popen(command, cwd=self._work, stdout=log, stderr=log)

    def calibrate(self) -> None:
        """Wait until all run their motors; on a busy machine, some hang while they boot."""
        names = self.physics.snapshot.names
        for _ in range(STARTS):
            ends = self.physics.snapshot.time_ns + BOOTS * 1e9
            until(
                lambda ends=ends: (
                    self.door.status().attached == names or self.physics.snapshot.time_ns > ends
                ),
                "the firmware",
            )
            hang = [i for i, n in enumerate(names) if n not in self.door.status().attached]
            if not hang:
                break
            for i in hang:
                self.kill(i)
                self.processes[i] = self._started(i)
        assert self.door.status().attached == names
        self.passes(2.0)  # their accelerometers are calibrated, too

    def passes(self, seconds: float) -> None:
        """Wait for simulated time."""
        later = self.physics.snapshot.time_ns + seconds * 1e9
        until(lambda: self.physics.snapshot.time_ns > later, f"{seconds} s")

    def kill(self, drone: int) -> None:
        """End a firmware."""
        self.processes[drone].kill()
        self.processes[drone].wait(60)

    def end(self) -> None:
        """End all."""
        for drone in range(len(self.processes)):
            self.kill(drone)
        self.physics.stop()
        assert self.physics.failed is None
        assert not self.physics.statistics().failures

    def fly(self, drone: int) -> None:
        """Fly to a goal and land, with cflib."""
        start = self.physics.snapshot.pos[drone].copy()
        goal = start * (1, 1, 0) + GOALS[drone]
        estimate, port = dict[str, float](), self._port + len(self.processes) + drone
        crazyflie = Crazyflie(rw_cache=str(self._work / f"cache_{drone}"))

        def place() -> np.ndarray:
            return np.asarray(self.physics.snapshot.pos[drone])

        with SyncCrazyflie(f"udp://127.0.0.1:{port}", crazyflie):
            log = LogConfig("estimate", 50)
            for name in ESTIMATE:
                log.add_variable(name, "float")
            crazyflie.log.add_config(log)
            log.data_received_cb.add_callback(lambda _, data, __: estimate.update(data))
            log.start()
            until(lambda: estimate, "an estimate")
            commander = crazyflie.high_level_commander
            commander.takeoff(0.5, 2.0)
            until(lambda: place()[2] > 0.4, "its take-off")
            self.passes(2.0)
            commander.go_to(*goal.tolist(), 0.0, 3.0)
            until(lambda: np.abs(place() - goal).max() < 0.15, "the goal")
            self.passes(3.0)
            for _ in range(20):
                self.passes(0.1)
                assert np.abs(place() - goal).max() < 0.2
                assert np.abs([estimate[n] for n in ESTIMATE] - place()).max() < 0.15
            commander.land(0.0, 3.0)
            until(lambda: place()[2] < 0.05, "its landing")
            self.passes(1.0)
            commander.stop()
            self.passes(1.0)
            assert np.abs(place()[:2] - goal[:2]).max() < 0.3
            assert np.abs(rpy(self.physics.snapshot.quat[drone])[:2]).max() < 0.1


Start = Callable[[int], Flight]


@pytest.fixture
def start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Start]:
    caplog.set_level(logging.INFO)
    cflib.crtp.init_drivers()
    flights: list[Flight] = []

    def start(n: int) -> Flight:
        flights.append(Flight(tmp_path, n))
        flights[-1].calibrate()
        return flights[-1]

    yield start
    for flight in flights:
        flight.end()


def test_cflib_flies_the_firmware_to_a_point_and_lands(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    flight = start(1)
    flight.fly(0)
    flight.kill(0)
    said = lambda: " ".join(record.getMessage() for record in caplog.records)  # noqa: E731
    until(lambda: "has not sent outputs for 1 s" in said(), "the message of its end")


def test_two_firmwares_fly_at_once(start: Start) -> None:
    flight = start(2)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(flight.fly, range(2)))
