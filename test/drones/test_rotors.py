"""Rotors of a drone: tables in `drone.toml`, and what follows from them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from multirotors import HEXA, OCTO, rotor, tilted, with_rotors

from crazyflow_ros.drones import Drone, load_drone, rotors_of
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.dynamics.first_principles import Params

QUAD = "hb_x500"
SQUARE = ((1, -1, 1), (-1, -1, -1), (-1, 1, 1), (1, 1, -1))  # x, y, spin


@pytest.mark.parametrize("drone", list(Drone))
def test_shares_of_thrust_and_torque_add_up(drone: str) -> None:
    rotors = rotors_of(drone)
    for wanted in np.eye(4):
        forces = rotors.allocation @ wanted
        pulls = np.outer(forces, [0.0, 0, 1])
        drag = rotors.rpm2torque[:, 2] / rotors.rpm2thrust[:, 2]
        torque = np.cross(rotors.position, pulls).sum(axis=0)
        np.testing.assert_allclose([forces.sum(), *torque[:2]], wanted[:3], atol=1e-9)
        if not rotors.rpm2thrust[:, :2].any():  # else the ratio depends on the speed
            yaw = -(rotors.spin * drag * forces).sum()
            np.testing.assert_allclose(yaw, wanted[3], atol=1e-9)


@pytest.mark.parametrize("drone", [HEXA, OCTO])
def test_hover_speeds_carry_the_weight(drone: str) -> None:
    figures, rotors = load_drone(drone), rotors_of(drone)
    weight = figures["mass"] * 9.81
    speeds = rotors.hover_speeds(weight)
    thrust = (rotors.rpm2thrust[:, 2] * speeds**2).sum()
    assert thrust == pytest.approx(weight, rel=1e-12)
    np.testing.assert_allclose(speeds, speeds[0])  # those below others turn as fast
    assert rotors.most_thrust == pytest.approx(4 * figures["thrust_max"])
    assert rotors.most_thrust == pytest.approx(rotors.thrust_limits[1].sum())


def test_tables_of_a_quadrotor_say_what_its_length_says(tmp_path: Path) -> None:
    figures = load_drone(QUAD)
    place = figures["L"], figures["geometry"]["rotor_z"]
    folder = tmp_path / "square"
    shutil.copytree(folder_of(QUAD), folder)
    text = re.sub(r"\nL = .*", "", (folder / FIGURES).read_text())
    tables = [rotor((x * place[0], y * place[0], place[1]), spin) for x, y, spin in SQUARE]
    (folder / FIGURES).write_text(text + "\n" + "\n".join(tables))
    own = load_drone(folder)
    assert own["rotors"].has_tables and not figures["rotors"].has_tables
    for name, value in figures.items():
        if name != "rotors":
            expected = value if isinstance(value, dict) else np.asarray(value)
            if isinstance(expected, dict):
                assert own[name] == expected
            else:
                np.testing.assert_allclose(own[name], expected, rtol=1e-12, err_msg=name)
    one, other = Params.figures(QUAD), Params.figures(str(folder))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, err_msg=name)


def test_rotors_that_push_sideways_give_thrust_without_it(tmp_path: Path) -> None:
    rotors = rotors_of(tilted(tmp_path / "tilted"))
    wrench = rotors.wrench @ rotors.allocation
    np.testing.assert_allclose(wrench[2:], np.eye(4), atol=1e-9)
    np.testing.assert_allclose(wrench[:2], 0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(rotors.axis, axis=1), 1)


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ([rotor((0.1, 0.1, 0), 1)] * 3, "there must be 4 to 16 tables [[rotor]], got 3"),
        ([rotor((0.1, 0.1, 0), 1)] * 6, "torque about each axis independently"),
        ([rotor((x, y, 0), 1) for x, y, _ in SQUARE], "about each axis independently"),
        (
            [rotor((x, y, 0), s) for x, y, s in SQUARE[:3]] + [rotor((1, 1, 0), 2)],
            "rotor[3].spin must be 1 or -1, got 2.0",
        ),
        (
            [rotor((x, y, 0), s) for x, y, s in SQUARE[:3]] + [rotor((1, 1, 0), -1, (0, 0, 0))],
            "rotor[3].axis must have a direction",
        ),
        (
            [rotor((x, y, 0), s) for x, y, s in SQUARE[:3]] + ["[[rotor]]\nspin = 1\n"],
            "rotor[3].position is missing",
        ),
        (
            [rotor((x + 2, y, 0), s) for x, y, s in SQUARE],
            "would have to push downwards to hover without torque",
        ),
        (
            [rotor((x, y, 0), s, more="rpm2thrust = [0.0, 0.0, 1e-9]\n") for x, y, s in SQUARE],
            "thrust_max must lift the weight of 28.8414 N",
        ),
        (
            [rotor((x, y, 0), s, more="rpm2thrust = [0.0, 0.0, -1.0]\n") for x, y, s in SQUARE],
            "rotor[0].rpm2thrust must begin with at most thrust_min and end with a positive",
        ),
    ],
)
def test_impossible_rotors_are_refused(tmp_path: Path, tables: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        load_drone(with_rotors(tmp_path / "drone", tables))


def test_a_drone_has_either_a_length_or_tables(tmp_path: Path) -> None:
    folder = tmp_path / "both"
    shutil.copytree(folder_of(HEXA), folder)
    file = folder / FIGURES
    file.write_text("L = 0.1\n" + file.read_text())
    with pytest.raises(ValueError, match=r"L is the figure of a quadrotor without tables"):
        load_drone(folder)


def test_drones_of_a_world_have_equal_numbers_of_rotors() -> None:
    with pytest.raises(ValueError, match="hb_x500 has 4 rotors, hexa_x680 6"):
        rotors_of([QUAD, HEXA])
    assert len(rotors_of([QUAD, "cf2x_L250"])) == 4 and len(rotors_of([HEXA, HEXA])) == 6
