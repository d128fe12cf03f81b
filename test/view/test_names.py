"""Names are where they hide no drone, as near above theirs as they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra view is not installed")

from crazyflow_ros.view.lens import CameraView, Look, Picture
from crazyflow_ros.view.names import sides_of

UP, RIGHT_UP, LEFT_UP, RIGHT, LEFT, DOWN = range(6)
SIDES = set(range(6))
PICTURE = Picture.uncovered(800, 600)
AHEAD = CameraView(np.zeros(3), np.array([0.0, 1.0, 0.0]))  # x to the right, z up
FOCAL = 300 / math.tan(math.radians(45) / 2)
WIDTH = 60.0


def look(picture: Picture = PICTURE, view: CameraView = AHEAD) -> Look:
    return Look(view, math.radians(45), picture)


def sides(*drones: tuple[float, float, float], before: int = UP, **looks: object) -> list[int]:
    """The sides for drones of 24 pixels in radius, given their pixels and distances."""
    pixels, depths = np.array(drones)[:, :2], np.array(drones)[:, 2]
    x, down = ((pixels - [400, 300]) / FOCAL).T
    places = depths[:, None] * np.column_stack([x, np.ones(len(x)), -down])
    widths, sides_before = np.full(len(x), WIDTH), np.full(len(x), before)
    radii = 24 * depths / FOCAL
    return sides_of(look(**looks), places, radii, widths, sides_before).tolist()  # type: ignore[arg-type]


def test_a_place_is_seen_where_a_pinhole_camera_has_it() -> None:
    pixels, depths = look().project(np.array([[1.0, 5.0, 0.5], [0.0, -2.0, 0.0]]))
    assert pixels[0] == pytest.approx([400 + FOCAL / 5, 300 - FOCAL / 10])
    assert depths.tolist() == [5.0, -2.0]


@pytest.mark.parametrize(
    ("drones", "before", "allowed"),  # of the first drone
    [
        pytest.param([(400, 300, 3), (200, 300, 5)], UP, {UP}, id="nothing is there"),
        pytest.param([(400, 300, 3), (400, 270, 6)], UP, SIDES - {UP, RIGHT_UP}, id="behind"),
        pytest.param([(400, 270, 6), (400, 300, 3)], UP, {UP}, id="the drone behind"),
        pytest.param([(400, 20, 3)], UP, {RIGHT, LEFT, DOWN}, id="at the top"),
        pytest.param([(5, 300, 3)], UP, {RIGHT_UP}, id="at the left"),
        pytest.param([(400, 300, 3)], RIGHT_UP, {RIGHT_UP}, id="no reason to change"),
        pytest.param(
            [(400, 300, 3), (450, 280, 6)],
            RIGHT_UP,
            {UP, LEFT_UP, RIGHT, LEFT, DOWN},
            id="a reason",
        ),
    ],
)
def test_a_name_is_seen_and_hides_no_drone(
    drones: list[tuple[float, float, float]], before: int, allowed: set[int]
) -> None:
    assert sides(*drones, before=before)[0] in allowed


def test_a_name_stays_in_the_part_of_the_picture_that_is_seen() -> None:
    covered = PICTURE._replace(right=420.0)
    assert sides((415, 300, 3), picture=covered)[0] == LEFT_UP


def test_names_do_not_lie_over_each_other() -> None:
    assert sides((400, 300, 3), (440, 300, 4)) != [UP, UP]


def test_a_drone_behind_the_camera_hides_nothing() -> None:
    places = np.array([[0.0, 3.0, 0.0], [0.0, -3.0, 0.15]])
    found = sides_of(look(), places, np.full(2, 0.1), np.full(2, WIDTH), np.array([UP, LEFT]))
    assert found.tolist() == [UP, LEFT]
