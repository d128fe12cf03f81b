"""Rays among many geoms, each cast only at those that it may hit.

`mujoco.mj_ray` compares a ray with each geom of the model: a thousand range sensors of a thousand
drones took 0.1 s. The results are the same, because the nearest geom is among those that are cast.
"""

from __future__ import annotations

import mujoco
import numpy as np

_SMALL = 0.5  # m, radius of geoms that are looked up by their place
_ROUNDING = 1e-6
_OTHERS = (mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF)


class ShortRays:
    """Casts rays of limited length.

    Args:
        model: The model.
        groups: (6,) which geom groups rays hit, as for `mujoco.mj_ray`.
        longest: Length of the rays [m].
    """

    def __init__(self, model: mujoco.MjModel, groups: np.ndarray, longest: float) -> None:
        self._model, self._groups, self._longest = model, groups, longest
        alpha = np.where(
            model.geom_matid < 0,
            model.geom_rgba[:, 3],
            np.append(model.mat_rgba[:, 3], 1.0)[model.geom_matid],
        )
        group = np.clip(model.geom_group, 0, mujoco.mjNGROUP - 1)
        hit = (alpha != 0) & (groups[group] != 0)
        radius = np.where(model.geom_rbound == 0, np.inf, model.geom_rbound)  # of planes
        self._radius = radius * (1 + _ROUNDING) + _ROUNDING
        self._small = np.flatnonzero(hit & (radius < _SMALL))
        self._large = np.flatnonzero(hit & (radius >= _SMALL))

    @property
    def n_geoms(self) -> int:
        """Number of geoms that rays hit."""
        return len(self._small) + len(self._large)

    def cast(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray, bodies: np.ndarray
    ) -> np.ndarray:
        """Return distances [m], (n,); at most those up to the limited length are right.

        Args:
            data: Data with current frames.
            origins: (n, 3) m.
            axes: (n, 3) unit vectors.
            bodies: (n,) the body that each ray passes through.

        Returns:
            Infinity where a ray hits nothing.
        """
        rays, geoms = self._candidates(data, origins, axes)
        own = self._model.geom_bodyid[geoms] == bodies[rays]
        rays, geoms = rays[~own], geoms[~own]
        types = self._model.geom_type[geoms]
        is_other = np.isin(types, _OTHERS)
        distances = np.full(len(origins), np.inf)
        for ray in np.unique(rays[is_other]).tolist():
            distances[ray] = self._cast_at_all(data, origins[ray], axes[ray], int(bodies[ray]))
        rays, geoms, types = (x[~is_other] for x in (rays, geoms, types))
        shapes = data.geom_xpos[geoms], data.geom_xmat[geoms], self._model.geom_size[geoms]
        found = np.array(
            [
                mujoco.mju_rayGeom(*given)
                for given in zip(*shapes, origins[rays], axes[rays], types.tolist())
            ]
        )
        np.minimum.at(distances, rays, np.where(found < 0, np.inf, found))
        return distances

    def _cast_at_all(
        self, data: mujoco.MjData, origin: np.ndarray, axis: np.ndarray, body: int
    ) -> float:
        found = mujoco.mj_ray(self._model, data, origin, axis, self._groups, 1, body, None)
        return float(found) if found >= 0 else np.inf

    def _candidates(
        self, data: mujoco.MjData, origins: np.ndarray, axes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of rays and geoms whose bounding spheres they meet."""
        small = self._small[np.argsort(data.geom_xpos[self._small, 0])]
        x, ends = data.geom_xpos[small, 0], origins[:, 0] + self._longest * axes[:, 0]
        reach = self._radius[small].max(initial=0.0)
        first = np.searchsorted(x, np.minimum(origins[:, 0], ends) - reach)
        counts = np.searchsorted(x, np.maximum(origins[:, 0], ends) + reach) - first
        places = np.arange(counts.sum()) + np.repeat(first - counts.cumsum() + counts, counts)
        every = np.arange(len(origins))
        rays = np.concatenate((np.repeat(every, counts), np.repeat(every, len(self._large))))
        geoms = np.concatenate((small[places], np.tile(self._large, len(origins))))
        between = data.geom_xpos[geoms] - origins[rays]
        own = axes[rays]
        along = np.clip((between * own).sum(axis=1), 0, self._longest)
        away = between - along[:, None] * own
        meets = (away**2).sum(axis=1) <= self._radius[geoms] ** 2
        return rays[meets], geoms[meets]
