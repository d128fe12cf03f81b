"""Sensors of the sensors file in the memory that controllers of ros2_control read."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_controller import PythonController

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.drones import load_drone
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.ros.controllers.carried_sensors import CarriedSensors
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.sensors import sensors_file
from crazyflow_ros.runtime import Level, PhysicsThread, SimulationConfig
from crazyflow_ros.scene.frames import rotation_matrix

T = 120.0  # s, no wait is longer
NAMES = ("cf0", "cf1")
NUMBERS = count()
WEIGHT = load_drone("cf2x_L250")["mass"] * 9.81
FIELD = np.array([2e-5, 0.0, -4e-5])  # T
DENSITY = 0.01  # m/s^2/sqrt(Hz)
FILE = f"""
all:
  imu: {{type: imu, rate: 100, rpy: [0, 0, 90], accelerometer: {{density: {DENSITY}}}}}
  compass: {{type: magnetometer, rate: 50, field: {FIELD.tolist()}}}
  cell: {{type: battery, rate: 10}}
  skin: {{type: contact, rate: 100}}
  scan: {{type: lidar}}
cf1:
  vicon: {{type: motion_capture, rate: 500}}
"""


@contextmanager
def flown(
    folder: Path, text: str = FILE, **config: Any
) -> Iterator[tuple[PhysicsThread, PythonController, CarriedSensors]]:
    """Two drones whose goals are posted in lock-step, at 100 Hz."""
    (folder / "sensors.yaml").write_text(text)
    file = sensors_file.load(str(folder / "sensors.yaml"), NAMES, "cf2x_L250")
    carried = CarriedSensors(file, NAMES, 500, 100, estimates="estimator" in config)
    name = f"test.{os.getpid()}.carried{next(NUMBERS)}"
    given = {"drone_model": "cf2x_L250", "freq": 500, "rate": 100, "lock_step": True}
    link = SharedMemoryLink(
        name, NAMES, **given, timeout=T, carried=carried, logger=logging.getLogger("link")
    )
    options = {"real_time_factor": 0.0, "start_paused": True, "battery": True, **config}
    physics = PhysicsThread(SimulationConfig(**options), NAMES, link)
    physics.start()
    controller = PythonController(name, *NAMES)
    try:
        yield physics, controller, carried
    finally:
        controller.close()
        physics.stop()
        assert physics.failed is None and not physics.statistics().failures


def fly(physics: PhysicsThread, controller: PythonController, ticks: int) -> Any:
    """Fly above the start; return the state after these ticks."""
    steps = physics.step(ticks)
    while not steps.done():
        controller.post(*((Level.goal, (x, 0.0, 0.6, 0.5)) for x in (0.0, 1.0)))
    return steps.result(T)


def test_readings_have_the_errors_of_the_file_and_repeat_to_the_bit(tmp_path: Path) -> None:
    flights = []
    for _ in range(2):
        with flown(tmp_path) as (physics, controller, carried):
            assert carried.left_out == ["scan"]
            start = physics.step(4).result(T)  # at tick 5 they stand
            force = controller.value("cf0_skin/force")
            np.testing.assert_allclose(force, start.contact[0, :3], atol=1e-6)
            errors, seen = [], []
            for _ in range(200):
                now = fly(physics, controller, 5)
                body = now.specific_force[0]
                told = controller.value("cf0_imu/linear_acceleration")
                errors.append(told - (body[1], -body[0], body[2]))  # turned by 90 degrees
                seen.append([controller.value(entry.name) for entry in carried.entries])
            turned = rotation_matrix(now.quat[0]).T @ FIELD
            field = controller.value("cf0_compass/magnetic_field")
            np.testing.assert_allclose(field, turned, atol=3e-6)
            assert np.linalg.norm(controller.value("cf1_vicon/position") - now.pos[1]) < 0.02
            volts, amperes = now.battery[0, :2]
            assert abs(controller.value("cf0_cell/battery_voltage") - volts) < 0.1
            assert abs(controller.value("cf0_cell/battery_current") + amperes) < 0.5
            np.testing.assert_allclose(np.std(errors, axis=0), DENSITY * 10, rtol=0.25)
            flights.append(np.concatenate([np.concatenate(each) for each in seen]).tobytes())
    assert flights[0] == flights[1]


def test_a_reset_draws_other_errors_of_that_drone(tmp_path: Path) -> None:
    with flown(tmp_path) as (physics, controller, _):
        fly(physics, controller, 20)
        names = ["cf0_imu/angular_velocity", "cf1_imu/angular_velocity"]
        before = [controller.value(name) for name in names]
        physics.state.reset(drones=["cf0"]).result(T)
        after = [controller.value(name) for name in names]
        assert (before[0] != after[0]).all() and (before[1] == after[1]).all()


def test_the_estimate_is_read_with_its_variances(tmp_path: Path) -> None:
    positioning = Parameters(estimator="kalman", mocap=True)._positioning()
    config = {"estimator": "kalman", "positioning": positioning}
    with flown(tmp_path, **config) as (physics, controller, _):
        now = fly(physics, controller, 1500)
        assert now.pos[0, 2] == pytest.approx(0.6, abs=0.1)  # it flies on its estimate
        for part, told in (("position", now.believed.pos), ("orientation", now.believed.quat)):
            np.testing.assert_array_equal(controller.value(f"cf0_estimate/{part}"), told[0])
        variance = controller.value("cf0_estimate/position_variance")
        np.testing.assert_array_equal(variance, now.believed.variances[0, :3])
        assert (variance > 0).all()


def test_a_drone_describes_what_it_carries(tmp_path: Path) -> None:
    (tmp_path / "sensors.yaml").write_text(FILE)
    file = sensors_file.load(str(tmp_path / "sensors.yaml"), NAMES, "cf2x_L250")
    carried = CarriedSensors(file, NAMES, 500, 100)
    text = urdf("cf2x_L250", NAMES, "native", None, carried.components)
    assert text.count('<sensor name="cf0_imu">') == 1  # instead of the ideal one
    assert "cf0_vicon" not in text and '<sensor name="cf1_vicon">' in text
    assert '<state_interface name="battery_percentage" />' in text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("imu: {type: imu, rate: 125}", r"cf0/imu: .* a multiple of it, got 125"),
        (
            "imu: {type: imu, rate: 500, delay: 0.01}",
            r"cf0/imu: .* a delay needs a rate of at most 100",
        ),
        ("body: {type: imu}", r"cf0/body: behind ros2_control the name 'body' is another part's"),
    ],
)
def test_what_does_not_fit_is_refused(entry: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "sensors.yaml").write_text(f"cf0:\n  {entry}\n")
    file = sensors_file.load(str(tmp_path / "sensors.yaml"), NAMES, "cf2x_L250")
    with pytest.raises(ParameterError, match=message):
        CarriedSensors(file, NAMES, 500, 100)
