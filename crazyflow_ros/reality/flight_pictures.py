"""Pictures of real flights and of the same flights of the simulated drone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.extras import extra
from crazyflow_ros.flight_logs.flight_log import PWM_MAX
from crazyflow_ros.reality.closed_loop import Flown
from crazyflow_ros.reality.flight_comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REAL, SIMULATED, SETPOINT = "#1f5fa8", "#d8572a", "#9a9a9a"
"""Colours."""

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}
_AFTER = 1.5  # s that are drawn after the judged part
_LEAST = 5.0  # cm, of the axis of errors


def draw(flown: Flown, comparison: Comparison, path: Path) -> None:
    """Write a PNG with paths from above and from the side, and errors, tilt and motors over time.

    Raises:
        OSError: The file cannot be written.
        ModuleNotFoundError: Matplotlib is not installed.
    """
    with extra("learn"):
        import matplotlib as mpl
        from matplotlib.figure import Figure
    flown = _until(flown, comparison.end + _AFTER)
    time = flown.real.time - flown.real.log.pose.time[0]
    judged = (time >= comparison.begin - 1e-9) & (time <= comparison.end + 1e-9)
    with mpl.rc_context(_STYLE):
        drawn = Figure(figsize=(11, 9.5), layout="constrained")
        axes = drawn.subplot_mosaic(
            [["above", "side"], ["error", "error"], ["tilt", "tilt"], ["motors", "motors"]],
            height_ratios=[3.2, 1.4, 1.2, 1.2],
        )
        for name, (a, b) in {"above": (0, 1), "side": (0, 2)}.items():
            _draw_path(axes[name], flown, judged, a, b)
        _draw_errors(axes["error"], flown, time, judged)
        _draw_tilt(axes["tilt"], flown, time)
        _draw_motors(axes["motors"], flown, time)
        for name in ("error", "tilt", "motors"):
            axes[name].axvspan(comparison.begin, comparison.end, color="#f3f6fa", zorder=0)
            axes[name].set_xlim(time[0], time[-1])
        axes["above"].legend(loc="upper left", fontsize=8)
        axes["motors"].set_xlabel("time since the first pose [s]; judged where shaded")
        c, shift = comparison, f"shifted by {1e3 * comparison.shift:.0f} ms"
        title = f"{100 * c.rmse:.1f} cm RMSE, {100 * c.shifted_rmse:.1f} cm {shift}"
        title = f"{c.name}, {c.controller}: {title}{f'; it {c.fall}' if c.fall else ''}"
        drawn.suptitle(title, x=0.01, ha="left", fontsize=12)
    file = io.BytesIO()
    drawn.savefig(file, format="png", dpi=110)
    write_file(path, file.getvalue())


def _draw_path(axes: Axes, flown: Flown, judged: np.ndarray, a: int, b: int) -> None:
    real, names = flown.real, "xyz"
    setpoint = real.setpoint[judged]
    axes.plot(setpoint[:, a], setpoint[:, b], color=SETPOINT, linewidth=0.8, label="setpoint")
    for path, colour, label in ((real.pos, REAL, "real"), (flown.pos, SIMULATED, "simulated")):
        axes.plot(path[judged, a], path[judged, b], color=colour, label=label, alpha=0.85)
        axes.plot(*path[judged][0, [a, b]], "o", color=colour, markersize=5)
    title = "From above" if b == 1 else "From the side"
    axes.set(title=title, xlabel=f"{names[a]} [m]", ylabel=f"{names[b]} [m]")
    axes.set_aspect("equal", adjustable="datalim")


def _until(flown: Flown, end: float) -> Flown:
    """Return a flight without what comes after a time since its first pose [s]."""
    kept = slice(int(np.searchsorted(flown.real.time - flown.real.log.pose.time[0], end)))

    def cut(part: Any) -> Any:
        arrays = {k: v[kept] for k, v in part._asdict().items() if isinstance(v, np.ndarray)}
        return part._replace(**arrays)

    return cut(flown._replace(real=cut(flown.real)))


def _draw_errors(axes: Axes, flown: Flown, time: np.ndarray, judged: np.ndarray) -> None:
    error = 100 * (flown.pos - flown.real.pos)
    for values, name, colour in zip(error.T, "xyz", ("#c0392b", "#2e8b57", "#6a4fb3")):
        axes.plot(time, values, color=colour, label=name)
    most = 1.3 * max(_LEAST, float(np.abs(error[judged]).max()))
    axes.set(title="Simulated minus real position", ylabel="[cm]", ylim=(-most, most))
    axes.legend(loc="upper left", ncols=3, fontsize=8)


def _draw_tilt(axes: Axes, flown: Flown, time: np.ndarray) -> None:
    both = (flown.real.quat, REAL, "real"), (flown.quat, SIMULATED, "simulated")
    for quat, colour, label in both:
        up = Rotation.from_quat(quat).as_matrix()[:, 2, 2]
        axes.plot(time, np.degrees(np.arccos(np.clip(up, -1, 1))), color=colour, label=label)
    axes.set(title="Tilt", ylabel="[degrees]")
    axes.set_ylim(bottom=0)


def _draw_motors(axes: Axes, flown: Flown, time: np.ndarray) -> None:
    """Draw the mean commands of the motors, and their range."""
    shares = []
    if flown.rotors is not None:
        shares.append((100 * flown.rotors, SIMULATED, "simulated: speed"))
    if (pwm := flown.real.log.pwm) is not None:
        shares.insert(0, (100 * pwm.at(flown.real.time) / PWM_MAX, REAL, "real: duty cycle"))
    for values, colour, label in shares:
        axes.fill_between(
            time, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.2, lw=0
        )
        axes.plot(time, values.mean(axis=1), color=colour, label=label, alpha=0.9)
    axes.set(title="Motor commands: mean and range", ylabel="[% of the most]", ylim=(0, 105))
    axes.legend(loc="lower right", ncols=2, fontsize=8)
