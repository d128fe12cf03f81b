"""Parts of robots in a world: joints that can be commanded, and MuJoCo's sensors.

The parts of drones are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.drone_bodies import DRONE

_SINGLE = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
_BIAS, _GAIN, _DYN = mujoco.mjtBias, mujoco.mjtGain, mujoco.mjtDyn


class Mode(IntFlag):
    """How a joint is commanded."""

    position = 1
    """rad or m."""
    velocity = 2
    """rad/s or m/s."""
    effort = 4
    """N m or N."""


LARGEST = (1e5, 1e5, 1e6)
"""Largest magnitudes of commands, in the order and units of `Mode`."""


class Actuator(NamedTuple):
    """An actuator that moves a joint in a mode."""

    mode: Mode
    id: int
    scale: float
    """Its control for a command of 1."""


@dataclass(frozen=True)
class Joint:
    """A joint with one degree of freedom: a hinge or a slide."""

    name: str
    id: int
    actuators: tuple[Actuator, ...]

    @property
    def modes(self) -> Mode:
        """The modes in which it can be commanded; without actuators, by an effort."""
        modes = Mode(0)
        for actuator in self.actuators:
            modes |= actuator.mode
        return modes or Mode.effort


class RobotSensor(NamedTuple):
    """A sensor of MuJoCo."""

    name: str
    kind: int
    """A member of `mjtSensor`."""
    first: int
    """Index of its first number in sensordata."""
    size: int


def joints_of(model: mujoco.MjModel) -> list[Joint]:
    """Return the joints of robots with a name, in the order of the model."""
    drones = _drones(model)
    return [
        Joint(name, i, tuple(_actuators(model, i)))
        for i in range(model.njnt)
        if int(model.jnt_type[i]) in _SINGLE and _is_of_world(name := model.joint(i).name, drones)
    ]


def sensors_of(model: mujoco.MjModel) -> list[RobotSensor]:
    """Return the sensors with a name, in the order of the model."""
    drones = _drones(model)
    return [
        RobotSensor(
            name, *(int(x[i]) for x in (model.sensor_type, model.sensor_adr, model.sensor_dim))
        )
        for i in range(model.nsensor)
        if _is_of_world(name := model.sensor(i).name, drones)
    ]


def _drones(model: mujoco.MjModel) -> set[str]:
    names = (model.body(i).name for i in np.flatnonzero(model.body_parentid == 0).tolist())
    return {name.removeprefix(DRONE) for name in names if name.startswith(DRONE)}


def _is_of_world(name: str, drones: set[str]) -> bool:
    """Return whether a named part is none of a drone, whose parts are `<part>:<drone>`."""
    return bool(name) and name.partition(":")[2] not in drones


def _actuators(model: mujoco.MjModel, joint: int) -> Iterable[Actuator]:
    """Yield the actuators of a joint whose control is proportional to a command.

    One of a tendon belongs to the joint of its name, as in mujoco_ros2_control.
    """
    transmissions = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    for i in range(model.nu):
        kind = int(model.actuator_trntype[i])
        if kind == mujoco.mjtTrn.mjTRN_TENDON:
            is_its = model.actuator(i).name == model.joint(joint).name
        else:
            is_its = kind in transmissions and model.actuator_trnid[i, 0] == joint
        if not is_its:
            continue
        gear, gain = model.actuator_gear[i, 0], model.actuator_gainprm[i, 0]
        if model.actuator_gaintype[i] != _GAIN.mjGAIN_FIXED or not gear * gain:
            continue
        _, stiffness, damping = model.actuator_biasprm[i, :3]
        match model.actuator_biastype[i]:
            case _BIAS.mjBIAS_NONE:
                yield Actuator(Mode.effort, i, 1 / (gear * gain))
            case _BIAS.mjBIAS_AFFINE if stiffness:
                integrates = model.actuator_dyntype[i] == _DYN.mjDYN_INTEGRATOR
                mode = Mode.velocity if integrates else Mode.position
                yield Actuator(mode, i, -gear * stiffness / gain)
            case _BIAS.mjBIAS_AFFINE if damping:
                yield Actuator(Mode.velocity, i, -gear * damping / gain)
