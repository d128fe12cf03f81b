"""The level of a command: what its numbers mean. Each command has its own, from tick to tick."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np

from crazyflow_ros.control import Control
from crazyflow_ros.control.acceleration import GRAVITY, attitude_command
from crazyflow_ros.control.setpoint_modes import SetpointMode
from crazyflow_ros.flight.plan import Attitude, Turn

OUT_OF_SERVICE = -1
"""Replaces a level: the drone is held and follows no command."""
ARE_RATES, RATES = slice(4, 6), slice(13, 16)
"""Places in a state command with an attitude: whether roll and pitch are rates; the rates."""


class Level(IntEnum):
    """Meaning of the numbers of a drone's command; levels of control modes have the modes' names.

    A drone that is out of service has a negative level.
    """

    held = 0
    """No command: a drone that a door flies is held where it is, another one is not armed."""
    rotor_velocity = 1
    """Speed of each rotor [rad/s], positive in flight."""
    attitude = 2
    """Roll, pitch, yaw [rad], collective thrust [N]."""
    body_rate = 3
    """Roll rate, pitch rate, yaw rate [rad/s, body frame], collective thrust [N]."""
    acceleration = 4
    """Acceleration x, y, z [m/s^2, world frame, 0 hovers], heading [rad]; `resolve` converts it to
    an attitude."""
    state = 5
    """See `Control.state`, 16 numbers."""
    force_torque = 6
    """See `Control.force_torque`."""
    rotor_vel = 7
    """See `Control.rotor_vel`: RPM."""
    full_state = 8
    """See `SetpointMode`, also for the next ones: 16 numbers as in `Control.state`, with zeros for
    what the setpoint does not give; roll and pitch are in the attitude."""
    velocity = 9
    hover = 10
    z_distance = 11
    altitude_hold = 12
    goal = 13
    """Behind a door: position x, y, z [m], heading [rad] to which the commander flies; the runtime
    converts it."""


Levels = tuple[Level, ...]


_SETPOINTS = tuple(Level[mode.name] for mode in SetpointMode if mode is not SetpointMode.state)


def levels_of(control: Control, *, policy: bool, setpoint_modes: bool = False) -> Levels:
    """Return the levels of commands in a control mode; a policy follows only states.

    Args:
        control: The control mode.
        policy: Whether a policy flies the drones.
        setpoint_modes: See `SimulationConfig`.
    """
    if control is not Control.state or policy:
        return (Level[control.name],)
    return (Level.state, *(_SETPOINTS if setpoint_modes else (Level.attitude,)))


def rows(level: Level, numbers: np.ndarray) -> np.ndarray:
    """Return commands (..., k) with their level, (..., k + 1)."""
    return np.concatenate((numbers, np.full((*numbers.shape[:-1], 1), level)), axis=-1)


def attitude_row(attitude: np.ndarray, control: Control) -> np.ndarray:
    """Return an attitude command with its level, (k + 1,).

    Args:
        attitude: (9,) roll, pitch, yaw [rad], collective thrust [N], body rates [rad/s], and 1
            where roll and pitch follow their rates instead of the angles.
        control: Control mode; only state control accepts rates.
    """
    numbers = np.zeros(control.sizes[0])
    numbers[:4] = attitude[:4]
    if control is Control.state:
        numbers[RATES], numbers[ARE_RATES] = np.split(attitude[4:], [3])
    return rows(Level.attitude, numbers)


def turning_rows(held: Attitude | Turn, seconds: Iterable[float], control: Control) -> np.ndarray:
    """Return the commands of a plan with a turning heading, with their levels, (n, k + 1).

    Args:
        held: The values that the plan holds.
        seconds: n times since the plan began, s.
        control: Control mode; only state control accepts rates.
    """
    given = [held.command(after) for after in seconds]
    if isinstance(held, Turn):
        return rows(Level[held.mode.name], np.array(given))
    return np.array([attitude_row(attitude, control) for attitude in given])


def resolve(
    command: np.ndarray,
    level: np.ndarray,
    quat: np.ndarray,
    mass: float,
    gravity: float = GRAVITY,
    ahead: np.ndarray | None = None,
) -> None:
    """Convert acceleration commands to attitude commands, in place.

    Args:
        command: (M, 4 or more) numbers, see `Level`.
        level: (M,) levels.
        quat: (M, 4) present attitudes, xyzw.
        mass: Mass of a drone [kg].
        gravity: Gravity [m/s^2], downwards.
        ahead: (M,) headings about which roll and pitch are meant [rad]; by default the commanded
            ones.
    """
    for i, present in enumerate(level.tolist()):
        if present == Level.acceleration:
            *acc, yaw = command[i, :4].tolist()
            about = yaw if ahead is None else float(ahead[i])
            thrust, *tilt, _ = attitude_command(acc, about, quat[i].tolist(), mass, gravity)
            command[i, :4], level[i] = (*tilt, yaw, thrust), Level.attitude
