"""The world and the drones of a film, as a MuJoCo model whose geoms each picture places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from crazyflow_ros.scene.frames import rotation_matrix, xyzw_to_wxyz
from crazyflow_ros.scene.moving_frames import Poses
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape, moved
from crazyflow_ros.view.backdrop import outward_of, scenery_of
from crazyflow_ros.view.frame import Looks
from crazyflow_ros.view.replay.share.film_camera import FOV
from crazyflow_ros.view.swarm import color_of

_AWAY = np.array([0.0, 0.0, -1e3])  # m, where nobody sees it
_GEOMS = {
    ShapeForm.BOX: mujoco.mjtGeom.mjGEOM_BOX,
    ShapeForm.SPHERE: mujoco.mjtGeom.mjGEOM_ELLIPSOID,
    ShapeForm.CYLINDER: mujoco.mjtGeom.mjGEOM_CYLINDER,
    ShapeForm.MESH: mujoco.mjtGeom.mjGEOM_MESH,
}
_LEVEL = np.array([0.0, 0.0, 0.0, 1.0])
_TILE = 1.0  # m, of the floor
_SCENE = """<mujoco>
  <visual>
    <headlight ambient=".35 .36 .38" diffuse=".25 .25 .25" specular="0 0 0"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".93 .96 .98" rgb2=".42 .62 .84"
      width="64" height="384"/>
    <texture name="floor" type="2d" builtin="checker" rgb1=".80 .83 .86" rgb2=".74 .78 .82"
      width="256" height="256"/>
    <material name="floor" texture="floor" texrepeat="1 1" texuniform="true" specular="0"/>
  </asset>
  <worldbody>
    <light type="directional" dir="-.3 .5 -.8" diffuse=".6 .59 .56" specular=".1 .1 .1"
      castshadow="true"/>
  </worldbody>
</mujoco>"""


@dataclass(frozen=True, eq=False)
class _Placed:
    """A geom on what carries it."""

    shape: VisibleShape
    drone: int = -1
    """Number of the drone that carries it; -1 for none."""
    body: str = ""
    """Frame of the body that carries it; empty for none."""
    outward: np.ndarray | None = None
    """Of a wall around the world, the direction out of it, shape (3,)."""


class FilmScene:
    """A world with drones.

    Args:
        world: Shapes of the world.
        looks: How the drones look.
        n_drones: Their number.
        size: Drawn size of the drones as a multiple of their real size.

    Attributes:
        model: The model; a geom of it for each shape, and the camera "film".
        floor: Height of the floor [m].
    """

    def __init__(
        self, world: Sequence[VisibleShape], looks: Looks, n_drones: int, size: float
    ) -> None:
        still = [shape for shape in world if not shape.frame]
        scenery = scenery_of(still)
        self.floor = scenery.floor
        self._placed: list[_Placed] = []
        for shape, outward in zip(scenery.shapes, outward_of(scenery.shapes), strict=True):
            turned = None if outward is None else rotation_matrix(shape.attitude) @ outward
            self._placed.append(_Placed(shape, outward=turned))
        self._placed += [_Placed(shape, body=shape.frame) for shape in world if shape.frame]
        for drone in range(n_drones):
            shapes = _drone_shapes(looks, size, np.array(color_of(drone)) / 255)
            self._placed += [_Placed(shape, drone=drone) for shape in shapes]
        self.model = self._built()

    def _built(self) -> mujoco.MjModel:
        spec = mujoco.MjSpec.from_string(_SCENE)
        spec.worldbody.add_camera(name="film", fovy=float(np.rad2deg(FOV)))
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0, 0, _TILE],
            pos=[0, 0, self.floor],
            material="floor",
        )
        for number, placed in enumerate(self._placed):
            shape, mesh = placed.shape, ""
            if shape.triangles is not None:
                mesh = f"mesh{number}"
                corners = shape.triangles.reshape(-1)
                faces = np.arange(len(corners) // 3)
                spec.add_mesh(
                    name=mesh,
                    uservert=corners.tolist(),
                    userface=faces.tolist(),
                    inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
                )
            spec.worldbody.add_geom(
                type=_GEOMS[shape.form],
                size=[0, 0, 0] if mesh else _half(shape),
                pos=shape.position,
                quat=xyzw_to_wxyz(shape.attitude),
                rgba=shape.rgba,
                meshname=mesh,
            )
        return spec.compile()

    def frames(
        self, position: np.ndarray, attitude: np.ndarray, bodies: Poses | None, eye: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (ngeom, 3) [m] and axes (ngeom, 3, 3) of all geoms in a picture.

        Args:
            position: Of the drones [m], shape (M, 3); NaN for those that are not there.
            attitude: Quaternions xyzw, shape (M, 4).
            bodies: Where bodies of the world are.
            eye: Where the camera is [m], shape (3,): walls between it and the world are not seen.
        """
        model = self.model
        local = model.geom_pos.copy(), model.geom_quat.copy()
        places, axes = local[0], np.empty((model.ngeom, 3, 3))
        rows = {} if bodies is None else {name: row for row, name in enumerate(bodies.names)}
        for geom in range(model.ngeom):
            turn = np.empty(9)
            mujoco.mju_quat2Mat(turn, local[1][geom])
            axes[geom] = turn.reshape(3, 3)
            if geom == 0:  # the floor
                continue
            placed = self._placed[geom - 1]
            at: tuple[np.ndarray, np.ndarray] | None = None
            if placed.drone >= 0:
                at = position[placed.drone], attitude[placed.drone]
            elif placed.body and bodies is not None and placed.body in rows:
                at = bodies.pos[rows[placed.body]], bodies.quat[rows[placed.body]]
            is_hidden = bool(placed.body) and at is None
            if at is not None:
                is_hidden = not np.isfinite(at[0]).all()
                carrier = rotation_matrix(at[1] if not is_hidden else _LEVEL)
                places[geom] = at[0] + carrier @ places[geom]
                axes[geom] = carrier @ axes[geom]
            if placed.outward is not None:
                is_hidden = float(placed.outward @ (eye - placed.shape.position)) > 0
            if is_hidden:
                places[geom] = _AWAY
        return places, axes


def _half(shape: VisibleShape) -> list[float]:
    half = 0.5 * np.asarray(shape.size, float)
    if shape.form is ShapeForm.CYLINDER:
        return [float(half[0]), float(half[2]), 0.0]
    return half.tolist()


def _drone_shapes(looks: Looks, size: float, color: np.ndarray) -> list[VisibleShape]:
    """Return the shapes of a drone, in its frame: its front rotors have its colour."""
    shapes = list(looks.body)
    for rotor in looks.rotors:
        own = list(moved(rotor.shapes, rotor.position, rotor.attitude))
        if rotor.position[0] > 0:
            own = [replace(s, rgba=np.append(color, max(s.rgba[3], 0.6))) for s in own]
        shapes += own
    return [
        replace(
            shape,
            position=size * shape.position,
            size=shape.size if shape.triangles is not None else size * shape.size,
            triangles=None if shape.triangles is None else size * shape.triangles,
        )
        for shape in shapes
    ]
