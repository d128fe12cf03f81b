"""Curves of trainings for TensorBoard and Weights & Biases, where these are installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crazyflow_ros.learn.training import Progress

Report = Callable[[Progress], None]


def scalars(progress: Progress) -> dict[str, float]:
    """Return the numbers of a progress by name: `cost`, `seconds`, and `terms/<name>` each."""
    terms = {f"terms/{name}": value for name, value in progress.terms.items()}
    return {"cost": progress.cost, "seconds": progress.seconds, **terms}


def tensorboard(folder: str | Path) -> Report:
    """Return a function that writes progress to files of TensorBoard in a folder.

    Raises:
        ModuleNotFoundError: TensorBoard is not installed.
    """
    writer = _module("tensorboard.summary").Writer(str(folder))

    def write(progress: Progress) -> None:
        for name, value in scalars(progress).items():
            writer.add_scalar(name, value, step=progress.updates)
        writer.flush()

    return write


def wandb(project: str, about: str) -> Report:
    """Return a function that writes progress to a new run of Weights & Biases.

    Args:
        project: Name of the project. `WANDB_MODE=offline` writes files alone.
        about: Notes of the run.

    Raises:
        ModuleNotFoundError: wandb is not installed.
    """
    run = _module("wandb").init(project=project, notes=about)
    return lambda progress: run.log(scalars(progress), step=progress.updates)


def _module(name: str) -> Any:
    from importlib import import_module

    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ModuleNotFoundError(f"{package} is not installed: pip install {package}") from None


_BARS = "▁▂▃▄▅▆▇█"


def drawn(values: Sequence[float], width: int = 40) -> str:
    """Return a curve as a line of bars, from the smallest to the largest value."""
    every = max(1, -(-len(values) // width))
    means = [sum(x) / len(x) for x in (values[i : i + every] for i in range(0, len(values), every))]
    low, span = min(means), max(means) - min(means)
    return "".join(_BARS[round((x - low) / span * 7) if span else 0] for x in means)
