"""The motion of a flight of which position, attitude and rates are known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.flight_logs.motion import in_the_air, motion_of

SECONDS = 6.0
_AXIS = np.array([0.6, 0.0, 0.8])


def angle(time: np.ndarray) -> np.ndarray:
    return 0.5 * np.sin(3 * time)


def attitudes(time: np.ndarray) -> np.ndarray:
    return Rotation.from_rotvec(angle(time)[:, None] * _AXIS).as_quat()


def rates(time: np.ndarray) -> np.ndarray:
    return (1.5 * np.cos(3 * time))[:, None] * _AXIS


def places(time: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(2 * time), np.sin(2 * time), 1 + 0.3 * time], axis=1)


def log(gyro_rate: float | None = 500, late: float = 0.0) -> FlightLog:
    """With poses at 100 Hz that arrive late [s]."""
    time = np.arange(0, SECONDS, 0.01)
    pose = TimedValues(time + late, np.hstack([places(time), attitudes(time)]))
    if gyro_rate is None:
        return FlightLog("a", pose)
    at = np.arange(0, SECONDS, 1 / gyro_rate)
    return FlightLog("a", pose, gyro=TimedValues(at, rates(at)))


@pytest.mark.parametrize("gyro_rate", [500, 100, None])
@pytest.mark.parametrize("late", [0.0, 0.023, -0.012])
def test_the_motion_is_that_of_the_flight(gyro_rate: float | None, late: float) -> None:
    """At the times of the gyroscope, if there is one: it tells that poses are late."""
    motion = motion_of(log(gyro_rate, late))
    middle = slice(60, -60)
    time = motion.time[middle] - (late if gyro_rate is None else 0)
    np.testing.assert_allclose(motion.pos[middle], places(time), atol=4e-3)
    np.testing.assert_allclose(motion.vel[middle, 0], -2 * np.sin(2 * time), atol=8e-3)
    np.testing.assert_allclose(motion.ang_vel[middle], rates(time), atol=0.02)
    turns = Rotation.from_quat(attitudes(time)).inv() * Rotation.from_quat(motion.quat[middle])
    assert turns.magnitude().max() < 6e-3


def test_noise_is_smoothed() -> None:
    exact, rng = log(None), np.random.default_rng(0)
    values = exact.pose.values.copy()
    values[:, :3] += 1e-3 * rng.normal(size=(len(values), 3))
    motion = motion_of(replace(exact, pose=TimedValues(exact.pose.time, values)))
    middle = slice(60, -60)
    errors = motion.pos[middle] - places(motion.time[middle])
    assert np.sqrt(np.mean(errors**2)) < 0.6e-3


def test_short_flights_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a: a flight must last 0\.5 s, got 0\.3"):
        motion_of(log().between(0, 0.3))


def flight(duty: np.ndarray, rate: float = 100) -> FlightLog:
    time = np.arange(len(duty)) / rate
    pwm = TimedValues(time, np.repeat(duty[:, None], 4, axis=1))
    return FlightLog(
        "a", TimedValues(time, np.tile([0, 0, 0, 0, 0, 0, 1.0], (len(time), 1))), pwm=pwm
    )


def test_the_part_in_the_air_is_the_longest_with_turning_rotors() -> None:
    """Between 10 and 25 s; rotors that stop for 0.3 s have not landed, those for 2 s have."""
    duty = np.zeros(3000)
    duty[300:700], duty[1000:2500] = 40000, 40000
    duty[1500:1530] = 0
    found = in_the_air(flight(duty)).pose.time
    np.testing.assert_allclose(found[[0, -1]], [11.0, 23.99], atol=0.011)


def test_without_motors_height_tells() -> None:
    time = np.arange(0, 20, 0.01)
    pose = np.tile([0, 0, 0, 0, 0, 0, 1.0], (len(time), 1))
    pose[500:1500, 2] = 1.0
    found = in_the_air(FlightLog("a", TimedValues(time, pose))).pose.time
    np.testing.assert_allclose(found[[0, -1]], [6.0, 13.99], atol=0.011)


@pytest.mark.parametrize("turning", [0, 200])
def test_flights_on_the_floor_are_refused(turning: int) -> None:
    duty = np.zeros(1000)
    duty[:turning] = 30000
    with pytest.raises(ValueError, match=r"a: a flight must be 3 s in the air, got \d.\d s"):
        in_the_air(flight(duty))
