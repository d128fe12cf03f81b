"""The policy of the example, which sees walls, brings drones to rest that were thrown anyhow."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from crazyflow_ros.policy import load

recovery = import_module("17_recovery_by_depth.recovery")


def test_thrown_drones_recover_by_what_they_see() -> None:
    parts = load(recovery.FILE).observation.parts  # nothing of velocity or place
    assert parts == ("rotation", "body_rates", "previous_action")
    flown = recovery.throws(64, others=True)
    assert (flown.tilt[0] > np.pi / 2).sum() > 16  # upside down
    still = (flown.tilt[-1] < np.radians(20)) & (flown.slip[-1] < 1.0)
    assert (still & (flown.error[-1] < 0.5)).mean() > 0.9 and flown.success > 0.8
