"""Headings, goals and other controllers, with stock controllers of a real controller manager."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from real_manager import ACCURACY, CHAIN, Flight, Manager, flight
from ros_client import numbers, own_domain
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

DOMAIN = own_domain(__name__)
OTHER_DOMAIN = DOMAIN % 100 + 1  # of simulators beside the one of the module
POSITION = [f"cf0_{name}" for name in CHAIN]
HOME = (0.5, 0.3, 1.0)


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Flight, Manager]]:
    with (
        flight(DOMAIN, **{"ros2_control.rate": 100}) as flying,
        Manager(flying.client, tmp_path_factory.mktemp("flown"), ["cf0"], 100) as manager,
    ):
        manager.start(*POSITION)
        manager.load("cf0_heading", "cf0_goal_pose")
        flying.fly_to(HOME)
        yield flying, manager


def test_takes_off_with_a_heading_after_a_reset(flown: tuple[Flight, Manager]) -> None:
    flying, manager = flown
    assert manager.switch(start=["cf0_heading"])
    for yaw in (1.5, -0.6):
        flying.client.reset()

        def back(yaw: float = yaw) -> bool:
            flying.client.publish("/cf0_heading/commands", Float64MultiArray(data=[yaw]))
            turned = numbers(flying.poses(0.1)[-1].pose.orientation)
            return abs(2 * math.atan2(turned[2], turned[3]) - yaw) < 0.05 and flying.arrive(HOME)

        flying.client.until(back, "the flight back", timeout=60)
    assert manager.switch(stop=["cf0_heading"])


def test_takes_off_goes_and_lands_by_a_goal(flown: tuple[Flight, Manager]) -> None:
    flying, manager = flown
    assert not manager.switch(start=["cf0_goal_pose"])  # beside another level
    assert manager.switch(stop=POSITION)
    flying.client.reset()
    assert manager.switch(start=["cf0_goal_pose"])
    for goal, rests in (((0.3, -0.2, 0.7), False), ((0.3, 0.4, 0.0), True), (HOME, False)):

        def there(goal: tuple[float, ...] = goal, rests: bool = rests) -> bool:
            command = Float64MultiArray(data=[*goal, 0.4])
            flying.client.publish("/cf0_goal_pose/commands", command)
            at = flying.positions(0.5)
            if not rests:
                return np.allclose(at, goal, atol=ACCURACY)
            speeds = flying.client.latest(JointState, "/cf0/joint_states").velocity
            return np.allclose(at[:, :2], goal[:2], atol=0.05) and max(speeds) < 500

        flying.client.until(there, f"the goal {goal}", timeout=60)
    assert manager.switch(start=POSITION, stop=["cf0_goal_pose"])
    flying.fly_to(HOME)


def test_other_controllers_fly_and_say_which_level_they_lack(tmp_path: Any) -> None:
    given = {"ros2_control.rate": 100, "controller": "pid"}
    with (
        flight(OTHER_DOMAIN, **given) as flying,
        Manager(flying.client, tmp_path, ["cf0"], 100) as manager,
    ):
        manager.load("cf0_rates")
        assert not manager.switch(start=["cf0_rates"])
        manager.wait_for("which need the simulator's parameter controller:=mellinger")
        manager.start(*POSITION)
        flying.fly_to(HOME)
