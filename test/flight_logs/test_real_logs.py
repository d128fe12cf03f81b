"""Real flights: what was measured in them does not depend on how it was logged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from real_flights import MISSING, flights_folder
from scipy.spatial.transform import Rotation

from crazyflow_ros.flight_logs import FlightLog, read_flight_log

GRAVITY = 9.81  # m/s^2
FAILED = {"eckart23", "eckart25", "eckart28"}
"""Flights that failed, says the README of their set."""


def logs(pattern: str) -> list[Path]:
    """The files, at most some fifty of a set."""
    folder = flights_folder()
    found = sorted(folder.glob(pattern)) if folder else []
    found = [path for path in found if path.name not in FAILED and path.stat().st_size]
    return found[:: max(1, len(found) // 50)]


NANOBENCH = logs("nanobench/*.csv.xz")
SD_CARDS = [
    *logs("imrclab/brushed_flights/data/jana*"),
    *logs("imrclab/brushless_flights/data/*[0-9]"),
]


@pytest.mark.skipif(not NANOBENCH, reason=MISSING)
@pytest.mark.parametrize("path", NANOBENCH, ids=lambda path: path.name)
def test_nanobench(path: Path) -> None:
    log = read_flight_log(path)
    assert log.controller == ("mellinger" if "mell" in path.name else "pid")
    assert {"pose", "setpoint", "gyro", "accelerometer", "voltage"} <= log.quantities.keys()
    check(log, height=0.2)


@pytest.mark.skipif(not SD_CARDS, reason=MISSING)
@pytest.mark.parametrize("path", SD_CARDS, ids=lambda path: path.name)
def test_sd_cards(path: Path) -> None:
    """The camera has 100 Hz and the loop of the firmware 1 kHz, once the clock is right."""
    log = read_flight_log(path)
    assert log.rotor_vel is not None and log.gyro is not None
    assert coherence(log.gyro.time[:250], 0.002) > 0.5
    if "brushless" in str(path):  # else the radio lost some and delayed others
        assert coherence(log.pose.time, 0.01) > 0.5
    check(log, height=0.2)


def coherence(time: np.ndarray, period: float) -> float:
    """1 where times are whole periods apart, 0 where they are anywhere."""
    return float(abs(np.exp(2j * np.pi * time / period).mean()))


def check(log: FlightLog, height: float) -> None:
    """Compare the sensors in flight with the motion capture and with gravity."""
    assert log.gyro is not None and log.accelerometer is not None and log.voltage is not None
    flying = (log.pose.values[:, 2] > height) & (log.pose.time <= log.gyro.time[-1])
    if not flying.any():  # a ramp of the motors, on the floor
        return
    time, quats = log.pose.time[flying], Rotation.from_quat(log.pose.values[flying, 3:])
    steps = np.diff(time)
    is_near = (steps > 0.005) & (steps < 0.015)
    rates = (quats[:-1].inv() * quats[1:]).as_rotvec()[is_near] / steps[is_near, None]
    errors = rates - log.gyro.at(time[:-1] + steps / 2)[is_near]
    assert np.abs(np.median(errors, axis=0)).max() < 0.15
    assert np.median(np.abs(errors), axis=0).max() < 0.45
    force = quats.apply(log.accelerometer.at(time)).mean(axis=0)
    assert force[2] == pytest.approx(GRAVITY, abs=0.15)
    assert 2.8 < np.median(log.voltage.values) < 4.3
