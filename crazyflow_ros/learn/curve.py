"""Pictures of learning curves."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from crazyflow_ros.extras import extra
from crazyflow_ros.files import write_file
from crazyflow_ros.learn.training import Progress


def draw(progress: Sequence[Progress], title: str, path: str | Path) -> None:
    """Write a PNG of the cost over samples and time.

    Raises:
        OSError: The file cannot be written.
    """
    with extra("learn"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([p.samples / 1e6 for p in progress], [p.cost for p in progress], marker=".")
    axes.set(xlabel="samples, million", ylabel="mean cost of a step", yscale="log")
    axes.set_title(f"{title}: {progress[-1].seconds:.1f} s")
    axes.grid(visible=True, which="both", alpha=0.3)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120)
    write_file(path, file.getvalue())
