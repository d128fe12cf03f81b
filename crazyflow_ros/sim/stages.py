"""The stages of a physics tick: pure functions from `SimData` to `SimData`.

They split arrays first and stack them last, with only component arithmetic in between, so that the
compiler cancels the stacking of one stage against the splitting of the next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.control import Control, mellinger
from crazyflow_ros.control.memory import Memory
from crazyflow_ros.control.setpoint_modes import Modes
from crazyflow_ros.dynamics import Dynamics, first_principles, so_rpy
from crazyflow_ros.dynamics.components import (
    split,
    stack,
)
from crazyflow_ros.estimation.instrument_readings import PoseReading
from crazyflow_ros.sim.controls import SimControls
from crazyflow_ros.sim.data import SimData, SimState
from crazyflow_ros.sim.leaves import changed_leaves, read_leaves, traced

Stage = Callable[[SimData], SimData]

THRUST_MAX = "thrust_max"
"""Name in `data.plugins` of the thrust that a rotor can give now [N], (N, M, 1), if a stage such as
`actuation.Battery` writes it; the motor mixer then keeps to it."""


@runtime_checkable
class Remembering(Protocol):
    """A stage with a memory in `data.plugins`."""

    def begin(self, data: SimData) -> SimData:
        """Return data with the initial memory; called when the stage enters a pipeline.

        Parameters and plugins that it replaces are restored when the stage leaves.
        """
        ...

    def __call__(self, data: SimData) -> SimData:
        """Run the stage."""
        ...


def run_if_due(
    data: SimData, level: Control, controller: Callable[[SimData], SimControls]
) -> SimData:
    """Run a controller in the worlds where it is due: at exact multiples of its period."""
    period = data.core.freq // getattr(data.controls, level).freq
    return run_every(data, period, lambda data: data.replace(controls=controller(data)))


def run_every(data: SimData, period: int, stage: Stage) -> SimData:
    """Run a stage in the worlds where it is due: at exact multiples of a period, in ticks."""
    if period == 1:
        return stage(data)
    due = data.core.steps % period == 0

    leaves, treedef = jax.tree.flatten(data)
    jaxpr = traced(stage, data)
    changed, read = changed_leaves(jaxpr), read_leaves(jaxpr)
    # By component: whole arrays would be assembled only to be passed on.
    parts = {
        i: split(x) if x.ndim > 1 else (x,) for i, x in enumerate(leaves) if changed[i] or read[i]
    }

    def run(parts: dict[int, tuple[Array, ...]]) -> dict[int, tuple[Array, ...]]:
        given = dict(enumerate(leaves)) | {
            i: stack(p) if leaves[i].ndim > 1 else p[0] for i, p in parts.items()
        }
        before: SimData = jax.tree.unflatten(treedef, list(given.values()))
        after = jax.tree.leaves(stage(before))
        return {
            i: tuple(jnp.where(due, new, old) for new, old in zip(split(after[i]), p))
            for i, p in parts.items()
            if changed[i]
        }

    def keep(parts: dict[int, tuple[Array, ...]]) -> dict[int, tuple[Array, ...]]:
        return {i: p for i, p in parts.items() if changed[i]}

    results = jax.lax.cond(jnp.any(due), run, keep, parts)
    merged = [stack(results[i]) if i in results else x for i, x in enumerate(leaves)]
    new: SimData = jax.tree.unflatten(treedef, merged)
    return new


def _components(memory: dict[str, Array]) -> Memory:
    return {name: split(array) for name, array in memory.items()}


def _stored(memory: Memory) -> dict[str, Array]:
    return {name: stack(parts) for name, parts in memory.items()}


def estimate_state(data: SimData) -> SimData:
    """Update the drones' estimates; each drone has its own filter."""
    assert data.estimate is not None
    state, actuators = data.states.components, split(data.controls.actuators)
    # As in the firmware, a drone flies if any rotor turns; a fitted model has one thrust.
    thrusts = actuators if data.controls.rpy_thrust is None else actuators[3:]
    flies = reduce(jnp.maximum, thrusts) > 0
    now, around = PoseReading(state.pos, state.quat, state.vel), data.params.obstacles
    return data.replace(estimate=data.estimate.updated(now, flies, data.core.steps, around))


