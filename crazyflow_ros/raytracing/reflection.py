"""The mirror of a scene.

MuJoCo mirrors the scene in one geom, the first one that reflects: in a plane, or in the upper face
of a box. What is seen there is the picture of a camera behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.tracer import Frames, Hits, Tracer
from crazyflow_ros.raytracing.unit_shapes import Opacity, seen

_FLAT = 1e-3  # of the distance, by which points of the mirror may be beside it


class MirrorFace(NamedTuple):
    """The upper face of a geom."""

    geom: int
    """Id of the geom."""
    height: float
    """Where the face is, along the z axis of the geom [m]."""
    reflectance: float
    """Share of the light of other geoms that is seen."""

    def cameras(self, geoms: Frames, cameras: Frames) -> Frames:
        """Return the cameras behind the mirror, whose axes are left-handed."""
        point, normal = self._face(geoms)
        away = (normal * (cameras.pos - point)).sum(-1, keepdims=True)
        along = (normal[..., None] * cameras.axes).sum(-2, keepdims=True)
        return Frames(cameras.pos - 2 * away * normal, cameras.axes - 2 * normal[..., None] * along)

    def depths(self, tracer: Tracer, hits: Hits, geoms: Frames, cameras: Frames) -> Array:
        """Return how far away the mirror is, (N, height, width) m; infinite where it is not seen.

        Args:
            tracer: Of what is opaque.
            hits: What it found.
            geoms: See `Tracer.hits`.
            cameras: See `Tracer.hits`.
        """
        point, normal = self._face(geoms)
        across, up, back = ((normal * cameras.axes[..., i]).sum(-1) for i in range(3))
        above = (normal * (cameras.pos - point)).sum(-1)
        across, up, back, above = (part[:, None, None] for part in (across, up, back, above))
        rays = jax.tree.map(tracer.tiles.pictures, tracer.tiles.rays)
        beside, along = across * rays.x + up * rays.y, back * -rays.ahead
        flat = tracer.tiles.orthographic
        distance = (above + beside) / back if flat else above / (along - beside)
        here = (tracer.segmentation(hits) == self.geom) & (above > 0.0)
        here &= abs(hits.depth - distance) <= _FLAT * distance
        return jnp.where(here, hits.depth, jnp.inf)

    def _face(self, geoms: Frames) -> tuple[Array, Array]:
        """Return points of the faces, and their normals, (N, 3)."""
        normal = geoms.axes[:, self.geom, :, 2]
        return geoms.pos[:, self.geom] + self.height * normal, normal


def mirror_of(model: mujoco.MjModel, groups: Sequence[int]) -> MirrorFace | None:
    """Return the mirror of a scene, None if it has none."""
    if not model.nmat:
        return None
    share = np.append(model.mat_reflectance, 0.0)[model.geom_matid]
    flat = np.isin(model.geom_type, [mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_BOX])
    mirrors = np.flatnonzero(seen(model, groups, Opacity.opaque) & flat & (share > 0.0))
    if not mirrors.size:
        return None
    geom = int(mirrors[0])
    is_box = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX
    return MirrorFace(geom, float(model.geom_size[geom, 2]) if is_box else 0.0, float(share[geom]))
