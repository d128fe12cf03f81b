"""The control modes, and the controllers that follow them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from crazyflow_ros.checks.enum_members import OpenEnum
from crazyflow_ros.checks.limits import unknown

if TYPE_CHECKING:
    from crazyflow_ros.control.cascades import Cascade


class Control(StrEnum):
    """Control mode: the meaning of a command of `Sim` or of the `command` topic."""

    state = "state"
    """x, y, z, vx, vy, vz, ax, ay, az (world frame, SI), then either yaw, wx, wy, wz (13 numbers)
    or qx, qy, qz, qw, wx, wy, wz (16 numbers; of the attitude, only the yaw is used)."""
    attitude = "attitude"
    """roll, pitch, yaw [rad], collective thrust [N]."""
    body_rate = "body_rate"
    """wx, wy, wz [rad/s, body frame], collective thrust [N]. As in the firmware, the attitude terms
    of the controller remain active and level the drone."""
    force_torque = "force_torque"
    """collective thrust [N], torques about the body axes [N m]."""
    rotor_vel = "rotor_vel"
    """Speed of each rotor [RPM]."""
    default = "attitude"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Accepted lengths of a quadrotor's command, the stored one first."""
        return self.sizes_for(4)

    def sizes_for(self, n_rotors: int) -> tuple[int, ...]:
        """Return the accepted lengths of a command to a drone with some number of rotors."""
        if self is Control.state:
            return (16, 13)
        return (n_rotors if self is Control.rotor_vel else 4,)


class Controller(OpenEnum):
    """Position and attitude controller of a drone: a module like a `Cascade`."""

    pid = "pid"
    """Cascade of PID controllers, the firmware's default."""
    mellinger = "mellinger"
    """Geometric tracking controller."""
    indi = "indi"
    """Incremental nonlinear dynamic inversion."""
    brescianini = "brescianini"
    """Quaternion attitude controller with a linear position controller."""
    default = mellinger

    @classmethod
    def group(cls) -> str:
        """See `OpenEnum`."""
        return "crazyflow_ros.controllers"

    @property
    def cascade(self) -> Cascade:
        """The module of the controller.

        Raises:
            ValueError: The module cannot be imported, or lacks something that a `Cascade` has.
        """
        from crazyflow_ros.control.cascades import CONTENTS  # with JAX

        def is_cascade(module: object) -> bool:
            return all(hasattr(module, name) for name in CONTENTS)

        cascade: Cascade = self.load(f"a module with {', '.join(CONTENTS)}", is_cascade)
        return cascade

    @property
    def number(self) -> int:
        """Value of the firmware's parameter `stabilizer.controller`; 0 if there is none."""
        return [*Controller].index(self) + 1 if self.is_own else 0

    @property
    def lag(self) -> float:
        """Delay with which a drone follows a moving setpoint [s].

        As in the firmware, some controllers ignore the velocity of setpoints.
        """
        return {"pid": 0.5, "indi": 1.0}.get(self.value, 0.0)

    @classmethod
    def of_number(cls, number: float) -> Controller:
        """Return the controller with a `number`.

        Raises:
            ValueError: There is no such controller; the message lists the known ones.
        """
        for controller in cls:
            if number == controller.number:
                return controller
        known = (f"{controller.number} {controller}" for controller in cls)
        raise ValueError(unknown("controller", number, known))
