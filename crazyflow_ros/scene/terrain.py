"""Height fields, meshes and ellipsoids that stand in a world: where their surfaces are.

Contacts with them are MuJoCo's, for which a mesh is its convex hull. This finds the height of the
ground, and what a drone would be inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import mujoco
import numpy as np

from crazyflow_ros.scene.collision_shapes import name_of, only_for_mujoco
from crazyflow_ros.scene.drone_bodies import drones_in

_GEOM = mujoco.mjtGeom
_ABOVE_ALL = 1e4  # m
_NOTHING = -1e9  # m, height of the ground where there is none
_DOWN = np.array([0.0, 0.0, -1.0])
_COARSE = 1.5  # grid of a height field per radius of a drone, beyond which contacts are too few
_HOLLOW = 1.2  # from this ratio of the volumes of hull and mesh on, the difference matters


class Terrain:
    """The shapes of a world that stand, and with which only MuJoCo computes contacts.

    Args:
        model: The scene.

    Attributes:
        names: Names of the shapes in messages, see `name_of`.
        low: Lower corners of boxes around the shapes, (k, 3), world frame, m.
        high: Upper corners, likewise.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._geoms = np.flatnonzero(only_for_mujoco(model))
        self._model, self._data = model, mujoco.MjData(model)
        mujoco.mj_kinematics(model, self._data)
        self.names = [name_of(model, geom) for geom in self._geoms.tolist()]
        centre, half = np.split(model.geom_aabb[self._geoms], 2, axis=1)
        self._pos = self._data.geom_xpos[self._geoms]
        self._axes = self._data.geom_xmat[self._geoms].reshape(-1, 3, 3)
        middle = self._pos + np.einsum("kij,kj->ki", self._axes, centre)
        around = np.einsum("kij,kj->ki", np.abs(self._axes), half)
        self.low, self.high = middle - around, middle + around

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Terrain | None:
        """Return the terrain of a scene, if it has any."""
        return cls(model) if only_for_mujoco(model).any() else None

    def ground(self, places: np.ndarray) -> np.ndarray:
        """Return the heights of the highest shapes at places (n, 2) [m]; -1e9 without one."""
        found = np.full(len(places), _NOTHING)
        for row, place in enumerate(places):
            is_below = (self.low[:, :2] <= place) & (place <= self.high[:, :2])
            for i in np.flatnonzero(is_below.all(axis=1)).tolist():
                found[row] = max(found[row], self._height(i, place))
        return found

    def distances(self, points: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Return the distances (n, k) of points (n, 3) from some of the shapes [m].

        They are negative inside. Outside they may be too small, beside corners; above slopes they
        are measured vertically.
        """
        found = [self._distance(i, points) for i in which.tolist()]
        return np.stack(found, axis=1) if found else np.zeros((len(points), 0))

    def doubts(self) -> Iterator[str]:
        """Yield which shapes drones will feel otherwise than they look, and why."""
        model = self._model
        owners = np.isin(model.body_rootid[model.geom_bodyid], [*drones_in(model)])
        wide = _COARSE * model.geom_rbound[owners & (model.geom_contype > 0)].min(initial=np.inf)
        for i, geom in enumerate(self._geoms.tolist()):
            number = model.geom_dataid[geom]
            if i in self._hulls and self._hulls[i][1] > _HOLLOW * _volume(model, geom):
                yield (
                    f"drones collide with the convex hull of the mesh {self.names[i]}, its hollows "
                    "are solid: divide it into convex parts"
                )
            elif model.geom_type[geom] == _GEOM.mjGEOM_HFIELD:
                rows, columns = int(model.hfield_nrow[number]), int(model.hfield_ncol[number])
                x, y = 2 * model.hfield_size[number, :2] / (columns - 1, rows - 1)
                if max(x, y) > wide:
                    yield (
                        f"the grid of the height field {self.names[i]} is coarse, {x:.2g} x "
                        f"{y:.2g} m: drones rock on it, unless it is finer than they are wide"
                    )

    @cached_property
    def _hulls(self) -> dict[int, tuple[np.ndarray, float]]:
        """Outward planes (f, 4), in the frame of the geom, and volumes of the hulls of meshes."""
        from scipy.spatial import ConvexHull, QhullError  # here, because most worlds have no meshes

        found = {}
        for i, geom in enumerate(self._geoms.tolist()):
            if self._model.geom_type[geom] != _GEOM.mjGEOM_MESH:
                continue
            mesh = self._model.mesh(self._model.geom_dataid[geom])
            begin, n = int(mesh.vertadr[0]), int(mesh.vertnum[0])
            try:
                hull = ConvexHull(self._model.mesh_vert[begin : begin + n])
            except QhullError:  # it is flat: a box without height
                hull = None
            planes = _box(self._model.geom_aabb[geom]) if hull is None else hull.equations
            found[i] = planes, 0.0 if hull is None else float(hull.volume)
        return found

    def _height(self, i: int, place: np.ndarray) -> float:
        """Return the height of a shape at a place (2,) [m]; -1e9 beside it."""
        model, geom = self._model, int(self._geoms[i])
        kind, start = model.geom_type[geom], np.append(place, _ABOVE_ALL)
        if kind == _GEOM.mjGEOM_HFIELD:
            away = mujoco.mj_rayHfield(model, self._data, geom, start, _DOWN)
        elif kind == _GEOM.mjGEOM_ELLIPSOID:
            pos, axes = self._data.geom_xpos[geom], self._data.geom_xmat[geom]
            away = mujoco.mju_rayGeom(pos, axes, model.geom_size[geom], start, _DOWN, kind)
        elif kind == _GEOM.mjGEOM_MESH:
            away = self._to_hull(i, start)
        else:  # a signed distance field
            return float(self.high[i, 2])
        return _ABOVE_ALL - away if away >= 0 else _NOTHING

    def _to_hull(self, i: int, start: np.ndarray) -> float:
        """Return the way straight down to the hull of a mesh [m]; -1 beside it."""
        planes = self._hulls[i][0]
        outside = planes[:, :3] @ (self._axes[i].T @ (start - self._pos[i])) + planes[:, 3]
        speed = planes[:, :3] @ (self._axes[i].T @ _DOWN)
        enters, leaves = speed < 0, speed > 0
        first = (outside[enters] / -speed[enters]).max(initial=0.0)
        last = (-outside[leaves] / speed[leaves]).min(initial=np.inf)
        beside = (outside[speed == 0] > 0).any()
        return -1.0 if beside or first > last else float(first)

    def _distance(self, i: int, points: np.ndarray) -> np.ndarray:
        """Return the distances (n,) of points (n, 3) from a shape [m]."""
        geom = int(self._geoms[i])
        kind, own = self._model.geom_type[geom], (points - self._pos[i]) @ self._axes[i]
        if kind == _GEOM.mjGEOM_MESH:
            planes = self._hulls[i][0]
            far: np.ndarray = (own @ planes[:, :3].T + planes[:, 3]).max(axis=1)
            return far
        if kind == _GEOM.mjGEOM_ELLIPSOID:
            size = self._model.geom_size[geom]
            return (np.linalg.norm(own / size, axis=1) - 1) * size.min()
        beside = np.maximum(self.low[i] - points, points - self.high[i]).max(axis=1)
        if kind != _GEOM.mjGEOM_HFIELD:
            return beside
        surface = np.array([self._height(i, point[:2]) for point in points])
        return np.where(surface > _NOTHING, np.maximum(points[:, 2] - surface, beside), beside)


def _box(aabb: np.ndarray) -> np.ndarray:
    """Return the outward planes (6, 4) of a box, given its centre and half its sides."""
    axes = np.vstack((np.eye(3), -np.eye(3)))
    return np.column_stack((axes, -(axes @ aabb[:3]) - np.tile(aabb[3:], 2)))


def _volume(model: mujoco.MjModel, geom: int) -> float:
    """Return the volume of the mesh of a geom [m^3]; with holes it may be anything."""
    mesh = model.mesh(model.geom_dataid[geom])
    vertices = model.mesh_vert[int(mesh.vertadr[0]) :]
    begin, n = int(mesh.faceadr[0]), int(mesh.facenum[0])
    a, b, c = np.moveaxis(vertices[model.mesh_face[begin : begin + n]].astype(float), 1, 0)
    return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6)
