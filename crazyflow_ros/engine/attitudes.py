"""Attitude commands for drones in state control, which bypass the position controller.

The quaternion of a state command is never zero, so a quaternion of zeros marks an attitude command.
One compiled function handles both kinds, and a drone switches between them from one run of the
controllers to the next.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.control.cascades import CONTROLLERS
from crazyflow_ros.dynamics.components import split, stack
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.data import SimControls
from crazyflow_ros.sim.pipeline import replace
from crazyflow_ros.sim.stages import position_controller, run_if_due

_SIZE = Control.state.sizes[0]
_ARE_RATES, _QUATERNION, _RATES = slice(4, 6), slice(9, 13), slice(13, 16)


def as_state_command(attitude: np.ndarray) -> np.ndarray:
    """Convert an attitude to the form of a `Control.state` command.

    Args:
        attitude: (9,) roll, pitch, yaw [rad], collective thrust [N], body rates [rad/s], and 1
            where roll and pitch follow their rates instead of the angles.

    Returns:
        (16,) with a quaternion of zeros.
    """
    command = np.zeros(_SIZE)
    command[:4], command[_RATES], command[_ARE_RATES] = np.split(attitude, (4, 7))
    return command


def accept_attitudes(sim: Sim) -> None:
    """Let the drones of a simulation in state control accept attitude commands."""
    sim.step_pipeline = replace(sim.step_pipeline, "control_state", control_state_or_attitude)
    attitude = sim.data.controls.attitude
    if attitude is not None and CONTROLLERS[attitude.controller].HAS_RATE_MODES:
        axes = jnp.asarray(np.zeros((sim.n_worlds, sim.n_drones, 2), attitude.cmd.dtype))
        controls = sim.data.controls.replace(attitude=attitude.replace(rate_axes=axes))
        sim.data = sim.data.replace(controls=controls)


def control_state_or_attitude(data: SimData) -> SimData:
    """Run `control_state`, and use attitude commands in place of its output where there are any."""

    def controller(data: SimData) -> SimControls:
        commanded = data.controls.state
        assert commanded is not None
        numbers, controls = split(commanded.cmd), position_controller(data)
        is_attitude = data.controls.armed[..., 0]
        for q in numbers[_QUATERNION]:
            is_attitude &= q == 0

        def chosen(attitude: tuple[Array | float, ...], other: Array) -> Array:
            pairs = zip(attitude, split(other))
            return stack(tuple(jnp.where(is_attitude, x, y) for x, y in pairs))

        def forgotten(memory: Array) -> Array:
            """The controller that is not in force must not wind up."""
            return chosen((0.0,) * memory.shape[-1], memory)

        state, attitude = controls.state, controls.attitude
        assert state is not None and attitude is not None
        memory = {name: forgotten(array) for name, array in state.memory.items()}
        attitude = attitude.replace(cmd=chosen(numbers[:4], attitude.cmd))
        if attitude.rate_axes is not None:
            axes = numbers[_ARE_RATES]
            attitude = attitude.replace(rate_axes=stack(tuple(is_attitude * x for x in axes)))
        return controls.replace(state=state.replace(memory=memory), attitude=attitude)

    return run_if_due(data, Control.state, controller)
