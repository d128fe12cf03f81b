"""Bodies of the world other than drones, with their tags and descriptions from the MJCF.

In MJCF, a text element "tags:tree" holds the tags of the body or site "tree", separated by spaces,
and "description:tree" its description; "tags" and "description" are those of the world.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.bodies import N_POSITIONS
from crazyflow_ros.scene.frames import body_to_world, multiply, wxyz_to_xyzw
from crazyflow_ros.scene.groups import UNUSED_GROUP
from crazyflow_ros.scene.mirrored_model import BodyMotion

Pose = tuple[np.ndarray, np.ndarray]
"""Position [m], (3,), and attitude xyzw, (4,)."""
Box = tuple[np.ndarray, np.ndarray]
"""Lower and upper corner [m], each (3,)."""


class Site(NamedTuple):
    """A site of the scene."""

    name: str
    pos: np.ndarray
    """Position in the world [m], (3,)."""
    quat: np.ndarray
    """Attitude xyzw, (4,)."""
    shape: int
    """One of `mujoco.mjtGeom`."""
    size: np.ndarray
    """Size in the convention of the shape [m], (3,)."""


_DRONE = "drone:"  # prefix of the bodies of drones
_CORNERS = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T


class Scenery:
    """The scene of the mirror's present model.

    Each body directly below the world, with all its descendants, is an entity.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._boxes: tuple[mujoco.MjModel | None, dict[str, Box]] = None, {}

    def poses(self) -> dict[str, Pose]:
        """Return position [m] and attitude xyzw in the world of all entities by name."""
        return {motion.name: (motion.pos, motion.quat) for motion in self.motions()}

    def motions(self) -> list[BodyMotion]:
        """Return the motion of all entities."""
        return self._mirror.motions()

    def keyframe(self, name: str) -> tuple[dict[str, Pose], list[str]]:
        """Return the poses of the entities in a keyframe, and what it moves that cannot move.

        Args:
            name: Name of a keyframe of the model.

        Returns:
            Position [m] and attitude xyzw of entities that are mocap bodies or have a free joint,
            and are somewhere else now; and names of joints and bodies that have to stay.

        Raises:
            ValueError: A position is out of range.
        """
        model = self._mirror.model
        key, entities = model.key(name), self.poses()
        places = {  # of bodies
            body: np.concatenate([key.mpos[3 * i :][:3], key.mquat[4 * i :][:4]])
            for body, i in enumerate(model.body_mocapid.tolist())
            if i >= 0
        }
        stay = []
        for joint, body in enumerate(model.jnt_bodyid.tolist()):
            if model.body(model.body_rootid[body]).name.startswith(_DRONE):
                continue
            start = model.jnt_qposadr[joint]
            own = slice(start, start + N_POSITIONS[model.jnt_type[joint]])
            if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                places[body] = key.qpos[own]
            elif not np.allclose(key.qpos[own], model.qpos0[own]):
                stay.append(model.joint(joint).name or f"joint {joint}")
        found = {}
        for body, place in places.items():
            now = np.concatenate([model.body_pos[body], model.body_quat[body]])
            if np.allclose(place, now):
                continue
            if (entity := model.body(body).name) in entities:
                pos = limits.vector(f"{entity} in {name}", place[:3], (3,), limits.POSITION)
                found[entity] = pos, wxyz_to_xyzw(place[3:])
            else:
                stay.append(entity or f"body {body}")
        return found, stay

    def bodies(self) -> set[str]:
        """Return the names of all bodies, including the world, drones and descendants."""
        model = self._mirror.model
        return {model.body(i).name for i in range(model.nbody)}

    def sites(self) -> list[Site]:
        """Return the named sites of the world and its bodies."""
        model = self._mirror.model
        found = []
        for i in range(model.nsite):
            name, chain = model.site(i).name, _chain(model, model.site_bodyid[i])
            if not name or any(model.body(body).name.startswith(_DRONE) for body in chain):
                continue
            pos, quat = model.site_pos[i].copy(), wxyz_to_xyzw(model.site_quat[i])
            for body in chain:
                parent = wxyz_to_xyzw(model.body_quat[body])
                pos = model.body_pos[body] + body_to_world(parent, pos)
                quat = multiply(parent, quat)
            found.append(Site(name, pos, quat, model.site_type[i], model.site_size[i].copy()))
        return found

    def text(self, what: str, name: str = "") -> str:
        """Return the "tags" or "description" of a body, a site or the world from the MJCF."""
        return text_of(self._mirror.model, f"{what}:{name}" if name else what)

    def box(self, body_name: str) -> Box | None:
        """Return the bounding box of a body's shapes along its axes; None if it has no shapes."""
        model = self._mirror.model
        of, boxes = self._boxes
        if model is not of:
            boxes = boxes_of(model)
            self._boxes = model, boxes  # one assignment, as several threads call this
        return boxes.get(body_name)


def text_of(model: mujoco.MjModel, name: str) -> str:
    """Return a text element of a model; empty if there is none."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TEXT, name)
    if index < 0:
        return ""
    start = model.text_adr[index]
    return bytes(model.text_data[start : start + model.text_size[index]]).rstrip(b"\0").decode()


def box_of(model: mujoco.MjModel) -> Box | None:
    """Return the bounding box of all shapes of a model, along the axes of the world.

    Joints are at zero. Planes are infinite and are ignored.
    """
    every, _, _ = _corners(model)
    if not len(every):
        return None
    return every.min(axis=(0, 1)), every.max(axis=(0, 1))


def boxes_of(model: mujoco.MjModel) -> dict[str, Box]:
    """Return the bounding box of each body directly below the world, along its own axes, by name.

    It includes the shapes of descendants; bodies without shapes are omitted. Otherwise as `box_of`.
    """
    corners, geoms, data = _corners(model)
    if not len(geoms):
        return {}
    roots = model.body_rootid[model.geom_bodyid[geoms]]
    from_root = corners - data.xpos[roots][:, None]
    own = np.einsum("nij,nki->nkj", data.xmat.reshape(-1, 3, 3)[roots], from_root)
    lower, upper = np.full((model.nbody, 3), np.inf), np.full((model.nbody, 3), -np.inf)
    np.minimum.at(lower, roots, own.min(axis=1))
    np.maximum.at(upper, roots, own.max(axis=1))
    bodies = np.unique(roots[roots > 0]).tolist()
    return {model.body(body).name: (lower[body], upper[body]) for body in bodies}


def _corners(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray, mujoco.MjData]:
    """Return box corners in the world (n, 8, 3), ids (n,) of the geoms (no planes), and data."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    counts = model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    counts &= model.geom_group != UNUSED_GROUP
    (geoms,) = np.nonzero(counts)
    centre, half = np.split(model.geom_aabb[geoms][:, None], 2, axis=-1)
    turned = np.einsum(
        "nij,nkj->nki", data.geom_xmat[geoms].reshape(-1, 3, 3), centre + half * _CORNERS
    )
    return data.geom_xpos[geoms][:, None] + turned, geoms, data


def _chain(model: mujoco.MjModel, body: int) -> list[int]:
    chain = [int(body)]
    while chain[-1]:
        chain.append(int(model.body_parentid[chain[-1]]))
    return chain
