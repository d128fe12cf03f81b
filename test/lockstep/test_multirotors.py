"""Drones with six and eight rotors, flown over the shared memory of ros2_control."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import numpy as np
import pytest
from multirotors import HEXA, OCTO
from python_controller import PythonController

from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.runtime import Level, PhysicsThread, SimulationConfig

T = 120.0  # s, no wait of a test is longer
NAME = f"test.multirotors.{os.getpid()}"
HIGH = np.array([[0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]])


@pytest.fixture(scope="module", params=[HEXA, OCTO])
def flown(request: pytest.FixtureRequest) -> Iterator[tuple[PhysicsThread, PythonController]]:
    """A drone in the air, which is held at the start of each test."""
    link = SharedMemoryLink(
        *(NAME, ["cf0"]),
        drone_model=request.param, freq=500, rate=500, lock_step=True, timeout=T,
        logger=logging.getLogger("link"),
    )  # fmt: skip
    config = SimulationConfig(
        drone_model=request.param, real_time_factor=0.0, start_paused=True, initial_poses=HIGH
    )
    physics = PhysicsThread(config, ("cf0",), link)
    physics.start()
    controller = PythonController(NAME, "cf0")
    yield physics, controller
    controller.close()
    physics.stop()
    assert physics.failed is None, physics.failed


def answered(
    physics: PhysicsThread, controller: PythonController, n: int, level: int, values: np.ndarray
) -> None:
    """Step n ticks, in which the controller commands the same."""
    physics.state.reset().result(T)
    steps = physics.step(n)
    while not steps.done():
        controller.post((level, values))
    steps.result(T)


def test_it_hovers_by_the_speeds_of_all_rotors(
    flown: tuple[PhysicsThread, PythonController],
) -> None:
    """From rest, the rotors take a while, in which it falls."""
    physics, controller = flown
    drone = physics.config.drone_model
    speeds = rotors_of(drone).hover_speeds(load_drone(drone)["mass"] * 9.81) * RPM
    answered(physics, controller, 500, Level.rotor_velocity, speeds)
    now, n = physics.snapshot, len(speeds)
    np.testing.assert_allclose(now.rotor_vel[0], speeds, rtol=1e-4)
    np.testing.assert_allclose(now.acc[0], 0.0, atol=0.2)  # drag, as it falls
    seen = controller.drones[0]
    np.testing.assert_array_equal(seen["rotor_velocity"][:n], now.rotor_vel[0])
    np.testing.assert_array_equal(seen["rotor_position"][:n], now.rotor_angle[0])
    assert not seen["rotor_velocity"][n:].any() and seen["level"] == Level.rotor_velocity


def test_it_follows_thrust_and_attitude(flown: tuple[PhysicsThread, PythonController]) -> None:
    physics, controller = flown
    weight = load_drone(physics.config.drone_model)["mass"] * 9.81
    answered(physics, controller, 1000, Level.attitude, np.array([0.1, 0.0, 0.0, weight]))
    x, y, z, w = physics.snapshot.quat[0]
    np.testing.assert_allclose([2 * np.arctan2(x, w), y, z], [0.1, 0.0, 0.0], atol=5e-3)


def test_speeds_out_of_range_are_refused(
    flown: tuple[PhysicsThread, PythonController], caplog: pytest.LogCaptureFixture
) -> None:
    physics, controller = flown
    n = len(rotors_of(physics.config.drone_model))
    speeds = np.full(n, 400.0)
    speeds[-1] = np.nan
    answered(physics, controller, 5, Level.rotor_velocity, speeds)
    assert not physics.snapshot.rotor_vel.any()
    assert f"rotor{n - 1} nan rad/s is refused" in caplog.text


def test_the_memory_says_what_its_rotors_give(
    flown: tuple[PhysicsThread, PythonController],
) -> None:
    physics, controller = flown
    rotors, header = rotors_of(physics.config.drone_model), controller.view["header"]
    n, speed = len(rotors), 3000.0  # RPM
    assert header["n_rotors"] == n
    powers = (speed * RPM) ** np.arange(3)
    torque = [curve @ speed ** np.arange(3) for curve in rotors.rpm2torque]
    np.testing.assert_allclose(header["rotor_torque"][:n] @ powers, torque)
    thrust = [curve @ speed ** np.arange(3) for curve in rotors.rpm2thrust]
    np.testing.assert_allclose(header["rotor_thrust"][:n] @ powers, thrust)  # they are upright
    assert not header["rotor_thrust"][n:].any()
