"""The conditions that are read from a world, and what of them cannot be honoured."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import pytest

from crazyflow_ros.control import Controller
from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.plan import FlightConfig, Rules
from crazyflow_ros.scene import obstacles_of, read_scene, scenes
from crazyflow_ros.scene.conditions import (
    STANDARD,
    Conditions,
    conditions_of,
)

MOON = (0.0, 0.0, -1.62)


def read(options: str = "", geoms: str = '<geom type="plane" size="1 1 .1"/>') -> Conditions:
    return impossible(options, geoms)[0]


def impossible(
    options: str = "", geoms: str = '<geom type="plane" size="1 1 .1"/>'
) -> tuple[Conditions, tuple[str, ...]]:
    text = f"<mujoco><option {options}/><worldbody>{geoms}</worldbody></mujoco>"
    return conditions_of(mujoco.MjModel.from_xml_string(text))


@pytest.mark.parametrize("scene", scenes())
def test_our_own_worlds_are_on_earth(scene: str) -> None:
    found, doubts = read_scene(scene).conditions
    assert replace(found, surface=STANDARD.surface) == STANDARD and not doubts


def test_the_floor_of_the_default_scene_is_an_ordinary_one() -> None:
    assert read_scene("floor").conditions[0] == STANDARD


def test_a_world_that_states_nothing_has_standard_gravity_and_air() -> None:
    assert read() == STANDARD


def test_what_the_world_states_is_read() -> None:
    found = read('gravity="0.1 0 -3.7" wind="1 2 0" density="0.02" viscosity="1e-5"')
    assert found == Conditions((0.1, 0.0, -3.7), 0.02, (1.0, 2.0, 0.0), 0.0, 1e-5)
    text = '<mujoco><option><flag gravity="disable"/></option></mujoco>'
    assert conditions_of(mujoco.MjModel.from_xml_string(text))[0].gravity == (0, 0, 0)


@pytest.mark.parametrize(
    ("geoms", "floor"),
    [
        ("", None),
        ('<geom type="plane" size="1 1 .1" pos="0 0 -1"/>', -1.0),
        (2 * '<geom type="plane" size="1 1 .1" pos="0 0 -1"/>', -1.0),
        ('<body pos="0 0 .5"><geom type="plane" size="1 1 .1"/></body>', 0.5),
        ('<geom type="plane" size="1 1 .1" euler="5 0 0"/>', None),
        ('<geom type="plane" size="1 1 .1" euler="180 0 0" pos="0 0 3"/>', None),
        ('<geom type="plane" size="1 1 .1" contype="0" conaffinity="0"/>', None),
        ('<geom type="box" size="1 1 .1" pos="0 0 -.1"/>', None),
    ],
)  # fmt: skip
def test_the_floor_is_the_highest_level_plane_that_is_solid(
    geoms: str, floor: float | None
) -> None:
    assert read(geoms=geoms).floor == floor


def test_the_highest_of_several_level_planes_is_the_floor() -> None:
    plane = '<geom type="plane" size="1 1 .1" pos="0 0 {}"/>'
    assert read(geoms="".join(map(plane.format, (0, 2, -3)))).floor == 2


def test_the_floor_and_planes_below_it_are_no_obstacles_but_other_planes_are() -> None:
    plane = '<geom type="plane" size="1 1 .1" {}/>'
    geoms = "".join(map(plane.format, ('pos="0 0 -1"', 'pos="0 0 1"', 'euler="9 0 0" name="ramp"')))
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    assert obstacles_of(model, floor=1.0).names == ("ramp",)
    assert len(obstacles_of(model, floor=None).names) == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ('density="1000"', "1000 kg/m^3, is not that of a gas"),
        ('wind="40 0 0"', "the wind of the world is stronger than 30 m/s: it is calm"),
    ],
)
def test_what_is_impossible_is_named_and_left_out(options: str, says: str) -> None:
    found, (text,) = impossible(options)
    assert found == STANDARD
    assert says in text


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        (Conditions((1.0, 0.0, -9.81)), "controllers and planner expect it downwards"),
        (Conditions((0.0, 0.0, 0.0)), "controllers and planner expect it downwards"),
        (Conditions(viscosity=0.9), "the viscosity of the medium, 0.9 Pa s, has no effect"),
        (Conditions((0.0, 0.0, -30.0)), "it cannot take off"),
        (Conditions(density=0.02), "it cannot take off"),
    ],
)
def test_what_cannot_be_honoured_is_named(conditions: Conditions, says: str) -> None:
    assert any(says in text for text in conditions.unheeded("cf2x_L250"))


def test_drones_that_cannot_hover_with_so_little_weight_are_named() -> None:
    moon = Conditions(MOON)
    assert not list(moon.unheeded("cf2x_L250"))
    (heavy,) = moon.unheeded("cf2x_T350")
    (pid,) = moon.unheeded("cf2x_L250", Controller.pid)
    assert heavy.endswith("it cannot hover or land")
    assert "with the controller pid" in pid


def test_fitted_models_do_not_know_the_air() -> None:
    (text,) = Conditions(density=1.0).unheeded("cf2x_L250", has_rotors=False)
    assert text.startswith("the air's density, 1 kg/m^3, has no effect")


@pytest.mark.parametrize("drone", Drone)
def test_on_earth_nothing_changes(drone: Drone) -> None:
    assert not list(STANDARD.unheeded(drone))
    assert STANDARD.figures(drone) is load_drone(drone) or (
        STANDARD.figures(drone).keys() == load_drone(drone).keys()
    )


def test_the_planner_accelerates_less_where_drones_weigh_less() -> None:
    earth, mars = (Envelope.of("cf2x_L250", c) for c in (STANDARD, Conditions((0, 0, -3.71))))
    assert mars.acceleration < earth.acceleration
    least = 4 * load_drone("cf2x_L250")["thrust_min"] / load_drone("cf2x_L250")["mass"]
    assert mars.catch <= 3.71 - least
    assert mars.lift <= 0.5 * (3.71 - least)


def test_heights_count_from_the_floor() -> None:
    rules = Rules.of("cf2x_L250", FlightConfig(), Conditions(floor=2.0))
    flat = Rules.of("cf2x_L250", FlightConfig())
    assert rules.rest_height == 2.0 + flat.rest_height
    assert rules.takeoff_height == 2.0 + flat.takeoff_height
    assert rules.floor == 2.0
