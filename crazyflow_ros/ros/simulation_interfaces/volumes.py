"""Bounds as messages, and whether an entity overlaps with them."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Vector3
from simulation_interfaces.msg import Bounds, Result

from crazyflow_ros import limits
from crazyflow_ros.ros.door import Refusal
from crazyflow_ros.ros.simulation_interfaces.scenery import Box
from crazyflow_ros.scene.frames import world_to_body

_FARTHEST = 1e9  # m; those who want everything ask for more than there can be


def box_message(box: Box | None) -> Bounds:
    """A box as bounds; None has no bounds."""
    if box is None:
        return Bounds(type=Bounds.TYPE_EMPTY)
    lower, upper = box
    return Bounds(type=Bounds.TYPE_BOX, points=[_vector(upper), _vector(lower)])


def sphere_message(centre: np.ndarray, radius: float) -> Bounds:
    """A sphere as bounds."""
    points = [_vector(centre), Vector3(x=float(radius))]
    return Bounds(type=Bounds.TYPE_SPHERE, points=points)


class Volume:
    """Bounds in the world that entities may overlap with.

    Raises:
        Refusal: The message is no volume.
    """

    def __init__(self, bounds: Bounds) -> None:
        if len(bounds.points) > limits.POINTS:
            text = f"bounds have at most {limits.POINTS} points, got {len(bounds.points)}"
            raise Refusal(Result.RESULT_OPERATION_FAILED, text)
        points = np.array([(p.x, p.y, p.z) for p in bounds.points]).reshape(-1, 3)
        expected = {
            Bounds.TYPE_EMPTY: (0, 0, "no points"),
            Bounds.TYPE_BOX: (2, 2, "two corners, the upper one first"),
            Bounds.TYPE_CONVEX_HULL: (3, limits.POINTS, "three points or more"),
            Bounds.TYPE_SPHERE: (2, 2, "a centre and a radius"),
        }
        if bounds.type not in expected:
            text = f"bounds have a type from 0 to 3, got {bounds.type}"
            raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, text)
        fewest, most, what = expected[bounds.type]
        good = fewest <= len(points) <= most and bool((np.abs(points) <= _FARTHEST).all())
        if good and bounds.type == Bounds.TYPE_BOX:
            good = bool((points[0] >= points[1]).all())
        if good and bounds.type == Bounds.TYPE_SPHERE:
            good = bool(points[1, 0] >= 0)
        if not good:
            got = f"of numbers up to {_FARTHEST:g}, got {limits.shown(points)}"
            text = f"bounds of type {bounds.type} are {what}, {got}"
            raise Refusal(Result.RESULT_OPERATION_FAILED, text)
        self._kind = bounds.type
        if bounds.type == Bounds.TYPE_BOX:
            choice = np.array(np.meshgrid(*[(0, 1)] * 3)).reshape(3, -1).T
            points = points[choice, np.arange(3)]
        self._points = points

    def overlaps(self, pos: np.ndarray, quat: np.ndarray, box: Box | None) -> bool:
        """Whether it has a point in common with an entity.

        Args:
            pos: Of the entity in the world [m].
            quat: Its attitude xyzw.
            box: It in its own axes; None is a point.
        """
        if self._kind == Bounds.TYPE_EMPTY:
            return True
        lower, upper = (np.zeros(3), np.zeros(3)) if box is None else box
        if self._kind == Bounds.TYPE_SPHERE:
            centre = world_to_body(quat, self._points[0] - pos)
            gap = centre - np.clip(centre, lower, upper)
            return bool(np.linalg.norm(gap) <= self._points[1, 0])
        corners = world_to_body(quat, self._points - pos)
        return _hull_overlaps(corners, lower, upper)


def _hull_overlaps(points: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether some weighted mean of the points (K, 3) is in a box."""
    if (points.max(axis=0) < lower).any() or (points.min(axis=0) > upper).any():
        return False
    from scipy.optimize import linprog  # takes a second to import, which no start should wait for

    result = linprog(
        np.zeros(len(points)),
        A_ub=np.vstack([points.T, -points.T]),
        b_ub=np.concatenate([upper, -lower]),
        A_eq=np.ones((1, len(points))),
        b_eq=[1.0],
    )
    return bool(result.status == 0)


def _vector(values: np.ndarray) -> Vector3:
    x, y, z = (float(value) for value in values)
    return Vector3(x=x, y=y, z=z)
