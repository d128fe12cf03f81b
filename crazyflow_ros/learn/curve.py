"""Pictures of learning curves."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.extras import extra
from crazyflow_ros.learn.training import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELLED = (1.0, 2.0, 5.0)
"""Costs with a label, times powers of ten."""


def draw(progress: Sequence[Progress], title: str, path: str | Path) -> None:
    """Write a PNG of the cost over samples, see `figure`.

    Raises:
        OSError: The file cannot be written.
    """
    file = io.BytesIO()
    figure(progress, title).savefig(file, format="png", dpi=120)
    write_file(path, file.getvalue())


def figure(progress: Sequence[Progress], title: str) -> Figure:
    """Return a picture of the cost over samples, on a logarithmic axis with plain numbers."""
    with extra("learn"):
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    drawn = Figure(figsize=(6, 3.5), layout="constrained")
    axes = drawn.subplots()
    axes.plot([p.samples / 1e6 for p in progress], [p.cost for p in progress], marker=".")
    axes.set(xlabel="samples, million", ylabel="mean cost of a step", yscale="log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=_LABELLED))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(title)
    axes.grid(visible=True, which="both", alpha=0.3)
    return drawn
