"""The predictive controller of docs/guides/control.md flies the figure-eight in a simulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from ros_client import SimulatorProcess, own_domain

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.client.figure_eight.flight_path import SIZE, FigureEightPath, FlightPath, Glide
from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.identification import read_flight

nmpc, excite = import_module("05_nmpc"), import_module("06_excite")
DOMAIN = own_domain("test_docs_control")
NEAR = 0.03  # m
TIMEOUT = 600.0  # s


@contextmanager
def simulator(drone: str, *more: str) -> Iterator[SimulatorProcess]:
    parameters = ["control:=attitude", "real_time_factor:=0.0", f"drone_model:={drone}", *more]
    arguments = [word for text in parameters for word in ("-p", text)]
    with SimulatorProcess(DOMAIN, arguments) as running:
        yield running


@pytest.mark.soak
def test_two_flights_are_the_same_and_keep_to_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their recording holds what was flown, and what other commands follow."""
    pad, above = np.zeros(3), np.array([0.0, 0, 1])
    eight = FigureEightPath(above, SIZE, laps=1, duration=6.0)
    path = FlightPath((Glide(pad, above, 2.0), eight), airborne=(2.0, 8.0))
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    flights, record = [], tmp_path / "flight.mcap"
    recorded = simulator("cf2x_L250", f"record:={record}")
    with recorded as running, SimulatorClient(stepping=True) as simulation:
        for _ in range(2):
            simulation.reset()
            simulation.step(1)  # whose odometry is not that from before the reset
            flights.append(nmpc.fly(simulation, nmpc.Nmpc("cf2x_L250"), "cf0", path))
        begin = simulation.time
        excite.fly(simulation, "cf0", "cf2x_L250", 2.0)
        running.end()  # which completes the recording
    assert len(flights[0]) == 6 * nmpc.RATE
    assert 0 < flights[0].max() < NEAR
    np.testing.assert_array_equal(*flights)
    whole = read_flight(record)
    assert whole.time[-1] == pytest.approx(begin + 2)
    eights = whole.time < begin
    np.testing.assert_allclose(np.ptp(whole.pos[eights], axis=0)[:2], 2 * SIZE[:2], atol=2 * NEAR)
    weight = load_drone("cf2x_L250")["mass"] * 9.81
    np.testing.assert_allclose(whole.command[:, 3].mean(), weight, rtol=0.1)
    assert np.abs(whole.command[eights, :2]).max() <= nmpc.MOST_TILT + 1e-6
    assert (np.ptp(whole.command[~eights, :3], axis=0) > 0.2).all()


@pytest.mark.soak
@pytest.mark.parametrize("drone", Drone)
def test_the_program_keeps_each_drone_on_its_path(drone: str) -> None:
    with simulator(drone):
        environment = {**os.environ, "ROS_DOMAIN_ID": str(DOMAIN), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "examples/05_nmpc.py", "--drone", drone]
        done = subprocess.run(
            command, env=environment, timeout=TIMEOUT, text=True, capture_output=True, cwd=ROOT
        )
    found = re.search(r"at most ([\d.]+) m", done.stdout)
    assert found, done.stderr
    assert 0 < float(found[1]) < NEAR
