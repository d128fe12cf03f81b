"""Bounds messages and their overlap with entities."""

from __future__ import annotations

import numpy as np
from simulation_interfaces.msg import Bounds, Result

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.messages.geometry import vector, xyz
from crazyflow_ros.ros.simulation_interfaces.scenery import Box
from crazyflow_ros.scene.frames import world_to_body

_FARTHEST = 1e9  # m; allows bounds that enclose everything


def box_message(box: Box | None) -> Bounds:
    """Convert a box to bounds; None gives empty bounds."""
    if box is None:
        return Bounds(type=Bounds.TYPE_EMPTY)
    lower, upper = box
    return Bounds(type=Bounds.TYPE_BOX, points=[vector(upper), vector(lower)])


def sphere_message(centre: np.ndarray, radius: float) -> Bounds:
    """Convert a sphere to bounds."""
    points = [vector(centre), vector((radius, 0.0, 0.0))]
    return Bounds(type=Bounds.TYPE_SPHERE, points=points)


class Volume:
    """A volume in the world that entities may overlap.

    Raises:
        ValueError: The bounds are invalid.
    """

    def __init__(self, bounds: Bounds) -> None:
        if len(bounds.points) > limits.POINTS:
            allowed = f"at most {limits.POINTS} points"
            raise ValueError(f"bounds may have {allowed}, got {len(bounds.points)}")
        points = np.array(list(map(xyz, bounds.points))).reshape(-1, 3)
        expected = {
            Bounds.TYPE_EMPTY: (0, 0, "no points"),
            Bounds.TYPE_BOX: (2, 2, "two corners, the upper one first"),
            Bounds.TYPE_CONVEX_HULL: (3, limits.POINTS, "three or more points"),
            Bounds.TYPE_SPHERE: (2, 2, "a centre and a radius"),
        }
        if bounds.type not in expected:
            text = f"the type of bounds must be from 0 to 3, got {bounds.type}"
            raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, text)
        fewest, most, what = expected[bounds.type]
        good = fewest <= len(points) <= most and bool((np.abs(points) <= _FARTHEST).all())
        if good and bounds.type == Bounds.TYPE_BOX:
            good = bool((points[0] >= points[1]).all())
        if good and bounds.type == Bounds.TYPE_SPHERE:
            good = bool(points[1, 0] >= 0)
        if not good:
            got = f"with coordinates up to {_FARTHEST:g}, got {limits.shown(points)}"
            raise ValueError(f"bounds of type {bounds.type} need {what}, {got}")
        self._kind = bounds.type
        if bounds.type == Bounds.TYPE_BOX:
            choice = np.array(np.meshgrid(*[(0, 1)] * 3)).reshape(3, -1).T
            points = points[choice, np.arange(3)]
        self._points = points

    def overlaps(self, pos: np.ndarray, quat: np.ndarray, box: Box | None) -> bool:
        """Return whether the volume and an entity overlap.

        Args:
            pos: Position of the entity in the world [m].
            quat: Attitude of the entity xyzw.
            box: Bounding box of the entity in its own axes; None means a point.
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
    """Return whether the convex hull of points (K, 3) intersects a box."""
    if (points.max(axis=0) < lower).any() or (points.min(axis=0) > upper).any():
        return False
    from scipy.optimize import linprog  # imported here because it takes a second

    result = linprog(
        np.zeros(len(points)),
        A_ub=np.vstack([points.T, -points.T]),
        b_ub=np.concatenate([upper, -lower]),
        A_eq=np.ones((1, len(points))),
        b_eq=[1.0],
    )
    return bool(result.status == 0)
