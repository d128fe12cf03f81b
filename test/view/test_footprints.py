"""The world from above."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape
from crazyflow_ros.view.footprints import footprints

UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
RED = np.array([1.0, 0.0, 0.0, 1.0])


def shape(
    form: ShapeForm,
    place: tuple[float, ...],
    size: tuple[float, ...],
    attitude: np.ndarray = UPRIGHT,
    rgba: np.ndarray = RED,
    triangles: np.ndarray | None = None,
) -> VisibleShape:
    return VisibleShape(form, np.array(place), attitude, np.array(size), rgba, triangles)


def area(corners: np.ndarray) -> float:
    x, y = corners.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2  # positive: counter-clockwise


@pytest.mark.parametrize(
    ("form", "expected"),
    [(ShapeForm.BOX, 2.0), (ShapeForm.CYLINDER, np.pi / 2), (ShapeForm.SPHERE, np.pi / 2)],
)
def test_areas_are_those_of_the_shapes(form: ShapeForm, expected: float) -> None:
    (found,) = footprints([shape(form, (3.0, 4.0, 0.5), (1.0, 2.0, 1.0))])
    assert area(found.corners) == pytest.approx(expected, rel=0.03)
    np.testing.assert_allclose(found.corners.mean(axis=0), (3.0, 4.0), atol=0.02)
    assert found.color == "#ff0000" and not found.is_floor


def test_a_turned_box_and_a_mesh_cast_what_scipy_says() -> None:
    eighth = np.array([0.0, 0.0, np.sin(np.pi / 8), np.cos(np.pi / 8)])
    (box,) = footprints([shape(ShapeForm.BOX, (0, 0, 1), (1, 1, 1), eighth)])
    np.testing.assert_allclose(np.ptp(box.corners, axis=0), np.sqrt([2, 2]), atol=0.02)
    points = np.random.default_rng(3).normal(size=(30, 3, 3))
    (mesh,) = footprints([shape(ShapeForm.MESH, (0, 0, 0), (1, 1, 1), triangles=points)])
    hull = ConvexHull(points.reshape(-1, 3)[:, :2])
    assert area(mesh.corners) == pytest.approx(hull.volume, rel=0.02)


def test_floors_lie_below_and_ceilings_and_glass_are_left_out() -> None:
    found = footprints(
        [
            shape(ShapeForm.BOX, (0, 0, 0.5), (1, 1, 1)),
            shape(ShapeForm.BOX, (0, 0, -0.05), (9, 9, 0.1)),
            shape(ShapeForm.BOX, (0, 0, 3.0), (9, 9, 0.1)),
            shape(ShapeForm.BOX, (0, 0, 1.0), (1, 1, 1), rgba=np.array([1, 1, 1, 0.0])),
            shape(ShapeForm.BOX, (np.nan, 0, 1.0), (1, 1, 1)),
            shape(ShapeForm.MESH, (0, 0, 0), (1, 1, 1), triangles=np.zeros((0, 3, 3))),
            shape(ShapeForm.BOX, (0, 0, 1.0), (0, 0, 1)),
        ]
    )
    assert [one.is_floor for one in found] == [True, False]


def test_a_large_world_is_thinned_out() -> None:
    found = footprints(
        shape(ShapeForm.BOX, (number, 0, 1), (1 + number % 7, 1, 1)) for number in range(2000)
    )
    assert 100 < len(found) < 1000
    assert min(np.ptp(one.corners[:, 0]) for one in found) > 4
