"""What lies under the pointer of a page."""

import numpy as np

from crazyflow_ros.view.frame import N_ROTORS, Frame
from crazyflow_ros.view.viewer import drone_at, floor_at

DOWN = np.array([0.0, 0.0, -1.0])


def frame(*places: tuple[float, float, float]) -> Frame:
    """Drones at places [m]."""
    count = len(places)
    upright = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    names = tuple(f"cf{number}" for number in range(count))
    still = np.zeros((count, 3)), np.zeros((count, N_ROTORS))
    return Frame(0, names, np.array(places, float), upright, *still)


def test_a_drone_is_hit_as_large_as_it_is_drawn() -> None:
    beside, origin = np.array([0.05, 0.0, 3.0]), np.array([0.2, 0.0, 3.0])
    assert drone_at(frame((0, 0, 1)), beside, DOWN) == "cf0"
    assert drone_at(frame((0, 0, 1)), origin, DOWN) is None
    assert drone_at(frame((0, 0, 1)), origin, DOWN, 4.0) == "cf0"


def test_the_nearer_of_two_drones_is_hit() -> None:
    assert drone_at(frame((0, 0, 1), (0, 0, 2)), np.array([0.0, 0.0, 3.0]), DOWN) == "cf1"


def test_a_drone_behind_the_camera_is_not_hit() -> None:
    assert drone_at(frame((0, 0, 4)), np.array([0.0, 0.0, 3.0]), DOWN) is None


def test_the_floor_is_where_the_ray_meets_it() -> None:
    place = floor_at(np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.5, -1.0]))
    np.testing.assert_allclose(place, [2.0, 1.0, 0.0])
    assert floor_at(np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.0, 0.0])) is None