def measured(data: SimData) -> SimState:
    """Return the state that controllers know: the estimate, or without one the true state."""
    states, estimate = data.states, data.estimate
    if estimate is None:
        return states
    return states.replace(
        pos=estimate.pos,
        quat=estimate.quat,
        vel=estimate.vel,
        ang_vel=states.ang_vel + estimate.gyro_error,
    )


def position_controller(data: SimData, modes: Modes | None = None) -> SimControls:
    """Return the controls after a run of the position controller, with the modes of setpoints."""
    controls, level, attitude = data.controls, data.controls.state, data.controls.attitude
    assert level is not None and attitude is not None
    cmd = level.cmd
    setpoint = tuple(split(cmd[..., i : i + n]) for i, n in ((0, 3), (3, 3), (6, 3), (9, 4)))
    rpy, thrust, memory = level.controller.cascade.state2attitude(
        measured(data).components,
        setpoint,  # type: ignore[arg-type]
        _components(level.memory),
        1 / level.freq,
        level.params,
        **({} if modes is None else {"modes": modes}),
    )
    armed = controls.armed[..., 0]
    memory = {k: tuple(jnp.where(armed, x, 0.0) for x in parts) for k, parts in memory.items()}
    return controls.replace(
        state=level.replace(memory=_stored(memory)),
        attitude=attitude.replace(cmd=stack((*rpy, thrust)), ang_vel_des=cmd[..., 13:16]),
    )


def control_state(data: SimData) -> SimData:
    """Run the position controller: `controls.state` to an attitude command."""
    return run_if_due(data, Control.state, position_controller)


def control_attitude(data: SimData) -> SimData:
    """Run the attitude controller: `controls.attitude` to a force and torque command."""

    def controller(data: SimData) -> SimControls:
        controls, level, mixer = data.controls, data.controls.attitude, data.controls.force_torque
        assert level is not None and mixer is not None
        roll, pitch, yaw, thrust = split(level.cmd)
        force, torque, memory = level.controller.cascade.attitude2force_torque(
            measured(data).components,
            ((roll, pitch, yaw), split(level.ang_vel_des), thrust),  # type: ignore[arg-type]
            _components(level.memory),
            1 / level.freq,
            level.params,
            None if level.rate_axes is None else split(level.rate_axes > 0),  # type: ignore[arg-type]
            controls.armed[..., 0],
            controls.power_distribution,
        )
        return controls.replace(
            attitude=level.replace(memory=_stored(memory)),
            force_torque=mixer.replace(cmd=stack((force, *torque))),
        )

    return run_if_due(data, Control.attitude, controller)


def control_body_rate(data: SimData) -> SimData:
    """Run the body rate controller: `controls.body_rate` to a force and torque command."""

    def controller(data: SimData) -> SimControls:
        controls, level, mixer = data.controls, data.controls.body_rate, data.controls.force_torque
        assert level is not None and mixer is not None
        wx, wy, wz, thrust = split(level.cmd)
        force, torque, memory = mellinger.attitude2force_torque(
            measured(data).components,
            (None, (wx, wy, wz), thrust),
            _components(level.memory),
            1 / level.freq,
            level.params,
            armed=controls.armed[..., 0],
            distribution=controls.power_distribution,
        )
        return controls.replace(
            body_rate=level.replace(memory=_stored(memory)),
            force_torque=mixer.replace(cmd=stack((force, *torque))),
        )

    return run_if_due(data, Control.body_rate, controller)


def control_force_torque(data: SimData) -> SimData:
    """Run the motor mixer: `controls.force_torque` to rotor speeds."""

    def controller(data: SimData) -> SimControls:
        controls, level = data.controls, data.controls.force_torque
        assert level is not None
        force, tx, ty, tz = split(level.cmd)
        thrust_max = data.plugins[THRUST_MAX][..., 0] if THRUST_MAX in data.plugins else None
        rotor_vel = mellinger.force_torque2rotor_vel(
            force, (tx, ty, tz), level.params, controls.power_distribution, thrust_max
        )
        return controls.replace(rotor_vel=stack(rotor_vel))

    return run_if_due(data, Control.force_torque, controller)


