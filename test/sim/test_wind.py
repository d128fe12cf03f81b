"""Dryden turbulence against the standard's formulas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.wind import Dryden, correlated

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


PLACES = np.array(
    [[0.0, 0, 5], [1, 0, 5], [0, 1, 5], [0, 0, 6], [6, 0, 5], [0, 6, 5], [0, 3, 9], [-30, 10, 5]]
)


def closed_form(pos: np.ndarray, axis: np.ndarray, length: float) -> np.ndarray:
    """Correlations of the gusts along an axis at places: f along it, g across, between both."""
    away = pos[:, None] - pos
    r = np.linalg.norm(away, axis=-1)
    f, g = np.exp(-r / length), np.exp(-r / length) * (1 - r / (2 * length))
    share = (away @ axis / np.where(r > 0, r, 1)) ** 2
    return share * f + (1 - share) * g


def correlations(wind: Dryden, pos: np.ndarray, n: int = 40_000, dt: float = 0.5) -> np.ndarray:
    """Correlations (3, M, M) of gusts at places, over samples of a process that has settled."""
    numbers, m = wind.numbers(dt).tolist(), len(pos)

    def tick(filters, key):
        noise = correlated(jax.random.normal(key, filters.shape), jnp.asarray(pos)[None], numbers)
        filters, gust = wind.gust(filters, noise, dt)
        return filters, jnp.stack(gust)[:, 0]

    keys = jax.random.split(jax.random.key(1), n)
    _, gusts = jax.jit(lambda: jax.lax.scan(tick, jnp.zeros((1, m, 5)), keys))()
    return np.array([np.corrcoef(np.asarray(gusts)[500:, i].T) for i in range(3)])


@pytest.mark.parametrize("direction", [(6.0, 0.0), (3.0, -4.0)])
def test_gusts_at_several_places_are_correlated_as_in_a_dryden_field(direction) -> None:
    wind = Dryden(direction, altitude=6.0, intensity=1.0)
    along = np.array([*direction, 0]) / np.linalg.norm(direction)
    axes = along, np.cross([0, 0, 1], along), np.array([0.0, 0, 1])
    for found, axis, length in zip(correlations(wind, PLACES), axes, wind.lengths):
        np.testing.assert_allclose(found, closed_form(PLACES, axis, length), atol=0.04)


def test_drones_a_metre_apart_feel_alike_but_not_the_same() -> None:
    """1 m across the wind at 6 m: vertical gusts differ by 22 %, horizontal ones by 3 %."""
    found = correlations(Dryden((6.0, 0.0), altitude=6.0, intensity=1.0), PLACES[[0, 2]])[:, 0, 1]
    np.testing.assert_allclose(found, [0.965, 0.977, 0.776], atol=0.012)


@pytest.mark.parametrize("m", [2, 40, 150])
def test_the_random_numbers_of_drones_have_the_correlations_of_the_field(m: int) -> None:
    """Without samples: the linear map, from unit vectors. Of many drones, some are exact."""
    rng, wind = np.random.default_rng(m), Dryden((5.0, 2.0), altitude=10.0)
    pos, numbers = rng.uniform(0, 15, (m, 3)), wind.numbers(0.1).tolist()
    unit = jnp.broadcast_to(jnp.eye(m)[:, :, None], (m, m, 5))  # a world for each random number
    turn = np.asarray(jax.jit(lambda u: correlated(u, jnp.tile(pos, (m, 1, 1)), numbers))(unit))
    along = np.array([5.0, 2, 0]) / np.hypot(5, 2)
    axes = along, np.cross([0, 0, 1], along), np.array([0.0, 0, 1])
    for number, axis in enumerate((0, 1, 1, 2, 2)):
        found = turn[..., number].T @ turn[..., number]
        wanted = closed_form(pos, axes[axis], wind.lengths[axis])
        np.testing.assert_allclose(np.diag(found), 1, atol=1e-4)
        exact = np.arange(min(m, 64)) * m // min(m, 64)
        np.testing.assert_allclose(found[exact], wanted[exact], atol=2e-3)
        assert np.abs(found - wanted).max() < 0.5 and np.median(np.abs(found - wanted)) < 0.05


def test_drones_at_one_place_feel_the_same_and_a_lost_one_disturbs_none() -> None:
    wind, pos = Dryden((5.0, 0.0)), np.zeros((1, 4, 3))
    noise = jax.random.normal(jax.random.key(0), (1, 4, 5))
    numbers = wind.numbers(0.01).tolist()
    pos[0, 2] = np.nan
    found = np.asarray(correlated(noise, jnp.asarray(pos), numbers))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0, 1], found[0, 0], atol=0.02)
    np.testing.assert_allclose(found[0, 3], found[0, 0], atol=0.02)
    np.testing.assert_allclose(found[0, 2], noise[0, 2], atol=1e-4)
    one = np.asarray(correlated(noise[:, :1], jnp.asarray(pos[:, :1]), numbers))
    np.testing.assert_array_equal(one, noise[:, :1])  # alone, as it was


def test_gradients_through_gusts_are_finite() -> None:
    wind, noise = Dryden((5.0, 0.0)), jax.random.normal(jax.random.key(0), (1, 3, 5))

    def strength(pos: jax.Array) -> jax.Array:
        return correlated(noise, pos, wind.numbers(0.01).tolist()).sum()

    assert np.isfinite(jax.grad(strength)(jnp.zeros((1, 3, 3)))).all()


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
    assert (np.abs(vel[:, 0] - vel[:, 1]) > 1e-4).any()  # and each drone in it
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
