"""Jets of many drones: the same as of each pair, whoever is computed together."""

import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.dynamics.forces.jets import FEW, Jets, pressures, pressures_of_many

WIDTH = 0.00476  # m^2, of a cf2x_L250


def vector(array):
    return tuple(jnp.asarray(array[..., i], jnp.float32) for i in range(3))


def jets(n_drones, side, height, seed=1):
    """Drones at random places in a box: some tilted, one upside down, one still, one lost."""
    rng = np.random.default_rng(seed)
    pos = rng.uniform(0, [side, side, height], (1, n_drones, 3))
    up = np.array([0, 0, 1]) + rng.normal(0, 0.2, (1, n_drones, 3))
    up /= np.linalg.norm(up, axis=-1, keepdims=True)
    thrust = rng.uniform(0, 0.5, (1, n_drones))
    up[0, 5], thrust[0, 7], pos[0, 9] = -up[0, 5], 0, np.nan
    width = jnp.full(n_drones, WIDTH, jnp.float32)
    return Jets(vector(pos), vector(up), jnp.asarray(thrust, jnp.float32), width)


@pytest.mark.parametrize(("n_drones", "side", "height"), [(FEW + 22, 3, 2), (300, 17, 10)])
def test_far_jets_are_left_out_and_no_others(n_drones: int, side: float, height: float) -> None:
    air = jets(n_drones, side, height)
    found = pressures_of_many(air, None)
    each = pressures(air.thrust, *air.on(air.pos, air.width))
    assert np.count_nonzero(each) > n_drones / 10
    assert not np.isnan(found[0, np.arange(n_drones) != 9]).any()
    np.testing.assert_allclose(found, each, rtol=1e-4, atol=1e-6)


def test_the_order_of_computation_changes_no_bit() -> None:
    air, rng = jets(200, 10, 5), np.random.default_rng(2)
    in_order = pressures_of_many(air, None)
    for _ in range(3):
        order = rng.permutation(200)
        shuffled = pressures_of_many(air, jnp.asarray(np.stack((order, np.argsort(order)))))
        assert np.array_equal(shuffled, in_order, equal_nan=True)
