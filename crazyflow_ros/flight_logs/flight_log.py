"""What was logged in one flight of a drone: each quantity with its own times."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from crazyflow_ros.checks.limits import (
    ACCELERATION,
    ANGULAR_VELOCITY,
    POSITION,
    QUATERNION,
    VELOCITY,
    Limit,
    vector,
)

SAMPLES = 1_000_000
"""Most samples of a quantity."""
TIME = Limit(1e10, "s")
"""Times, as of a wall clock."""
PWM_MAX = 65535.0
"""Duty cycle of a motor that is always on, and the greatest thrust, in the firmware's units."""
_PWM = Limit(PWM_MAX, "")
_VOLTAGE = Limit(100, "V")
_ROTOR_VEL = Limit(1e6, "RPM")


@dataclass(frozen=True)
class TimedValues:
    """Samples of a quantity."""

    time: np.ndarray
    """(n,) s, increasing; all quantities of a flight have the same clock."""
    values: np.ndarray
    """(n, k)."""

    def __post_init__(self) -> None:
        """Check that times increase.

        Raises:
            ValueError: They do not, or there are too many samples or none.
        """
        n = np.size(self.time)
        if not 1 <= n <= SAMPLES:
            raise ValueError(f"a quantity must have 1 to {SAMPLES} samples, got {n}")
        time = vector("time", self.time, (n,), TIME)
        gaps = np.diff(time)
        if n > 1 and gaps.min() <= 0:
            worst = int(np.argmin(gaps))
            raise ValueError(f"time must increase, got {gaps[worst]:g} s after sample {worst}")
        object.__setattr__(self, "time", time)

    def at(self, times: np.ndarray) -> np.ndarray:
        """Return values (m, k) at other times (m,), linearly interpolated, constant beyond."""
        columns = [np.interp(times, self.time, column) for column in self.values.T]
        return np.stack(columns, axis=-1)

    def held_at(self, times: np.ndarray) -> np.ndarray:
        """Return the values (m, k) of the latest samples at times (m,), before all the first."""
        latest = np.searchsorted(self.time, times, side="right") - 1
        return self.values[np.maximum(latest, 0)]

    def between(self, start: float, end: float) -> TimedValues | None:
        """Return the samples from one time to another [s], None if there are none."""
        chosen = (self.time >= start) & (self.time <= end)
        return TimedValues(self.time[chosen], self.values[chosen]) if chosen.any() else None


_LIMITS = {
    "pose": (7, Limit(max(POSITION.most, QUATERNION.most), "")),
    "setpoint": (16, Limit(max(POSITION.most, ACCELERATION.most), "")),
    "attitude_command": (4, Limit(1e3, "")),
    "position_output": (4, Limit(1e6, "")),
    "gyro": (3, ANGULAR_VELOCITY),
    "accelerometer": (3, ACCELERATION),
    "pwm": (4, _PWM),
    "rotor_vel": (4, _ROTOR_VEL),
    "voltage": (1, _VOLTAGE),
    "estimate": (10, Limit(max(POSITION.most, VELOCITY.most), "")),
}


@dataclass(frozen=True)
class FlightLog:
    """A recorded flight. Quantities that were not logged are None.

    World frame ENU, body frame FLU (REP 103), quaternions xyzw from body to world. Rotors are in
    the drone's order, as in `drones/common.toml` and as the firmware's motors m1 to m4.
    """

    name: str
    """Name for tables and files, such as that of the file."""
    pose: TimedValues
    """(n, 7) position [m] and quaternion, by motion capture or, of a simulated flight, the true
    one; the drone's estimate if `pose_is_estimate`."""
    setpoint: TimedValues | None = None
    """(n, 16) as `Sim.state_control` takes them: position [m], velocity [m/s], acceleration
    [m/s^2], quaternion, rates [rad/s]; what was not commanded is 0. Each holds until the next."""
    attitude_command: TimedValues | None = None
    """(n, 4) commanded roll, pitch, yaw [rad] and collective thrust [N]."""
    position_output: TimedValues | None = None
    """(n, 4) what the firmware's position controller wants: roll, pitch, yaw [rad], and collective
    thrust, 0 to 65535 as the firmware has it."""
    gyro: TimedValues | None = None
    """(n, 3) angular velocity, body frame, rad/s."""
    accelerometer: TimedValues | None = None
    """(n, 3) specific force, body frame, m/s^2; at rest +g upwards."""
    pwm: TimedValues | None = None
    """(n, 4) duty cycles of the motors as the firmware has them, 0 to 65535."""
    rotor_vel: TimedValues | None = None
    """(n, 4) measured rotor speeds, RPM."""
    voltage: TimedValues | None = None
    """(n, 1) of the battery, V."""
    estimate: TimedValues | None = None
    """(n, 10) what the drone estimated: position [m], quaternion, velocity [m/s, world frame]."""
    controller: str | None = None
    """Controller of the firmware that flew, such as `pid` or `mellinger`."""
    pose_is_estimate: bool = False
    """Whether the pose is the drone's own estimate, because nothing else measured it."""
    clock: float = 1.0
    """Seconds per second of the clock with which it was logged; the times are corrected."""

    def __post_init__(self) -> None:
        """Check sizes and limits, and normalise quaternions.

        Raises:
            ValueError: A size or a value is out of its limits; the message names the quantity.
        """
        for field in fields(self):
            samples = getattr(self, field.name)
            if not isinstance(samples, TimedValues):
                continue
            size, limit = _LIMITS[field.name]
            values = vector(field.name, samples.values, (len(samples.time), size), limit)
            if field.name in ("pose", "estimate"):
                norms = np.linalg.norm(values[:, 3:7], axis=1, keepdims=True)
                if norms.min() < 1e-3:
                    sample = int(norms.argmin())
                    raise ValueError(f"{field.name} of sample {sample} has the zero quaternion")
                values[:, 3:7] /= norms
            object.__setattr__(self, field.name, TimedValues(samples.time, values))

    @property
    def quantities(self) -> dict[str, TimedValues]:
        """What was logged, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: part for name, part in found.items() if isinstance(part, TimedValues)}

    def between(self, start: float, end: float) -> Self:
        """Return the part between two times since the first pose [s].

        Raises:
            ValueError: There is no pose in it.
        """
        first = self.pose.time[0]
        parts: dict[str, Any] = {
            name: part.between(first + start, first + end) for name, part in self.quantities.items()
        }
        if parts["pose"] is None:
            raise ValueError(f"{self.name}: there is no pose from {start:g} to {end:g} s")
        return replace(self, **parts)
