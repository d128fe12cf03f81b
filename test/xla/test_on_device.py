"""Arrays for which JAX compiles nothing: the same as JAX's own."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from crazyflow_ros.xla.on_device import random_key

SEEDS = (0, 1, -1, 2**31, 2**32 - 1, 2**32, 2**40 + 5, -(2**40), np.int32(-3))


@pytest.mark.parametrize("is_double", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_key_is_that_of_jax(seed: int, is_double: bool) -> None:
    with jax.enable_x64(is_double):
        assert random_key(seed) == jax.random.key(seed)


def test_a_random_key_is_of_the_chosen_generator() -> None:
    with jax.default_prng_impl("rbg"):
        assert random_key(7) == jax.random.key(7)
