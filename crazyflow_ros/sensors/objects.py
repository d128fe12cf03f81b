"""References to elements of a MuJoCo model by type and name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.frames import wxyz_to_xyzw

ObjType = Literal["body", "xbody", "joint", "geom", "site", "actuator", "tendon", "camera"]

_OBJ = mujoco.mjtObj
MUJOCO_TYPES: dict[str, mujoco.mjtObj] = {
    "body": _OBJ.mjOBJ_BODY,
    "xbody": _OBJ.mjOBJ_XBODY,
    "joint": _OBJ.mjOBJ_JOINT,
    "geom": _OBJ.mjOBJ_GEOM,
    "site": _OBJ.mjOBJ_SITE,
    "actuator": _OBJ.mjOBJ_ACTUATOR,
    "tendon": _OBJ.mjOBJ_TENDON,
    "camera": _OBJ.mjOBJ_CAMERA,
}
_PREFIXES = {"geom": "geom", "site": "site", "camera": "cam"}
"""Prefixes of MuJoCo's arrays of objects that are on bodies."""


class Mount(NamedTuple):
    """The place of an object on its body."""

    body: str
    """Name of the body in the model, for example "drone:cf0"; "world" is the world."""
    pos: np.ndarray
    """Position in the body [m], shape (3,)."""
    quat: np.ndarray
    """Attitude in the body, xyzw, shape (4,)."""


@dataclass(frozen=True)
class ObjRef:
    """Reference to a MuJoCo object (body, joint, site, etc.).

    In built-in sensors, "body" is the inertial frame of a body and "xbody" its own frame, as in
    MuJoCo; rays and cameras take both for the body's own frame.
    """

    type: ObjType
    """Type of the object."""
    name: str
    """Name of the object, without the entity."""
    entity: str | None = None
    """Drone that the object belongs to, for example "cf0"."""

    def prefixed_name(self) -> str:
        """Return the name in the model: "imu:cf0" for the site "imu" of entity "cf0".

        The entity comes last, as everywhere in this package (in mjlab it is a prefix).
        """
        return self.name if self.entity is None else f"{self.name}:{self.entity}"

    @property
    def frame_prefix(self) -> str:
        """Prefix of MuJoCo's arrays with the object's frame, such as "site_x" of site_xpos."""
        return f"{_PREFIXES[self.type]}_x" if self.type in _PREFIXES else "x"

    def check(self, field: str, allowed: tuple[str, ...]) -> None:
        """Raise a ValueError that begins with `field` unless the type is one of `allowed`."""
        if self.type not in allowed:
            kinds = " or ".join(allowed)
            raise ValueError(f"{field} {self.name!r} must be a {kinds}, not a {self.type}")

    def id(self, model: mujoco.MjModel) -> int:
        """Return the id in the model.

        Raises:
            ValueError: The model has no such object.
        """
        name = self.prefixed_name()
        number = mujoco.mj_name2id(model, MUJOCO_TYPES[self.type], name)
        if number < 0:
            raise ValueError(f"the model has no {self.type} {name!r}")
        return number

    def body(self, model: mujoco.MjModel) -> int:
        """Return the id of the body that a body, geom, site or camera is part of."""
        number, prefix = self.id(model), _PREFIXES.get(self.type)
        return number if prefix is None else int(getattr(model, f"{prefix}_bodyid")[number])

    def mount(self, model: mujoco.MjModel) -> Mount:
        """Return the place of a geom, site or camera on its body; a body is its own mount."""
        number, body = self.id(model), self.body(model)
        name = model.body(body).name
        prefix = _PREFIXES.get(self.type)
        if prefix is None:
            return Mount(name, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))
        pos, quat = (getattr(model, f"{prefix}_{part}")[number] for part in ("pos", "quat"))
        return Mount(name, pos.copy(), wxyz_to_xyzw(quat))


def subtree(model: mujoco.MjModel, body: int) -> list[int]:
    """Return a body and all bodies below it, by id."""
    members = {body}
    for child in range(body + 1, model.nbody):  # parents come before their children
        if model.body_parentid[child] in members:
            members.add(child)
    return sorted(members)
