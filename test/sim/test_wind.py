"""Dryden turbulence against the standard's formulas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.wind import Dryden

pytestmark = pytest.mark.usefixtures("compiled_quickly")

FEET = 0.3048


def test_strength_and_scale_are_those_of_the_standard() -> None:
    high = Dryden((0.0, 10.0), altitude=300)  # just below 1000 ft, where all axes become equal
    np.testing.assert_allclose(high.intensities, [1, 1, 1], rtol=1e-2)
    np.testing.assert_allclose(high.lengths, [300, 300, 300], rtol=2e-2)
    low = Dryden((3.0, 4.0), altitude=100 * FEET)
    np.testing.assert_allclose(low.intensities, [0.8579, 0.8579, 0.5], rtol=1e-3)
    np.testing.assert_allclose(np.array(low.lengths) / FEET, [505.2, 505.2, 100], rtol=1e-3)


def test_gusts_are_correlated_as_the_spectra_demand() -> None:
    wind, dt, lags = Dryden((5.0, 0.0), altitude=10.0), 0.1, np.array([0, 5, 20, 60])
    n, m = 600, 400  # a minute, after a long time without record

    def tick(filters, key):
        return wind.gust(filters, jax.random.normal(key, filters.shape), dt)

    keys = jax.random.split(jax.random.key(0), 5 * n)
    _, gusts = jax.jit(lambda: jax.lax.scan(tick, jnp.zeros((m, 5)), keys))()
    for i, (gust, sigma, length) in enumerate(zip(gusts, wind.intensities, wind.lengths)):
        record, time = np.asarray(gust[-n:]), length / wind.speed
        measured = [(record[: n - k] * record[k:]).mean() for k in lags]
        decay = np.exp(-lags * dt / time)
        expected = decay if i == 0 else decay * (1 - lags * dt / (2 * time))
        np.testing.assert_allclose(measured, sigma**2 * expected, atol=0.06 * sigma**2)


def test_wind_carries_a_drone_away() -> None:
    sim = Sim(3, 2, control="rotor_vel", freq=100)
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", Dryden((0.0, 4.0)))
    runs = []
    for seed in (1, 1, 2):
        sim.reset()
        sim.seed(seed)
        high = sim.data.states.pos.at[..., 2].set(500.0)
        sim.data = sim.data.replace(states=sim.data.states.replace(pos=high))
        sim.step(400)
        runs.append(np.asarray(sim.data.states.vel))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).all()
    vel = runs[0]
    assert (vel[..., 1] > 1.0).all() and (np.abs(vel[..., 0]) < 1.0).all()
    assert np.ptp(vel[:, 0, 0]) > 1e-3  # each world has its own gusts,
    np.testing.assert_allclose(vel[:, 0], vel[:, 1], rtol=1e-5)  # the same for its drones
    sim.reset([True, False, False])
    filters = np.asarray(sim.data.plugins["dryden"])
    assert not filters[0].any() and filters[1:].all()


def test_what_makes_no_wind_is_refused() -> None:
    with pytest.raises(ValueError, match="wind must be finite, and not zero"):
        Dryden((0.0, 0.0))
    with pytest.raises(ValueError, match="altitude must be from 3 to 300 m, got 2"):
        Dryden((1.0, 0.0), altitude=2)
    sim = Sim(dynamics="so_rpy")
    with pytest.raises(ValueError, match="wind needs dynamics with drag"):
        sim.step_pipeline = (Dryden((1.0, 0.0)), *sim.step_pipeline)
