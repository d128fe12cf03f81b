"""A flight has arrived when its time is over and the drone is near, or at rest not far away."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path

from crazyflow_ros.client.arrival import Arrival
from crazyflow_ros.client.ongoing_flight import OngoingFlight

GOAL = np.array([1.0, 2.0, 3.0])
PERIOD = 0.1  # s


def arrives(off: list[float], speed: float = 0.0, duration: float = 0.0) -> float | None:
    """Time at which a drone has arrived that is so far above its goal [m] at each look."""
    arrival = Arrival(GOAL, 10.0, duration)
    for i, height in enumerate(off):
        if arrival.look(10.0 + i * PERIOD, GOAL + np.array([0, 0, height]), speed):
            return i * PERIOD
        assert arrival.distance == pytest.approx(abs(height))
    return None


@pytest.mark.parametrize(
    ("off", "speed", "time"),
    [
        ([1.0, 0.5, 0.019], 0.019, 0.2),  # near and slow
        ([0.0] * 5, 0.03, None),  # near, but passing
        ([1.0] + [0.07] * 15, 0.0, 1.1),  # at rest for a second, with a steady error
        ([1.0] + [0.07, 0.079] * 10, 0.2, 1.1),  # it trembles
        ([1.0] + [0.07, 0.085] * 10, 0.2, None),  # it sways
        ([0.21] * 30, 0.0, None),  # at rest too far away
        ([0.15 - 0.01 * i for i in range(12)], 0.1, None),  # on its way
    ],
)
def test_near_or_at_rest(off: list[float], speed: float, time: float | None) -> None:
    assert arrives(off, speed) == (None if time is None else pytest.approx(time))


def test_not_before_its_time_is_over() -> None:
    assert arrives([0.0] * 40, duration=2.0) == pytest.approx(2.0)
    assert arrives([0.1] * 40, duration=2.0) == pytest.approx(2.0)
    assert arrives([0.1] * 15, duration=2.0) is None


def test_what_does_not_matter_is_no_distance() -> None:
    arrival = Arrival(np.array([1.0, np.nan, np.nan]), 0.0, 0.0)
    assert arrival.look(0.0, np.array([1.0, 7.0, 7.0]), 0.0)


def test_a_drone_that_rests_elsewhere_is_stuck() -> None:
    arrival, pos, moved = Arrival(GOAL, 0.0, 1.0), GOAL + 0.3, GOAL + 0.35
    times = np.arange(0.0, 10.0, PERIOD)
    stuck = []
    for time in times:  # it moves once, after 3 s
        assert not arrival.look(time, moved if time > 3.0 else pos, 0.0)
        stuck.append(arrival.is_stuck)
    assert times[stuck.index(True)] == pytest.approx(3.1 + 5.0, abs=1.5 * PERIOD)
    assert all(stuck[stuck.index(True) :])


def test_a_drone_that_begins_slowly_is_not_stuck_while_its_plan_lasts() -> None:
    """In the first seconds of a long flight it moves by millimetres."""
    arrival = Arrival(GOAL, 0.0, 0.0)
    arrival.end = 100.0
    for time in np.arange(0.0, 130.0, PERIOD):
        share = min(time / 100.0, 1.0)
        way = share**4 * (35 - 84 * share + 70 * share**2 - 20 * share**3)
        pos = GOAL - np.array([0.0, 0.0, 60.0 * (1 - way) + 0.1])
        has_arrived = arrival.look(time, pos, 0.0)
        assert not arrival.is_stuck
        if has_arrived:
            assert 100.0 <= time <= 101.0
            return
    raise AssertionError("never")


def test_a_plan_that_arrives_right_after_a_look_is_waited_for() -> None:
    """A drone has rested for long then, as if there were none; its plan takes a minute."""
    plan = Path(poses=[PoseStamped()])
    plan.header.stamp.sec, plan.poses[0].header.stamp.sec = 10, 70
    (place := plan.poses[0].pose.position).x, place.y, place.z = GOAL
    drone = SimpleNamespace(name="cf0", position=GOAL - 1.0, velocity=np.zeros(3), state="flying")

    class Simulator(SimpleNamespace):
        def has_warned(self, text: str) -> bool:
            """Is asked between a look at the drone and one at its plans."""
            if self.time > 17.0 and text.endswith("lost") and not self.is_planned:
                self.is_planned = True
                flight.plans.append(plan)
            return False

        def sleep(self, seconds: float) -> None:
            self.time += 0.5
            drone.position = GOAL if self.time > 65.0 else GOAL - 1.0

    simulator = Simulator(time=10.0, stepping=False, is_planned=False, warnings=lambda: "")
    flight = OngoingFlight(drone, simulator, tuple(GOAL), 1.0)
    flight.wait()
    assert simulator.is_planned and 65.0 < simulator.time < 75.0
