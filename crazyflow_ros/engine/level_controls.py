"""The controllers of a world whose drones follow commands of several levels.

A world is compiled for the levels that can occur in it: several controllers run for all drones, and
each drone's rotors follow that of its level, so that a change of level compiles nothing.
"""

from __future__ import annotations

from dataclasses import fields
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.control.setpoint_modes import Modes
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.components import (
    rotation_matrix,
    rpy_from_rotation_matrix,
    split,
    stack,
)
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.isolation import HoldableControls
from crazyflow_ros.engine.levels import ARE_RATES, Level, Levels
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.controls import (
    AttitudeControl,
    BodyRateControl,
    ForceTorqueControl,
    SimControls,
    filled,
)
from crazyflow_ros.sim.motion import integration
from crazyflow_ros.sim.pipeline import insert_before, replace
from crazyflow_ros.sim.stages import (
    control_attitude,
    control_body_rate,
    control_force_torque,
    estimate_state,
    increment_steps,
    limit_rotor_vel,
    position_controller,
    run_if_due,
)

_INTEGRAL = "r_int_error"  # of the attitude error


class LevelControls(HoldableControls):
    """Controls with a command at one of several levels for each drone."""

    level: Array
    """(N, M, 1) levels."""
    command: Array | None
    """(N, M, n) numbers of the levels of a door to n rotors; None in state control."""
    previous: Array | None
    """(N, M, 1) levels at the last run of the position controller; None without modes."""

    def with_commands(self, command: Array, level: Array) -> LevelControls:
        """Return a copy with new commands; controllers whose level is not in force get zeros."""
        if self.state is not None:  # attitudes wait until the position controller is due
            return self.replace(level=level, state=self.state.replace(cmd=command))
        assert self.attitude is not None and self.body_rate is not None
        four = command[..., :4]
        attitude = jnp.where(level == Level.attitude, four, 0)
        body_rate = jnp.where(level == Level.body_rate, four, 0)
        return self.replace(
            level=level,
            command=command,
            attitude=self.attitude.replace(cmd=attitude),
            body_rate=self.body_rate.replace(cmd=body_rate),
        )


class SharedControls(LevelControls):
    """Controls of drones of which a door flies some, and the commander the others.

    Both have controllers of their own. Those of the commander run for all drones: with an attitude
    command of zeros for the drones of the door, of which position controllers keep no memory.
    """

    of_door: LevelControls
    """Controls of the drones that the door flies."""
    by_door: Array
    """(N, M, 1) bool: whether the door flies the drone."""

    def with_commands(self, command: Array, level: Array) -> LevelControls:
        """See `LevelControls`."""
        by_door, size = self.by_door, self.rotor_vel.shape[-1]
        of_door = self.of_door.with_commands(
            command[..., :size], jnp.where(by_door, level, Level.held)
        )
        others = super().with_commands(
            jnp.where(by_door, 0, command), jnp.where(by_door, Level.attitude, level)
        )
        return others.replace(of_door=of_door)


def follow_levels(sim: Sim, config: SimulationConfig, levels: Levels, by_door: int) -> None:
    """Let the drones of a simulation have commands at several levels.

    Args:
        sim: Simulation in state control, or in rotor_vel mode if a door flies all drones.
        config: The rates of the controllers.
        levels: The levels of the drones that no door flies.
        by_door: Number of drones that a door flies, the first ones.

    Raises:
        ValueError: The rate of a controller does not divide `freq`.
    """
    if by_door == sim.n_drones:
        sim.data = sim.data.replace(controls=_controls_of_door(sim, config))
        sim.step_pipeline = (
            *(stage for stage in sim.step_pipeline if stage is estimate_state),
            control_by_level,
            limit_rotor_vel,
            integration(sim.integrator, sim.forces),
            increment_steps,
        )
        return
    if Level.state in levels and Level.attitude in levels:
        _accept_setpoints(sim, with_modes=Level.hover in levels)
    if by_door:
        _share_with_door(sim, config, by_door)


