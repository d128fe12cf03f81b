"""Voltages of batteries: against an integrated cell of known figures, and against real flights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from real_flights import MISSING, flights_folder
from scipy.integrate import solve_ivp

from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight_logs import FlightLog, TimedValues, read_flight_log
from crazyflow_ros.reality.battery_errors import battery_errors
from crazyflow_ros.sim.actuation import Battery

CELL = Battery(0.25, 4.2, knee=(0.03, 4.0), nominal=(0.2, 3.6), resistance=0.25)
START = 1.0  # s, at rest before
PERIOD = 0.02  # s
G = 9.81


def flight(name: str, cell: Battery, drawn: float, duration: float = 60.0) -> FlightLog:
    """A drone that bobs in the air, its battery integrated by SciPy.

    Args:
        name: Name of the flight.
        cell: Its battery.
        drawn: What was drawn from it before, A h.
        duration: s, in the air.
    """
    figures = load_drone("cf2x_L250")

    def motion(t: float) -> float:
        """Acceleration upwards of z = 1 - cos, m/s^2."""
        return 0.5 * np.cos(1.3 * (t - START)) if t > START else 0.0

    def state(t: float, charge: float) -> tuple[float, float]:
        thrust = figures["mass"] * (G + motion(t)) / 4
        lowest, slope, curve = figures["rpm2thrust"]
        speed = np.roots([curve, slope, lowest - thrust]).max()
        torque = np.polynomial.polynomial.polyval(speed, figures["rpm2torque"])
        power = 4 * torque * speed * 2 * np.pi / 60 / cell.efficiency if t >= START else 0.0
        source = float(cell.voltage(np.float64(charge)))
        # Volts from V^2 - E V + R P = 0.
        volts = np.roots([1, -source, cell.resistance * power]).real.max()
        return volts, power / volts

    time = np.arange(0, START + duration, PERIOD)
    slope = lambda t, y: [state(t, y[0])[1] / 3600]  # noqa: E731
    charge = solve_ivp(slope, (0, time[-1]), [drawn], t_eval=time, max_step=0.2).y[0]
    volts = np.array([state(t, q)[0] for t, q in zip(time, charge)])
    pose = np.zeros((len(time), 7))
    pose[:, 6] = 1.0
    since = np.maximum(time - START, 0)
    pose[:, 2] = 0.5 * (1 - np.cos(1.3 * since)) / 1.3**2
    return FlightLog(name, TimedValues(time, pose), voltage=TimedValues(time, volts[:, None]))


@pytest.fixture(scope="module")
def flights() -> list[FlightLog]:
    return [
        flight(f"flight {drawn}", replace(CELL, resistance=ohms), drawn, duration)
        for drawn, ohms, duration in ((0.0, 0.25, 60.0), (0.06, 0.2, 40.0), (0.12, 0.3, 40.0))
    ]


def test_the_voltage_follows_the_flown_thrust(flights: list[FlightLog]) -> None:
    errors = battery_errors(flights[0], CELL)
    assert errors.nominal < 0.003 and errors.own < 0.003
    assert errors.rest == pytest.approx(4.2, abs=1e-3)


def test_the_start_shows_the_resistance_of_the_cell(flights: list[FlightLog]) -> None:
    weak = replace(CELL, resistance=0.1)
    for log, ohms in zip(flights, (0.25, 0.2, 0.3)):
        errors = battery_errors(log, weak)
        assert errors.resistance == pytest.approx(ohms, rel=0.03)
        assert errors.own < 0.006
        assert errors.nominal > 0.1  # some 2.4 A in 0.1 to 0.2 Ohm


def test_flights_without_rest_or_start_are_refused(flights: list[FlightLog]) -> None:
    log = flights[0]
    for part in (log.between(2, 20), log.between(0, 4), replace(log, voltage=None)):
        with pytest.raises(ValueError, match=rf"{log.name}: .*voltage"):
            battery_errors(part)


def test_flights_of_the_battery_data_are_read(tmp_path: Path) -> None:
    path = tmp_path / "Real_path_1.csv"
    rows = "-0.13,1.13,-0.22,4.05\n-0.13,1.13,-0.21,3.6\n"
    path.write_text("x_estimate,y_estimate,z_estimate,battery_voltage\n" + rows)
    log = read_flight_log(path)
    assert log.name == "Real_path_1" and log.pose_is_estimate
    np.testing.assert_allclose(log.pose.values[1], [-0.13, 1.13, -0.21, 0, 0, 0, 1])
    assert log.voltage is not None
    np.testing.assert_allclose(log.voltage.values[:, 0], [4.05, 3.6])
    np.testing.assert_allclose(log.voltage.time, [0, 0.01])


@pytest.mark.skipif(flights_folder() is None, reason=MISSING)
def test_the_voltage_of_real_flights_follows_with_the_resistance_of_their_cells() -> None:
    folder = flights_folder()
    assert folder is not None
    names = ("B2_circle_fast", "B3_figure8_fast", "B5_helix_fast", "B8_star_medium")
    logs = [read_flight_log(folder / "nanobench" / f"{name}_rep1.csv.xz") for name in names]
    assert np.median([battery_errors(log, mass=0.03).own for log in logs]) < 0.06
