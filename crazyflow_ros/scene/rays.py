"""Ray casting in C MuJoCo, for frames with many rays and for the range sensors of all drones.

Two more ray casters are parts of compiled functions: MJX's for batched worlds, in
`sensors.mjx_backend`, and that of pictures, in `raytracing`, which culls what a tile cannot show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import mujoco
import numpy as np

from crazyflow_ros.drones.deck_optics import N_RAYS, cone, nearest_target, reach
from crazyflow_ros.drones.instruments import (
    MULTI_RANGER,
    VL53L1X_FIELD_OF_VIEW,
    VL53L1X_MAX_RANGE,
)
from crazyflow_ros.scene.groups import DRAWINGS, UNUSED_GROUP
from crazyflow_ros.scene.surfaces import surfaces

Rows: TypeAlias = slice | list[int]
ALL = slice(None)

_PASS = 1e-9  # m, past the surface of an excluded geom
_MOUNT = 0.02  # m, in which what a point is mounted on does not count
_MANY = 128  # up to this many geoms, each ray of a range sensor is cast at all of them
_SMALL = 0.5  # m, radius of geoms that are looked up by their place
_ROUNDING = 1e-6
_FORWARD = np.array([cone((1.0, 0.0, 0.0))])
_AROUND = np.array([cone(direction) for direction in MULTI_RANGER])
_OTHERS = (mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF)


class FrameRays:
    """Casts the rays of F frames in one world.

    Args:
        model: The model.
        excluded: For each frame the bodies whose geoms its rays pass through.
        groups: (6,) uint8, which geom groups rays hit.
        longest: Longest distance of a hit [m], one number or one for each geom.
        reflectance: (ngeom,) reflectances if hits are as far as a VL53L1X sees; None if not.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        excluded: Sequence[Sequence[int]],
        groups: np.ndarray,
        longest: float | np.ndarray,
        reflectance: np.ndarray | None = None,
    ) -> None:
        self._model, self._groups = model, groups
        self._reflectance = None if reflectance is None else np.append(reflectance, 0.0)
        self._longest = np.append(np.broadcast_to(longest, model.ngeom), 0.0)  # last: no geom
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
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cast R rays of each of K frames.

        Args:
            data: Data with current frames.
            origins: (K, R, 3) m.
            directions: (K, R, 3) unit vectors.
            frames: (K,) numbers of the frames, which may repeat.
            one_origin: The rays of a frame all start at the same point, which is faster.

        Returns:
            Distances (K, R) [m], -1 where nothing is hit, normals (K, R, 3), zero there, and
            geoms (K, R), also those beyond the longest distance, -1 where there is none.
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
        missed = (distances < 0.0) | (distances > self._longest[hit])
        if self._reflectance is not None:
            cosines = np.abs((normals * directions).sum(axis=-1))
            missed |= distances > reach(self._reflectance[hit], cosines)
        distances[missed], normals[missed] = -1.0, 0.0
        return distances, normals, hit


