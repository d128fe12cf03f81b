"""The bodies of the world that are no drones, and what the world's MJCF says about things.

In MJCF, a text element "tags:tree" holds the tags of the body or site "tree", separated by spaces,
and "description:tree" its description; "tags" and "description" are those of the world.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.drone import UNUSED_GROUP
from crazyflow_ros.scene.frames import body_to_world, multiply, wxyz_to_xyzw

Box = tuple[np.ndarray, np.ndarray]
"""Lower and upper corner [m], each (3,)."""


class Site(NamedTuple):
    """A site of the scene."""

    name: str
    pos: np.ndarray
    """In the world [m], (3,)."""
    quat: np.ndarray
    """xyzw, (4,)."""
    shape: int
    """One of `mujoco.mjtGeom`."""
    size: np.ndarray
    """In the terms of the shape [m], (3,)."""


_DRONE = "drone:"  # prefix of the bodies of drones
_CORNERS = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T


class Scenery:
    """Looks into the model that the mirror has at the time.

    The bodies that stand in the world itself are entities, with all that hangs on them.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._boxes: tuple[mujoco.MjModel | None, dict[str, Box]] = None, {}

    def poses(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Position [m] and attitude xyzw in the world of all bodies that are entities, by name."""
        model = self._mirror.model
        in_world = np.flatnonzero(model.body_parentid == 0)[1:].tolist()
        bodies = {model.body(i).name: i for i in in_world}
        return {
            name: (model.body_pos[i].copy(), wxyz_to_xyzw(model.body_quat[i]))
            for name, i in bodies.items()
            if name and not name.startswith(_DRONE)
        }

    def bodies(self) -> set[str]:
        """Names of all bodies, also of the world, of drones and of what hangs on others."""
        model = self._mirror.model
        return {model.body(i).name for i in range(model.nbody)}

    def sites(self) -> list[Site]:
        """The named sites of the world and of its bodies."""
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
        """What the MJCF says: "tags" or "description" of a body or site, or of the world."""
        return text_of(self._mirror.model, f"{what}:{name}" if name else what)

    def box(self, body_name: str) -> Box | None:
        """The smallest box along a body's axes that holds all its shapes; None if it has none."""
        model = self._mirror.model
        of, boxes = self._boxes
        if model is not of:
            boxes = boxes_of(model)
            self._boxes = model, boxes  # at once, for several threads ask
        return boxes.get(body_name)


def text_of(model: mujoco.MjModel, name: str) -> str:
    """A text element of a model; empty if there is none."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TEXT, name)
    if index < 0:
        return ""
    start = model.text_adr[index]
    return bytes(model.text_data[start : start + model.text_size[index]]).rstrip(b"\0").decode()


def box_of(model: mujoco.MjModel) -> Box | None:
    """The smallest box along the axes of the world that holds all shapes of a model.

    Joints are at zero. Planes have no end, and do not count.
    """
    every, _, _ = _corners(model)
    if not len(every):
        return None
    return every.min(axis=(0, 1)), every.max(axis=(0, 1))


def boxes_of(model: mujoco.MjModel) -> dict[str, Box]:
    """The smallest box along the axes of each body in the world that holds all shapes of it.

    Those of what hangs on it, too; bodies without any have none. Else as `box_of`.
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
    """Corners (n, 8, 3) in the world of the box around each geom that counts, (n,), and frames."""
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
    """A body, its parent and so on, up to the world."""
    chain = [int(body)]
    while chain[-1]:
        chain.append(int(model.body_parentid[chain[-1]]))
    return chain
