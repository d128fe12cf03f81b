"""Changes to a pipeline by the names of its stages.

A pipeline is a tuple of functions, and the name of a stage is that of its function or class. Each
of these functions returns a new tuple, to assign to `Sim.step_pipeline` or `Sim.reset_pipeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.sim.leaves import check_kept

__all__ = [
    "insert_after",
    "insert_before",
    "name_of",
    "names",
    "remove",
    "replace",
]

S = TypeVar("S", bound=Callable[..., Any])
T = TypeVar("T")


def name_of(stage: Callable[..., Any]) -> str:
    """Return the name of a stage."""
    if isinstance(stage, partial):
        return name_of(stage.func)
    return getattr(stage, "__name__", type(stage).__name__)


def names(pipeline: tuple[Callable[..., Any], ...]) -> tuple[str, ...]:
    """Return the names of all stages, in order."""
    return tuple(name_of(stage) for stage in pipeline)


def run_stage(
    stage: Callable[..., T],
    data: T,
    *args: Any,
    allowed: Callable[[Any, Any, Any], bool] | None = None,
) -> T:
    """Return what a stage makes of data; all pipelines run their stages by this.

    It is checked here, once, since this runs while a pipeline is traced.

    Args:
        stage: The stage.
        data: Its first argument.
        *args: Its other arguments.
        allowed: See `check_kept`.

    Raises:
        TypeError: The stage returns something else than data of the same structure, shapes and
            dtypes; the message names stage and field.
    """
    after = stage(data, *args)
    check_kept(f"stage {name_of(stage)}", data, after, allowed)
    return after


def parts(pipeline: Sequence[S]) -> Iterator[S]:
    """Yield all stages, and those that a stage lists in its attribute `stages`."""
    for stage in pipeline:
        yield stage
        yield from parts(getattr(stage, "stages", ()))


def insert_before(pipeline: tuple[S, ...], name: str, *stages: S) -> tuple[S, ...]:
    """Return `pipeline` with `stages` before the one called `name`.

    Raises:
        ValueError: No stage or several stages have that name.
    """
    i = _index(pipeline, name)
    return (*pipeline[:i], *stages, *pipeline[i:])


def insert_after(pipeline: tuple[S, ...], name: str, *stages: S) -> tuple[S, ...]:
    """Return `pipeline` with `stages` after the one called `name`. Raises like `insert_before`."""
    i = _index(pipeline, name) + 1
    return (*pipeline[:i], *stages, *pipeline[i:])


def replace(pipeline: tuple[S, ...], name: str, stage: S) -> tuple[S, ...]:
    """Return `pipeline` with `stage` in place of the one called `name`.

    Raises like `insert_before`.
    """
    i = _index(pipeline, name)
    return (*pipeline[:i], stage, *pipeline[i + 1 :])


def remove(pipeline: tuple[S, ...], name: str) -> tuple[S, ...]:
    """Return `pipeline` without the stage called `name`. Raises like `insert_before`."""
    i = _index(pipeline, name)
    return (*pipeline[:i], *pipeline[i + 1 :])


def _index(pipeline: tuple[S, ...], name: str) -> int:
    have = names(pipeline)
    if have.count(name) != 1:
        if name in have:
            raise ValueError(f"{have.count(name)} stages are called {name!r}")
        raise ValueError(unknown("stage", name, have))
    return have.index(name)
