"""The visible shapes of a model, for viewers other than MuJoCo's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from types import MappingProxyType

import mujoco
import numpy as np

from crazyflow_ros.scene.drone_bodies import DRONE
from crazyflow_ros.scene.frames import multiply, rotation_matrix, wxyz_to_xyzw

_GROUPS = 3  # MuJoCo's viewers show the geom groups 0, 1 and 2
_INFINITE = 100.0  # m, extent of a plane that MuJoCo draws up to the horizon
_THIN = 0.001  # m, thickness of a plane
_UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


class ShapeForm(StrEnum):
    """Form of a shape: a primitive about its centre, or triangles."""

    BOX = auto()
    SPHERE = auto()
    """Also an ellipsoid."""
    CYLINDER = auto()
    """About the z axis."""
    MESH = auto()


@dataclass(frozen=True, eq=False)
class VisibleShape:
    """One visible shape."""

    form: ShapeForm
    position: np.ndarray
    """Position of the centre in the frame of the body or the world [m], shape (3,)."""
    attitude: np.ndarray
    """Quaternion xyzw, shape (4,)."""
    size: np.ndarray
    """Full extents [m], shape (3,); ones for a mesh."""
    rgba: np.ndarray
    """Colour and opacity from 0 to 1, shape (4,)."""
    triangles: np.ndarray | None = None
    """Corners of a mesh [m], shape (n, 3, 3), counter-clockwise seen from outside."""
    frame: str = ""
    """Frame of the moving body to which the shape belongs, see `MovingFrames`; empty for others."""


def world_shapes(
    model: mujoco.MjModel, moving: Mapping[int, str] = MappingProxyType({})
) -> list[VisibleShape]:
    """Return the shapes of everything that is not a drone, in the world frame.

    Args:
        model: The model.
        moving: Frames of bodies that move, by their numbers; their shapes are in these frames.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    shapes: list[VisibleShape] = []
    for geom in range(model.ngeom):
        root = model.body(model.body_rootid[model.geom_bodyid[geom]]).name
        if root.startswith(DRONE) or not _is_visible(model, geom):
            continue
        if frame := moving.get(int(model.geom_bodyid[geom])):
            shapes.extend(replace(shape, frame=frame) for shape in _in_body(model, geom))
            continue
        attitude = np.empty(4)
        mujoco.mju_mat2Quat(attitude, data.geom_xmat[geom])
        pose = data.geom_xpos[geom].copy(), wxyz_to_xyzw(attitude)
        shapes.extend(_shapes(model, geom, *pose))
    return shapes


def body_shapes(model: mujoco.MjModel, body: str) -> list[VisibleShape]:
    """Return the shapes of one body, in its frame, without those of bodies below it."""
    first, count = model.body(body).geomadr[0], model.body(body).geomnum[0]
    shapes: list[VisibleShape] = []
    for geom in range(first, first + count):
        if _is_visible(model, geom):
            shapes.extend(_in_body(model, geom))
    return shapes


def drone_shapes(model: mujoco.MjModel, name: str) -> list[VisibleShape]:
    """Return the shapes of a drone in its own frame, with its rotors at rest."""
    data, root = mujoco.MjData(model), model.body(f"{DRONE}{name}").id
    mujoco.mj_kinematics(model, data)
    back = data.xmat[root].reshape(3, 3).T
    upright = wxyz_to_xyzw(data.xquat[root]) * (-1, -1, -1, 1)
    shapes: list[VisibleShape] = []
    for body in np.flatnonzero(model.body_rootid == root).tolist():
        place = back @ (data.xpos[body] - data.xpos[root])
        attitude = multiply(upright, wxyz_to_xyzw(data.xquat[body]))
        shapes.extend(moved(body_shapes(model, model.body(body).name), place, attitude))
    return shapes


def _in_body(model: mujoco.MjModel, geom: int) -> Iterator[VisibleShape]:
    """Yield the shapes of a geom in the frame of its body."""
    return _shapes(model, geom, model.geom_pos[geom].copy(), wxyz_to_xyzw(model.geom_quat[geom]))


def moved(
    shapes: Iterable[VisibleShape], position: np.ndarray, attitude: np.ndarray
) -> Iterator[VisibleShape]:
    """Express shapes in another frame, in which their own frame has the given pose."""
    rotation = rotation_matrix(attitude)
    for shape in shapes:
        yield replace(
            shape,
            position=position + rotation @ shape.position,
            attitude=multiply(attitude, shape.attitude),
        )


def _is_visible(model: mujoco.MjModel, geom: int) -> bool:
    return bool(model.geom_group[geom] < _GROUPS and _rgba(model, geom)[3] > 0)


