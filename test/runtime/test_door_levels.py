"""Drones that a door flies take off from the floor, whatever heading and tilt it commands."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from crazyflow_ros.control import Controller, attitude_command
from crazyflow_ros.drones import load_drone
from crazyflow_ros.runtime import (
    DoorStatus,
    DroneState,
    Level,
    PhysicsThread,
    SimulationConfig,
    Snapshot,
)
from crazyflow_ros.scene import frames

T = 300.0  # s, no wait is longer
MASS = load_drone("cf2x_L250")["mass"]
YAWS = (-2.9, -1.7, -0.8, -0.3, 0.0, 0.4, 0.7, 1.2, 2.2, 3.1)  # rad
DRONES = [f"cf{i}" for i in range(len(YAWS))]
GOAL = np.array([0.5, 0.3, 1.0])  # m, from where each drone is
TAKE_OFF = 5.0  # s


class Pilot:
    """PI controllers of velocity below P controllers of position, as in config/controllers.yaml."""

    name, period = "pilot", 5

    def __init__(self, *, tilts_ahead: bool = False) -> None:
        self.tilts_ahead = tilts_ahead
        self.level, self.yaws, self.goal = Level.held, np.array(YAWS), GOAL
        self.start, self.forget = np.zeros((len(YAWS), 3)), lambda _: None

    def collect(self, now: Snapshot, command: np.ndarray, level: np.ndarray, _: Any) -> bool:
        command[:], level[:] = 0.0, self.level
        if self.level in (Level.held, Level.rotor_velocity):
            command[:] = 2500.0  # rad/s
            return True
        if level[0] == Level.held or self.integral is None:
            self.integral = np.zeros_like(now.pos)
        error = np.clip(1.5 * (self.start + GOAL - now.pos), -2, 2) - now.vel
        self.integral = np.clip(self.integral + 0.02 * error, -2, 2)
        acc = np.clip(4 * error + self.integral, -5, 5)
        if self.level == Level.goal:
            command[:, :3], command[:, 3] = self.start + self.goal, self.yaws
            return True
        if self.level == Level.acceleration:
            command[:, :3], command[:, 3] = acc, self.yaws
            return True
        for i, yaw in enumerate(self.yaws.tolist()):
            present = float(frames.yaw(now.quat[i]))
            about = present if self.tilts_ahead else yaw
            thrust, *tilt, _ = attitude_command(acc[i].tolist(), about, now.quat[i].tolist(), MASS)
            angles = [*tilt, yaw]
            if self.level == Level.body_rate:
                turn = angles - frames.rpy(now.quat[i])
                angles = (6 * ((turn + np.pi) % (2 * np.pi) - np.pi)).tolist()
            command[i] = *angles, thrust
        return True

    def show(self, *_: Any) -> None: ...
    def interrupt(self) -> None: ...
    def set_paused(self, *_: Any) -> None: ...
    def close(self) -> None: ...

    def status(self) -> DoorStatus:
        return DoorStatus((), 0, 0, 0)


def flies(physics: PhysicsThread, pilot: Pilot, level: Level) -> None:
    """Take off, and be at the goal with the heading some time later."""
    pilot.level, pilot.integral = Level.held, None
    pilot.start = physics.step(10).result(T).pos * (1, 1, 0)
    pilot.level = level
    heights = [physics.step(25).result(T).pos[:, 2] for _ in range(round(TAKE_OFF / 0.05))]
    assert (np.max(heights, axis=0) > 0.9).all(), (level, np.max(heights, axis=0))
    end = physics.step(1500).result(T)
    np.testing.assert_allclose(end.pos, pilot.start + GOAL, atol=0.05)
    turned = np.exp(1j * (frames.rpy(end.quat)[:, 2] - pilot.yaws))
    np.testing.assert_allclose(turned, 1.0, atol=0.1)


@pytest.mark.parametrize("controller", list(Controller))
def test_drones_take_off_with_any_heading_also_after_a_reset(controller: Controller) -> None:
    pilot = Pilot(tilts_ahead=controller is Controller.pid)
    config = SimulationConfig(
        real_time_factor=0.0,
        start_paused=True,
        controller=str(controller),
        downwash=False,
        true_mass=True,
    )
    assert config.power_distribution == "capped"
    physics = PhysicsThread(config, DRONES, pilot)
    physics.start()
    try:
        levels = [Level.goal, Level.acceleration, Level.attitude]
        levels += [Level.body_rate] if controller is Controller.default else []
        for level in levels:
            for _ in range(2):
                flies(physics, pilot, level)
                physics.state.reset().result(T)
        # By a goal, which may also be on the floor.
        flies(physics, pilot, Level.goal)
        pilot.goal = np.array([0.2, 0.3, 0.0])
        for _ in range(2):
            end = physics.step(2000).result(T)
        np.testing.assert_allclose(end.pos[:, :2], (pilot.start + pilot.goal)[:, :2], atol=0.05)
        assert (end.pos[:, 2] < 0.05).all() and (end.rotor_vel < 500).all()
        # It was put elsewhere on the way.
        pilot.goal = GOAL
        away = {name: DroneState(pos=(*xy, 5.0)) for name, xy in zip(DRONES, end.pos[:, :2])}
        physics.step(1000).result(T)
        physics.state.set_drone_states(away).result(T)
        speeds = [np.abs(physics.step(50).result(T).vel).max() for _ in range(160)]
        np.testing.assert_allclose(physics.snapshot.pos, pilot.start + GOAL, atol=0.05)
        assert max(speeds) < 4.0
        physics.state.reset().result(T)
        # Landed, and asked to turn there for seconds.
        flies(physics, pilot, Level.attitude)
        pilot.start = pilot.start - (0, 0, GOAL[2] + 0.1)
        assert (physics.step(1500).result(T).pos[:, 2] < 0.05).all()
        pilot.yaws = -pilot.yaws
        physics.step(1500).result(T)
        flies(physics, pilot, Level.attitude)
    finally:
        physics.stop()
    assert physics.failed is None and not physics.statistics().failures


def test_a_drone_that_cannot_take_off_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    on_its_back = np.array([[2.0 * i, 0.0, 0.02, 1.0, 0.0, 0.0, 0.0] for i in range(len(YAWS))])
    pilot = Pilot()
    config = SimulationConfig(real_time_factor=0.0, start_paused=True, initial_poses=on_its_back)
    physics = PhysicsThread(config, DRONES, pilot)
    physics.start()
    try:
        pilot.level = Level.rotor_velocity
        with caplog.at_level(logging.WARNING):
            physics.step(2500).result(T)
            pilot.level, pilot.integral = Level.goal, None
            physics.step(2500).result(T)
    finally:
        physics.stop()
    said = [record.getMessage() for record in caplog.records]
    assert any("stands with saturated motors" in text for text in said), said
    assert any("has crashed: it lies tilted by more than 60 degrees" in text for text in said), said
