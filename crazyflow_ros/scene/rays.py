"""Ray casting in C MuJoCo, for frames with many rays and for the range sensors of all drones.

Two more ray casters are parts of compiled functions: MJX's for batched worlds, in
`sensors.mjx_backend`, and that of pictures, in `raytracing`, which culls what a tile cannot show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import mujoco
import numpy as np

from crazyflow_ros.drones.instruments import MULTI_RANGER, VL53L1X_MAX_RANGE
from crazyflow_ros.scene.groups import UNUSED_GROUP

Rows: TypeAlias = slice | list[int]
ALL = slice(None)

_PASS = 1e-9  # m, past the surface of an excluded geom
_MOUNT = 0.02  # m, in which what a point is mounted on does not count
_DRAWINGS = 2  # geom group of visual geoms; rays of range sensors hit collision geoms
_MANY = 128  # up to this many geoms, each ray of a range sensor is cast at all of them
_SMALL = 0.5  # m, radius of geoms that are looked up by their place
_ROUNDING = 1e-6
_OTHERS = (mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF)


class FrameRays:
    """Casts the rays of F frames in one world.

    Args:
        model: The model.
        excluded: For each frame the bodies whose geoms its rays pass through.
        groups: (6,) uint8, which geom groups rays hit.
        longest: Longest distance of a hit [m].
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        excluded: Sequence[Sequence[int]],
        groups: np.ndarray,
        longest: float,
    ) -> None:
        self._model, self._groups, self._longest = model, groups, longest
        self._first = [bodies[0] if bodies else -1 for bodies in excluded]  # MuJoCo excludes one
        inside = [np.isin(model.geom_bodyid, list(bodies)) for bodies in excluded]
        self._passes = np.array([np.append(geoms, False) for geoms in inside])  # last: no geom

    def cast(
        self,
        data: mujoco.MjData,
        origins: np.ndarray,
        directions: np.ndarray,
        frames: np.ndarray,
        *,
        one_origin: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cast R rays of each of K frames.

        Args:
            data: Data with current frames.
            origins: (K, R, 3) m.
            directions: (K, R, 3) unit vectors.
            frames: (K,) numbers of the frames.
            one_origin: The rays of a frame all start at the same point, which is faster.

        Returns:
            Distances (K, R) [m], -1 where nothing is hit, and normals (K, R, 3), zero there.
        """
        n_frames, n_rays, _ = directions.shape
        distances, normals = np.empty((n_frames, n_rays)), np.empty(directions.shape)
        hit = np.empty((n_frames, n_rays), np.int32)

        def ray(k: int, number: int, start: float = 0.0) -> None:
            direction = directions[k, number]
            found = mujoco.mj_ray(
                self._model, data, origins[k, number] + start * direction, direction, self._groups,
                True, self._first[frames[k]], hit[k, number : number + 1], normals[k, number],
            )  # fmt: skip
            distances[k, number] = start + found if found >= 0 else -1.0

        for k, frame in enumerate(frames.tolist()):
            if not one_origin:
                for number in range(n_rays):
                    ray(k, number)
                continue
            mujoco.mj_multiRay(
                m=self._model,
                d=data,
                pnt=origins[k, 0],
                vec=directions[k].reshape(-1),
                geomgroup=self._groups,
                flg_static=True,
                bodyexclude=self._first[frame],
                geomid=hit[k],
                dist=distances[k],
                normal=normals[k].reshape(-1),
                nray=n_rays,
                cutoff=mujoco.mjMAXVAL,  # less is faster, but then 3.17 misses nearer geoms, too
            )
        for k, number in np.argwhere(self._passes[frames[:, None], hit]).tolist():
            while self._passes[frames[k], hit[k, number]]:
                ray(k, number, distances[k, number] + _PASS)
        missed = (distances < 0.0) | (distances > self._longest)
        distances[missed], normals[missed] = -1.0, 0.0
        return distances, normals


class Rangefinder:
    """The range sensors of all drones, exact along a ray.

    A ray starts at the site "range" of a drone, points along its x axis, and hits everything except
    the drone itself and geoms of group 2, which by MuJoCo's convention are only visual.

    `mujoco.mj_ray` compares a ray with each geom of the model: a thousand range sensors of a
    thousand drones took 0.1 s. Among many geoms, a ray is cast only at those whose bounding spheres
    it meets; the results are the same, because the nearest geom is one of them.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`.
        names: Names of the drones.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self._model = model
        self._sites = np.array([model.site(f"range:{name}").id for name in names])
        self._bodies = np.array([model.body(f"drone:{name}").id for name in names])
        self._groups = np.ones(mujoco.mjNGROUP, np.uint8)
        self._groups[[_DRAWINGS, UNUSED_GROUP]] = 0
        alpha = np.where(
            model.geom_matid < 0,
            model.geom_rgba[:, 3],
            np.append(model.mat_rgba[:, 3], 1.0)[model.geom_matid],
        )
        group = np.clip(model.geom_group, 0, mujoco.mjNGROUP - 1)
        hit = (alpha != 0) & (self._groups[group] != 0)
        radius = np.where(model.geom_rbound == 0, np.inf, model.geom_rbound)  # of planes
        self._radius = radius * (1 + _ROUNDING) + _ROUNDING
        self._small = np.flatnonzero(hit & (radius < _SMALL))
        self._large = np.flatnonzero(hit & (radius >= _SMALL))
        self._are_many = hit.sum() > _MANY and not model.nflex

    def read(self, data: mujoco.MjData, rows: Rows = ALL) -> np.ndarray:
        """Return distances [m], (M,), infinite beyond the longest range of a VL53L1X.

        Args:
            data: Data with current frames.
            rows: Drones of which to read the sensors.
        """
        # Copies, because MuJoCo's binding needs ten times as long for rows of a view as
        # for the ray.
        sites = self._sites[rows]
        origins = data.site_xpos[sites]
        axes = data.site_xmat.reshape(-1, 3, 3)[sites, :, 0]
        return self._cast(data, origins, axes, self._bodies[rows])

    def read_around(self, data: mujoco.MjData, rows: Rows = ALL) -> np.ndarray:
        """Return distances [m] to the front, back, left, right and top, (M, 5), as `read` does.

        These rays start at the centre of mass.
        """
        drones, n = self._bodies[rows], len(MULTI_RANGER)
        turns = data.xmat.reshape(-1, 3, 3)[drones]
        axes = np.ascontiguousarray(np.einsum("mij,kj->mki", turns, MULTI_RANGER).reshape(-1, 3))
        origins, bodies = np.repeat(data.xpos[drones], n, axis=0), np.repeat(drones, n)
        return self._cast(data, origins, axes, bodies).reshape(-1, n)

    def matter_before(self, data: mujoco.MjData, points: np.ndarray) -> np.ndarray:
        """Return how much stands between the drones and points [m], (M, K); 0 if nothing does.

        It is the way from the first surface to the last, so that of two walls what is between them
        counts, too. Other drones hide what is behind them; the last 2 cm are free, for points that
        are mounted on a wall.

        Args:
            data: Data with current frames.
            points: (K, 3) m.
        """
        matter = np.zeros((len(self._bodies), len(points)))
        for row, (body, start) in enumerate(zip(self._bodies.tolist(), data.xpos[self._bodies])):
            for i, way in enumerate(points - start):
                length = float(np.linalg.norm(way))
                if length == 0.0:
                    continue
                there = way / length
                first = self._cast_at_all(data, start, there, body)
                if 0 <= first < length - _MOUNT:
                    last = self._cast_at_all(data, points[i], -there, body)
                    matter[row, i] = max(length - first - last, _PASS)
        return matter

    def _cast(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray, bodies: np.ndarray
    ) -> np.ndarray:
        """Cast n rays, each of which passes through a body."""
        if self._are_many:
            distances = self._cast_near(data, origins, axes, bodies)
        else:
            rays = zip(origins, axes, bodies.tolist())
            distances = np.array([self._cast_at_all(data, *ray) for ray in rays])
        distances[(distances < 0) | (distances > VL53L1X_MAX_RANGE)] = np.inf
        return distances

    def _cast_at_all(
        self, data: mujoco.MjData, origin: np.ndarray, axis: np.ndarray, body: int
    ) -> float:
        """Return the distance [m] along a ray, negative where it hits nothing."""
        return mujoco.mj_ray(self._model, data, origin, axis, self._groups, 1, body, None)

    def _cast_near(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray, bodies: np.ndarray
    ) -> np.ndarray:
        """Return distances [m], (n,), correct up to the longest range; infinite without a hit."""
        rays, geoms = self._candidates(data, origins, axes)
        own = self._model.geom_bodyid[geoms] == bodies[rays]
        rays, geoms = rays[~own], geoms[~own]
        types = self._model.geom_type[geoms]
        is_other = np.isin(types, _OTHERS)
        distances = np.full(len(origins), np.inf)
        for ray in np.unique(rays[is_other]).tolist():
            found = self._cast_at_all(data, origins[ray], axes[ray], int(bodies[ray]))
            distances[ray] = found if found >= 0 else np.inf
        rays, geoms, types = (x[~is_other] for x in (rays, geoms, types))
        shapes = data.geom_xpos[geoms], data.geom_xmat[geoms], self._model.geom_size[geoms]
        given = zip(*shapes, origins[rays], axes[rays], types.tolist())
        entries = np.array([mujoco.mju_rayGeom(*each) for each in given])
        np.minimum.at(distances, rays, np.where(entries < 0, np.inf, entries))
        return distances

    def _candidates(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of rays and geoms whose bounding spheres they meet."""
        longest = VL53L1X_MAX_RANGE
        small = self._small[np.argsort(data.geom_xpos[self._small, 0])]
        x, ends = data.geom_xpos[small, 0], origins[:, 0] + longest * axes[:, 0]
        reach = self._radius[small].max(initial=0.0)
        first = np.searchsorted(x, np.minimum(origins[:, 0], ends) - reach)
        counts = np.searchsorted(x, np.maximum(origins[:, 0], ends) + reach) - first
        places = np.arange(counts.sum()) + np.repeat(first - counts.cumsum() + counts, counts)
        every = np.arange(len(origins))
        rays = np.concatenate((np.repeat(every, counts), np.repeat(every, len(self._large))))
        geoms = np.concatenate((small[places], np.tile(self._large, len(origins))))
        between = data.geom_xpos[geoms] - origins[rays]
        own = axes[rays]
        along = np.clip((between * own).sum(axis=1), 0, longest)
        away = between - along[:, None] * own
        meets = (away**2).sum(axis=1) <= self._radius[geoms] ** 2
        return rays[meets], geoms[meets]
