"""The Crazyflie's real firmware flies: cflib takes off, goes to a point, and lands."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
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
GOAL = np.array([0.4, 0.3, 0.8])
ESTIMATE = ("stateEstimate.x", "stateEstimate.y", "stateEstimate.z")


@dataclass
class Flight:
    """A drone and its firmware."""

    physics: PhysicsThread
    door: Any
    port: int
    process: subprocess.Popen[bytes]

    def passes(self, seconds: float) -> None:
        """Wait for simulated time."""
        later = self.physics.snapshot.time_ns + seconds * 1e9
        until(lambda: self.physics.snapshot.time_ns > later, f"{seconds} s")


@pytest.fixture
def flight(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Flight]:
    caplog.set_level(logging.INFO)
    port = free_ports(2)
    config = SimulationConfig.of(RealisticOptions(drone_model="cf2x_L250", freq=1000))
    context = DoorContext.of(config, ["cf0"], logging.getLogger("firmware"))
    door = CrazyflieFirmware(port=port, cflib_port=port + 1).open(context)
    physics = PhysicsThread(config, ["cf0"], door)
    physics.start()
    with (tmp_path / "console.log").open("wb") as log:
        command = [PROGRAM, str(port), "127.0.0.1"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    yield Flight(physics, door, port, process)
    process.kill()
    process.wait(60)
    physics.stop()
    assert physics.failed is None
    assert not physics.statistics().failures


def test_cflib_flies_the_firmware_to_a_point_and_lands(
    flight: Flight, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    until(lambda: flight.door.status().attached == ("cf0",), "the firmware")
    flight.passes(2.0)  # its accelerometer is calibrated, too
    cflib.crtp.init_drivers()
    drone = Crazyflie(rw_cache=str(tmp_path / "cache"))
    estimate, now = dict[str, float](), lambda: flight.physics.snapshot
    with SyncCrazyflie(f"udp://127.0.0.1:{flight.port + 1}", drone):
        log = LogConfig("estimate", 50)
        for name in ESTIMATE:
            log.add_variable(name, "float")
        drone.log.add_config(log)
        log.data_received_cb.add_callback(lambda _, data, __: estimate.update(data))
        log.start()
        until(lambda: estimate, "an estimate")
        commander = drone.high_level_commander
        commander.takeoff(0.5, 2.0)
        until(lambda: now().pos[0, 2] > 0.4, "its take-off")
        flight.passes(2.0)
        commander.go_to(*GOAL.tolist(), 0.0, 3.0)
        until(lambda: np.abs(now().pos[0] - GOAL).max() < 0.15, "the goal")
        flight.passes(3.0)
        for _ in range(20):
            flight.passes(0.1)
            assert np.abs(now().pos[0] - GOAL).max() < 0.2
            assert np.abs([estimate[n] for n in ESTIMATE] - now().pos[0]).max() < 0.15
        commander.land(0.0, 3.0)
        until(lambda: now().pos[0, 2] < 0.05, "its landing")
        flight.passes(1.0)
        commander.stop()
        flight.passes(1.0)
        assert np.abs(now().pos[0, :2] - GOAL[:2]).max() < 0.3
        assert np.abs(rpy(now().quat[0])[:2]).max() < 0.1
    flight.process.kill()
    said = lambda: " ".join(record.getMessage() for record in caplog.records)  # noqa: E731
    until(lambda: "has not sent outputs for 1 s" in said(), "the message of its end")
