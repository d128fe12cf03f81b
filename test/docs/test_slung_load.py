"""The drones of the example lift their load, and its policy carries others to their goals."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

slung_load = import_module("21_slung_load.slung_load")


def test_two_drones_share_the_weight() -> None:
    heights, tensions = slung_load.lifted()
    assert heights[0] == 0 and heights[-1] > 0.4
    # The cables lean outwards by 0.5 m of 0.8 m.
    share = 0.008 * 9.81 / 2 / np.sqrt(1 - (0.5 / 0.8) ** 2)
    np.testing.assert_allclose(tensions[-1], share, rtol=0.05)


def test_the_policy_carries_loads_to_their_goals() -> None:
    flown = slung_load.carried(100)
    assert flown.success > 0.95
    assert np.median(flown.error[0]) > 0.5
    with pytest.raises(ValueError, match="contains the load"):  # nothing hangs from the drone
        slung_load.evaluate(slung_load.load(slung_load.FILE), slung_load.READY["reach"].task(), 1)
