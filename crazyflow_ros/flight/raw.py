"""Commands of the control mode that are passed on unchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.limits import Limit
from crazyflow_ros.control import Control
from crazyflow_ros.control.commands import check_command
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.flight.plan import Plan, Rules, StartState
from crazyflow_ros.flight.setpoint import Setpoint

_MOTION = [limits.POSITION] * 3 + [limits.VELOCITY] * 3 + [limits.ACCELERATION] * 3
_RATES = [limits.ANGULAR_VELOCITY] * 3
_COMMAND_LIMITS: dict[tuple[Control, int], list[Limit]] = {
    (Control.state, 13): [*_MOTION, limits.ANGLE, *_RATES],
    (Control.state, 16): [*_MOTION, *[limits.QUATERNION] * 4, *_RATES],
    (Control.attitude, 4): [*[limits.ANGLE] * 3, limits.FORCE],
    (Control.body_rate, 4): [*_RATES, limits.FORCE],
    (Control.force_torque, 4): [limits.FORCE, *[limits.TORQUE] * 3],
}
_SPEED = Limit(limits.ROTOR_VELOCITY.most / RPM, "RPM")


@dataclass(frozen=True)
class Raw(Setpoint):
    """A command of the active control mode, as `Sim` takes it.

    It stays in force until another setpoint replaces it, and does not lapse, so that studies of
    controllers send it once. The setpoints of the module `streamed` lapse.
    """

    title = "a command of the control mode"

    values: ArrayLike
    """Numbers, as in `Control`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.array(self.values, float))

    def check(self, control: Control) -> None:
        """Raise ValueError unless the numbers are valid in the control mode."""
        self.check_rotors(control, QUADROTOR)

    def check_rotors(self, control: Control, n_rotors: int) -> None:
        """Raise ValueError unless the numbers are valid for drones with some number of rotors."""
        values = np.atleast_1d(self.values)
        check_command(control, values, control.sizes_for(n_rotors))
        is_of_rotors = control is Control.rotor_vel
        own = [_SPEED] * n_rotors if is_of_rotors else _COMMAND_LIMITS[control, values.size]
        for i, limit in enumerate(own):
            limits.number(f"number {i} of a command of control={control}", values[i], limit)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to pass the command on unchanged, without time-out."""
        del start, rules
        values = np.asarray(self.values)
        if values.size == 13:
            half = values[9] / 2
            quat = (0.0, 0.0, np.sin(half), np.cos(half))
            values = np.array([*values[:9], *quat, *values[10:]])
        return Plan(command=values, bounded=False)


def check_setpoint(setpoint: Setpoint, control: Control, n_rotors: int) -> None:
    """Raise ValueError if drones with these rotors, in a control mode, cannot follow it."""
    if isinstance(setpoint, Raw):
        setpoint.check_rotors(control, n_rotors)
    else:
        setpoint.check(control)
