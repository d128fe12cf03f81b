"""The parameter `policy` of the node: behind the commander, and refused at the start."""

from __future__ import annotations

from pathlib import Path

import pytest
from policies import policy_of_layers

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.policy import save
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.observation import Observation
from crazyflow_ros.sim.policies import policy_of


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
