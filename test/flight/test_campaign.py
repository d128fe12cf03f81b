"""Random missions, which nothing ordinary makes fail; see `make flights` for thousands of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from benchmark.flights.conditions import Conditions
from benchmark.flights.flown import Record, fly, group
from benchmark.flights.judge import judge
from benchmark.flights.missions import TASKS
from crazyflow_ros.control import Controller
from crazyflow_ros.drones import Drone
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import SimulationConfig

_SEED = 31
_CONDITIONS: tuple[Mapping[str, object], ...] = (
    {"drone": Drone.cf2x_L250, "controller": Controller.mellinger, "positioning": "none",
     "battery": True, "wind": (0.0, 0.0), "gusts": 0.0},
    {"drone": Drone.cf2x_P250, "controller": Controller.mellinger, "positioning": "flow",
     "battery": False, "wind": (0.0, 0.0), "gusts": 0.0},
    {"drone": Drone.cf21B_500, "controller": Controller.pid, "positioning": "mocap",
     "battery": False, "wind": (1.5, -1.0), "gusts": 0.2},
)  # fmt: skip
_EACH = 100  # missions


@pytest.mark.soak
@pytest.mark.parametrize("given", _CONDITIONS, ids=lambda given: given["positioning"])
def test_nobody_falls_touches_the_floor_or_leaves_the_limits(given: Mapping[str, object]) -> None:
    conditions, missions = group(_SEED, _EACH, kinds=[*TASKS], **given)
    records = fly(conditions, missions, _SEED)
    faults = {
        f"{i}, {record.mission.kind}": fault
        for i, record in enumerate(records)
        if (fault := judge(conditions, record).fault)
    }
    assert not faults
    speeds = [float(np.linalg.norm(record.vel, axis=1).max()) for record in records]
    assert min(speeds) > 0.3, "somebody did not fly"


def test_the_campaign_finds_the_fault_of_the_old_planner_and_replays_flights_to_the_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Poses of a stream were places to stop at, and motors were clipped one by one."""
    given = dict(_CONDITIONS[0]) | {"wind": (1.5, 0.0), "gusts": 0.2}
    conditions, missions = group(_SEED, 16, kinds=["push", "fall"], **given)
    first, again = (fly(conditions, missions, _SEED) for _ in range(2))
    assert not _faults(conditions, first)
    for one, other in zip(first, again):
        np.testing.assert_array_equal(one.pos, other.pos)
        assert [event.text for event in one.events] == [event.text for event in other.events]

    with monkeypatch.context() as old:
        old.setattr("crazyflow_ros.flight.pose_and_velocity.follow", lambda *_: None)
        old.setattr(Pose, "is_same", lambda *_: False)
        old.setattr("crazyflow_ros.flight.commander._RESTLESS", 0.0)
        config = Conditions.config

        def clipped(self: Conditions, n_drones: int, seed: int) -> SimulationConfig:
            return replace(config(self, n_drones, seed), power_distribution="clipped")

        old.setattr(Conditions, "config", clipped)
        assert len(_faults(conditions, fly(conditions, missions, _SEED))) >= 3


def _faults(conditions: Conditions, records: list[Record]) -> list[str]:
    return [fault for record in records if (fault := judge(conditions, record).fault)]