class Rangefinder:
    """The range sensors of all drones: the nearest target that a VL53L1X sees in its cone.

    A cone starts at the site "range" of a drone, about its x axis. It is a bundle of rays, each of
    which hits everything except the drone itself and geoms of group 2, which by MuJoCo's convention
    are only visual. A ray sees what it hits up to a distance that depends on the reflectance and
    incidence there, see `deck_optics.reach`.

    MuJoCo compares a ray with each geom of the model. Among many geoms, a ray is cast only at those
    whose bounding spheres it meets; the results are the same, because the nearest geom is one of
    them.

    Args:
        model: Compiled from `build_spec(..., mocap=False)`.
        names: Names of the drones.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self._model = model
        self._sites = np.array([model.site(f"range:{name}").id for name in names])
        self._bodies = np.array([model.body(f"drone:{name}").id for name in names])
        self._groups = np.ones(mujoco.mjNGROUP, np.uint8)
        self._groups[[DRAWINGS, UNUSED_GROUP]] = 0
        self._reflectance = np.append(surfaces(model)[:, 0], 0.0)  # last: no geom
        alpha = np.where(
            model.geom_matid < 0,
            model.geom_rgba[:, 3],
            np.append(model.mat_rgba[:, 3], 1.0)[model.geom_matid],
        )
        group = np.clip(model.geom_group, 0, mujoco.mjNGROUP - 1)
        hit = (alpha != 0) & (self._groups[group] != 0)
        is_plane = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        self._radius = model.geom_rbound * (1 + _ROUNDING) + _ROUNDING
        self._planes = np.flatnonzero(hit & is_plane).tolist()
        self._small = np.flatnonzero(hit & ~is_plane & (model.geom_rbound < _SMALL))
        self._large = np.flatnonzero(hit & ~is_plane & (model.geom_rbound >= _SMALL))
        self._are_many = hit.sum() > _MANY and not model.nflex

    def read(self, data: mujoco.MjData, rows: Rows = ALL) -> np.ndarray:
        """Return distances [m], (M,), infinite where nothing is seen.

        Args:
            data: Data with current frames.
            rows: Drones of which to read the sensors.
        """
        sites = self._sites[rows]
        turns = data.site_xmat.reshape(-1, 3, 3)[sites]
        return self._cast(data, data.site_xpos[sites], turns, self._bodies[rows], _FORWARD)[:, 0]

    def read_around(self, data: mujoco.MjData, rows: Rows = ALL) -> np.ndarray:
        """Return distances [m] to the front, back, left, right and top, (M, 5), as `read` does.

        These cones start at the centre of mass.
        """
        drones = self._bodies[rows]
        turns = data.xmat.reshape(-1, 3, 3)[drones]
        return self._cast(data, data.xpos[drones], turns, drones, _AROUND)

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
                first = self._cast_one(data, start, there, body)
                if 0 <= first < length - _MOUNT:
                    last = self._cast_one(data, points[i], -there, body)
                    matter[row, i] = max(length - first - last, _PASS)
        return matter

    def _cast_one(
        self, data: mujoco.MjData, origin: np.ndarray, axis: np.ndarray, body: int
    ) -> float:
        """Return the distance [m] along a ray, negative where it hits nothing."""
        return mujoco.mj_ray(self._model, data, origin, axis, self._groups, 1, body, None)

    def _cast(
        self,
        data: mujoco.MjData,
        origins: np.ndarray,
        turns: np.ndarray,
        bodies: np.ndarray,
        cones: np.ndarray,
    ) -> np.ndarray:
        """Return the readings (M, n) of n cones (n, R, 3) at origins (M, 3) with axes (M, 3, 3)."""
        n, rays = cones.shape[:2]
        axes = np.einsum("mij,nrj->mnri", turns, cones).reshape(len(origins), -1, 3)
        cast = self._cast_near if self._are_many else self._cast_at_all
        distances, geoms, normals = cast(data, origins, np.ascontiguousarray(axes), bodies)
        cosines = np.abs((normals * axes).sum(axis=-1))
        seen = (distances >= 0) & (distances <= reach(self._reflectance[geoms], cosines))
        bundles = np.where(seen, distances, np.inf).reshape(-1, n, rays)
        nearest: np.ndarray = nearest_target(np.moveaxis(bundles, 2, 0))
        return nearest

    def _cast_at_all(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray, bodies: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return distances [m] along rays (M, R, 3), negative without a hit, geoms, normals."""
        distances, geoms = np.empty(axes.shape[:2]), np.empty(axes.shape[:2], np.int32)
        normals = np.empty(axes.shape)
        for row, (origin, body) in enumerate(zip(origins, bodies.tolist())):
            mujoco.mj_multiRay(
                m=self._model,
                d=data,
                pnt=origin,
                vec=axes[row].reshape(-1),
                geomgroup=self._groups,
                flg_static=True,
                bodyexclude=body,
                geomid=geoms[row],
                dist=distances[row],
                normal=normals[row].reshape(-1),
                nray=axes.shape[1],
                cutoff=mujoco.mjMAXVAL,  # as in `FrameRays`
            )
        return distances, geoms, normals

    def _cast_near(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray, bodies: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the same as `_cast_at_all`, correct up to the longest reach; infinite beyond."""
        shape, model = axes.shape[:2], self._model
        origins, bodies = (np.repeat(x, shape[1], axis=0) for x in (origins, bodies))
        axes = axes.reshape(-1, 3)
        distances, hits = np.full(len(axes), np.inf), np.full(len(axes), -1)
        normals = np.zeros_like(axes)
        for plane in self._planes:
            found = self._to_plane(data, plane, origins, axes)
            nearer = found < distances
            distances[nearer], hits[nearer] = found[nearer], plane
            normals[nearer] = data.geom_xmat[plane].reshape(3, 3)[:, 2]
        cones, geoms = self._in_view(data, origins[::N_RAYS], axes[::N_RAYS])
        own = model.geom_bodyid[geoms] == bodies[cones * N_RAYS]
        cones, geoms = cones[~own], geoms[~own]
        per_row = shape[1] // N_RAYS
        others = np.unique(cones[np.isin(model.geom_type[geoms], _OTHERS)] // per_row)
        ours = ~np.isin(cones // per_row, others)
        rays = (cones[ours, None] * N_RAYS + np.arange(N_RAYS)).ravel()
        rays, geoms = self._meet(data, origins, axes, rays, np.repeat(geoms[ours], N_RAYS))
        types = model.geom_type[geoms]
        shapes = data.geom_xpos[geoms], data.geom_xmat[geoms], model.geom_size[geoms]
        theirs = np.zeros((len(rays), 3))
        given = zip(*shapes, origins[rays], axes[rays], types.tolist(), theirs)
        entries = np.array([mujoco.mju_rayGeom(*each) for each in given])
        entries = np.where(entries < 0, np.inf, entries)
        before = distances.copy()
        np.minimum.at(distances, rays, entries)
        nearest = (entries == distances[rays]) & (entries < before[rays])
        hits[rays[nearest]], normals[rays[nearest]] = geoms[nearest], theirs[nearest]
        flat = distances, hits, normals, axes
        distances, hits, normals, axes = (x.reshape(*shape, *x.shape[1:]) for x in flat)
        first = others * shape[1]
        way = origins[first], axes[others], bodies[first]
        distances[others], hits[others], normals[others] = self._cast_at_all(data, *way)
        return distances, hits, normals

    def _to_plane(
        self, data: mujoco.MjData, plane: int, origins: np.ndarray, axes: np.ndarray
    ) -> np.ndarray:
        """Return distances [m] along rays to a plane from above, infinite where they miss it."""
        turn = data.geom_xmat[plane].reshape(3, 3)
        o, d = (origins - data.geom_xpos[plane]) @ turn, axes @ turn
        way = -o[:, 2] / np.minimum(d[:, 2], -mujoco.mjMINVAL)
        half = self._model.geom_size[plane, :2]
        there = np.abs(o[:, :2] + way[:, None] * d[:, :2])
        meets = (d[:, 2] < -mujoco.mjMINVAL) & (way >= 0)
        meets &= ((there <= half) | (half <= 0)).all(axis=1)
        found: np.ndarray = np.where(meets, way, np.inf)
        return found

    def _in_view(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of cones (C, 3) and geoms whose bounding spheres they meet, not planes."""
        longest, half = VL53L1X_MAX_RANGE, VL53L1X_FIELD_OF_VIEW / 2
        small = self._small[np.argsort(data.geom_xpos[self._small, 0])]
        x, ends = data.geom_xpos[small, 0], origins[:, 0] + longest * axes[:, 0]
        widest = self._radius[small].max(initial=0.0) + longest * math.tan(half)
        first = np.searchsorted(x, np.minimum(origins[:, 0], ends) - widest)
        counts = np.searchsorted(x, np.maximum(origins[:, 0], ends) + widest) - first
        places = np.arange(counts.sum()) + np.repeat(first - counts.cumsum() + counts, counts)
        every = np.arange(len(origins))
        cones = np.concatenate((np.repeat(every, counts), np.repeat(every, len(self._large))))
        geoms = np.concatenate((small[places], np.tile(self._large, len(origins))))
        between, radius = data.geom_xpos[geoms] - origins[cones], self._radius[geoms]
        along = (between * axes[cones]).sum(axis=1)
        across = np.sqrt(np.maximum((between**2).sum(axis=1) - along**2, 0.0))
        meets = (along > -radius) & (along < longest + radius)
        meets &= across <= np.maximum(along, 0.0) * math.tan(half) + radius / math.cos(half)
        return cones[meets], geoms[meets]

    def _meet(
        self,
        data: mujoco.MjData,
        origins: np.ndarray,
        axes: np.ndarray,
        rays: np.ndarray,
        geoms: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return those pairs of rays and geoms whose bounding spheres the rays meet."""
        between, own = data.geom_xpos[geoms] - origins[rays], axes[rays]
        along = np.clip((between * own).sum(axis=1), 0, VL53L1X_MAX_RANGE)
        away = between - along[:, None] * own
        meets = (away**2).sum(axis=1) <= self._radius[geoms] ** 2
        return rays[meets], geoms[meets]
