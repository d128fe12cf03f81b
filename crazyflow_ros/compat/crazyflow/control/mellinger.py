"""Mellinger's controller: functions of arrays, their data, and the stages of a `Sim`."""

from __future__ import annotations

import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp

from crazyflow_ros.compat.crazyflow.control.core import controllable
from crazyflow_ros.compat.crazyflow.control.functions import (
    attitude2force_torque,
    body_rate2force_torque,
    force_torque2rotor_vel,
    state2attitude,
)
from crazyflow_ros.compat.crazyflow.staged_controls import (
    MellingerAttitudeData,
    MellingerBodyRateData,
    MellingerForceTorqueData,
    MellingerStateData,
)
from crazyflow_ros.sim import stages
from crazyflow_ros.sim.data import SimData

__all__ = [
    "MellingerAttitudeData",
    "MellingerBodyRateData",
    "MellingerForceTorqueData",
    "MellingerStateData",
    "attitude2force_torque",
    "body_rate2force_torque",
    "control_attitude2force_torque",
    "control_body_rate2force_torque",
    "control_commit_attitude",
    "control_force_torque2rotor_vel",
    "control_state2attitude",
    "force_torque2rotor_vel",
    "state2attitude",
]

sys.modules[f"{__name__}.control"] = sys.modules[__name__]  # Crazyflow's name for the same


def control_state2attitude(data: SimData) -> SimData:
    """Run the position controller where it is due, and stage its command of the attitude."""
    return _run(data, "state", stages.control_state, "attitude")


def control_attitude2force_torque(data: SimData) -> SimData:
    """Run the attitude controller where it is due, and stage its command of force and torque."""
    return _run(data, "attitude", stages.control_attitude, "force_torque")


def control_body_rate2force_torque(data: SimData) -> SimData:
    """Run the body rate controller where it is due, and stage its command."""
    return _run(data, "body_rate", stages.control_body_rate, "force_torque")


def control_force_torque2rotor_vel(data: SimData) -> SimData:
    """Run the motor mixer where it is due."""
    return _run(data, "force_torque", stages.control_force_torque)


def control_commit_attitude(data: SimData) -> SimData:
    """Give a fitted model the staged attitude where that is due."""
    return _run(data, "attitude", lambda data: data)


def _run(
    data: SimData,
    name: str,
    controller: Callable[[SimData], SimData],
    output: str | None = None,
) -> SimData:
    """Run a controller in the worlds where it is due, and stage its output."""
    before, core, level = data.controls, data.core, getattr(data.controls, name)
    assert level is not None, f"controls.{name} does not exist in control mode {before.mode}"
    due = controllable(core.steps, core.freq, level.steps, level.freq)
    changes = {"cmd": level.staged_cmd, "steps": core.steps}
    if name == "attitude":
        changes["ang_vel_des"] = level.staged_ang_vel_des
    begun = before.replace(**{name: level.replace(**changes)})
    # A tick as long as the controller's period lets the stage run in all worlds.
    run = controller(data.replace(controls=begun, core=core.replace(freq=level.freq))).controls
    if output is not None:
        old, new = getattr(before, output), getattr(run, output)
        staged = {"staged_cmd": new.cmd, "cmd": old.cmd}
        if output == "attitude":
            staged |= {"staged_ang_vel_des": new.ang_vel_des, "ang_vel_des": old.ang_vel_des}
        run = run.replace(**{output: new.replace(**staged)})
    controls = jax.tree.map(
        lambda old, new: (
            old if new is old else jnp.where(due.reshape(-1, *[1] * (old.ndim - 1)), new, old)
        ),
        before,
        run,
    )
    return data.replace(controls=controls)
