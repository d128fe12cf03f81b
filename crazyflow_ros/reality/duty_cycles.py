"""From commands to duty cycles and back, as in the firmware of the Crazyflie 2.x.

Its controllers command thrust and torque in units of 1/65535 of the greatest thrust of a rotor.
They are distributed to the motors, compensated for the voltage of the battery, and capped:
`src/modules/src/power_distribution_quadrotor.c`, `motorsCompensateBatteryVoltage` in
`src/drivers/src/motors.c`, and `batteryCompensation` in `src/modules/src/stabilizer.c`.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.signal import lfilter

from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.flight_logs.flight_log import PWM_MAX

MIXING = np.array([[-0.5, -0.5, 0.5, 0.5], [-0.5, 0.5, 0.5, -0.5], [-1.0, 1.0, -1.0, 1.0]])
"""Shares of the motors in commanded roll, pitch and yaw, body frame FLU."""
_FREQ, _FILTER = 1000.0, 0.01  # Hz; share of a new voltage
_LENGTH = 4096  # rows
_STEPS = 4001  # of the table by which the curve is inverted
_MOST = 5.0  # V, its end


_DRONE = load_drone("cf2x_P250")
"""A stock build for the Crazyflie 2.x: `src/platform/interface/platform_defaults_cf2.h`."""
_VOLTS = np.linspace(0.0, _MOST, _STEPS)
_THRUST = np.maximum.accumulate(np.polynomial.Polynomial(_DRONE["voltage2thrust"])(_VOLTS))
"""The curve of a rotor's thrust [N] by the voltage of its motor [V], with which it compensates."""


def duty_of(command: np.ndarray, voltage: np.ndarray) -> np.ndarray:
    """Return the duty cycles (n, 4) for commands, uncapped.

    Args:
        command: (n, 4) thrust of each rotor, in 1/65535 of the greatest.
        voltage: (n,) of the battery, filtered, V.
    """
    thrust = command / PWM_MAX * _DRONE["thrust_max"]
    found = PWM_MAX * np.interp(thrust, _THRUST, _VOLTS) / voltage[:, None]
    return np.where(thrust < _DRONE["thrust_min"], 0.0, found)


def command_of(duty: np.ndarray, voltage: np.ndarray) -> np.ndarray:
    """Return the commands (n, 4) of duty cycles that are not capped, see `duty_of`."""
    thrust = np.interp(duty / PWM_MAX * voltage[:, None], _VOLTS, _THRUST)
    return np.where(duty > 0, thrust / _DRONE["thrust_max"] * PWM_MAX, 0.0)


def distributed(thrust: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Return the commands of the rotors (n, 4) for thrust (n,) and torque (n, 3)."""
    return np.maximum(thrust[:, None] + torque @ MIXING, 0.0)


def gathered(command: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return thrust (n,) and torque (n, 3) of commands of the rotors (n, 4)."""
    return command.mean(axis=1), command @ (MIXING / (MIXING**2).sum(axis=1)[:, None]).T


def capped(duty: np.ndarray) -> np.ndarray:
    """Return duty cycles (n, 4) lowered together to what the strongest motor can have."""
    excess = np.maximum(duty.max(axis=1) - PWM_MAX, 0.0)
    return np.maximum(duty - excess[:, None], 0.0)


def filtered_voltage(voltage: TimedValues) -> np.ndarray:
    """Return the voltage that the firmware compensates for, (n,) V, at the times of the samples.

    It follows the measured one with a time constant of 0.1 s.
    """
    time, measured = voltage.time, voltage.values[:, 0]
    ticks = np.arange(time[0], time[-1] + 1 / _FREQ, 1 / _FREQ)
    kept = 1 - _FILTER
    held = voltage.held_at(ticks)[:, 0]
    slow, _ = lfilter([_FILTER], [1, -kept], held, zi=[kept * measured[0]])
    return np.interp(time, ticks, slow)


def in_flight(log: FlightLog) -> tuple[float, float]:
    """Return the times at which the motors start and stop [s].

    Raises:
        ValueError: Motor commands were not logged, or are all zero.
    """
    pwm = needed(log, "pwm")
    runs = pwm.time[pwm.values.max(axis=1) > 0]
    if len(runs) < 2:
        raise ValueError(f"{log.name}: the motors do not run")
    return float(runs[0]), float(runs[-1])


def needed(log: FlightLog, name: str) -> TimedValues:
    """Return a quantity of a flight.

    Raises:
        ValueError: It was not logged.
    """
    samples = log.quantities.get(name)
    if samples is None:
        raise ValueError(f"{log.name}: {name} was not logged")
    return samples


def for_each_row(run: Callable[[Array], Array], inputs: np.ndarray) -> np.ndarray:
    """Return the outputs of a compiled function for the rows of its inputs, in single precision.

    Inputs are lengthened, so that flights of about the same length share a compilation.

    Args:
        run: From (m, i) to (m, o), where no output depends on later inputs.
        inputs: (n, i), n at least 1.
    """
    length = -len(inputs) % _LENGTH
    padded = np.pad(inputs, ((0, length), (0, 0)), mode="edge")
    return np.asarray(run(jnp.asarray(padded, jnp.float32)), float)[: len(inputs)]
