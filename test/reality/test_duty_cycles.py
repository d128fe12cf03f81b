"""Commands and duty cycles of the firmware's motors."""

from __future__ import annotations

import numpy as np
import pytest

from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.reality import duty_cycles

FIGURES = load_drone("cf2x_P250")
VOLTS = np.array([3.2, 3.7, 4.1])


def test_duty_cycles_give_the_commanded_thrust_at_any_voltage() -> None:
    commands = np.array([[8_000, 20_000, 45_000, 70_000]] * 3)
    duty = duty_cycles.duty_of(commands, VOLTS)
    motor_volts = duty / 65535 * VOLTS[:, None]
    thrust = np.polynomial.polynomial.polyval(motor_volts, FIGURES["voltage2thrust"])
    np.testing.assert_allclose(thrust / 0.12 * 65535, commands, rtol=1e-4)
    np.testing.assert_allclose(duty_cycles.command_of(duty, VOLTS), commands, rtol=1e-4)


def test_rotors_stop_below_the_least_thrust() -> None:
    least = FIGURES["thrust_min"] / FIGURES["thrust_max"] * 65535
    duty = duty_cycles.duty_of(np.array([[0.0, least - 1, least + 1, 3 * least]]), VOLTS[:1])
    assert (duty[0] > 0).tolist() == [False, False, True, True]
    assert duty_cycles.command_of(duty, VOLTS[:1])[0, 0] == 0


def test_torques_go_to_the_rotors_that_give_them() -> None:
    """Rotors are front right, rear right, rear left, front left; the first turns to the left."""
    roll, pitch, yaw = 100.0 * np.eye(3)
    thrust = np.array([1000.0])
    for torque, shares in (
        (roll, (-50, -50, 50, 50)),  # lifts the left side
        (pitch, (-50, 50, 50, -50)),  # lifts the rear
        (yaw, (-100, 100, -100, 100)),
    ):
        commands = duty_cycles.distributed(thrust, torque[None])
        np.testing.assert_allclose(commands[0] - 1000, shares)
        found, back = duty_cycles.gathered(commands)
        np.testing.assert_allclose(found, thrust)
        np.testing.assert_allclose(back[0], torque, atol=1e-9)


def test_the_cap_keeps_differences_until_a_motor_stops() -> None:
    duty = np.array([[70_000.0, 60_000, 50_000, 3_000], [60_000, 1, 2, 3]])
    found = duty_cycles.capped(duty)
    np.testing.assert_allclose(found[0], [65_535, 55_535, 45_535, 0])
    np.testing.assert_allclose(found[1], duty[1])


def test_compensation_follows_the_voltage_within_a_tenth_of_a_second() -> None:
    time = np.arange(0, 2, 0.01)
    volts = np.where(time < 1, 4.0, 3.5)
    slow = duty_cycles.filtered_voltage(TimedValues(time, volts[:, None]))
    np.testing.assert_allclose(slow[time < 0.99], 4.0)
    after = (time >= 1.0) & (time < 1.5)
    wanted = 3.5 + 0.5 * np.exp(-(time[after] - 1) / 0.1)
    np.testing.assert_allclose(slow[after], wanted, atol=0.01)


def test_what_was_not_logged_is_named() -> None:
    pose = TimedValues(np.array([0.0, 1.0]), np.tile([0, 0, 0, 0, 0, 0, 1.0], (2, 1)))
    with pytest.raises(ValueError, match="short: pwm was not logged"):
        duty_cycles.in_flight(FlightLog("short", pose))
    still = FlightLog("still", pose, pwm=TimedValues(pose.time, np.zeros((2, 4))))
    with pytest.raises(ValueError, match="still: the motors do not run"):
        duty_cycles.in_flight(still)
