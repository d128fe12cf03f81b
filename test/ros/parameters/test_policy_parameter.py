"""The parameter `policy` of the node: behind the commander, and refused at the start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from policies import policy_of_layers
from ros_client import Client, SimulatorProcess, numbers, own_domain

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.policy import save
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.observation import Observation
from crazyflow_ros.sim.policies import policy_of

DOMAIN = own_domain("test_policy")
OFF = 0.1  # m: foundation-policy has a steady error of up to 7 cm
TIMEOUT = 120.0  # s


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "none.policy"}, "policy: .*none.policy"),
        ({"freq": 480}, "freq: expected a multiple of the policy's 50 Hz, got 480"),
        ({"control": "attitude"}, "control: a policy needs state, got 'attitude'"),
        (
            {"flown_by": "ros2_control.mode lock_step"},
            "ros2_control.mode: a policy needs off, got 'lock_step'",
        ),
        ({"dynamics": "so_rpy"}, "dynamics: .* rotor_vel needs first_principles, got 'so_rpy'"),
        ({}, None),
    ],
)
def test_what_a_policy_needs(tmp_path: Path, change: dict, message: str | None) -> None:
    path = tmp_path / "own.policy"
    save(policy_of_layers([], Observation(), Action.of("cf2x_L250", "rotor_vel")), path)
    given = {"freq": 500, "control": "state", "dynamics": "first_principles", "flown_by": ""}
    given |= change
    file = given.pop("file", str(path))
    if message is None:
        policy_of(file, "cf2x_L250").check(**given)
    else:
        with pytest.raises(ParameterError, match=message):
            policy_of(file, "cf2x_L250").check(**given)


def test_the_log_says_for_which_drone_it_was_made(tmp_path: Path) -> None:
    path = str(tmp_path / "own.policy")
    save(policy_of_layers([], Observation(), Action.of("cf2x_L250")), path)
    assert policy_of(path, "cf2x_L250").description.endswith(
        "flies the drones, 50 actions a second"
    )
    assert policy_of(path, "hb_x500").description.endswith(
        "made for cf2x_L250, and they are hb_x500"
    )


def test_the_log_says_that_drones_do_not_keep_their_place(tmp_path: Path) -> None:
    path = str(tmp_path / "own.policy")
    velocity = Observation(("body_velocity_error", "rotation"))
    save(policy_of_layers([], velocity, Action.of("cf2x_L250")), path)
    assert policy_of(path, "cf2x_L250").description.endswith(
        "where its goal is, so that drones only fly as fast as it"
    )
    save(policy_of_layers([], Observation(("body_position_error",)), Action.of("cf2x_L250")), path)
    assert policy_of(path, "cf2x_L250").description.endswith("50 actions a second")


def test_a_bad_file_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.policy"
    bad.write_bytes(b"nothing")
    with pytest.raises(ParameterError, match=f"policy: {bad} is not a policy that can be read"):
        policy_of(str(bad), "cf2x_L250")


def at(message: Odometry) -> np.ndarray:
    return numbers(message.pose.pose.position)


def test_the_node_flies_it_behind_the_commander() -> None:
    services = pytest.importorskip("crazyflie_interfaces.srv")
    package = pytest.importorskip("foundation_policy", reason="is a judge of make test")
    raptor = Path(package.__file__).parent / "blob" / "checkpoint.h5"
    arguments = (f"policy:={raptor}", "drones:=[cf0, cf1]", "start_paused:=true")
    given = [word for argument in arguments for word in ("-p", argument)]
    with SimulatorProcess(DOMAIN, given):
        client = Client(DOMAIN)
        seen, others = (client.collect(Odometry, f"cf{i}/odom") for i in range(2))
        client.call(services.Takeoff, "cf0/takeoff", height=1.0, duration=Duration(sec=2))
        flown = client.newest(seen, client.advance(4 * 500))
        assert abs(at(flown)[2] - 1.0) < OFF
        goal = Point(x=1.0, y=0.5, z=1.3)
        client.call(services.GoTo, "cf0/go_to", goal=goal, yaw=1.0, duration=Duration(sec=3))
        tick = client.advance(5 * 500)
        assert np.linalg.norm(at(client.newest(seen, tick)) - numbers(goal)) < OFF
        assert at(client.newest(others, tick))[2] < 0.05  # it stands until it takes off
        client.close()
