"""Our filter beside the firmware's where it measures sweep angles and differences of distances.

The firmware is built from a checkout, see `firmware_filter`.
"""

from __future__ import annotations

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from firmware_filter import Firmware
from firmware_source import sources

from crazyflow_ros.dynamics.components import rotation_matrix
from crazyflow_ros.estimation import kalman, lighthouse, radio_anchors
from crazyflow_ros.estimation.base_stations import BaseStation
from crazyflow_ros.estimation.kalman import Belief
from crazyflow_ros.estimation.light_planes import TILT, angle
from crazyflow_ros.estimation.radio_anchors import LocoSettings

SENSORS = np.array([(x, y, 0.0) for x in (-0.015, 0.015) for y in (0.0075, -0.0075)])
DT = 0.007  # s; no multiple of it is a bound of the gates, where rounding would decide
STEP = ctypes.c_uint32(7), ctypes.c_bool(True)  # milliseconds in flight


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    """The filter of the checkout in CRAZYFLIE_FIRMWARE."""
    return Firmware(sources(), tmp_path_factory.mktemp("firmware"))


def given(values: np.ndarray) -> jax.Array:
    return jnp.asarray(values)[..., None]


def same(ours: Belief, theirs: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    mean, quat, cov = theirs
    np.testing.assert_allclose(ours.mean[:6, 0], mean, atol=1e-4)
    np.testing.assert_allclose(np.array(ours.quat)[:, 0], quat, atol=5e-6)
    np.testing.assert_allclose(ours.cov[..., 0], cov, rtol=1e-3, atol=1e-7)


def begun() -> Belief:
    zero, one = jnp.zeros(1), jnp.ones(1)
    return kalman.begun((zero, zero, one), (zero, zero, zero, one))


@pytest.mark.parametrize("seed", range(3))
def test_sweep_angles_do_what_they_do_in_the_firmware(firmware: Firmware, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = np.array([0.3, -0.2, 1.1])
    origins = rng.uniform([-3, -3, 2], [3, 3, 3], (2, 3))
    stations = [BaseStation.looking(i, origin, (0, 0, 1)) for i, origin in enumerate(origins)]
    step = jax.jit(_swept)
    firmware.start(np.array([0.0, 0, 1]))
    firmware.library.open_gates()
    with jax.enable_x64(True):
        belief, gate = begun(), (jnp.zeros(1), jnp.zeros(1))
        for k in range(120):
            station = np.array(stations[k % 2].numbers)
            axes = station[3:12].reshape(3, 3)
            far = rng.uniform() < 0.15  # of the truth
            angles = []
            for sensor in SENSORS:
                point = axes.T @ (at + sensor - station[:3])
                for plane, tilt in enumerate((-TILT, TILT)):
                    own = station[12 + 7 * plane : 19 + 7 * plane]
                    error = rng.normal(0, 0.1 if far else 1e-3)
                    angles.append(float(angle(tuple(point), tilt, own)) + error)
            firmware.call("predict", np.array([0, 0, 9.81]), np.zeros(3), *STEP)
            for i, value in enumerate(angles):
                firmware.call("sweep", station, SENSORS[i // 2], value, i % 2, 1e-3)
            belief, gate = step(belief, gate, given(np.array(angles)), given(station))
            same(belief, firmware.belief())


def _swept(belief, gate, angles, station):
    """Our filter after a step in which it gets the angles of a station."""
    level, zero = belief.quat, jnp.zeros(1)
    rot = rotation_matrix(belief.quat)
    force, still = (zero, zero, zero + 9.81), (zero, zero, zero)
    belief = kalman.predicted(belief, rot, still, force, DT, zero == 0, level)
    belief = kalman.diffused(belief, DT)
    own = lighthouse._Station.of(station)
    values = angles, own, rot, (zero, zero, zero), zero > 0, zero + 1e-3
    belief, gate = lighthouse._updated(belief, gate, values, zero == 0, DT)
    return kalman.settled(belief), gate


@pytest.mark.parametrize("seed", range(3))
def test_differences_of_distances_do_what_they_do_in_the_firmware(
    firmware: Firmware, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    at, std = np.array([0.4, -0.3, 1.2]), 0.15
    anchors = rng.uniform([-4, -4, 0], [4, 4, 3], (8, 3))
    step = jax.jit(_differed)
    firmware.start(np.array([0.0, 0, 1]))
    firmware.library.open_gates()
    with jax.enable_x64(True):
        belief, gate = begun(), (jnp.zeros(1), jnp.zeros(1))
        for _ in range(300):
            first, second = anchors[rng.choice(8, 2, replace=False)]
            value = np.linalg.norm(at - second) - np.linalg.norm(at - first)
            value += rng.normal(0, 2.0 if rng.uniform() < 0.2 else 0.1)
            firmware.call("predict", np.array([0, 0, 9.81]), np.zeros(3), *STEP)
            firmware.call("tdoa", first, second, float(value), std)
            parts = [given(each) for each in (first, second, np.array(value))]
            belief, gate = step(belief, gate, *parts)
            same(belief, firmware.belief())


def _differed(belief, gate, first, second, value):
    """Our filter after a step in which it gets a difference of distances."""
    level, zero = belief.quat, jnp.zeros(1)
    force, still = (zero, zero, zero + 9.81), (zero, zero, zero)
    rot = rotation_matrix(belief.quat)
    belief = kalman.predicted(belief, rot, still, force, DT, zero == 0, level)
    belief = kalman.diffused(belief, DT)
    one = radio_anchors._Differences(
        *(tuple(part[None] for part in place) for place in (first, second)),
        *(value[None], (zero == 0)[None]),
    )
    settings = LocoSettings(zero, zero + 1, zero + 0.15)
    belief, gate = radio_anchors._updated(belief, gate, one, settings, DT)
    return kalman.settled(belief), gate
