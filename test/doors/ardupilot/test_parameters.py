"""Parameters against the drones' figures, and against ArduPilot's curve of thrust."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crazyflow_ros.doors.ardupilot import ArduPilot
from crazyflow_ros.doors.ardupilot.parameter_file import parameters
from crazyflow_ros.doors.motors import Motors
from crazyflow_ros.drones import Drone, load_drone


def values(drone: str, **settings: Any) -> dict[str, float]:
    door = ArduPilot(**settings)
    lines = parameters(drone, door.loop_rate, range_finder=door.range_finder).splitlines()
    assert lines[0].startswith("#")
    return {name: float(value) for name, value in map(str.split, lines[1:])}


def lift(drone: str, share: float) -> float:
    """Return the thrust [N] of a drone to whose motors ArduPilot gives a share of theirs."""
    found, figures = values(drone), load_drone(drone)
    e = found["MOT_THST_EXPO"]
    u = (np.sqrt((1 - e) ** 2 + 4 * e * share) - (1 - e)) / (2 * e)
    low, high = found["MOT_SPIN_MIN"], found["MOT_SPIN_MAX"]
    rotors = figures["rotors"]
    speeds = Motors(drone).speeds([low + (high - low) * u] * len(rotors)) * 60 / (2 * np.pi)
    return float((rotors.rpm2thrust * speeds[:, None] ** (0, 1, 2)).sum())


def test_those_of_the_x500_are_of_its_quadratic_thrust() -> None:
    found = values("hb_x500")
    assert (found["FRAME_CLASS"], found["FRAME_TYPE"]) == (1, 1)
    assert (found["MOT_PWM_MIN"], found["MOT_PWM_MAX"]) == (1000, 2000)
    assert found["MOT_THST_EXPO"] == pytest.approx(0.8 / (0.8 + 2 * 0.15), rel=1e-3)
    assert lift("hb_x500", found["MOT_THST_HOVER"]) == pytest.approx(2.28 * 9.81, rel=1e-3)


@pytest.mark.parametrize("drone", [*Drone])
def test_thrust_is_proportional_to_what_ardupilot_asks_for(drone: str) -> None:
    found, figures = values(drone), load_drone(drone)
    hover = lift(drone, found["MOT_THST_HOVER"])
    assert hover == pytest.approx(figures["mass"] * 9.81, rel=0.1)
    least, half, most = (lift(drone, share) for share in (0.0, 0.5, 1.0))
    assert half == pytest.approx((least + most) / 2, rel=0.05)


@pytest.mark.parametrize(("rate", "loop"), [(500, 250), (800, 400), (1000, 400)])
def test_ardupilots_loop_gets_enough_frames(rate: int, loop: int) -> None:
    assert values("hb_x500", rate=rate)["SCHED_LOOP_RATE"] == loop


def test_a_range_finder_is_told_to_ardupilot() -> None:
    assert values("hb_x500", range_finder=True)["RNGFND1_TYPE"] == 100
    assert "RNGFND1_TYPE" not in values("hb_x500")
