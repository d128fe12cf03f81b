"""Commands of the control modes: valid numbers, and the stored form."""

from __future__ import annotations

from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control.modes import Control

T = TypeVar("T", Array, np.ndarray)

LARGEST_NUMBER = 1e9
"""Largest number in a command; its square is finite in float32."""


def check_command(control: Control, cmd: np.ndarray, sizes: tuple[int, ...] | None = None) -> None:
    """Check that drones can follow a command.

    Args:
        control: Meaning of the command.
        cmd: (..., k), k one of `sizes`.
        sizes: Accepted lengths; by default those of a quadrotor.

    Raises:
        ValueError: Wrong length, NaN, infinity or a number beyond 1e9, zero quaternion; the message
            names the index.
    """
    check_size(control, cmd, sizes)
    # First one check of all numbers: checks of individual numbers take as long as a tick.
    numbers = cmd.ravel()
    if cmd.dtype.kind != "f" or not np.vdot(numbers, numbers) <= LARGEST_NUMBER**2:
        _check_numbers(control, cmd)
    if cmd.shape[-1] == 16:
        quats = cmd[..., 9:13]
        # Squares take a quarter of the time of `any`, but may be zero where the number is not.
        if not np.einsum("...i,...i", quats, quats).all():
            usable = quats.any(axis=-1)
            if not usable.all():
                where = tuple(int(i) for i in np.argwhere(~usable)[0]) if usable.ndim else ()
                raise ValueError(f"{control} command holds a zero quaternion at index {where}")


def check_size(control: Control, cmd: Any, sizes: tuple[int, ...] | None = None) -> None:
    """Check the number of elements of a command; arguments are those of `check_command`.

    Raises:
        ValueError: The length of the last axis is not one of `sizes`.
    """
    sizes = control.sizes if sizes is None else sizes
    if cmd.shape[-1] not in sizes:
        lengths = " or ".join(str(n) for n in sorted(sizes))
        raise ValueError(
            f"{named(control)} command must have {lengths} numbers, got {cmd.shape[-1]}"
        )


def _check_numbers(control: Control, cmd: np.ndarray) -> None:
    usable = np.abs(cmd) <= LARGEST_NUMBER
    if not usable.all():
        where = tuple(int(i) for i in np.argwhere(~usable)[0])
        beyond = f", beyond {LARGEST_NUMBER:g}" if np.isfinite(cmd[where]) else ""
        raise ValueError(f"{control} command holds {cmd[where]} at index {where}{beyond}")


def full_command(control: Control, cmd: T) -> T:
    """Convert a command to the stored form, in which a state command's yaw becomes a quaternion."""
    if control is not Control.state or cmd.shape[-1] == 16:
        return cmd
    half = cmd[..., 9:10] / 2
    if isinstance(cmd, np.ndarray):  # written in place, in half of the time of `concatenate`
        full = np.zeros((*cmd.shape[:-1], 16), half.dtype)
        full[..., :9], full[..., 13:] = cmd[..., :9], cmd[..., 10:]
        full[..., 11:12], full[..., 12:13] = np.sin(half), np.cos(half)
        return full
    zero = jnp.zeros_like(half)
    quat = jnp.concatenate([zero, zero, jnp.sin(half), jnp.cos(half)], axis=-1)
    return jnp.concatenate([cmd[..., :9], quat, cmd[..., 10:]], axis=-1)


def named(control: Control) -> str:
    """Return the mode with its article."""
    return f"an {control}" if control is Control.attitude else f"a {control}"
