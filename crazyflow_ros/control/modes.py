"""The control modes, and the controllers that follow them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from crazyflow_ros.checks.limits import unknown


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
        """Accepted lengths of a command, the stored one first."""
        return (16, 13) if self is Control.state else (4,)


class Controller(StrEnum):
    """Position and attitude controller of a drone, see `cascades.CONTROLLERS`.

    Attributes:
        number: Value of the firmware's parameter `stabilizer.controller`.
        lag: Time by which a drone follows a moving setpoint late [s]; as in the firmware, some
            controllers ignore the velocity of setpoints.
    """

    _value_: str
    number: int
    lag: float

    pid = "pid", 1, 0.5
    """Cascade of PID controllers, the firmware's default."""
    mellinger = "mellinger", 2
    """Geometric tracking controller."""
    indi = "indi", 3, 1.0
    """Incremental nonlinear dynamic inversion."""
    brescianini = "brescianini", 4
    """Quaternion attitude controller with a linear position controller."""
    default = mellinger

    def __new__(cls, value: str, number: int = 0, lag: float = 0.0) -> Self:
        """Return a member."""
        member = str.__new__(cls, value)
        member._value_, member.number, member.lag = value, number, lag
        return member

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


class PowerDistribution(StrEnum):
    """What becomes of a thrust and torque that the rotors cannot give together."""

    clipped = "clipped"
    """Each rotor is limited by itself, as in Crazyflow: torque is lost, and the drone may flip."""
    capped = "capped"
    """All rotors are lowered by what the strongest exceeds its limit, as in the Crazyflie's
    firmware: thrust is lost, and the torque stays. Only at the bottom is each rotor limited by
    itself."""
    default = "clipped"