def _accept_setpoints(sim: Sim, *, with_modes: bool) -> None:
    size, controls = (sim.n_worlds, sim.n_drones), sim.data.controls
    attitude, state = controls.attitude, controls.state
    assert attitude is not None and state is not None
    with_modes &= getattr(state.controller.cascade, "HAS_SETPOINT_MODES", False)
    stage = control_setpoint if with_modes else control_state_or_attitude
    sim.step_pipeline = replace(sim.step_pipeline, "control_state", stage)
    if attitude.controller.cascade.HAS_RATE_MODES:
        controls = controls.replace(attitude=attitude.replace(rate_axes=filled(size, 2)))
    values = {field.name: getattr(controls, field.name) for field in fields(controls)}
    levels = LevelControls(
        **values,
        held=_nobody(size),
        level=filled(size, 1),
        command=None,
        previous=filled(size, 1) if with_modes else None,
    )
    sim.data = sim.data.replace(controls=levels)


def control_setpoint(data: SimData) -> SimData:
    """Run `control_state` with the modes of setpoints."""
    return run_if_due(data, Control.state, _follow_modes)


def _follow_modes(data: SimData) -> SimControls:
    controls = data.controls
    assert isinstance(controls, LevelControls)
    state, attitude, previous = controls.state, controls.attitude, controls.previous
    assert state is not None and attitude is not None and previous is not None
    level, numbers = controls.level[..., 0], split(state.cmd)
    is_attitude, modes = level == Level.attitude, _modes(level, numbers)
    of_state = [jnp.where(is_attitude, 0.0, x) for x in numbers[:13]]
    if getattr(state.controller.cascade, "FORGETS_WITH_MODE", False):
        stays = controls.level == previous

        def kept(memory: dict[str, Array]) -> dict[str, Array]:
            return {name: jnp.where(stays, array, 0.0) for name, array in memory.items()}

        state = state.replace(memory=kept(state.memory))
        attitude = attitude.replace(memory=kept(attitude.memory))
    # An attitude carries its heading in the third number; controllers look at quaternions.
    half = numbers[2] / 2
    of_state[11] = jnp.where(is_attitude, jnp.sin(half), of_state[11])
    of_state[12] = jnp.where(is_attitude, jnp.cos(half), of_state[12])
    state = state.replace(cmd=stack((*of_state, *numbers[13:])))
    after = position_controller(
        data.replace(controls=controls.replace(state=state, attitude=attitude)), modes
    )
    assert isinstance(after, LevelControls) and after.state is not None
    return after.replace(
        state=after.state.replace(cmd=controls.state.cmd),  # type: ignore[union-attr]
        attitude=_with_rate_axes(after.attitude, is_attitude, numbers),
        previous=controls.level,
    )


def _modes(level: Array, numbers: tuple[Array, ...]) -> Modes:
    """Return what state commands ask for at their levels."""

    def at(*levels: Level) -> Array:
        return reduce(jnp.logical_or, (level == each for each in levels))

    is_attitude = at(Level.attitude)
    turned = rpy_from_rotation_matrix(rotation_matrix(numbers[9:13]))  # type: ignore[arg-type]
    roll, pitch = (jnp.where(is_attitude, *each) for each in zip(numbers, turned[:2]))
    angles = is_attitude | at(Level.z_distance, Level.altitude_hold)
    return Modes(
        xy_velocity=angles | at(Level.velocity, Level.hover),
        in_heading=at(Level.hover),
        xy_angles=angles,
        z_velocity=is_attitude | at(Level.velocity, Level.altitude_hold),
        z_thrust=is_attitude,
        turns=angles | at(Level.velocity, Level.hover),
        by_quat=at(Level.full_state),
        roll=roll,
        pitch=pitch,
        thrust=numbers[3],
    )


def _with_rate_axes(
    attitude: AttitudeControl | None, is_attitude: Array, numbers: tuple[Array, ...]
) -> AttitudeControl:
    """Let roll and pitch follow their rates where attitude commands ask for it."""
    assert attitude is not None
    if attitude.rate_axes is None:
        return attitude
    axes = tuple(is_attitude * x for x in numbers[ARE_RATES])
    return attitude.replace(rate_axes=stack(axes))


