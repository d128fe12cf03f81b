"""Airframes against the drones' figures, and against the physics that they are for."""

from __future__ import annotations

import re

import numpy as np
import pytest

from crazyflow_ros.doors.motors import QUAD_X, Motors
from crazyflow_ros.doors.px4.airframe import airframe, file_name, simulator_model
from crazyflow_ros.drones import Drone, load_drone


def parameters(drone: str) -> dict[str, float]:
    found = re.findall(r"^param set-default (\w+) (\S+)$", airframe(drone), re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_the_airframe_of_the_x500_has_its_figures() -> None:
    found = parameters("hb_x500")
    assert file_name("hb_x500") == f"22000_{simulator_model('hb_x500')}" == "22000_none_hb_x500"
    # PX4's quadrotor X: front right and rear left turn counter-clockwise, front left and rear
    # right clockwise.
    forward = [found[f"CA_ROTOR{i}_PX"] for i in range(4)]
    right = [found[f"CA_ROTOR{i}_PY"] for i in range(4)]
    moments = [found[f"CA_ROTOR{i}_KM"] for i in range(4)]
    np.testing.assert_allclose(forward, 0.17678 * np.array((1, -1, 1, -1)))
    np.testing.assert_allclose(right, 0.17678 * np.array((1, -1, -1, 1)))
    np.testing.assert_allclose(moments, 0.016 * np.array((1, 1, -1, -1)), rtol=1e-3)
    assert [found[f"PWM_MAIN_FUNC{i}"] for i in range(1, 5)] == [101, 102, 103, 104]
    assert found["THR_MDL_FAC"] == pytest.approx(1, abs=1e-3)
    assert found["MPC_THR_HOVER"] == pytest.approx(2.28 * 9.81 / (4 * 12.13), rel=1e-4)


@pytest.mark.parametrize("drone", list(Drone))
def test_all_drones_have_airframes_that_hover(drone: str) -> None:
    found, figures = parameters(drone), load_drone(drone)
    factor, hover = found["THR_MDL_FAC"], found["MPC_THR_HOVER"]
    assert 0 <= factor <= 1
    # The output that PX4 gives for the thrust in hover, and the thrust of our rotors then.
    output = np.roots((factor, 1 - factor, -hover)).max()
    rotors = figures["rotors"]
    speeds = Motors(drone).speeds([output] * len(rotors)) * 60 / (2 * np.pi)
    lift = (rotors.rpm2thrust * speeds[:, None] ** (0, 1, 2)).sum()
    assert lift == pytest.approx(figures["mass"] * 9.81, rel=0.12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_torque_that_px4_asks_for_is_the_torque_that_it_gets(axis: int) -> None:
    """PX4 allocates by the places and moments of the airframe, in axes forward, right, down."""
    found, figures = parameters("hb_x500"), load_drone("hb_x500")
    effects = [
        (
            -found[f"CA_ROTOR{i}_PY"],
            found[f"CA_ROTOR{i}_PX"],
            found[f"CA_ROTOR{i}_KM"],
        )
        for i in range(4)
    ]
    wanted = np.eye(3)[axis]
    thrusts = np.linalg.pinv(np.transpose(effects)) @ wanted
    levers = np.array((figures["L"], figures["L"], 0.016))
    torque = levers * (figures["mixing_matrix"] @ thrusts[list(QUAD_X)])  # forward, left, up
    np.testing.assert_allclose(torque * (1, -1, -1), wanted, atol=1e-3)
