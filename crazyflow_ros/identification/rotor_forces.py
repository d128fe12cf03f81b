"""What the rotors of a flight gave: from their measured speeds, or from duty cycles and voltage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.ndimage import median_filter
from scipy.signal import lfilter

from crazyflow_ros.flight_logs import FlightLog

_PWM_MAX = 65535.0
_GLITCH = 0.1  # s, of neighbours whose median a measured speed cannot leave by
_FURTHEST = 0.05  # of it: in two milliseconds no rotor changes its speed by more


def rotor_speeds(log: FlightLog, time: np.ndarray) -> np.ndarray:
    """Return measured rotor speeds at other times, (m, 4) RPM, without those that cannot be.

    Sensors of light that propellers reflect sometimes miss a blade.

    Raises:
        ValueError: No speeds were logged, or a rotor was measured in less than half of the samples.
    """
    if log.rotor_vel is None:
        raise ValueError(f"{log.name}: there are no rotor speeds")
    given, speeds = log.rotor_vel.time, log.rotor_vel.values
    step = float(np.median(np.diff(given)))
    samples = max(1, round(_GLITCH / step / 2)) * 2 + 1
    middle = median_filter(speeds, size=(samples, 1), mode="nearest")
    possible = np.abs(speeds - middle) <= _FURTHEST * np.maximum(middle, 1.0)
    others = np.median(speeds, axis=1, keepdims=True)
    possible &= (speeds > others / 2) | (others == 0)
    if (share := possible.mean(axis=0)).min() < 0.5:
        raise ValueError(
            f"{log.name}: rotor {int(share.argmin())} has a possible speed in only "
            f"{100 * share.min():.0f} % of the samples"
        )
    columns = [
        np.interp(time, given[known], column[known]) for column, known in zip(speeds.T, possible.T)
    ]
    return np.stack(columns, axis=1)


def motor_thrusts(log: FlightLog, figures: Mapping[str, Any], time: np.ndarray) -> np.ndarray:
    """Return the thrusts that duty cycles and voltage ask of the rotors, (m, 4) N, without lag.

    Args:
        log: The flight.
        figures: `load_drone(...)` of a drone with `voltage2thrust`.
        time: (m,) s.

    Raises:
        ValueError: Duty cycles or voltage were not logged, or the curve of the motors is not known.
    """
    if log.pwm is None or log.voltage is None:
        raise ValueError(f"{log.name}: there are no duty cycles with a voltage")
    if "voltage2thrust" not in figures:
        raise ValueError("the drone has no voltage2thrust, with which duty cycles become thrusts")
    volts = log.voltage.at(time) * log.pwm.at(time) / _PWM_MAX
    curve: np.ndarray = polyval(volts, figures["voltage2thrust"])
    return np.where(volts > 0, np.maximum(curve, 0.0), 0.0)


def speeds_of(thrusts: np.ndarray, figures: Mapping[str, Any]) -> np.ndarray:
    """Return the rotor speeds [RPM] that give thrusts [N]."""
    k0, k1, k2 = figures["rpm2thrust"]
    root: np.ndarray = np.sqrt(np.maximum(k1**2 - 4 * k2 * (k0 - thrusts), 0.0))
    return np.where(thrusts > 0, (root - k1) / (2 * k2), 0.0)


def lagging(values: np.ndarray, seconds: float, dt: float) -> np.ndarray:
    """Return values (n, k) behind a lag of first order, which has settled at the first sample."""
    share = dt / (seconds + dt)
    late, _ = lfilter([share], [1, share - 1], values, axis=0, zi=(1 - share) * values[:1])
    result: np.ndarray = late
    return result
