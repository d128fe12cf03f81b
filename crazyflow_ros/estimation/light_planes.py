"""The planes of light of a base station: at which angles they meet a point, and back.

For arrays of JAX or NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, tan
from typing import Any

from crazyflow_ros.dynamics.components import Vec3
from crazyflow_ros.elementwise import library

TILT = pi / 6
"""Nominal tilt of the second plane [rad]; that of the first is opposite."""
SLOPE = tan(TILT)
"""Tangent of `TILT`."""


def angle(point: Vec3, tilt: Any, sweep: Sequence[Any]) -> Any:
    """Return the angle at which a plane meets a point, as the firmware models it.

    Args:
        point: In the axes of the station, m.
        tilt: Nominal tilt of the plane, rad.
        sweep: Calibration, see `base_stations.Sweep`; as in the firmware, curve and ogee have no
            effect.
    """
    xp = library(*point)
    x, y, z = point
    phase, own_tilt, _, gibmag, gibphase, _, _ = sweep
    around = xp.arctan2(y, x)
    radius = xp.sqrt(x * x + y * y)
    leaning = xp.arcsin(xp.clip(z * xp.tan(tilt - own_tilt) / radius, -1.0, 1.0))
    return around + leaning - phase + gibmag * xp.cos(around + gibphase)


def beam(first: Any, second: Any) -> tuple[Any, Any]:
    """Return y and z where x is 1 of the line in which two planes without errors meet."""
    xp = library(first, second)
    y = xp.tan((first + second) / 2)
    return y, xp.sin(second - first) / (SLOPE * (xp.cos(first) + xp.cos(second)))


def without_errors(raw: tuple[Any, Any], sweeps: Sequence[Sequence[Any]]) -> tuple[Any, Any]:
    """Return angles without what the calibration explains (`lighthouseCalibrationApplyV2`)."""
    first, second = raw
    for _ in range(5):  # as often as the firmware at most
        y, z = beam(first, second)
        point = (library(y).ones_like(y), y, z)
        first = first + raw[0] - angle(point, -TILT, sweeps[0])
        second = second + raw[1] - angle(point, TILT, sweeps[1])
    return first, second
