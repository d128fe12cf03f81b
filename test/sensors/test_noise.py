"""Errors of sensors against their statistics, delays, and what a seed fixes."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from crazyflow_ros.drones.instruments import BMI088_ACCELEROMETER, BMI088_GYRO
from crazyflow_ros.sensors import ImuSensorCfg, MujocoBackend, NoiseCfg, ObjRef
from crazyflow_ros.sensors.imu import ImuSensor
from crazyflow_ros.sensors.noise import Noise

SPINNING = """
<mujoco>
  <worldbody><body name="drone:cf0"><freejoint/>
    <geom type="box" size=".1 .1 .02" mass=".03"/><site name="imu:cf0"/>
  </body></worldbody>
</mujoco>"""
BODY = ObjRef("xbody", "drone", "cf0")
QUIET = NoiseCfg()


def allan_deviation(readings: np.ndarray, window: int) -> float:
    """Of readings (steps, axes) averaged over windows, overlapping ones, over all axes."""
    sums = np.cumsum(np.vstack([np.zeros(readings.shape[1]), readings]), axis=0)
    means = (sums[window:] - sums[:-window]) / window
    return float(np.sqrt(0.5 * np.mean(np.square(means[window:] - means[:-window]))))


def test_allan_deviation() -> None:
    """White noise gives density / √τ whatever the bias, a random walk of it K √(τ / 3)."""
    dt, axes, density = 0.002, 100, np.max(BMI088_GYRO.density)

    def flying(cfg: NoiseCfg, steps: int) -> np.ndarray:
        noise = Noise(cfg, 1, axes, seed=(3,))
        return np.concatenate([noise.apply(np.zeros((1, axes)), dt) for _ in range(steps)])

    readings = flying(NoiseCfg(density=density, bias=1.0), 3000)
    for window in (1, 20):
        expected = density / math.sqrt(window * dt)
        assert allan_deviation(readings, window) == pytest.approx(expected, rel=0.05)
    readings = flying(NoiseCfg(random_walk=1e-4), 3000)
    for window in (50, 200):
        expected = 1e-4 * math.sqrt(window * dt / 3)
        assert allan_deviation(readings, window) == pytest.approx(expected, rel=0.1)


def test_allan_deviation_of_the_imu() -> None:
    """That of its parameters, at rest and without gravity."""
    dt, steps, worlds = 0.002, 1000, 16
    spec = mujoco.MjSpec.from_string(SPINNING)
    spec.option.gravity = [0.0, 0.0, 0.0]
    sensor = ImuSensorCfg(name="imu", frame=BODY, seed=7).build()  # of the BMI088
    sensor.edit_spec(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    sensor.initialize(MujocoBackend(model, [data] * worlds))
    readings = np.empty((2, steps, 3 * worlds))
    for step in range(steps):
        sensor.update(dt)
        told = sensor.data.angular_velocity, sensor.data.linear_acceleration
        readings[:, step] = [part.ravel() for part in told]
    for series, cfg in zip(readings, (BMI088_GYRO, BMI088_ACCELEROMETER)):
        for window in (1, 10):
            expected = float(np.max(cfg.density)) / math.sqrt(window * dt)
            assert allan_deviation(series, window) == pytest.approx(expected, rel=0.05)


def test_statistics_of_bias_scale_and_sampled_noise() -> None:
    axes = 20_000
    cfg = NoiseCfg(bias=0.3, scale=0.02, std=0.1, density=0.01)
    zero, ten = (Noise(cfg, 1, axes, (0,)).apply(np.full((1, axes), x), 0.01) for x in (0.0, 10.0))
    assert np.std(zero) == pytest.approx(math.sqrt(0.3**2 + 0.1**2 + 0.01**2 / 0.01), rel=0.03)
    assert np.std(ten - zero) == pytest.approx(10 * 0.02, rel=0.03)  # the same but for the scale
    assert abs(np.mean(zero)) < 0.01 and abs(np.mean(ten - zero) - 10) < 0.01
    np.testing.assert_allclose(cfg.variance(0.01, 2), [0.1**2 + 0.01] * 2)
    assert NoiseCfg(density=(1.0, 2.0)).variance(0.25, 2).tolist() == [4.0, 16.0]


def test_saturation_comes_last() -> None:
    noise = Noise(NoiseCfg(bias=100.0, saturation=2.5), 1, 1000, (0,))
    readings = noise.apply(np.zeros((1, 1000)), 0.1)
    assert readings.min() == -2.5 and readings.max() == 2.5


def test_a_seed_fixes_the_numbers_and_a_reset_goes_on_with_others() -> None:
    def series(seed: int, reset: Any = ()) -> np.ndarray:
        noise = Noise(NoiseCfg(std=1.0, bias=1.0), 2, 3, (seed,))
        if reset != ():
            noise.reset(reset)
        return np.stack([noise.apply(np.zeros((2, 3)), 0.1) for _ in range(4)], axis=1)

    np.testing.assert_array_equal(series(1), series(1))
    assert not np.isclose(series(1), series(2)).any()
    assert not np.isclose(series(1)[0], series(1)[1]).any()  # worlds
    np.testing.assert_array_equal(series(1, [1]), series(1, [1]))
    np.testing.assert_array_equal(series(1, [1])[0], series(1)[0])  # was not reset
    assert not np.isclose(series(1, [1])[1], series(1)[1]).any()


@pytest.mark.parametrize("parts", [[1] * 90, [7] * 12 + [6], [90]])
def test_readings_are_the_same_however_many_are_made_at_once(parts: list[int]) -> None:
    cfg = NoiseCfg(density=0.1, std=0.2, bias=1.0, random_walk=0.3, scale=0.1, saturation=4.0)
    truth = np.random.default_rng(0).normal(size=(90, 2, 3))

    def readings(parts: list[int]) -> np.ndarray:
        noise, rows = Noise(cfg, 2, 3, (5,)), np.split(truth, np.cumsum(parts)[:-1])
        told = [noise.apply(some.reshape(-1, 3), 0.01) for some in rows]
        noise.reset([1])
        return np.concatenate([*told, noise.apply(truth[0], 0.01)])

    np.testing.assert_array_equal(readings(parts), readings([30, 60]))


def test_numbers_after_a_reset_do_not_depend_on_when_it_was() -> None:
    def after(samples: int) -> list[np.ndarray]:
        noise, values = Noise(NoiseCfg(std=1.0, bias=1.0), 2, 3, (0,)), np.zeros((2, 3))
        for _ in range(samples):
            noise.apply(values, 0.1)
        noise.reset([1])
        return [noise.apply(values, 0.1)[1] for _ in range(40)]

    np.testing.assert_array_equal(after(3), after(29))
    assert not np.isclose(after(3)[:20], after(3)[20:]).any()


@pytest.mark.parametrize("walk", [0.0, 0.3])
@pytest.mark.parametrize("counts", [(0, 5), (40, 3), (64, 32), (9000, 29)])
def test_samples_left_out_count_as_taken(counts: tuple[int, int], walk: float) -> None:
    cfg, values = (
        NoiseCfg(density=(0.1, 0.0), bias=1.0, random_walk=walk, scale=0.1),
        np.ones((2, 2)),
    )
    some, every = Noise(cfg, 2, 2, (5,)), Noise(cfg, 2, 2, (5,))
    for noise in (some, every):
        noise.apply(values, 0.01)
    some.skip(np.array(counts), 0.01)
    told = np.stack([some.apply(values, 0.01) for _ in range(70)])
    taken = np.stack([every.apply(values, 0.01) for _ in range(70 + max(counts))])
    for world, count in enumerate(counts):
        np.testing.assert_array_equal(told[:, world], taken[count : count + 70, world])


def test_worlds_taken_over_go_on_and_others_begin() -> None:
    cfg = NoiseCfg(std=1.0, bias=1.0, random_walk=0.3, scale=0.1)

    def noise(*names: bytes) -> Noise:
        return Noise(cfg, len(names), 3, (5,), keys=names)

    before, alone, fresh = noise(b"a", b"b", b"c"), noise(b"c"), noise(b"d")
    before.reset([2])
    alone.reset()
    for _ in range(7):
        before.apply(np.ones((3, 3)), 0.1)
        alone.apply(np.ones((1, 3)), 0.1)
    after = noise(b"c", b"d", b"a")
    after.take_over(before, {0: 2, 2: 0})
    for _ in range(2):
        for _ in range(40):
            readings = after.apply(np.ones((3, 3)), 0.1)
            np.testing.assert_array_equal(readings[:1], alone.apply(np.ones((1, 3)), 0.1))
            np.testing.assert_array_equal(readings[1:2], fresh.apply(np.ones((1, 3)), 0.1))
        after.reset([0])
        alone.reset()


def test_negative_figures_are_refused() -> None:
    with pytest.raises(ValueError, match=r"density .*from 0 to 1e.09, got \(1.0, -0.1\)"):
        NoiseCfg(density=(1.0, -0.1))
    with pytest.raises(ValueError, match=r"noise: bias must be one number or 3, got \(1.0, 2.0\)"):
        Noise(NoiseCfg(bias=(1.0, 2.0)), 1, 3, (0,))


# The IMU


def imu(**options: Any) -> tuple[ImuSensor, mujoco.MjModel, mujoco.MjData]:
    """On a body that flies free, with errors only as asked for."""
    options = {"name": "imu", "frame": BODY, "gyro": QUIET, "accelerometer": QUIET} | options
    sensor = ImuSensorCfg(**options).build()
    spec = mujoco.MjSpec.from_string(SPINNING)
    sensor.edit_spec(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    sensor.initialize(MujocoBackend(model, data))
    return sensor, model, data


def test_lever_arm() -> None:
    """Free fall with a spin about z and an angular acceleration: only the arm is felt."""
    arm, spin = np.array([0.03, 0.01, 0.0]), 5.0
    sensor, model, data = imu(pos=tuple(arm))
    data.qvel[5] = spin
    torque = 1e-4
    data.qfrc_applied[5] = torque
    mujoco.mj_forward(model, data)
    sensor.update(0.002)
    angular_acceleration = torque / model.body_inertia[1].max()
    expected = -(spin**2) * arm + angular_acceleration * np.array([-arm[1], arm[0], 0])
    np.testing.assert_allclose(sensor.data.linear_acceleration, [expected], atol=1e-9)
    np.testing.assert_allclose(sensor.data.angular_velocity, [[0, 0, spin]])


def test_mounted_askew() -> None:
    half = math.sqrt(0.5)
    sensor, model, data = imu(quat=(half, half, 0, 0))  # its y axis points up
    data.xfrc_applied[1, 2] = 9.81 * model.body_mass[1]
    data.qvel[3:] = 1, 2, 3
    mujoco.mj_forward(model, data)
    sensor.update(0.002)
    np.testing.assert_allclose(sensor.data.linear_acceleration, [[0, 9.81, 0]], atol=1e-2)
    np.testing.assert_allclose(sensor.data.angular_velocity, [[1, 3, -2]], atol=1e-12)


def test_default_errors_are_those_of_the_bmi088() -> None:
    sensor, model, data = imu(gyro=BMI088_GYRO, accelerometer=BMI088_ACCELEROMETER)
    mujoco.mj_forward(model, data)
    data.sensordata[:] = 0.0
    sensor.update(0.002)
    promised = np.hstack(
        [sensor.data.angular_velocity_variance, sensor.data.linear_acceleration_variance]
    )
    degrees, g = math.radians(0.014) ** 2 / 0.002, (9.80665e-6) ** 2 / 0.002
    expected = [degrees] * 3 + [230**2 * g] * 3
    np.testing.assert_allclose(promised, expected)
    data.sensordata[:] = 1e9
    sensor.update(0.002)
    np.testing.assert_allclose(sensor.data.angular_velocity, math.radians(2000))
    np.testing.assert_allclose(sensor.data.linear_acceleration, 24 * 9.80665)


def test_a_delay_is_of_whole_samples_and_a_reset_forgets_what_is_under_way() -> None:
    sensor, _, data = imu(delay=0.006, frame=ObjRef("site", "imu", "cf0"))
    with pytest.raises(RuntimeError, match=r"imu: no sample yet: call update\(\) first"):
        sensor.data  # noqa: B018
    told = []
    for step in range(6):
        data.sensordata[:] = step
        sensor.update(0.002)
        told.append(sensor.data.angular_velocity[0, 0])
    assert told == [0, 0, 0, 0, 1, 2]
    sensor.reset([0])
    data.sensordata[:] = 9
    sensor.update(0.002)
    assert sensor.data.angular_velocity[0, 0] == 9
    with pytest.raises(ValueError, match=r"imu: .* 0.002 s, got 0.004 s"):
        sensor.update(0.004)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frame": ObjRef("geom", "g")}, "imu: frame 'g' must be a site or body"),
        ({"frame": ObjRef("body", "tail")}, "imu: there is no body 'tail'"),
        ({"frame": ObjRef("site", "imu", "cf0"), "pos": (0, 0, 1)}, "pos and quat need a body"),
        ({"delay": -0.1}, r"imu: delay must .*, got -0\.1"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        imu(**options)
