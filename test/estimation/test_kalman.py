"""The Kalman filter against a textbook's in NumPy, and against its own covariance."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kalman_flight import (
    DISTANCE_STD,
    DT,
    POS_STD,
    QUAT_STD,
    G,
    Step,
    after,
    beliefs,
    flight,
    level,
)
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from crazyflow_ros.dynamics.components import rotation_matrix
from crazyflow_ros.estimation import kalman


class Textbook:
    """An extended Kalman filter on the attitudes, in double precision, by numerical derivatives."""

    def __init__(self, pos: np.ndarray) -> None:
        self.pos, self.vel, self.rot = pos, np.zeros(3), Rotation.identity()
        self.cov = np.diag(np.square([10.0, 10, 1, *[0.01] * 6]))

    def _moved(self, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, Rotation]:
        turned = self.rot * Rotation.from_rotvec(error[6:])
        return self.pos + error[:3], self.vel + error[3:6], turned

    def _derivative(self, function) -> np.ndarray:
        step = 1e-6
        sides = [[function(*self._moved(s * step * e)) for e in np.eye(9)] for s in (1, -1)]
        return ((np.array(sides[0]) - np.array(sides[1])) / (2 * step)).T

    def predict(self, acc: np.ndarray, gyro: np.ndarray) -> None:
        thrust, turn = np.array([0, 0, acc[2]]), Rotation.from_rotvec(gyro * DT)

        def dynamics(pos, vel, rot):
            fall = np.array([0, 0, G])
            new = pos + rot.apply(vel * DT + thrust * DT**2 / 2) - fall * DT**2 / 2
            rate = thrust - np.cross(gyro, vel) - rot.inv().apply(fall)
            return new, vel + rate * DT, rot * turn

        new = dynamics(self.pos, self.vel, self.rot)

        def error(*state):
            pos, vel, rot = dynamics(*state)
            return np.hstack([pos, vel, (new[2].inv() * rot).as_rotvec()])

        change = self._derivative(error)
        self.pos, self.vel, self.rot = new
        noise = np.array([0.5, 0.5, 1.0]) * 1e-3
        diffusion = np.square([*noise * 1e-3, *noise, *[1e-4] * 3])
        self.cov = change @ self.cov @ change.T + np.diag(diffusion) * DT / 1e-3

    def update(self, value: np.ndarray, function, std: np.ndarray) -> None:
        slope = self._derivative(function)
        innovation = slope @ self.cov @ slope.T + np.diag(np.square(std))
        gain = self.cov @ slope.T @ np.linalg.inv(innovation)
        change = gain @ (value - function(self.pos, self.vel, self.rot))
        rest = np.eye(9) - gain @ slope
        self.cov = rest @ self.cov @ rest.T + gain @ np.diag(np.square(std)) @ gain.T
        self.pos, self.vel, self.rot = self._moved(change)

    def after(self, s: Step) -> None:
        self.predict(s.acc, s.gyro)
        if s.kind == "distance":
            anchor, value = s.values[:3], s.values[3:]

            def distance(pos, vel, rot):
                return np.array([np.linalg.norm(pos - anchor)])

            self.update(value, distance, np.array([DISTANCE_STD]))
        else:
            self.update(s.values[:3], lambda pos, vel, rot: pos, np.full(3, POS_STD))
        if s.kind == "pose":
            measured = Rotation.from_quat(s.values[3:])
            before = self.rot

            def attitude(pos, vel, rot):
                return (before.inv() * rot).as_rotvec()

            value = (before.inv() * measured).as_rotvec()
            self.update(value, attitude, np.full(3, QUAT_STD))


@pytest.mark.parametrize("seed", range(2))
def test_the_filter_is_that_of_a_textbook(seed: int) -> None:
    steps = list(flight(seed, 300, ("position", "distance", "pose")))
    textbook = Textbook(np.array([0.0, 0, 1]))
    with jax.enable_x64(True):
        for k, (step, (mean, quat, cov)) in enumerate(zip(steps, beliefs([steps]))):
            textbook.after(step)
            mean, quat, cov = mean[0], quat[0], cov[0]
            std = np.sqrt(np.diag(textbook.cov))
            error = np.hstack([mean[:3] - textbook.pos, mean[3:] - textbook.vel])
            turn = (textbook.rot.inv() * Rotation.from_quat(quat)).as_rotvec()
            # The firmware neglects terms of second order, and drops corrections below 1e-4 rad.
            assert np.abs(np.hstack([error, turn]) / std).max() < 0.2, k
            np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=0.05)


@pytest.mark.parametrize("kind", ["position", "distance", "pose"])
def test_errors_are_as_large_as_the_covariance_says(kind: str) -> None:
    flights = [list(flight(seed, 600, (kind,))) for seed in range(16)]
    squares = []
    for k, (means, quats, covs) in enumerate(beliefs(flights)):
        if k % 100 == 99:  # errors forget each other in between
            for steps, mean, quat, cov in zip(flights, means, quats, covs):
                rot = Rotation.from_quat(steps[k].quat)
                turn = (Rotation.from_quat(quat).inv() * rot).as_rotvec()
                vel = rot.inv().apply(steps[k].vel) - mean[3:]
                error = np.hstack([steps[k].pos - mean[:3], vel, turn])
                squares.append(error @ np.linalg.solve(cov, error))
    count = len(squares)
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 9 * count) / count
    assert low < np.mean(squares) < high


def test_an_attitude_is_found_from_poses_at_any_heading() -> None:
    headings = np.radians([0, 90, 180, -135])
    true = Rotation.from_euler("xyz", [[0.05, -0.1, heading] for heading in headings])
    level = Rotation.from_euler("z", headings[:, None])
    measured = tuple(jnp.asarray(true.as_quat().T))
    belief = kalman.begun((jnp.zeros(4),) * 3, tuple(jnp.asarray(level.as_quat().T)))

    @jax.jit
    def corrected(belief):
        belief = kalman.diffused(belief, DT)
        for measurement in kalman.attitude(belief, measured, QUAT_STD):
            belief = kalman.updated(belief, measurement)
        return kalman.settled(belief)

    for _ in range(100):
        belief = corrected(belief)
    found = Rotation.from_quat(np.array(belief.quat).T)
    assert (found.inv() * true).magnitude().max() < 2e-3


def test_what_is_not_measured_changes_nothing() -> None:
    belief = kalman.begun((jnp.zeros(()),) * 3, (*(jnp.zeros(()),) * 3, jnp.ones(())))
    nothing = kalman.Measurement({0: 1.0}, jnp.nan, 0.1, jnp.asarray(False))
    new = kalman.updated(belief, nothing)
    jax.tree.map(np.testing.assert_array_equal, new, belief)


@pytest.mark.soak
def test_the_filter_can_be_differentiated() -> None:
    step = next(flight(0, 1, ("flow",)))
    flies, pixels = jnp.ones(1, bool), step.values[:, None]

    def drift(gyro):
        belief = kalman.begun((jnp.zeros(1), jnp.zeros(1), jnp.ones(1)), level(1))
        for _ in range(6):
            given = belief, step.acc[:, None], gyro[:, None], flies, pixels, "flow"
            belief = after.__wrapped__(*given)  # within a transformation, without options
        return belief.mean[0, 0]

    with jax.enable_x64(True):
        gyro, small = jnp.asarray(step.gyro), 1e-6
        slope = jax.grad(drift)(gyro)
        sides = [drift(gyro.at[1].add(side * small)) for side in (1, -1)]
        np.testing.assert_allclose(slope[1], (sides[0] - sides[1]) / (2 * small), rtol=1e-4)


def test_far_off_beliefs_are_recognised() -> None:
    belief = kalman.begun((jnp.array([0.0, 101, jnp.nan]), *(jnp.zeros(3),) * 2), level(3))
    assert kalman.out_of_bounds(belief).tolist() == [False, True, True]
    fast = belief.mean.at[3].set(11.0)
    assert kalman.out_of_bounds(belief._replace(mean=fast)).all()


def test_a_height_is_ignored_when_the_drone_is_on_its_side() -> None:
    quat = Rotation.from_euler("x", 90, degrees=True).as_quat()
    belief = kalman.begun((jnp.ones(()),) * 3, tuple(map(jnp.asarray, quat)))
    rot = rotation_matrix(belief.quat)
    assert not kalman.height(belief, rot, jnp.asarray(0.5)).valid


def test_a_height_has_a_derivative_on_a_level_drone() -> None:
    def corrected(x):
        belief = kalman.begun((jnp.zeros(1), jnp.zeros(1), jnp.ones(1)), level(1))
        rot = rotation_matrix((x, *(jnp.zeros(1),) * 2, jnp.sqrt(1 - x * x)))
        return kalman.updated(belief, kalman.height(belief, rot, jnp.full(1, 1.1))).mean[2, 0]

    gradient = jax.jit(jax.grad(corrected))
    assert np.isfinite(gradient(jnp.zeros(1))).all()
