"""A description that has been read, the model that MuJoCo builds of it, and its size."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import mujoco
import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.scene.conditions import Conditions, conditions_of
from crazyflow_ros.scene.description import ascii_stl, collada, drawings
from crazyflow_ros.scene.description.drone_references import references, stand_in
from crazyflow_ros.scene.description.elements import SourcePlace
from crazyflow_ros.scene.groups import COLLISION_GROUP

FORMATS = ("mjcf", "urdf")
CONVERTED = (collada.SUFFIX, *drawings.GLTF)
"""Suffixes of meshes that MuJoCo gets as OBJ, by names that end with `.obj` after them."""
CONVERTED_PART = ".part.obj"
"""End of names of meshes that were converted already."""
_ROUNDED = 1e-6  # of inertias, about as written in files
_VISUAL_GROUP = 1  # of the visuals of a URDF in MuJoCo
_ELEMENTS = (
    *("nbody", "njnt", "ngeom", "nsite", "ncam", "nlight", "nflex", "nskin", "nmesh", "nhfield"),
    *("ntex", "nmat", "npair", "nexclude", "neq", "ntendon", "nu", "nsensor", "nnumeric", "ntext"),
    *("ntuple", "nkey", "nplugin"),
)
_LINE = re.compile(r"\bline (\d+)")


@dataclass(frozen=True)
class Description:
    """A world, an object or a drone, complete in memory."""

    text: str
    """MJCF or URDF without includes; its files have the names in `assets`."""
    assets: Mapping[str, bytes]
    """Content by name of files that MuJoCo needs to compile."""
    parts: Mapping[str, bytes]
    """Content by name of files that MuJoCo needs to read the text: models, meshes of flexcomp."""
    format: str
    """One of `FORMATS`."""
    path: Path | None = None
    """The file; None for a text."""
    _places: tuple[SourcePlace, ...] = field(default=(), repr=False)
    note: str = ""
    """What of its source was left out, as a predicate; empty if nothing was."""

    def spec(self) -> mujoco.MjSpec:
        """Return a new specification, which can be part of a larger one.

        Raises:
            ValueError: MuJoCo refuses it.
        """
        try:
            spec = mujoco.MjSpec.from_string(
                self.text, include=dict(self.parts), assets=self._readable
            )
            for mesh in spec.meshes:
                if mesh.file.endswith((*(f"{s}.obj" for s in CONVERTED), CONVERTED_PART)):
                    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # may be flat
            # As MuJoCo does it: otherwise, it refuses what CAD programs round.
            spec.compiler.balanceinertia = True
            for body in spec.bodies:
                if (principal := _principal(body)) is not None and principal[0] <= 0:
                    _balance(body, float(principal.mean()))
            if self.format == "urdf":
                _hide_drawn_collisions(spec)
        except ValueError as error:
            raise ValueError(self._explained(error)) from None
        return spec

    def compiled(self) -> mujoco.MjModel:
        """Return the compiled model of this description alone, with stand-ins for drones.

        Raises:
            ValueError: MuJoCo refuses it.
        """
        spec = self.spec()
        stand_in(spec, self.text)
        try:
            return spec.compile()
        except ValueError as error:
            raise ValueError(self._explained(error)) from None

    @cached_property
    def conditions(self) -> tuple[Conditions, tuple[str, ...]]:
        """The conditions in this world, see `conditions_of`, and what else about it is impossible.

        Raises:
            ValueError: MuJoCo refuses it.
        """
        found, odd = conditions_of(self.compiled())
        return found, (*odd, *(f"the world {note}" for note in self.notes()))

    def notes(self) -> list[str]:
        """Return what is not as its author wrote it, as predicates.

        Raises:
            ValueError: MuJoCo refuses it.
        """
        spec = mujoco.MjSpec.from_string(self.text, include=dict(self.parts), assets=self._readable)
        return [*([self.note] if self.note else ()), *balanced(spec)]

    def _explained(self, error: Exception) -> str:
        """Return an error of MuJoCo with the files and lines of the description."""

        def place(match: re.Match[str]) -> str:
            line = int(match[1]) - 1
            return str(self._places[line]) if line < len(self._places) else match[0]

        return _LINE.sub(place, " ".join(str(error).split()))

    @cached_property
    def drones(self) -> tuple[str, ...]:
        """Names of the drones to whose parts it refers."""
        return tuple(dict.fromkeys(reference.drone for reference in references(self.text)))

    @cached_property
    def _readable(self) -> dict[str, bytes]:
        """The files in formats that MuJoCo reads."""
        return {name: _converted(name, content) for name, content in self.assets.items()}

    @cached_property
    def digest(self) -> bytes:
        """A hash of everything."""
        content = hashlib.sha256(self.text.encode())
        for files in (self.assets, self.parts):
            for name in sorted(files):
                content.update(name.encode() + hashlib.sha256(files[name]).digest())
        return content.digest()


def balanced(spec: mujoco.MjSpec) -> Iterator[str]:
    """Yield which inertias are balanced because no body can have them, one predicate each."""
    for body in spec.bodies:
        if (principal := _principal(body)) is None:
            continue
        a, b, c = principal.tolist()
        if a <= 0 < a + b + c or a + b < c * (1 - _ROUNDED):
            given = limits.shown([a, b, c])
            yield f"has an inertia for {body.name}, {given} kg m^2, of no body: its mean is taken"


def _principal(body: mujoco.MjsBody) -> np.ndarray | None:
    """Return the principal moments of inertia that a body says (3,), the least first."""
    xx, yy, zz, xy, xz, yz = body.fullinertia
    if not body.explicitinertial:
        return None
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.sort(body.inertia if np.isnan(xx) else np.linalg.eigvalsh(moments))


def _balance(body: mujoco.MjsBody, moment: float) -> None:
    """Replace an inertia that is not positive, as MuJoCo does with those that are not balanced."""
    if moment > 0 and not np.isnan(body.fullinertia[0]):
        body.fullinertia = [moment, moment, moment, 0, 0, 0]


def _converted(name: str, content: bytes) -> bytes:
    """Return the content of a file in a format that MuJoCo reads.

    Raises:
        ValueError: It cannot be converted.
    """
    try:
        if (kind := Path(name).with_suffix("").suffix) == collada.SUFFIX:
            return collada.as_obj(content)
        if kind in drawings.GLTF:
            return drawings.as_obj(kind, content)
        is_stl = name.lower().endswith(ascii_stl.SUFFIX)
        return ascii_stl.as_binary(content) if is_stl else content
    except (ValueError, ModuleNotFoundError) as error:
        raise ValueError(f"{Path(name).stem}: {error}") from None


def _hide_drawn_collisions(spec: mujoco.MjSpec) -> None:
    """Hide the collision shapes of links that have visuals, as other tools for URDF do."""
    for body in spec.bodies:
        if any(geom.group == _VISUAL_GROUP and not geom.contype for geom in body.geoms):
            for geom in body.geoms:
                if geom.contype:
                    geom.group = COLLISION_GROUP


def elements_of(model: mujoco.MjModel) -> int:
    """Count the bodies, joints, geoms and the like of a model."""
    return sum(getattr(model, name) for name in _ELEMENTS)


class Size(NamedTuple):
    """Size of a model."""

    elements: int
    """Bodies, joints, geoms and the like."""
    model_bytes: int
    state_bytes: int
    picture_side: int
    """Side of the largest picture or shadow map that the model asks for, pixels."""

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Self:
        """Measure a model; this allocates a state of it."""
        data, view = mujoco.MjData(model), model.vis
        return cls(
            elements_of(model),
            mujoco.mj_sizeModel(model),
            data.nbuffer + data.narena,
            max(view.global_.offwidth, view.global_.offheight, view.quality.shadowsize),
        )

    def check(self) -> None:
        """Check the limits for descriptions from anyone but the user.

        Raises:
            ValueError: The model exceeds a limit.
        """
        for value, most, what in (
            (self.elements, limits.DESCRIPTION_ELEMENTS, "bodies, joints, geoms and the like"),
            (self.model_bytes, limits.MODEL_BYTES, "bytes of shapes and textures"),
            (self.state_bytes, limits.MODEL_BYTES, "bytes of state"),
            (self.picture_side, limits.PICTURE_SIDE, "pixels a side of pictures and shadows"),
        ):
            if value > most:
                raise ValueError(f"a description may have at most {most} {what}, got {value}")
