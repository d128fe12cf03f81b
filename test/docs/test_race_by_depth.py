"""The policy of the example, which sees gates, flies drones that its training had none of."""

from __future__ import annotations

from importlib import import_module

import pytest

from crazyflow_ros.policy import load

race = import_module("16_race_by_depth.race")


@pytest.mark.soak
def test_drones_race_by_what_they_see() -> None:
    parts = load(race.FILE).observation.parts  # nothing that says where a gate or the drone is
    assert parts == ("body_velocity", "rotation", "body_rates", "previous_action")
    assert race.FILE.stat().st_size < 300_000
    flown = race.races(48, 20.0, others=True)
    assert flown.success > 0.9
