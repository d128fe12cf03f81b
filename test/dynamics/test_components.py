"""Functions of components that stand for those of the C library."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from crazyflow_ros.dynamics.components import angle_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_of_points_are_accurate_to_rounding(dtype: type) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, 100_000)) * 10.0 ** rng.uniform(-6, 3, size=(2, 100_000))
    corners = [[0, 0, 0, 1, -1, 1, -1, 1e-30, 0], [0, 1, -1, 0, 0, 1, -1, 1, 1e-30]]
    y, x = np.concatenate([points, corners], axis=1).astype(dtype)
    with jax.enable_x64(True):
        angles = np.asarray(jax.jit(angle_of)(y, x))
        slopes = jax.vmap(jax.grad(angle_of, (0, 1)))(y[:100], x[:100])
    expected = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert angles.dtype == dtype
    assert (abs(angles - expected) <= 4 * np.spacing(abs(expected).astype(dtype))).all()
    square = (x * x + y * y)[:100]
    np.testing.assert_allclose(slopes[0], x[:100] / square, rtol=1e-5)
    np.testing.assert_allclose(slopes[1], -y[:100] / square, rtol=1e-5)