def commit_attitude(data: SimData) -> SimData:
    """Copy `controls.attitude` to the input of a fitted model, which includes a controller."""

    def controller(data: SimData) -> SimControls:
        assert data.controls.attitude is not None
        return data.controls.replace(rpy_thrust=data.controls.attitude.cmd)

    return run_if_due(data, Control.attitude, controller)


def limit_rotor_vel(data: SimData) -> SimData:
    """Limit rotor commands to the motors' range; zero, or an unarmed drone, stops a rotor."""
    assert isinstance(data.params, first_principles.Params)
    limits = data.params.rotor_vel_limits
    commands = split(data.controls.rotor_vel)
    return _actuated(data, tuple(_limited(data, cmd, cmd > 0, limits) for cmd in commands))


def limit_thrust(data: SimData) -> SimData:
    """Limit thrust to the motors' range; a command of zero, or an unarmed drone, gives none."""
    assert isinstance(data.params, so_rpy.Params) and data.controls.rpy_thrust is not None
    roll, pitch, yaw, thrust = split(data.controls.rpy_thrust)
    thrust = _limited(data, thrust, thrust != 0, data.params.thrust_limits)
    return _actuated(data, (roll, pitch, yaw, thrust))


def _limited(data: SimData, command: Array, wanted: Array, limits: Array) -> Array:
    clipped = jnp.clip(command, limits[..., 0], limits[..., 1])
    return jnp.where(data.controls.armed[..., 0] & wanted, clipped, 0.0)


def _actuated(data: SimData, actuators: tuple[Array, ...]) -> SimData:
    return data.replace(controls=data.controls.replace(actuators=stack(actuators)))


def control_stages(dynamics: Dynamics, control: Control) -> tuple[Stage, ...]:
    """Return the controllers of a control mode, from the command to the input of the model.

    Raises:
        ValueError: The model does not accept such commands.
    """
    if not dynamics.has_rotors:
        fitted: dict[Control, tuple[Stage, ...]] = {
            Control.state: (control_state, commit_attitude, limit_thrust),
            Control.attitude: (commit_attitude, limit_thrust),
        }
        if control not in fitted:
            known = f"dynamics={dynamics} takes {' or '.join(fitted)}"
            raise ValueError(f"control={control} needs dynamics=first_principles, {known}")
        return fitted[control]
    cascade: dict[Control, tuple[Stage, ...]] = {
        Control.state: (control_state, control_attitude, control_force_torque),
        Control.attitude: (control_attitude, control_force_torque),
        Control.body_rate: (control_body_rate, control_force_torque),
        Control.force_torque: (control_force_torque,),
        Control.rotor_vel: (),
    }
    return (*cascade[control], limit_rotor_vel)


def move_obstacles(data: SimData) -> SimData:
    """Move obstacles at their velocities; insert it after `integrate`.

    Raises:
        ValueError: There are no obstacles, or they have no velocities.
    """
    obstacles = data.params.obstacles
    if obstacles is None or obstacles.vel is None:
        raise ValueError("move_obstacles needs obstacles that have velocities")
    moved = obstacles.moved(1 / data.core.freq)
    return data.replace(params=data.params.replace(obstacles=moved))


def clip_floor_pos(data: SimData) -> SimData:
    """Stop drones at the floor as Crazyflow does: 1 mm below, the linear velocity is zeroed."""
    state = data.states.components
    floor = data.params.floor
    lowest = -0.001 if floor is None else floor[..., 0] - 0.001
    x, y, z = state.pos
    below = z < lowest
    vx, vy, vz = (jnp.where(below, 0.0, v) for v in state.vel)
    state = state._replace(pos=(x, y, jnp.where(below, lowest, z)), vel=(vx, vy, vz))
    return data.replace(states=data.states.with_components(state))


def increment_steps(data: SimData) -> SimData:
    """Count the tick."""
    return data.replace(core=data.core.replace(steps=data.core.steps + 1))
