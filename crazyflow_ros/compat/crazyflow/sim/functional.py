"""Setters from `SimData` to `SimData`, which stage commands for their controllers.

As in Crazyflow, values are not checked: a command with NaN makes the state of its drone NaN.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.compat.crazyflow.control import core
from crazyflow_ros.control import Control
from crazyflow_ros.control.commands import full_command
from crazyflow_ros.sim.data import SimData

__all__ = [
    "attitude_control",
    "body_rate_control",
    "controllable",
    "force_torque_control",
    "rotor_vel_control",
    "state_control",
]


def state_control(data: SimData, controls: Any) -> SimData:
    """Command position, velocity, acceleration, attitude and body rates: (N, M, 16).

    As elsewhere in this package, (N, M, 13) with the yaw as a number is accepted, too.

    Raises:
        AssertionError: The control mode or the shape is another one; so for all setters.
    """
    return _staged(data, Control.state, controls)


def attitude_control(data: SimData, controls: Any) -> SimData:
    """Command roll, pitch, yaw [rad] and thrust [N]: (N, M, 4)."""
    return _staged(data, Control.attitude, controls)


def body_rate_control(data: SimData, controls: Any) -> SimData:
    """Command body rates [rad/s] and thrust [N]: (N, M, 4)."""
    return _staged(data, Control.body_rate, controls)


def force_torque_control(data: SimData, controls: Any) -> SimData:
    """Command thrust [N] and torques [N m]: (N, M, 4)."""
    return _staged(data, Control.force_torque, controls)


def rotor_vel_control(data: SimData, controls: Any) -> SimData:
    """Command rotor speeds [RPM], (N, M, 4); they are not staged."""
    return _staged(data, Control.rotor_vel, controls)


def controllable(data: SimData) -> Array:
    """Return whether a command takes effect in the next tick of each world: (N, 1) bool."""
    if data.controls.mode == Control.rotor_vel:
        return jnp.ones_like(data.core.steps, bool)
    level = getattr(data.controls, data.controls.mode)
    return core.controllable(data.core.steps, data.core.freq, level.steps, level.freq)


def _staged(data: SimData, control: Control, cmd: Any) -> SimData:
    controls, size = data.controls, (data.core.n_worlds, data.core.n_drones)
    assert controls.mode == control, f"control type {control} not enabled, it is {controls.mode}"
    known = [(*size, k) for k in control.sizes_for(controls.rotor_vel.shape[-1])]
    assert cmd.shape in known, f"controls must have the shape {known}, got {cmd.shape}"
    new = full_command(control, jnp.asarray(cmd, data.states.pos.dtype))
    if control is Control.rotor_vel:
        return data.replace(controls=controls.replace(rotor_vel=new))
    level = getattr(controls, control).replace(staged_cmd=new)
    return data.replace(controls=controls.replace(**{str(control): level}))
