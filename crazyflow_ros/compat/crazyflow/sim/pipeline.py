"""Changes to a pipeline, an ordered dictionary of stages by their unique names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = [
    "append_fn",
    "insert_fn_after",
    "insert_fn_before",
    "prepend_fn",
    "remove_fn",
    "replace_fn",
]

Stage = Callable[..., Any]
Pipeline = OrderedDict[str, Stage]


def append_fn(pipeline: Pipeline, fn: Stage, name: str | None = None) -> None:
    """Add a stage at the end, by default under the name of its function.

    Raises:
        KeyError: There is a stage of that name.
        ValueError: The function has no name.
    """
    _insert(pipeline, len(pipeline), fn, name)


def prepend_fn(pipeline: Pipeline, fn: Stage, name: str | None = None) -> None:
    """Add a stage at the beginning; see `append_fn`."""
    _insert(pipeline, 0, fn, name)


def insert_fn_before(pipeline: Pipeline, anchor: str, fn: Stage, name: str | None = None) -> None:
    """Add a stage before another one; see `append_fn`. There has to be a stage `anchor`."""
    _insert(pipeline, _index(pipeline, anchor), fn, name)


def insert_fn_after(pipeline: Pipeline, anchor: str, fn: Stage, name: str | None = None) -> None:
    """Add a stage after another one; see `append_fn`. There has to be a stage `anchor`."""
    _insert(pipeline, _index(pipeline, anchor) + 1, fn, name)


def replace_fn(pipeline: Pipeline, fn: Stage, name: str) -> None:
    """Replace the function of a stage.

    Raises:
        KeyError: There is no such stage.
    """
    _index(pipeline, name)
    pipeline[name] = fn


def remove_fn(pipeline: Pipeline, name: str) -> None:
    """Remove a stage. Raises like `replace_fn`."""
    _index(pipeline, name)
    del pipeline[name]


def _index(pipeline: Pipeline, name: str) -> int:
    if name not in pipeline:
        raise KeyError(f"No stage named '{name}'. Available stages: {tuple(pipeline)}")
    return list(pipeline).index(name)


def _insert(pipeline: Pipeline, index: int, fn: Stage, name: str | None) -> None:
    name = getattr(fn, "__name__", None) if name is None else name
    if name is None:
        raise ValueError(f"{fn} has no __name__, an explicit name is required")
    if name in pipeline:
        raise KeyError(f"Pipeline stage '{name}' already exists. Names must be unique")
    stages = list(pipeline.items())
    stages.insert(index, (name, fn))
    pipeline.clear()
    pipeline.update(stages)