def control_state_or_attitude(data: SimData) -> SimData:
    """Run `control_state`, and use attitude commands in place of its output where there are any."""

    def controller(data: SimData) -> SimControls:
        controls = position_controller(data)
        assert isinstance(controls, LevelControls)
        state, attitude = controls.state, controls.attitude
        assert state is not None and attitude is not None
        numbers, is_attitude = split(state.cmd), controls.level[..., 0] == Level.attitude

        def chosen(attitude: tuple[Array | float, ...], other: Array) -> Array:
            pairs = zip(attitude, split(other))
            return stack(tuple(jnp.where(is_attitude, x, y) for x, y in pairs))

        def forgotten(memory: Array) -> Array:
            """The controller that is not in force must not wind up."""
            return chosen((0.0,) * memory.shape[-1], memory)

        memory = {name: forgotten(array) for name, array in state.memory.items()}
        attitude = attitude.replace(cmd=chosen(numbers[:4], attitude.cmd))
        attitude = _with_rate_axes(attitude, is_attitude, numbers)
        return controls.replace(state=state.replace(memory=memory), attitude=attitude)

    return run_if_due(data, Control.state, controller)


def control_by_level(data: SimData) -> SimData:
    """Run the controllers of all levels: `controls.command` to rotor speeds."""
    now = data.controls
    assert isinstance(now, LevelControls) and now.force_torque is not None
    assert now.command is not None
    by_attitude, by_rate = control_attitude(data).controls, control_body_rate(data).controls
    attitude, body_rate = by_attitude.attitude, by_rate.body_rate
    assert attitude is not None and body_rate is not None
    assert by_attitude.force_torque is not None and by_rate.force_torque is not None
    is_rate = now.level == Level.body_rate
    wrench = jnp.where(is_rate, by_rate.force_torque.cmd, by_attitude.force_torque.cmd)
    is_attitude = now.level == Level.attitude

    def unless(in_force: Array, memory: dict[str, Array]) -> dict[str, Array]:
        """Controllers that are not in force must not wind up; others than Mellinger's see to it."""
        if _INTEGRAL not in memory:
            return memory
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


def control_by_door(data: SimData) -> SimData:
    """Replace the rotor speeds of the drones that a door flies by those of its commands."""
    now = data.controls
    assert isinstance(now, SharedControls)
    own = data.replace(controls=now.of_door.replace(armed=now.armed))
    of_door = control_by_level(own).controls.replace(armed=now.of_door.armed)
    rotor_vel = jnp.where(now.by_door, of_door.rotor_vel, now.rotor_vel)
    return data.replace(controls=now.replace(of_door=of_door, rotor_vel=rotor_vel))


def _share_with_door(sim: Sim, config: SimulationConfig, by_door: int) -> None:
    """Let a door fly the first drones, and the commander the others."""
    controls = sim.data.controls
    values = {field.name: getattr(controls, field.name) for field in fields(controls)}
    is_by_door = np.zeros((sim.n_worlds, sim.n_drones, 1), bool)
    is_by_door[:, :by_door] = True
    shared = SharedControls(
        **values, of_door=_controls_of_door(sim, config), by_door=jnp.asarray(is_by_door)
    )
    sim.data = sim.data.replace(controls=shared)
    sim.step_pipeline = insert_before(sim.step_pipeline, "limit_rotor_vel", control_by_door)


def _controls_of_door(sim: Sim, config: SimulationConfig) -> LevelControls:
    for name in ("attitude_freq", "body_rate_freq", "force_torque_freq"):
        ticks_per_period(config.freq, getattr(config, name), name)
    size, drone = (sim.n_worlds, sim.n_drones), sim.drone
    controls, controller = sim.data.controls, Controller(config.controller)
    return LevelControls(
        state=None,
        attitude=AttitudeControl.create(*size, drone, config.attitude_freq, controller),
        body_rate=BodyRateControl.create(*size, drone, config.body_rate_freq),
        force_torque=ForceTorqueControl.create(*size, drone, config.force_torque_freq),
        rotor_vel=controls.rotor_vel,
        rpy_thrust=None,
        actuators=controls.actuators,
        armed=controls.armed,
        mode=controls.mode,
        power_distribution=controls.power_distribution,
        command=filled(size, controls.rotor_vel.shape[-1]),
        level=filled(size, 1),
        previous=None,
        held=_nobody(size),
    )


def _nobody(size: tuple[int, int]) -> Array:
    return jnp.asarray(np.zeros((*size, 1), bool))
