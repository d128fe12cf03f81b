"""What lies under the pointer of a page."""

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from page_tab import frame_of

from crazyflow_ros.view.viewer import drone_at, floor_at

DOWN, EYE = np.array([0.0, 0.0, -1.0]), np.array([0.0, 0.0, 3.0])


@pytest.mark.parametrize(
    ("places", "beside", "size", "hit"),
    [
        ([(0, 0, 1)], 0.05, 1.0, "cf0"),
        ([(0, 0, 1)], 0.2, 1.0, None),
        ([(0, 0, 1)], 0.2, 4.0, "cf0"),  # as large as it is drawn
        ([(0, 0, 1), (0, 0, 2)], 0.0, 1.0, "cf1"),  # the nearer one
        ([(0, 0, 4)], 0.0, 1.0, None),  # behind the camera
    ],
)
def test_the_nearest_drone_on_the_ray_is_hit(
    places: list[tuple[float, ...]], beside: float, size: float, hit: str | None
) -> None:
    assert drone_at(frame_of(places), np.add(EYE, [beside, 0, 0]), DOWN, size) == hit


def test_the_floor_is_where_the_ray_meets_it() -> None:
    place = floor_at(np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.5, -1.0]))
    np.testing.assert_allclose(place, [2.0, 1.0, 0.0])
    assert floor_at(np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.0, 0.0])) is None
    place = floor_at(np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.5, -1.0]), -1.0)
    np.testing.assert_allclose(place, [3.0, 1.5, -1.0])
