"""The functional interface: setters from `SimData` to `SimData`, also inside JAX transformations.

Outside a transformation, an invalid command raises an error. Inside, where errors cannot be raised,
a drone with an invalid command keeps its previous one.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.control.commands import LARGEST_NUMBER, check_command, full_command, named
from crazyflow_ros.sim.data import SimData, check_precision

__all__ = [
    "attitude_control",
    "body_rate_control",
    "controllable",
    "force_torque_control",
    "rotor_vel_control",
    "seed_sim",
    "state_control",
]


def state_control(data: SimData, cmd: ArrayLike) -> SimData:
    """Command position, velocity, acceleration and yaw.

    Args:
        data: Data of a simulation in state control.
        cmd: (N, M, 13 or 16), see `Control.state`.

    Raises:
        ValueError: Wrong control mode or shape, NaN or infinity, zero quaternion.
    """
    return _stage(data, Control.state, cmd)


def attitude_control(data: SimData, cmd: ArrayLike) -> SimData:
    """Command attitude and thrust: (N, M, 4), see `Control.attitude`.

    Raises like `state_control`.
    """
    return _stage(data, Control.attitude, cmd)


def body_rate_control(data: SimData, cmd: ArrayLike) -> SimData:
    """Command body rates and thrust: (N, M, 4), see `Control.body_rate`."""
    return _stage(data, Control.body_rate, cmd)


def force_torque_control(data: SimData, cmd: ArrayLike) -> SimData:
    """Command thrust and torques: (N, M, 4), see `Control.force_torque`."""
    return _stage(data, Control.force_torque, cmd)


def rotor_vel_control(data: SimData, cmd: ArrayLike) -> SimData:
    """Command the speeds of the n rotors: (N, M, n) RPM."""
    return _stage(data, Control.rotor_vel, cmd)


def controllable(data: SimData) -> Array:
    """Return whether a new command takes effect in the next tick of each world: (N, 1) bool."""
    if data.controls.mode is Control.rotor_vel:
        return jnp.ones_like(data.core.steps, bool)
    period = data.core.freq // getattr(data.controls, data.controls.mode).freq
    return data.core.steps % period == 0


def seed_sim(data: SimData, seed: int | Array, device: jax.Device | None = None) -> SimData:
    """Set `data.core.rng_key`, and the random numbers of estimates.

    Args:
        data: Data of a simulation.
        seed: An integer; it may be traced only for data without estimates.
        device: Device that holds the key; by default JAX's choice.
    """
    key = jax.random.key(seed)
    core = data.core.replace(rng_key=key if device is None else jax.device_put(key, device))
    estimate = data.estimate
    if estimate is not None:
        estimate = estimate.seeded(int(seed))
    return data.replace(core=core, estimate=estimate)


def checked_command(data: SimData, control: Control, cmd: ArrayLike) -> Array | np.ndarray:
    """Return a command in the form in which it is stored, a NumPy array unless it is traced.

    Raises:
        ValueError: Wrong control mode or shape, NaN or infinity, zero quaternion.
    """
    mode = data.controls.mode
    if mode is not control:
        raise ValueError(f"{named(control)} command needs control={control}, this one has {mode}")
    if type(cmd) is not np.ndarray or cmd.dtype.kind != "f":
        cmd = _numbers(control, cmd)
    core, shape = data.core, cmd.shape
    sizes = control.sizes_for(data.controls.rotor_vel.shape[-1])
    if shape[:-1] != (core.n_worlds, core.n_drones) or shape[-1] not in sizes:
        lead = core.n_worlds, core.n_drones
        expected = " or ".join(str((*lead, n)) for n in sizes)
        raise ValueError(f"{named(control)} command must have shape {expected}, got {shape}")
    dtype = data.states.pos.dtype
    if isinstance(cmd, jax.core.Tracer):
        return full_command(control, jnp.asarray(cmd, dtype))
    assert isinstance(cmd, np.ndarray)
    check_command(control, cmd, sizes)
    return full_command(control, np.array(cmd, dtype))


def _numbers(control: Control, cmd: ArrayLike) -> Array | np.ndarray:
    """Return a command as an array of real numbers, a NumPy array unless it is traced.

    Raises:
        ValueError: It is not an array of real numbers.
    """
    try:
        array: Any = cmd if isinstance(cmd, jax.core.Tracer) else np.asarray(cmd)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{named(control)} command is an array of numbers: {error}") from None
    kind = array.dtype
    if kind.kind not in "fiub" and not jnp.issubdtype(kind, jnp.floating):
        raise ValueError(f"{named(control)} command holds real numbers, got an array of {kind}")
    return array


def stored_command(data: SimData) -> Array:
    """Return the command in force, (N, M, k)."""
    mode = data.controls.mode
    if mode is Control.rotor_vel:
        return data.controls.rotor_vel
    cmd: Array = getattr(data.controls, mode).cmd
    return cmd


def _stage(data: SimData, control: Control, cmd: ArrayLike) -> SimData:
    check_precision(data)
    new = jnp.asarray(checked_command(data, control, cmd))
    if isinstance(cmd, jax.core.Tracer):
        usable = (jnp.abs(new) <= LARGEST_NUMBER).all(axis=-1, keepdims=True)
        if control is Control.state:
            usable &= (new[..., 9:13] != 0).any(axis=-1, keepdims=True)
        new = jnp.where(usable, new, stored_command(data))
    if control is Control.rotor_vel:
        return data.replace(controls=data.controls.replace(rotor_vel=new))
    staged = getattr(data.controls, control).replace(cmd=new)
    return data.replace(controls=data.controls.replace(**{control.value: staged}))
