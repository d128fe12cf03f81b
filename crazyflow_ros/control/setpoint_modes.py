"""What setpoints of the Crazyflie's firmware give, by axis: places, velocities, angles, thrust."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from jax import Array


class SetpointMode(StrEnum):
    """What a setpoint gives: the combinations of modes (`setpoint_t.mode`) that packets have.

    All but `state` and `full_state` also give a yaw rate in place of a heading.
    """

    state = "state"
    """Position and heading."""
    full_state = "full_state"
    """As in `Control.state`; a mode of its own, because a change of mode resets the PID cascade."""
    velocity = "velocity"
    """Velocity, world frame."""
    hover = "hover"
    """Horizontal velocity in the heading frame, height."""
    z_distance = "z_distance"
    """Roll, pitch, height."""
    altitude_hold = "altitude_hold"
    """Roll, pitch, vertical velocity."""
    attitude = "attitude"
    """Roll and pitch, or their rates, and thrust."""


class Modes(NamedTuple):
    """The modes of drones' setpoints, by axis, and what such setpoints give beside a state.

    All are arrays of one shape. Each controller follows what its counterpart in the firmware does
    (`controller_*.c`), and ignores the rest.
    """

    xy_velocity: Array
    """bool: no horizontal position, but a velocity, zero with `xy_angles`."""
    in_heading: Array
    """bool: that velocity is in the heading frame."""
    xy_angles: Array
    """bool: roll and pitch."""
    z_velocity: Array
    """bool: no height, but a vertical velocity, zero with `z_thrust`."""
    z_thrust: Array
    """bool: thrust."""
    turns: Array
    """bool: a yaw rate instead of a heading."""
    by_quat: Array
    """bool: the heading is in a quaternion, which some of the firmware's controllers do not read:
    they take heading 0."""
    roll: Array
    """rad."""
    pitch: Array
    """rad."""
    thrust: Array
    """Collective, N."""
