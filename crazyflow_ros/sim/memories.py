"""Memory of stages: added to the data when they enter a pipeline, removed when they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax import Array

from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.leaves import path_name
from crazyflow_ros.sim.pipeline import name_of, parts
from crazyflow_ros.sim.stages import Remembering, Stage

Leaves = dict[tuple[Any, ...], Array | None]
"""Leaves of parameters and plugins, by path."""


@dataclass(frozen=True)
class _Entry:
    """A stage in the pipeline, and the leaves of each data that it replaced."""

    stage: Remembering
    replaced: tuple[Leaves, ...]


@dataclass(frozen=True)
class Memories:
    """The stages in the pipeline that have a memory."""

    entries: tuple[_Entry, ...] = ()

    def following(
        self, pipeline: Sequence[Stage], data: Sequence[SimData]
    ) -> tuple[Memories, list[SimData]]:
        """Update the memories for another pipeline.

        Args:
            pipeline: The new pipeline. Stages that are also in the old one keep their memory.
            data: Data that hold the memory of stages, the same ones in each call.

        Returns:
            The memories; and the data, with the initial memory of stages that enter, and with the
            parameters and plugins that leaving stages had replaced.

        Raises:
            ValueError: Two stages would share a memory, or a stage does not support the data.
        """
        new = [stage for stage in parts(pipeline) if isinstance(stage, Remembering)]
        staying: list[_Entry] = []
        now = list(data)
        for entry in reversed(self.entries):
            if entry.stage in new:
                new.remove(entry.stage)
                staying.insert(0, entry)
            else:
                now = [_taken_back(d, leaves) for d, leaves in zip(now, entry.replaced)]
        for stage in new:
            begun = [stage.begin(d) for d in now]
            entry = _Entry(stage, tuple(_replaced(d, after) for d, after in zip(now, begun)))
            for other in staying:
                if shared := entry.replaced[0].keys() & other.replaced[0].keys():
                    where = path_name(min(shared, key=str))
                    raise ValueError(
                        f"{name_of(other.stage)} and {name_of(stage)} would share data.{where}; "
                        f"a pipeline has room for one of them"
                    )
            staying.append(entry)
            now = begun
        return Memories(tuple(staying)), now


def _kept(data: SimData) -> dict[str, Any]:
    return {"params": data.params, "plugins": data.plugins}


def _replaced(before: SimData, after: SimData) -> Leaves:
    """Return the leaves of `before` that `after` replaces; None for those that it adds."""
    was: Leaves = dict(jax.tree.leaves_with_path(_kept(before)))
    now = jax.tree.leaves_with_path(_kept(after))
    return {path: was.get(path) for path, leaf in now if leaf is not was.get(path)}


def _taken_back(data: SimData, replaced: Leaves) -> SimData:
    kept = jax.tree.map_with_path(lambda path, leaf: replaced.get(path, leaf), _kept(data))
    plugins = {name: value for name, value in kept["plugins"].items() if value is not None}
    return data.replace(params=kept["params"], plugins=plugins)
