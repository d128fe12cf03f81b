"""The curves of a drone, as the page plots them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crazyflow_ros.drones import rotors_of
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.ros.messages import NS
from crazyflow_ros.scene.frames import rpy
from crazyflow_ros.view.replay.recorded_samples import RecordedSamples

Lines = list[list[float | None]]

ROWS: tuple[dict[str, Any], ...] = (
    {"id": "height", "label": "Height", "unit": "m", "lines": ["z", "z wanted"]},
    {"id": "place", "label": "Position", "unit": "m", "lines": ["x", "y", "x wanted", "y wanted"]},
    {"id": "error", "label": "Tracking error", "unit": "m", "lines": ["distance"]},
    {"id": "speed", "label": "Speed", "unit": "m/s", "lines": ["speed"]},
    {"id": "attitude", "label": "Attitude", "unit": "°", "lines": ["roll", "pitch", "yaw"]},
    {"id": "tilt", "label": "Tilt", "unit": "°", "lines": ["tilt"]},
    {
        "id": "rotors",
        "label": "Rotors",
        "unit": "rad/s",
        "lines": ["0 front right", "1 rear right", "2 rear left", "3 front left"],
    },
    {"id": "battery", "label": "Battery", "unit": "V", "lines": ["voltage"]},
)
"""The plots that there are: name, label, unit, and the labels of their lines."""


def rows_of(drone_model: str) -> list[dict[str, Any]]:
    """Return the plots of a drone, which has a line for each rotor."""
    try:
        n_rotors = len(rotors_of(drone_model))
    except ValueError:  # a drone of another machine
        n_rotors = QUADROTOR
    if n_rotors == QUADROTOR:
        return list(ROWS)
    numbers = {"lines": [str(i) for i in range(n_rotors)]}
    return [row | numbers if row["id"] == "rotors" else row for row in ROWS]


def curves(
    samples: RecordedSamples,
    drone: str,
    zero_ns: int,
    battery: Sequence[tuple[int, float, float]] = (),
) -> dict[str, Any]:
    """Return the curves of a drone for JSON.

    Args:
        samples: States of the recording.
        drone: Name of the drone.
        zero_ns: Time in the file from which seconds count [ns].
        battery: Time [ns], voltage [V] and charge of its battery.

    Returns:
        `t`, the times [s]; the lines of each plot but the battery's, by its name, None where there
        is no value; and `battery`, times [s] and voltages [V].
    """
    track = samples.of(drone)
    wanted = track.reference
    attitude = np.rad2deg(rpy(track.quat)) if len(track.quat) else np.zeros((0, 3))
    columns = {
        "height": [track.pos[:, 2], wanted[:, 2]],
        "place": [track.pos[:, 0], track.pos[:, 1], wanted[:, 0], wanted[:, 1]],
        "error": [track.error],
        "speed": [track.speed],
        "attitude": list(attitude.T),
        "tilt": [track.tilt],
        "rotors": list(track.rotors.T),
    }
    return {
        "t": _plain((track.times_ns - zero_ns) / NS, 4),
        **{name: [_plain(line, 3) for line in lines] for name, lines in columns.items()},
        "battery": [
            [round((entry[0] - zero_ns) / NS, 3) for entry in battery],
            [entry[1] for entry in battery],
        ],
    }


def _plain(values: np.ndarray, digits: int) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.round(digits).tolist()]
