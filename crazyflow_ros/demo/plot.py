"""A picture of a flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crazyflow_ros.demo.record import ALLOWED_ERROR, Record, Track

FEW = 8  # drones that get a colour and a line in the legend each
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "savefig.dpi": 150,
}
"""Of Matplotlib's pictures."""
_PLANNED: dict[str, Any] = {
    "color": "#888888",
    "linewidth": 0.8,
    "linestyle": (0, (4, 3)),
    "zorder": 1,
}


def save_plot(record: Record, path: Path) -> None:
    """Draw the paths from above and from the side, and the tracking error over time.

    Args:
        record: The flight.
        path: File to write; its ending chooses the format.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 8), layout="constrained")
        above, side, error = figure.subplot_mosaic(
            [["above", "side"], ["error", "error"]], height_ratios=[3, 2]
        ).values()
        colours = _colours(len(record.tracks))
        width = 1.6 if len(record.tracks) <= FEW else 0.7
        for track, colour in zip(record.tracks, colours):
            style: dict[str, Any] = {"color": colour, "linewidth": width, "label": track.name}
            _draw_path(above, track, (0, 1), style)
            _draw_path(side, track, (0, 2), style)
            flying = track.times <= track.flight.airborne[1]
            error.plot(track.times[flying], track.error[flying], **style)
        _label_path(above, "From above", "x [m]", "y [m]")
        _label_path(side, "From the side", "x [m]", "z [m]")
        _draw_floor(side)
        _finish_error(error, record)
        _add_legend(figure, above, len(record.tracks))
        figure.suptitle(_title(record), fontsize=13, x=0.01, ha="left")
        figure.savefig(path)


def _colours(count: int) -> list[tuple[float, ...]]:
    if count <= FEW:
        return [mpl.colormaps["tab10"](index) for index in range(count)]
    return [mpl.colormaps["viridis"](0.95 * index / (count - 1)) for index in range(count)]


def _draw_path(axes: Axes, track: Track, plane: tuple[int, int], style: dict[str, Any]) -> None:
    times = np.arange(0, track.flight.airborne[1], 0.02)
    axes.plot(*track.flight(times).pos[:, plane].T, **_PLANNED)
    axes.plot(*track.pos[:, plane].T, **style)
    axes.plot(*track.pos[0, plane], "o", color=style["color"], markersize=4)


def _label_path(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.set_aspect("equal", adjustable="datalim")


def _draw_floor(axes: Axes) -> None:
    axes.axhline(0, color="#444444", linewidth=1.2)
    axes.axhspan(-0.1, 0, color="#dddddd", zorder=0)


def _finish_error(axes: Axes, record: Record) -> None:
    axes.set(
        title="Tracking error", xlabel="simulated time [s]", ylabel="distance from the plan [m]"
    )
    begin, end = record.tracks[0].flight.airborne
    duration = record.tracks[0].flight.duration
    worst = np.nanmax([ALLOWED_ERROR, *(track.max_error for track in record.tracks)])
    axes.set(xlim=(0, duration), ylim=(0, 1.15 * worst))
    axes.axhline(ALLOWED_ERROR, color="#c0392b", linewidth=1, linestyle="--")
    axes.annotate(
        "most that the mean may be",
        (end, ALLOWED_ERROR),
        xytext=(-4, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        color="#c0392b",
        fontsize=9,
    )
    for span, text in (((0, begin), "take-off"), ((end, duration), "touch-down")):
        axes.axvspan(*span, color="#f2f2f2", zorder=0)
        axes.annotate(
            text,
            (np.mean(span), 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, -4),
            textcoords="offset points",
            ha="center",
            va="top",
            color="#666666",
            fontsize=9,
        )


def _add_legend(figure: Figure, axes: Axes, count: int) -> None:
    handles, _ = axes.get_legend_handles_labels()
    (planned,) = axes.plot([], [], label="planned", **_PLANNED)
    shown = [*handles, planned] if count <= FEW else [planned]
    figure.legend(handles=shown, loc="outside upper right", ncols=len(shown))


def _title(record: Record) -> str:
    count = len(record.tracks)
    mean = np.mean([track.mean_error for track in record.tracks])
    return (
        f"{count} drone{'s' if count > 1 else ''}, {record.tracks[0].flight.duration:g} s at"
        f" real-time factor {record.factor:.2g}, mean error {100 * mean:.1f} cm"
    )
