"""Speeds of the rotors in a flight: as measured, or from duty cycles and voltage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.ndimage import median_filter
from scipy.signal import lfilter

from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.flight_logs.flight_log import PWM_MAX

_GLITCH = 0.02  # s, of neighbours whose median a measured speed cannot leave by
_FURTHEST = 0.2  # of the usual speed: in ten milliseconds no rotor changes its speed by more
_DEAD = 0.6  # of the other rotors' usual speed


def rotor_speeds(log: FlightLog, time: np.ndarray) -> np.ndarray:
    """Return measured rotor speeds at other times, (m, 4) RPM, without impossible ones.

    Optical sensors sometimes miss a blade of the propeller.

    Raises:
        ValueError: No speeds were logged, or one rotor is always far slower than the others: its
            sensor misses blades.
    """
    if log.rotor_vel is None:
        raise ValueError(f"{log.name}: there are no rotor speeds")
    given, speeds = log.rotor_vel.time, log.rotor_vel.values
    usual = np.median(speeds, axis=0)
    if usual.min() < _DEAD * (others := float(np.median(usual))):
        rotor = int(usual.argmin())
        raise ValueError(
            f"{log.name}: rotor {rotor} was measured at {usual[rotor]:.0f} RPM, the others at "
            f"{others:.0f} RPM"
        )
    step = float(np.median(np.diff(given)))
    samples = max(1, round(_GLITCH / step / 2)) * 2 + 1
    middle = median_filter(speeds, size=(samples, 1), mode="nearest")
    possible = np.abs(speeds - middle) <= _FURTHEST * usual
    columns = [
        averaged(TimedValues(given[known], column[known, None]), time)
        for known, column in zip(possible.T, speeds.T)
    ]
    return np.hstack(columns)


def averaged(samples: TimedValues, time: np.ndarray) -> np.ndarray:
    """Return means (m, k) of values at even times (m,), each over the time until the next.

    Fast changes do not alias into slow ones, as they do where single samples are taken.
    """
    half = (time[1] - time[0]) / 2
    mean = (samples.values[1:] + samples.values[:-1]) / 2
    sums = np.cumsum(mean * np.diff(samples.time)[:, None], axis=0)
    whole = TimedValues(samples.time, np.vstack([np.zeros_like(sums[:1]), sums]))
    start, end = (np.clip(time + x, *samples.time[[0, -1]]) for x in (-half, half))
    between = (end - start)[:, None]
    means = (whole.at(end) - whole.at(start)) / np.maximum(between, 1e-9)
    return np.where(between > half, means, samples.at(time))


def commanded_speeds(log: FlightLog, figures: Mapping[str, Any], time: np.ndarray) -> np.ndarray:
    """Return the rotor speeds that duty cycles and voltage ask for, (m, 4) RPM, without lag.

    Args:
        log: The flight.
        figures: `load_drone(...)` of a drone with `voltage2thrust`.
        time: (m,) s, even.

    Raises:
        ValueError: Duty cycles or voltage were not logged, or the curve of the motors is not known.
    """
    if log.pwm is None or log.voltage is None:
        raise ValueError(f"{log.name}: there are no duty cycles with a voltage")
    if "voltage2thrust" not in figures:
        raise ValueError("the drone has no voltage2thrust, with which duty cycles become thrusts")
    volts = log.voltage.at(log.pwm.time) * log.pwm.values / PWM_MAX
    curve: np.ndarray = polyval(volts, figures["voltage2thrust"])
    thrusts = np.where(volts > 0, np.maximum(curve, 0.0), 0.0)
    return averaged(TimedValues(log.pwm.time, speeds_of(thrusts, figures)), time)


def speeds_of(thrusts: np.ndarray, figures: Mapping[str, Any]) -> np.ndarray:
    """Return the rotor speeds [RPM] that give thrusts [N]."""
    k0, k1, k2 = figures["rpm2thrust"]
    root: np.ndarray = np.sqrt(np.maximum(k1**2 - 4 * k2 * (k0 - thrusts), 0.0))
    return np.where(thrusts > 0, (root - k1) / (2 * k2), 0.0)


def lagging(values: np.ndarray, seconds: float, dt: float) -> np.ndarray:
    """Return values (n, k) behind a lag of first order, which has settled at the first sample.

    The equation is integrated by the trapezoidal rule, which does not attenuate what is slow.
    """
    ratio = 2 * seconds / dt
    rise, fall = 1 / (1 + ratio), (1 - ratio) / (1 + ratio)
    late, _ = lfilter([rise, rise], [1, fall], values, axis=0, zi=(rise - fall) * values[:1])
    return late
