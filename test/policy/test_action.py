"""Actions mean the commands that the drones' figures allow."""

from __future__ import annotations

from math import nan, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crazyflow_ros.control import Control
from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.policy.action import Action

GRAVITY = 9.81


@pytest.mark.parametrize("drone", list(Drone))
@pytest.mark.parametrize("control", ["attitude", "body_rate", "force_torque"])
def test_zero_action_hovers(drone: str, control: str) -> None:
    command = np.asarray(Action.of(drone, control)(np.zeros(4, np.float32)))
    weight = load_drone(drone)["mass"] * GRAVITY
    thrust = 0 if control == "force_torque" else 3
    assert command[thrust] == pytest.approx(weight, rel=1e-6)
    assert not np.delete(command, thrust).any()


@pytest.mark.parametrize("drone", list(Drone))
def test_rotors_turn_from_the_slowest_to_the_fastest(drone: str) -> None:
    figures, action = load_drone(drone), Action.of(drone, "rotor_vel")
    for extreme, thrust in (-1, figures["thrust_min"]), (1, figures["thrust_max"]):
        command = np.asarray(action(np.full(4, extreme, np.float32)), float)
        np.testing.assert_allclose(np.polyval(figures["rpm2thrust"][::-1], command), thrust, 1e-4)


def test_attitude_within_tilt_and_thrust() -> None:
    action = Action.of("cf2x_L250", max_tilt=0.3, thrust_range=0.5)
    weight = load_drone("cf2x_L250")["mass"] * GRAVITY
    command = action(np.array([1, -1, 1, -1], np.float32))
    np.testing.assert_allclose(command, [0.3, -0.3, pi, 0.5 * weight], rtol=1e-6)


def test_torques_are_those_of_rotors_that_differ() -> None:
    drone, share = "cf21B_500", 0.4
    figures = load_drone(drone)
    action = Action.of(drone, "force_torque", thrust_range=share)
    torque = np.asarray(action(np.ones(4, np.float32)))[1:]
    thrust = figures["mass"] * GRAVITY / 4 * (1 + share * np.array([-1, 1]))  # of two rotors each
    assert torque[0] == pytest.approx(2 * figures["L"] * np.ptp(thrust), rel=1e-5)
    k0, k1, k2 = figures["rpm2thrust"]
    speed = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - thrust))) / (2 * k2)
    drag = np.polyval(figures["rpm2torque"][::-1], speed)
    assert torque[2] == pytest.approx(2 * np.ptp(drag), rel=0.1)  # nearly proportional to thrust


def test_hover_thrust_is_that_of_the_dynamics() -> None:
    by_fit = Action.of("cf2x_L250", dynamics="so_rpy").offset[3]
    assert by_fit < Action.of("cf2x_L250").offset[3]  # its thrust is 2 % more than commanded


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4))
def test_actions_beyond_one_are_clipped(numbers: list[float]) -> None:
    action, array = Action.of("cf2x_L250", "body_rate"), np.array(numbers, np.float32)
    np.testing.assert_array_equal(action(array), action(np.clip(array, -1, 1)))


def test_nan_stays_nan() -> None:
    command = np.asarray(Action.of("cf2x_L250", "rotor_vel")(np.array([0, nan, 0, 0], np.float32)))
    assert np.isnan(command).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("drone", "cf9"), ("control", "will"), ("control", "state"), ("dynamics", "aristotle"),
        ("max_tilt", 1.6), ("max_tilt", nan), ("max_rate", 0.0), ("thrust_range", 1.1),
    ],
)  # fmt: skip
def test_refuses(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        Action.of(**({"drone": "cf2x_L250"} | {name: value}))
    with pytest.raises(ValueError, match=r"scale .*nan"):
        Action(Control.attitude, (0.0,) * 4, (1.0, 1.0, 1.0, nan))
