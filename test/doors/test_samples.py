"""Sensors with errors for the programs behind a door: at rest, at exact ticks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from physics_double import RATE, Physics

from crazyflow_ros.doors import Samples
from crazyflow_ros.sensors import (
    BarometerSensorCfg,
    BuiltinSensorCfg,
    ImuSensorCfg,
    NoiseCfg,
    ObjRef,
)

IMU = ImuSensorCfg(
    name="imu",
    frame=ObjRef("site", "imu", "drone"),
    gyro=NoiseCfg(std=0.02),
    accelerometer=NoiseCfg(std=0.3, bias=0.1),
    debug_vis=False,
)
BARO = BarometerSensorCfg(name="baro", frame=ObjRef("site", "CoM", "drone"), debug_vis=False)
BODY = ObjRef("body", "drone:drone")
PERIOD = 2  # ticks


def samples(*sensors: tuple[Any, int], drones: tuple[str, ...] = ("cf0",)) -> Samples:
    return Samples("cf2x_L250", drones, sensors, RATE, PERIOD)


AT_REST = Physics().snapshot


def at_rest(tick: int) -> Any:
    return replace(AT_REST, tick=tick)


def test_each_sensor_is_read_at_its_own_rate_once_for_each_tick() -> None:
    own = samples((IMU, 250), (BARO, 50))
    read = {tick: set(own.take(at_rest(tick))) for tick in range(1, 31)}
    assert {tick for tick, names in read.items() if "imu" in names} == set(range(2, 31, 2))
    assert {tick for tick, names in read.items() if "baro" in names} == {10, 20, 30}
    assert own.take(at_rest(30)) == {}


def test_readings_at_rest_have_the_noise_that_was_asked_for() -> None:
    own = samples((IMU, 250))
    rows = [own.take(at_rest(tick))["imu"] for tick in range(2, 4002, 2)]
    force = np.array([row.linear_acceleration[0] for row in rows])
    np.testing.assert_allclose(force.mean(axis=0), (0, 0, 9.81), atol=0.4)  # with a bias
    np.testing.assert_allclose(force.std(axis=0), 0.3, rtol=0.1)
    turning = np.array([row.angular_velocity[0] for row in rows])
    np.testing.assert_allclose(turning.mean(axis=0), 0, atol=0.003)
    np.testing.assert_allclose(turning.std(axis=0), 0.02, rtol=0.1)


def test_errors_repeat_with_the_flight_and_are_others_after_a_reset() -> None:
    def force(own: Samples) -> np.ndarray:
        return own.take(at_rest(2))["imu"].linear_acceleration

    own, again = samples((IMU, 250)), samples((IMU, 250))
    first = force(own)
    np.testing.assert_array_equal(first, force(again))
    own.forget(np.array([0]))
    assert (force(own) != first).all()


@pytest.mark.parametrize(
    ("sensors", "words"),
    [
        ([(IMU, 500)], ("imu", "250", "500")),
        ([(IMU, 300)], ("imu", "300")),
        ([(IMU, 250), (replace(BARO, name="imu"), 50)], ("imu",)),
        ([(BuiltinSensorCfg(name="up", sensor_type="framezaxis", obj=BODY), 50)], ("up",)),
    ],
)
def test_sensors_that_a_door_cannot_read_are_refused(
    sensors: list[tuple[Any, int]], words: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=words[0]) as refused:
        samples(*sensors)
    assert all(word in str(refused.value) for word in words)