def _shapes(
    model: mujoco.MjModel, geom: int, position: np.ndarray, attitude: np.ndarray
) -> Iterator[VisibleShape]:
    """Yield the shapes of one geom: a capsule is three."""
    rgba, size = _rgba(model, geom), model.geom_size[geom].copy()

    def shape(
        form: ShapeForm, size: np.ndarray, triangles: np.ndarray | None = None
    ) -> VisibleShape:
        return VisibleShape(form, position, attitude, size, rgba, triangles)

    match mujoco.mjtGeom(model.geom_type[geom]):
        case mujoco.mjtGeom.mjGEOM_BOX:
            yield shape(ShapeForm.BOX, 2 * size)
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            yield shape(ShapeForm.SPHERE, np.full(3, 2 * size[0]))
        case mujoco.mjtGeom.mjGEOM_ELLIPSOID:
            yield shape(ShapeForm.SPHERE, 2 * size)
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            yield shape(ShapeForm.CYLINDER, 2 * size[[0, 0, 1]])
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            yield shape(ShapeForm.CYLINDER, 2 * size[[0, 0, 1]])
            ball = VisibleShape(
                ShapeForm.SPHERE, np.zeros(3), _UPRIGHT, np.full(3, 2 * size[0]), rgba
            )
            for end in (-size[1], size[1]):
                cap = replace(ball, position=np.array([0.0, 0.0, end]))
                yield from moved([cap], position, attitude)
        case mujoco.mjtGeom.mjGEOM_PLANE:
            extents = np.where(size[:2] > 0, 2 * size[:2], _INFINITE)
            below = position - rotation_matrix(attitude)[:, 2] * _THIN / 2  # its top is the plane
            yield replace(shape(ShapeForm.BOX, np.append(extents, _THIN)), position=below)
        case mujoco.mjtGeom.mjGEOM_MESH | mujoco.mjtGeom.mjGEOM_SDF:
            yield shape(ShapeForm.MESH, np.ones(3), mesh_corners(model, model.geom_dataid[geom]))
        case mujoco.mjtGeom.mjGEOM_HFIELD:
            yield shape(ShapeForm.MESH, np.ones(3), _height_field(model, model.geom_dataid[geom]))


def mesh_corners(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Return the corners of the triangles of a mesh in its frame [m], (n, 3, 3)."""
    vertices, faces = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
    corners = model.mesh_face[faces : faces + model.mesh_facenum[mesh]]
    return np.asarray(model.mesh_vert[vertices + corners], float)


def height_field_points(model: mujoco.MjModel, field: int) -> np.ndarray:
    """Return the points of the surface of a height field in its frame [m], (rows, columns, 3)."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    first = model.hfield_adr[field]
    half_x, half_y, height, _ = model.hfield_size[field]
    x, y = np.meshgrid(np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows))
    data = model.hfield_data[first : first + rows * columns].reshape(rows, columns)
    return np.stack([x, y, height * data], axis=-1)


def _height_field(model: mujoco.MjModel, field: int) -> np.ndarray:
    """Return the upper surface of a height field, two triangles for each cell."""
    points = height_field_points(model, field)
    near, far = points[:-1], points[1:]
    a, b, c, d = near[:, :-1], near[:, 1:], far[:, 1:], far[:, :-1]
    return np.stack([np.stack([a, b, c], 2), np.stack([a, c, d], 2)], 2).reshape(-1, 3, 3)


def _rgba(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the colour of a geom, (4,); a texture counts with its mean colour."""
    material = int(model.geom_matid[geom])
    if material < 0:
        return np.clip(model.geom_rgba[geom].astype(float), 0, 1)
    return material_rgba(model, material)


def material_rgba(model: mujoco.MjModel, material: int) -> np.ndarray:
    """Return the colour of a material, (4,); a texture counts with its mean colour."""
    rgba = np.clip(model.mat_rgba[material].astype(float), 0, 1)
    for texture in textures_of(model, material):
        channels = int(model.tex_nchannel[texture])
        first = model.tex_adr[texture]
        count = model.tex_height[texture] * model.tex_width[texture] * channels
        texels = model.tex_data[first : first + count].reshape(-1, channels)
        rgba[:3] *= texels.mean(axis=0)[[0, 1, 2] if channels >= 3 else [0, 0, 0]] / 255
    return rgba


def textures_of(model: mujoco.MjModel, material: int) -> list[int]:
    """Return the textures that colour a material."""
    roles = (mujoco.mjtTextureRole.mjTEXROLE_RGB, mujoco.mjtTextureRole.mjTEXROLE_RGBA)
    textures = [int(model.mat_texid[material, int(role)]) for role in roles]
    return [texture for texture in textures if texture >= 0]
