"""The drones of the example swap places, and learn to."""

from __future__ import annotations

from importlib import import_module

import numpy as np

swap = import_module("28_swap_places.swap")


def test_eight_drones_swap_places_without_touching() -> None:
    flown = swap.swapped(100)
    assert flown.success > 0.9
    assert np.median(flown.error[0]) > 2 and np.median(flown.error[-1]) < 0.1


def test_a_short_training_follows_the_rewards_of_the_task() -> None:
    policy, (first, last) = swap.learned(updates=40, worlds=4)
    assert len(policy.observation.told) == 6 * 7 and "cost=the task's" in policy.about
    assert last.cost < first.cost and last.terms["slip"] > 0.8 * first.terms["slip"]
    rewards = sum(first.terms[name] for name in swap.Swap().terms.rewards)
    np.testing.assert_allclose(rewards, -first.cost, rtol=0.05)  # steps that begin cost nothing
