"""The drones' figures are complete, possible, and those that were identified."""

from __future__ import annotations

import numpy as np
import pytest
from multirotors import QUADROTORS

from crazyflow_ros.control import mellinger
from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.dynamics.first_principles import Params

DRONES = QUADROTORS


@pytest.mark.parametrize("drone", DRONES)
def test_shapes_and_signs(drone: str) -> None:
    figures = load_drone(drone)
    shapes = {
        "J": (3, 3),
        "drag_matrix": (3, 3),
        "mixing_matrix": (3, 4),
        "rpm2thrust": (3,),
        "rpm2torque": (3,),
        "rotor_dyn_coef": (4,),
        "gravity_vec": (3,),
    }
    assert {name: np.shape(figures[name]) for name in shapes} == shapes
    moments = np.diag(figures["J"])
    assert (np.linalg.eigvalsh(figures["J"]) > 0).all() and moments.max() < moments.sum() / 2
    assert (np.linalg.eigvalsh(figures["drag_matrix"]) < 0).all()
    assert 0 < figures["prop_inertia"] < moments[2] / 4
    assert 0 < figures["thrust_min"] < figures["mass"] * 9.81 / 4 < figures["thrust_max"]


@pytest.mark.parametrize("drone", DRONES)
def test_geometry(drone: str) -> None:
    figures = load_drone(drone)
    geometry = figures["geometry"]
    assert geometry["foot_z"] < 0 < geometry["rotor_z"]
    assert figures["L"] + geometry["rotor_radius"] >= geometry["hull_half_width"] > figures["L"]


def test_mixing_follows_from_rotor_places_and_spins() -> None:
    x, y, spin = [1, -1, -1, 1], [-1, -1, 1, 1], [1, -1, 1, -1]  # FR, RR, RL, FL
    expected = [y, [-v for v in x], [-v for v in spin]]
    np.testing.assert_array_equal(load_drone("cf2x_L250")["mixing_matrix"], expected)


@pytest.mark.parametrize(
    ("drone", "limits", "hover", "thrust_to_weight"),
    [
        ("cf2x_L250", (8398, 23216), 19217, 1.49),
        ("cf2x_P250", (10131, 28484), 23192, 1.54),
        ("cf2x_T350", (9397, 25991), 19041, 1.94),
        ("cf21B_500", (7327, 21661), 15900, 1.88),
        ("hb_x500", (3266, 11375), 7723, 2.17),
    ],
)
def test_derived_figures(
    drone: str, limits: tuple[int, int], hover: int, thrust_to_weight: float
) -> None:
    figures = load_drone(drone)
    weight = figures["mass"] * 9.81
    np.testing.assert_allclose(Params.create(drone).rotor_vel_limits, limits, atol=1)
    _, k1, k2 = figures["rpm2thrust"]
    assert 4 * (k1 * hover + k2 * hover**2) == pytest.approx(weight, rel=2e-4)
    assert 4 * figures["thrust_max"] / weight == pytest.approx(thrust_to_weight, abs=0.01)


@pytest.mark.parametrize("drone", DRONES)
def test_controller_figures(drone: str) -> None:
    figures = load_drone(drone)
    state = mellinger.load_params("state", drone)
    mass = {"cf2x_L250": 0.029, "cf2x_P250": 0.029, "cf2x_T350": 0.0325, "cf21B_500": 0.0393}
    assert float(state["mass"]) == pytest.approx((mass | {"hb_x500": 2.28})[drone])
    attitude = mellinger.load_params("attitude", drone)
    mixer = mellinger.load_params("force_torque", drone)
    int_err_max = [4, 4, 2] if drone == "hb_x500" else [2, 2, 0.4]
    np.testing.assert_allclose(state["int_err_max"], int_err_max)
    np.testing.assert_allclose(attitude["int_err_max"], [1, 1, 1500])
    for params in (attitude, mixer):
        assert float(params["thrust_max"]) == pytest.approx(figures["thrust_max"])
        assert float(params["L"]) == pytest.approx(figures["L"])


def test_an_unknown_drone_is_named() -> None:
    with pytest.raises(ValueError, match="there is no drone 'cf3', only cf2x_L250, cf2x_P250, "):
        load_drone("cf3")


def test_figures_are_copies() -> None:
    load_drone("cf2x_L250")["mass"] = 1.0
    load_drone("cf2x_L250")["J"][:] = 1.0
    load_drone("cf2x_L250")["geometry"]["foot_z"] = 1.0
    figures = load_drone("cf2x_L250")
    assert figures["mass"] == 0.0328 and figures["J"][0, 0] < 1e-4
    assert figures["geometry"]["foot_z"] < 0


def test_the_default_is_crazyflows() -> None:
    assert Drone.default is Drone.cf21B_500
