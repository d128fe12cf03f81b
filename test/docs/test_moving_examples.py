"""The examples in worlds whose bodies move, in one simulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest
from paths import ROOT
from ros_client import SimulatorProcess, own_domain

from crazyflow_ros.client import SimulatorClient

pytest.importorskip("crazyflow_ros_interfaces.srv", reason="not installed")

DOMAIN = own_domain("test_docs_moving")
POSES = "initial_poses:=[-0.5, -0.69, 0.02, 0.0, 0.5, -0.69, 0.02, 0.0]"


@pytest.fixture(scope="module")
def simulation() -> Iterator[SimulatorClient]:
    arguments = ["drones:=[cf0,cf1]", "scene:=carried_bar", "start_paused:=true", POSES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        patch.setattr(sys, "path", [str(ROOT / "examples"), *sys.path])
        with SimulatorProcess(DOMAIN, arguments), SimulatorClient(stepping=True) as client:
            yield client


def test_two_drones_carry_a_bar_to_and_fro(simulation: SimulatorClient) -> None:
    path = import_module("22_payloads").fly(simulation, "bar")
    assert path[:, -1, 2].max() > 0.5
    assert path[:, -1, 1].max() - path[0, -1, 1] > 0.5
    assert path[-1, -1, 2] == pytest.approx(0.01, abs=0.005)


def test_a_magnet_carries_a_box(simulation: SimulatorClient) -> None:
    simulation.world.load("floor")
    example = import_module("23_magnet")
    start, lifted, carried, dropped = example.carry(simulation)
    np.testing.assert_allclose(start[:2], example.FROM, atol=0.01)
    assert lifted[2] > 0.3 and carried[2] > 0.3
    np.testing.assert_allclose(dropped, [*example.TO, 0.01], atol=0.1)


def test_a_drone_lands_on_a_moving_pad(simulation: SimulatorClient) -> None:
    simulation.world.load("moving_pad")
    path = import_module("24_moving_pad").land(simulation)
    drone, pad = path[-60:, 0], path[-60:, 1]
    assert np.ptp(pad[:, 0]) > 0.2
    np.testing.assert_allclose(drone - pad, (drone - pad)[-1:].repeat(60, 0), atol=0.01)
    assert np.linalg.norm((drone - pad)[-1, :2]) < 0.1


def test_a_drone_pushes_a_door_open(simulation: SimulatorClient) -> None:
    simulation.world.load("door")
    path = import_module("25_door").push(simulation)
    assert np.abs(path[:, 1]).max() > 0.5
    assert path[-1, 0] == pytest.approx(2.5, abs=0.1)


def test_a_gate_that_is_hit_swings_and_the_drone_flies_on(simulation: SimulatorClient) -> None:
    simulation.world.load("gates_to_hit")
    path = import_module("27_gates").fly_through(simulation)
    assert np.abs(path[:, 1]).max() > 0.1
    assert path[-1, 0] == pytest.approx(3.6, abs=0.1)
    assert simulation.world.poses()["standing"].position.z == pytest.approx(1.0, abs=0.01)


def test_a_hook_drives_the_rover_and_moves_the_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    robots = import_module("26_robots")
    path, arm = robots.drive(3.0)
    assert np.linalg.norm(path[-1] - path[0]) > 1.0
    assert arm == pytest.approx(robots.POSTURE, abs=0.03)
