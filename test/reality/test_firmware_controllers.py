"""Controllers on logged states: against the firmware's formulas, and against real flights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from real_flights import MISSING, flights_folder

from crazyflow_ros.flight_logs import FlightLog, TimedValues, read_flight_log
from crazyflow_ros.reality.controllers import controller_errors, replayed

G = 9.81
RATE = 100.0
END = 14.0  # s
AHEAD, ABOVE = 0.05, 0.01  # m, of the setpoint of a drone that stands still in the air
CUBIC = (-0.02476537915958403, 0.06523793527519485, -0.026792504967750107, 0.006776789303971145)
VOLTS = 3.9


def still(name: str, controller: str, thrust: np.ndarray, time: np.ndarray) -> FlightLog:
    """A log in which a drone stands still beside its setpoint, and its motors give a thrust.

    Args:
        name: Its name.
        controller: Of the firmware.
        thrust: (n,) commands of all rotors, 0 to 65535.
        time: (n,) s.
    """
    n = len(time)
    at_rest = np.tile([0, 0, 1, 0, 0, 0, 1.0, 0, 0, 0], (n, 1))
    setpoint = np.tile([AHEAD, 0, 1 + ABOVE, *[0] * 9, 1, 0, 0, 0.0], (n, 1))
    newtons = thrust / 65535 * 0.12
    roots = [np.roots([*CUBIC[:0:-1], CUBIC[0] - f]) for f in newtons]
    motor_volts = np.array([r[np.abs(r.imag) < 1e-9].real.max() for r in roots])
    return FlightLog(
        name,
        pose=TimedValues(time, at_rest[:, :7]),
        setpoint=TimedValues(time, setpoint),
        gyro=TimedValues(time, np.zeros((n, 3))),
        pwm=TimedValues(time, np.tile(motor_volts[:, None] / VOLTS * 65535, 4)),
        voltage=TimedValues(time, np.full((n, 1), VOLTS)),
        estimate=TimedValues(time, at_rest),
        controller=controller,
    )


def test_pid_integrates_as_the_firmware_does() -> None:
    time = np.arange(0, END, 1 / RATE)
    ours = replayed(still("still", "pid", np.full(len(time), 40_000.0), time))
    climb = 2 * ABOVE + 0.5 * ABOVE * ours.time  # m/s, desired
    height = 2 * ABOVE * ours.time + 0.25 * ABOVE * ours.time**2
    thrust = 36_000 + 25_000 * climb + 15_000 * height
    np.testing.assert_allclose(ours.thrust, thrust, atol=25)  # sums and integrals
    pitch = 25 * 2 * AHEAD + 1 * 2 * AHEAD * ours.time
    np.testing.assert_allclose(np.degrees(ours.rpy[:, 1]), pitch, atol=0.01)
    np.testing.assert_allclose(ours.rpy[:, [0, 2]], 0, atol=1e-6)
    assert (ours.torque[1:, 1] > 0).all()  # nose down
    np.testing.assert_allclose(ours.torque[:, [0, 2]], 0, atol=1e-3)


def test_mellingers_controller_has_the_mass_and_gains_of_the_firmware() -> None:
    time = np.arange(0, END, 1 / RATE)
    ours = replayed(still("still", "mellinger", np.full(len(time), 40_000.0), time))
    lift = 0.029 * G + 1.25 * ABOVE + 0.05 * np.minimum(ABOVE * ours.time, 0.4)
    np.testing.assert_allclose(ours.thrust, 132_000 * lift, atol=2)
    forward = 0.4 * AHEAD + 0.05 * np.minimum(AHEAD * ours.time, 2.0)
    np.testing.assert_allclose(np.tan(ours.rpy[:, 1]), forward / lift, rtol=1e-3)
    np.testing.assert_allclose(ours.torque[:, 1], 140_000 * np.sin(ours.rpy[:, 1]), rtol=2e-3)


def test_errors_are_those_of_the_motor_commands() -> None:
    time = np.arange(0, END, 1 / RATE)
    thrust = 132_000 * (0.029 * G + 1.25 * ABOVE + 0.05 * ABOVE * time)
    exact = controller_errors(still("exact", "mellinger", thrust, time))
    assert abs(exact.thrust_offset) < 1e-3 and exact.thrust < 1e-3
    wave = 2_000 * np.sin(2 * np.pi * 1.0 * time)
    other = controller_errors(still("other", "mellinger", thrust + 3_000 + wave, time))
    assert other.thrust_offset == pytest.approx(-3_000 / 65535, rel=0.05)
    assert other.thrust == pytest.approx(2_000 / 65535 / np.sqrt(2), rel=0.1)
    assert other.thrust_size == pytest.approx(other.thrust, rel=0.05)


def test_what_cannot_be_judged_is_refused() -> None:
    time = np.arange(0, END, 1 / RATE)
    log = still("flight", "pid", np.full(len(time), 40_000.0), time)
    for other, lacks in (
        (replace(log, controller="lee"), "pid or mellinger, got lee"),
        (replace(log, gyro=None), "gyro"),
        (log.between(0, 8), "10 s"),
    ):
        with pytest.raises(ValueError, match=f"flight: .*{lacks}"):
            controller_errors(other)


@pytest.mark.skipif(flights_folder() is None, reason=MISSING)
def test_ours_command_what_the_firmware_commanded() -> None:
    folder = flights_folder()
    assert folder is not None
    for name, offset in (("B5_helix_fast_mell", 0.002), ("B3_figure8_slow", 0.05)):
        log = read_flight_log(folder / "nanobench" / f"{name}_rep1.csv.xz")
        errors = controller_errors(log)
        assert abs(errors.thrust_offset) < offset  # PID's integrals keep the gaps of the log
        assert errors.thrust < 0.005 and errors.pwm < 0.005
        if errors.roll is not None and errors.pitch is not None:
            assert errors.roll < 0.7 and errors.pitch < 0.7
