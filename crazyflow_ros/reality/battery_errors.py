"""The battery of a drone beside the voltage that was measured in real flights.

The charge at the start follows from the voltage at rest. Cells differ by their age: one of those in
NanoBench has twice the resistance of another. There are therefore two errors: with the drone's
figures, and with the resistance that the flight's own cell shows in its first seconds in the air.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import savgol_filter

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.identification.fit import rms
from crazyflow_ros.identification.rotor_forces import speeds_of
from crazyflow_ros.reality import duty_cycles
from crazyflow_ros.sim.actuation import Battery

GRAVITY = 9.81
"""m/s^2."""
_PERIOD = 0.1  # s
_DROP = 0.1  # V between two samples, by which the start of the motors is found in the voltage
_SMOOTHED = 1.5  # s, of accelerations from positions
_SPIN_UP, _SHOWN = 1.0, 5.0  # s after the start between which the resistance of a cell shows
_LANDING = 0.2  # s before the end that are not judged
_ROUNDS = 4  # of the current and what it draws, and of the resistance
_LEAST, _MOST = 1e-3, 2.0  # Ohm


@dataclass(frozen=True)
class BatteryErrors:
    """RMS differences between the simulated and the measured voltage of a flight."""

    flight: str
    rest: float
    """Voltage before the flight, V."""
    nominal: float
    """With the battery's figures, from the start of the motors, V."""
    resistance: float
    """Of the flight's own cell, Ohm."""
    own: float
    """With this resistance, from the end of the seconds that show it, V."""


class _Flight(NamedTuple):
    name: str
    time: np.ndarray
    """s since the start of the motors."""
    voltage: np.ndarray
    power: np.ndarray
    """Mechanical power of the rotors, W."""
    rest: float
    end: float


def battery_errors(
    log: FlightLog,
    battery: Battery | None = None,
    drone: str = "cf2x_L250",
    mass: float | None = None,
) -> BatteryErrors:
    """Compare the voltage of a battery with the one that was measured.

    Args:
        log: A flight with voltages, from before its start.
        battery: The battery, by default that of the drone.
        drone: Drone whose figures tell the power of its rotors.
        mass: Its mass with all that it carries, by default that of its figures, kg.

    Raises:
        ValueError: There are no voltages, or none before the start or after five seconds.
    """
    flight = _flight(log, drone, mass)
    nominal = Battery.of(drone) if battery is None else battery
    own = _own(nominal, flight)
    return BatteryErrors(
        log.name,
        flight.rest,
        rms(_error(nominal, flight, 0.0)),
        own.resistance,
        rms(_error(own, flight, _SHOWN)),
    )


def _flight(log: FlightLog, drone: str, mass: float | None) -> _Flight:
    voltage = duty_cycles.needed(log, "voltage")
    start, end = _in_flight(log)
    time = np.arange(start, voltage.time[-1], _PERIOD)
    before = voltage.between(-np.inf, start - _PERIOD)
    if before is None or end - start < _SHOWN + _LANDING + _PERIOD:
        raise ValueError(
            f"{log.name}: expected voltages before the start and {_SHOWN + _LANDING:g} s of flight"
        )
    weight = GRAVITY * (load_drone(drone)["mass"] if mass is None else mass)
    thrust = np.where(time < end, weight * _load(log, time, start, end), 0.0)
    return _Flight(
        log.name,
        time - start,
        voltage.at(time)[:, 0],
        _power(thrust, drone),
        float(np.median(before.values)),
        end - start,
    )


def _in_flight(log: FlightLog) -> tuple[float, float]:
    if log.pwm is not None:
        return duty_cycles.in_flight(log)
    voltage = duty_cycles.needed(log, "voltage")
    drops = np.flatnonzero(np.diff(voltage.values[:, 0]) < -_DROP)
    if not len(drops):
        raise ValueError(f"{log.name}: the voltage never drops by {_DROP:g} V")
    return float(voltage.time[drops[0] + 1]), float(voltage.time[-1])


def _load(log: FlightLog, time: np.ndarray, start: float, end: float) -> np.ndarray:
    """Return the thrust in weights, from motor commands if there are any, else from positions."""
    if log.pwm is not None:
        volts = duty_cycles.needed(log, "voltage")
        slow = np.interp(log.pwm.time, volts.time, duty_cycles.filtered_voltage(volts))
        commands = duty_cycles.command_of(log.pwm.values, slow).mean(axis=1)
        cruise = (log.pwm.time > start + _SHOWN) & (log.pwm.time < end - _SHOWN)
        hover = np.median(commands[cruise if cruise.any() else slice(None)])
        return np.interp(time, log.pwm.time, commands / hover)
    period = float(np.median(np.diff(log.pose.time)))
    window = max(5, round(_SMOOTHED / period)) | 1
    climb = savgol_filter(log.pose.values[:, 2], window, 3, deriv=2, delta=period)
    return np.interp(time, log.pose.time, np.clip(1 + climb / GRAVITY, 0.5, 1.5))


def _power(thrust: np.ndarray, drone: str) -> np.ndarray:
    """Return the mechanical power [W] of four rotors for their thrust [N]."""
    figures = load_drone(drone)
    speed = speeds_of(thrust / 4, figures)
    torque = np.polynomial.Polynomial(figures["rpm2torque"])(speed)
    return np.asarray(4 * speed * RPM * torque)


def voltages(battery: Battery, power: np.ndarray, rest: float, period: float) -> np.ndarray:
    """Return the voltages (n,) [V] of a battery under a mechanical power (n,) [W].

    Args:
        battery: The battery.
        power: Of the rotors, every `period` seconds.
        rest: Voltage at rest before, V.
        period: s.
    """
    charges: Any = np.linspace(0.0, battery.capacity, 1001)
    drawn = np.interp(-rest, -battery.voltage(charges), charges)
    drain: Any = power / battery.efficiency
    charge: Any = np.full(len(power), drawn)
    for _ in range(_ROUNDS):  # what was drawn depends little on the voltage
        volts, current = battery.loaded(charge, drain)
        charge = drawn + (np.cumsum(current) - current) * period / 3600
    return np.asarray(volts)


def _error(battery: Battery, flight: _Flight, start: float) -> np.ndarray:
    volts = voltages(battery, flight.power, flight.rest, _PERIOD)
    judged = (flight.time >= start) & (flight.time < flight.end - _LANDING)
    return np.asarray((volts - flight.voltage)[judged])


def _own(battery: Battery, flight: _Flight) -> Battery:
    """Return the battery with the resistance that explains the first seconds in the air."""
    shown = (flight.time >= _SPIN_UP) & (flight.time < _SHOWN)
    power = flight.power[flight.time < _SHOWN]
    for _ in range(_ROUNDS):
        volts = voltages(battery, power, flight.rest, _PERIOD)[shown[: len(power)]]
        current = flight.power[shown].mean() / battery.efficiency / volts.mean()
        change = (volts - flight.voltage[shown]).mean() / current
        found = np.clip(battery.resistance + change, _LEAST, _MOST)
        battery = replace(battery, resistance=float(found))
    return battery
