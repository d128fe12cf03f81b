"""Where a drone should be, from the paths that the simulator publishes."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.serialization import serialize_message
from ros_client import LATCHED, Client, own_domain

from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.view.follower import Follower as RealFollower
from crazyflow_ros.view.plans import Plans


class Follower:
    """In place of the connection and its node: the test is the simulator."""

    def __init__(self) -> None:
        self.node, self.subscribed = self, dict[str, Any]()

    def topic(self, name: str) -> str:
        return f"/{name}"

    def in_thread(self, work: Callable[[], None]) -> None:
        work()

    def create_subscription(self, _: Any, topic: str, note: Any, *__: Any, raw: bool) -> str:
        self.subscribed[topic] = note
        return topic

    def destroy_subscription(self, topic: str) -> None:
        del self.subscribed[topic]

    def publish(self, path: Path) -> None:
        self.subscribed["/cf0/plan"](serialize_message(path))


@pytest.fixture
def follower() -> Follower:
    return Follower()


@pytest.fixture
def plans(follower: Follower) -> Plans:
    plans = Plans(follower)  # type: ignore[arg-type]
    plans.use("test", ("cf0",))
    return plans


def circle(times: np.ndarray) -> np.ndarray:
    """A flight in a circle, once in 4 s, with the heading along it."""
    phase = np.pi / 2 * times
    return np.stack([np.cos(phase), np.sin(phase), 0.2 * times, phase + np.pi / 2], axis=-1)


def path_of(times: np.ndarray, stamp: float = 0.0) -> Path:
    path = Path()
    path.header.stamp = time_of(round(stamp * 1e9))
    for time, (x, y, z, yaw) in zip(times, circle(times)):
        pose = PoseStamped()
        pose.header.stamp = time_of(round(time * 1e9))
        pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = x, y, z
        pose.pose.orientation.z, pose.pose.orientation.w = np.sin(yaw / 2), np.cos(yaw / 2)
        path.poses.append(pose)
    return path


def publish(plans: Plans, follower: Follower, times: np.ndarray, stamp: float = 0.0) -> None:
    follower.publish(path_of(times, stamp))
    plans.update({})


def test_between_the_points_of_a_path_the_setpoint_is_on_the_curve(
    plans: Plans, follower: Follower
) -> None:
    assert np.isnan(plans.reference("cf0", 1.0)).all()
    publish(plans, follower, np.linspace(1.0, 9.0, 60))  # two rounds
    for time in np.linspace(1.0, 9.0, 333):
        now = plans.reference("cf0", time)
        np.testing.assert_allclose(now[:3], circle(time)[:3], atol=2e-3)
        assert np.cos(now[3] - circle(time)[3]) > 1 - 1e-5
    for time, end in ((0.0, 1.0), (20.0, 9.0)):  # before and after it
        np.testing.assert_allclose(plans.reference("cf0", time)[:3], circle(np.array(end))[:3])


def test_a_drone_that_has_arrived_stays_there_and_one_without_a_command_is_nowhere(
    plans: Plans, follower: Follower
) -> None:
    times = np.linspace(1.0, 3.0, 60)
    publish(plans, follower, times)
    assert "cf0" in plans.under_way
    publish(plans, follower, np.zeros(0), stamp=3.02)
    assert "cf0" not in plans.under_way
    np.testing.assert_allclose(plans.reference("cf0", 5.0)[:3], circle(np.array(3.0))[:3])
    publish(plans, follower, times)
    publish(plans, follower, np.zeros(0), stamp=1.5)  # before its end
    assert np.isnan(plans.reference("cf0", 2.0)).all()
    publish(plans, follower, times)
    plans.update({"cf0": 1})
    assert np.isnan(plans.reference("cf0", 2.0)).all()
    follower.publish(path_of(times))
    plans.update({"cf0": 2})  # the plan of the next command has come before a look
    assert "cf0" in plans.under_way
    plans.update({"cf0": 2})
    assert "cf0" in plans.under_way


@pytest.mark.parametrize("times", [[1.0], [1.0, 1.0], [2.0, 1.0]])
def test_what_is_no_path_is_none(plans: Plans, follower: Follower, times: list[float]) -> None:
    publish(plans, follower, np.array(times))
    assert np.isnan(plans.reference("cf0", 1.0)).all() and not plans.under_way


def test_users_share_the_subscriptions(plans: Plans, follower: Follower) -> None:
    for user, drones, expected in (
        ("other", ("cf0", "cf1"), {"/cf0/plan", "/cf1/plan"}),
        ("test", (), {"/cf0/plan", "/cf1/plan"}),
        ("test", ("cf1",), {"/cf0/plan", "/cf1/plan"}),
        ("other", (), {"/cf1/plan"}),
        ("test", (), set()),
    ):
        plans.use(user, drones)
        assert follower.subscribed.keys() == expected


def test_a_plan_that_was_sent_before_the_page_listened_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = own_domain("test_plans")
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
    with closing(Client(domain)) as simulator, closing(RealFollower()) as follower:
        simulator.node.create_publisher(Path, "/cf0/plan", LATCHED).publish(path_of(np.arange(3.0)))
        plans = Plans(follower)
        plans.use("test", ("cf0",))
        simulator.until(lambda: plans.update({}) or plans.under_way, "plan")
        assert plans.under_way["cf0"].times.tolist() == [0.0, 1.0, 2.0]
