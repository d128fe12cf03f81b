"""Jets of many drones: the same as of each pair, whoever is computed together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.dynamics.forces.jets import FEW, Jets, pressures, pressures_of_many

N = FEW + 22  # drones
WIDTH = 0.00476  # m^2, of a cf2x_L250


def vector(array):
    return tuple(jnp.asarray(array[..., i], jnp.float32) for i in range(3))


def jets(side, height):
    """Drones at random places in a box: some tilted, one upside down, one still, one lost."""
    rng = np.random.default_rng(1)
    pos = rng.uniform(0, [side, side, height], (1, N, 3))
    up = np.array([0, 0, 1]) + rng.normal(0, 0.2, (1, N, 3))
    up /= np.linalg.norm(up, axis=-1, keepdims=True)
    thrust = rng.uniform(0, 0.5, (1, N))
    up[0, 5], thrust[0, 7], pos[0, 9] = -up[0, 5], 0, np.nan
    width = jnp.full(N, WIDTH, jnp.float32)
    return Jets(vector(pos), vector(up), jnp.asarray(thrust, jnp.float32), width)


together = jax.jit(pressures_of_many)
IN_ORDER = jnp.asarray(np.tile(np.arange(N), (2, 1)))


@pytest.mark.parametrize(("side", "height", "order"), [(3, 2, None), (12, 8, IN_ORDER)])
def test_far_jets_are_left_out_and_no_others(side: float, height: float, order) -> None:
    air = jets(side, height)
    found = together(air, order)
    each = jax.jit(lambda air: pressures(air.thrust, *air.on(air.pos, air.width)))(air)
    assert np.count_nonzero(each[0]) > N / 10
    for ours, simple in zip(jax.tree.leaves(found), jax.tree.leaves(each)):
        assert not np.isnan(ours[0, np.arange(N) != 9]).any()
        np.testing.assert_allclose(ours, simple, rtol=1e-4, atol=1e-5)


def test_the_order_of_computation_changes_no_bit() -> None:
    air, rng = jets(10, 5), np.random.default_rng(2)
    in_order = together(air, IN_ORDER)
    for _ in range(3):
        order = rng.permutation(N)
        shuffled = together(air, jnp.asarray(np.stack((order, np.argsort(order)))))
        for one, other in zip(jax.tree.leaves(shuffled), jax.tree.leaves(in_order)):
            assert np.array_equal(one, other, equal_nan=True)
