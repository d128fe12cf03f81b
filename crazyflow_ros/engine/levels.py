"""Drones with an individual control level, which may change in flight.

All controllers run for all drones, and each drone's rotors follow the controller of its level, so
that a change of level compiles nothing. Drones without commands are held.
"""

from __future__ import annotations

from enum import IntEnum

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.control.acceleration import attitude_command
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.isolation import HoldableControls
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.data import (
    AttitudeControl,
    BodyRateControl,
    ForceTorqueControl,
    filled,
)
from crazyflow_ros.sim.stages import (
    control_attitude,
    control_body_rate,
    control_force_torque,
    increment_steps,
    integration,
    limit_rotor_vel,
)

_INTEGRAL = "r_int_error"  # of the attitude error


class Level(IntEnum):
    """Meaning of the four numbers of a drone's command."""

    held = 0
    """No command: the drone is held where it is."""
    rotor_velocity = 1
    """Speed of each rotor [rad/s], positive in flight."""
    attitude = 2
    """Roll, pitch, yaw [rad], collective thrust [N]."""
    body_rate = 3
    """Roll rate, pitch rate, yaw rate [rad/s, body frame], collective thrust [N]."""
    acceleration = 4
    """Acceleration x, y, z [m/s^2, world frame, 0 hovers], heading [rad]; `resolve` converts it to
    an attitude."""


def resolve(command: np.ndarray, level: np.ndarray, quat: np.ndarray, mass: float) -> None:
    """Convert acceleration commands to attitude commands, in place.

    Args:
        command: (M, 4) numbers, see `Level`.
        level: (M,) levels.
        quat: (M, 4) present attitudes, xyzw.
        mass: Mass of a drone [kg].
    """
    for i, present in enumerate(level.tolist()):
        if present == Level.acceleration:
            *acc, yaw = command[i].tolist()
            thrust, *angles = attitude_command(acc, yaw, quat[i].tolist(), mass)
            command[i], level[i] = (*angles, thrust), Level.attitude


class LevelControls(HoldableControls):
    """Controls with a command and a level for each drone."""

    command: Array
    """(N, M, 4) numbers, see `Level`."""
    level: Array
    """(N, M, 1) levels."""

    def with_commands(self, command: Array, level: Array) -> LevelControls:
        """Return a copy with new commands; controllers whose level is not in force get zeros."""
        assert self.attitude is not None and self.body_rate is not None
        attitude = jnp.where(level == Level.attitude, command, 0)
        body_rate = jnp.where(level == Level.body_rate, command, 0)
        return self.replace(
            command=command,
            level=level,
            held=level <= Level.held,
            attitude=self.attitude.replace(cmd=attitude),
            body_rate=self.body_rate.replace(cmd=body_rate),
        )


def control_by_level(data: SimData) -> SimData:
    """Run the controllers of all levels: `controls.command` to rotor speeds."""
    now = data.controls
    assert isinstance(now, LevelControls) and now.force_torque is not None
    by_attitude, by_rate = control_attitude(data).controls, control_body_rate(data).controls
    attitude, body_rate = by_attitude.attitude, by_rate.body_rate
    assert attitude is not None and body_rate is not None
    assert by_attitude.force_torque is not None and by_rate.force_torque is not None
    is_rate = now.level == Level.body_rate
    wrench = jnp.where(is_rate, by_rate.force_torque.cmd, by_attitude.force_torque.cmd)
    is_attitude = now.level == Level.attitude

    def unless(in_force: Array, memory: dict[str, Array]) -> dict[str, Array]:
        """Controllers that are not in force must not wind up."""
        return memory | {_INTEGRAL: jnp.where(in_force, memory[_INTEGRAL], 0)}

    controls = now.replace(
        attitude=attitude.replace(memory=unless(is_attitude, attitude.memory)),
        body_rate=body_rate.replace(memory=unless(is_rate, body_rate.memory)),
        force_torque=now.force_torque.replace(cmd=wrench),
    )
    mixed = control_force_torque(data.replace(controls=controls)).controls
    direct = now.level == Level.rotor_velocity
    rotor_vel = jnp.where(direct, now.command / RPM, mixed.rotor_vel)
    return data.replace(controls=mixed.replace(rotor_vel=rotor_vel))


def follow_levels(sim: Sim, config: SimulationConfig) -> None:
    """Let the drones of a simulation in rotor_vel mode have levels.

    Raises:
        ValueError: The rate of a controller does not divide `freq`.
    """
    assert sim.control is Control.rotor_vel
    for name in ("attitude_freq", "body_rate_freq", "force_torque_freq"):
        ticks_per_period(config.freq, getattr(config, name), name)
    size, drone = (sim.n_worlds, sim.n_drones), sim.drone
    controls = sim.data.controls
    levels = LevelControls(
        state=None,
        attitude=AttitudeControl.create(*size, drone, config.attitude_freq),
        body_rate=BodyRateControl.create(*size, drone, config.body_rate_freq),
        force_torque=ForceTorqueControl.create(*size, drone, config.force_torque_freq),
        rotor_vel=controls.rotor_vel,
        rpy_thrust=None,
        actuators=controls.actuators,
        armed=controls.armed,
        mode=controls.mode,
        power_distribution=controls.power_distribution,
        command=filled(size, 4),
        level=filled(size, 1),
        held=jnp.asarray(np.zeros((*size, 1), bool)),
    )
    sim.data = sim.data.replace(controls=levels)
    sim.step_pipeline = (
        control_by_level,
        limit_rotor_vel,
        integration(sim.integrator, sim.forces),
        increment_steps,
    )
