"""The data of controllers, with commands that wait for their controller as in Crazyflow.

A command is staged (`staged_cmd`) until its controller runs, which makes it the command in force
(`cmd`) and notes the tick (`steps`, -1 before the first run).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Protocol, Self, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.control.memory import INTEGRAL
from crazyflow_ros.sim.controls import (
    AttitudeControl,
    BodyRateControl,
    ForceTorqueControl,
    SimControls,
    StateControl,
)

__all__ = [
    "ControlData",
    "MellingerAttitudeData",
    "MellingerBodyRateData",
    "MellingerForceTorqueData",
    "MellingerStateData",
    "staged",
]

_MEMORY = {"pos_err_i": INTEGRAL, "r_int_error": "r_int_error", "prev_ang_vel": "prev_ang_vel"}


@runtime_checkable
class ControlData(Protocol):
    """What the data of all controllers have."""

    staged_cmd: Array
    """(N, M, k) the latest command."""
    cmd: Array
    """(N, M, k) the command that the controller ran with."""
    steps: Array
    """(N, 1) the tick in which it ran, or -1."""
    freq: int
    params: dict[str, Array]


def _remembering(level: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes of fields for changes by Crazyflow's names, which has no `memory`."""
    parts = {_MEMORY[name]: changes.pop(name) for name in _MEMORY.keys() & changes.keys()}
    return changes | ({"memory": level.memory | parts} if parts else {})


class MellingerStateData(StateControl):
    """Command and memory of the position controller."""

    staged_cmd: Array = field(kw_only=True)
    steps: Array = field(kw_only=True)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, also `pos_err_i`."""
        return super().replace(**_remembering(self, changes))


class MellingerAttitudeData(AttitudeControl):
    """Command and memory of the attitude controller."""

    staged_cmd: Array = field(kw_only=True)
    steps: Array = field(kw_only=True)
    staged_ang_vel_des: Array = field(kw_only=True)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, also `r_int_error` and `prev_ang_vel`."""
        return super().replace(**_remembering(self, changes))


class MellingerBodyRateData(BodyRateControl):
    """Command and memory of the body rate controller."""

    staged_cmd: Array = field(kw_only=True)
    steps: Array = field(kw_only=True)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, also `r_int_error` and `prev_ang_vel`."""
        return super().replace(**_remembering(self, changes))


class MellingerForceTorqueData(ForceTorqueControl):
    """Command of the motor mixer."""

    staged_cmd: Array = field(kw_only=True)
    steps: Array = field(kw_only=True)


def _creating(kind: Any, base: Any) -> Callable[..., Any]:
    def create(n_worlds: int, n_drones: int, freq: int, drone: str, device: Any = None) -> Any:
        level = base.create(n_worlds, n_drones, drone, freq)
        staged = {"staged_cmd": level.cmd, "steps": jnp.full((n_worlds, 1), -1, jnp.int32)}
        if kind is MellingerAttitudeData:
            staged["staged_ang_vel_des"] = level.ang_vel_des
        return on_own_buffers(kind(**vars(level), **staged), device)

    create.__doc__ = f"Return the first `{kind.__name__}`, with a controller that runs at `freq`."
    return create


_KINDS: dict[Control, Any] = {
    Control.state: MellingerStateData,
    Control.attitude: MellingerAttitudeData,
    Control.body_rate: MellingerBodyRateData,
    Control.force_torque: MellingerForceTorqueData,
}
for _kind in _KINDS.values():
    _kind.create = staticmethod(_creating(_kind, _kind.__base__))

LEVELS: Mapping[Control, tuple[Control, ...]] = {
    Control.state: (Control.state, Control.attitude, Control.force_torque),
    Control.attitude: (Control.attitude, Control.force_torque),
    Control.body_rate: (Control.body_rate, Control.force_torque),
    Control.force_torque: (Control.force_torque,),
    Control.rotor_vel: (),
}
"""The controllers of which a control mode has data, in all models."""


def staged(
    controls: SimControls, size: tuple[int, int], drone: str, freqs: Mapping[Control, int]
) -> SimControls:
    """Return the controls of a simulation with Crazyflow's data of the controllers."""
    levels = {
        str(level): kind.create(*size, freqs[level], drone)
        if level in LEVELS[controls.mode]
        else None
        for level, kind in _KINDS.items()
    }
    return controls.replace(**levels)


def on_own_buffers(tree: Any, device: Any) -> Any:
    """Return a tree whose arrays are copies on a device, so that each can be donated to XLA."""
    return jax.tree.map(lambda x: jax.device_put(np.array(x), device), tree)
