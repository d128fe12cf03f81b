"""Selection of geoms, bodies or subtrees for contact sensors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.sensors.objects import subtree

_MODES = ("geom", "body", "subtree")


@dataclass(frozen=True)
class ContactMatch:
    """A pattern for one side of a contact."""

    mode: Literal["geom", "body", "subtree"]
    """Geoms by name, all geoms of bodies by name, or those of bodies and all bodies below them."""
    pattern: str | tuple[str, ...]
    """Names in the model; with `entity` regular expressions, which have to match the whole of a
    name without the entity."""
    entity: str | None = None
    """Drone to which the names belong, for example "cf0"."""
    exclude: tuple[str, ...] = ()
    """Names (or regular expressions) to exclude from the matches."""

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise ValueError(unknown("mode", self.mode, _MODES))
        for expression in (*self.patterns, *self.exclude):
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"{expression!r} is not a regular expression: {error}") from None

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns as a tuple, also if there is one."""
        return (self.pattern,) if isinstance(self.pattern, str) else tuple(self.pattern)

    def members(self, model: mujoco.MjModel, name: str) -> np.ndarray:
        """Whether each geom belongs to one of `names`, shape (ngeom + 1,); the last is False."""
        if self.mode == "geom":
            members = np.arange(model.ngeom) == model.geom(name).id
        else:
            body = model.body(name).id
            bodies = subtree(model, body) if self.mode == "subtree" else [body]
            members = np.isin(model.geom_bodyid, bodies)
        return np.append(members, False)

    def names(self, model: mujoco.MjModel) -> list[str]:
        """Return the names of the matches, in the order of the model.

        Raises:
            ValueError: A pattern matches nothing, or nothing is left.
        """
        if self.mode == "geom":
            elements = [model.geom(i).name for i in range(model.ngeom)]
        else:
            elements = [model.body(i).name for i in range(model.nbody)]
        ending = "" if self.entity is None else f":{self.entity}"
        known = [name for name in elements if name.endswith(ending)]
        short = [name.removesuffix(ending) for name in known if name]
        chosen: set[str] = set()
        for pattern in self.patterns:
            found = [name for name in short if self._matches(pattern, name)]
            if not found:
                of = "" if self.entity is None else f" of {self.entity!r}"
                there = ", ".join(short)
                raise ValueError(f"no {self.mode}{of} matches {pattern!r}; there are {there}")
            chosen.update(found)
        left = [
            name + ending
            for name in short
            if name in chosen and not any(_excludes(entry, name) for entry in self.exclude)
        ]
        if not left:
            raise ValueError(f"exclude {self.exclude} leaves nothing of {', '.join(chosen)}")
        return left

    def _matches(self, pattern: str, name: str) -> bool:
        return name == pattern if self.entity is None else bool(re.fullmatch(pattern, name))


def _excludes(entry: str, name: str) -> bool:
    return name == entry or bool(re.fullmatch(entry, name))
