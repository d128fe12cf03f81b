"""The picture of a flight: paths from above and from the side, and tracking errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from crazyflow_ros.client.figure_eight import ALLOWED_ERROR, FlightRecord, Track

FEW = 8  # drones listed in the legend; more get a colour bar
MOST_NAMES = 16  # names next to the colour bar
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
"""Style of Matplotlib's figures."""
_PLANNED: dict[str, Any] = {"color": "#cfcfcf", "linewidth": 4.5, "zorder": 1.5}
"""Style of the planned path: wide and under the flown path, so that both stay visible."""
_CM = 100.0  # per m


def save_plot(record: FlightRecord, path: Path) -> None:
    """Draw the paths from above and from the side, and the tracking error over time.

    Args:
        record: The flight.
        path: File to write; the suffix selects the format.
    """
    with mpl.rc_context(STYLE):
        draw(record).savefig(path)


def draw(record: FlightRecord) -> Figure:
    """Draw a flight, with gaps in the lines where messages were lost."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    above, side, error = figure.subplot_mosaic(
        [["above", "side"], ["error", "error"]], height_ratios=[3, 2]
    ).values()
    colours = _colours(len(record.tracks))
    width = 1.6 if len(record.tracks) <= FEW else 1.2
    styles: list[dict[str, Any]] = [
        {"color": colour, "linewidth": width, "label": track.name, "solid_capstyle": "butt"}
        for track, colour in zip(record.tracks, colours)
    ]
    flights = list(zip(record.tracks, styles))
    for track, style in flights:
        _draw_path(above, track, (0, 1), style)
        _draw_error(error, track, style)
    for track, style in sorted(flights, key=_nearest_last):
        _draw_path(side, track, (0, 2), style)
    _label_path(above, "From above", "x [m]", "y [m]")
    _label_path(side, "From the side", "x [m]", "z [m]")
    _draw_floor(side)
    _finish_error(error, record)
    _add_legend(figure, [above, side, error], flights)
    figure.suptitle(_title(record), fontsize=13, x=0.01, ha="left")
    return figure


def _colours(count: int) -> list[tuple[float, ...]]:
    if count <= FEW:
        return [mpl.colormaps["tab10"](index) for index in range(count)]
    return [mpl.colormaps["viridis"](0.92 * index / (count - 1)) for index in range(count)]


def _nearest_last(flight: tuple[Track, dict[str, Any]]) -> float:
    """Return the sort key for the side view, in which y points away from the viewer."""
    return -float(flight[0].flight(np.zeros(1)).pos[0, 1])


def interrupted(values: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Insert NaN into values (K, ...) at each gap, where Matplotlib then interrupts the line."""
    return np.insert(values, gaps, np.nan, axis=0)


def _draw_path(axes: Axes, track: Track, plane: tuple[int, int], style: dict[str, Any]) -> None:
    times = np.arange(0, track.flight.airborne[1], 0.05)
    axes.plot(*track.flight(times).pos[:, plane].T, **_PLANNED)
    axes.plot(*interrupted(track.pos, track.gaps)[:, plane].T, **style)
    axes.plot(*track.pos[:1, plane].T, "o", color=style["color"], markersize=4)


def _draw_error(axes: Axes, track: Track, style: dict[str, Any]) -> None:
    flying = track.times <= track.flight.airborne[1]
    gaps = track.gaps[track.gaps < np.count_nonzero(flying)]
    times, error = (interrupted(x[flying], gaps) for x in (track.times, track.error))
    axes.plot(times, _CM * error, **style)


def _label_path(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.set_aspect("equal", adjustable="datalim")
    axes.locator_params(nbins=7)


def _draw_floor(axes: Axes) -> None:
    axes.axhline(0, color="#444444", linewidth=1.2)
    # An added artist does not affect the automatic axis limits.
    across = axes.get_yaxis_transform()
    axes.add_artist(Rectangle((0, -1e3), 1, 1e3, color="#dddddd", zorder=0.5, transform=across))


def _finish_error(axes: Axes, record: FlightRecord) -> None:
    axes.set(
        title="Tracking error", xlabel="simulated time [s]", ylabel="distance from the plan [cm]"
    )
    begin, end = record.tracks[0].flight.airborne
    duration = record.tracks[0].flight.duration
    worst = _CM * np.nanmax([ALLOWED_ERROR, *(track.max_error for track in record.tracks)])
    axes.set(xlim=(0, duration), ylim=(0, 1.15 * worst))
    axes.axhline(_CM * ALLOWED_ERROR, color="#c0392b", linewidth=1, linestyle="--")
    axes.annotate(
        f"limit for the mean error: {_CM * ALLOWED_ERROR:g} cm",
        (end, _CM * ALLOWED_ERROR),
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


def _add_legend(
    figure: Figure, axes: list[Axes], flights: list[tuple[Track, dict[str, Any]]]
) -> None:
    planned = Line2D([], [], **_PLANNED, label="planned")
    if len(flights) <= FEW:
        flown = [Line2D([], [], **style) for _, style in flights]
        figure.legend(handles=[*flown, planned], loc="outside right upper")
    else:
        figure.legend(handles=[planned], loc="outside upper right")
        _add_colour_bar(figure, axes, flights)


def _add_colour_bar(
    figure: Figure, axes: list[Axes], flights: list[tuple[Track, dict[str, Any]]]
) -> None:
    """Add a colour bar that names as many drones as fit."""
    count = len(flights)
    colours = ListedColormap([style["color"] for _, style in flights])
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    named = np.arange(0, count, -(-count // MOST_NAMES))
    named[-1] = count - 1
    bar = figure.colorbar(ScalarMappable(norm, colours), ax=axes, ticks=named, aspect=40, pad=0.01)
    bar.ax.set_yticklabels([flights[index][0].name for index in named])
    bar.ax.tick_params(which="both", length=0)
    bar.ax.invert_yaxis()
    bar.outline.set_visible(False)


def _title(record: FlightRecord) -> str:
    count = len(record.tracks)
    errors = [track.mean_error for track in record.tracks if track.airborne.any()]
    title = (
        f"{count} drone{'s' if count > 1 else ''}, {record.tracks[0].flight.duration:g} s at"
        f" real-time factor {record.factor:.2g}"
    )
    if errors:
        title += f", mean error {_CM * np.mean(errors):.1f} cm"
    if lost := record.lost:
        title += f", {lost} message{'s' if lost > 1 else ''} lost (gaps in the lines)"
    return title
