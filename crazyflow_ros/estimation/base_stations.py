"""Base stations of a Lighthouse: where they stand, and the calibration of their sweeps.

Files are those of Bitcraze's cfclient and cflib (`LighthouseConfigFileManager`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.yaml_files import load_yaml

MOST_STATIONS = 16
"""Channels of base stations of version 2."""

_KIND, _VERSION, _V2 = "lighthouse_system_configuration", "1", 2
_UNIT = 1e-3  # how far a rotation matrix may be from an orthogonal one
_COSINE, _FIGURE = limits.Limit(1.0 + _UNIT, ""), limits.Limit(100.0, "")


class Sweep(NamedTuple):
    """Calibration of a light plane, as the station transmits it [rad, 1]."""

    phase: float = 0.0
    tilt: float = 0.0
    curve: float = 0.0
    gibmag: float = 0.0
    gibphase: float = 0.0
    ogeemag: float = 0.0
    ogeephase: float = 0.0


@dataclass(frozen=True)
class BaseStation:
    """A base station of version 2; its x axis points where it looks, z upwards.

    Raises:
        ValueError: A number is impossible, or the rotation is none.
    """

    channel: int
    """Number of its channel, from 0."""
    origin: tuple[float, float, float]
    """Position of its rotor, m."""
    rotation: tuple[tuple[float, float, float], ...]
    """Rows of the matrix that turns its axes into those of the world."""
    sweeps: tuple[Sweep, Sweep] = (Sweep(tilt=-0.048), Sweep(tilt=0.047))
    """Calibration of both planes; their planes are tilted by nearly
    0.05 rad, as those of real stations."""
    uid: int = 0
    """Serial number."""

    def __post_init__(self) -> None:
        if not 0 <= self.channel < MOST_STATIONS:
            last = MOST_STATIONS - 1
            raise ValueError(f"channels of base stations are from 0 to {last}, got {self.channel}")
        what = f"base station {self.channel}"
        limits.vector(f"the origin of {what}", self.origin, (3,), limits.POSITION)
        axes = limits.vector(f"the rotation of {what}", self.rotation, (3, 3), _COSINE)
        if np.abs(axes @ axes.T - np.eye(3)).max() > _UNIT or np.linalg.det(axes) < 0:
            raise ValueError(f"the rotation of {what} is not that of a body, got {axes.tolist()}")
        limits.vector(f"the calibration of {what}", self.sweeps, (2, 7), _FIGURE)

    @classmethod
    def looking(
        cls, channel: int, origin: Sequence[float], at: Sequence[float], uid: int = 0
    ) -> BaseStation:
        """Return a station at a place [m] that looks at a point [m], upright."""
        ahead = np.subtract(at, origin) / np.linalg.norm(np.subtract(at, origin))
        left = np.cross((0.0, 0.0, 1.0), ahead)
        left /= np.linalg.norm(left)
        axes = np.column_stack((ahead, left, np.cross(ahead, left)))
        x, y, z = (float(number) for number in origin)
        return cls(channel, (x, y, z), tuple(map(tuple, axes.tolist())), uid=uid)

    @property
    def numbers(self) -> list[float]:
        """What the firmware has to know, see `lighthouse.KNOWN`."""
        rows = np.ravel(self.rotation).tolist()
        return [*self.origin, *rows, *self.sweeps[0], *self.sweeps[1], 1.0]


USUAL_STATIONS = (
    BaseStation.looking(0, (-2.5, -2.5, 2.5), (0.0, 0.0, 0.5), uid=0x43B1A2F0),
    BaseStation.looking(1, (2.5, 2.5, 2.5), (0.0, 0.0, 0.5), uid=0x5C09D7E1),
)
"""Two stations in opposite corners of 5 m x 5 m."""


def read_stations(path: str) -> tuple[BaseStation, ...]:
    """Return the stations in a file that cfclient has written, in the order of their channels.

    Raises:
        ValueError: The file cannot be read, or is none of two or fewer of these stations' data;
            the message names it.
    """
    content = load_yaml(path)
    try:
        if not isinstance(content, Mapping) or content.get("type") != _KIND:
            raise ValueError(f"expected a file of type {_KIND}, as cfclient writes it")
        if str(content.get("version")) != _VERSION:
            raise ValueError(f"expected version {_VERSION}, got {content.get('version')!r}")
        if content.get("systemType", _V2) != _V2:
            raise ValueError("only base stations of version 2 are simulated")
        geos, calibs = content.get("geos") or {}, content.get("calibs") or {}
        if not geos:
            raise ValueError("it has no geometry (geos) of any base station")
        return tuple(_station(channel, geos[channel], calibs) for channel in sorted(geos))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _station(channel: int, geometry: Mapping[str, Any], calibs: Mapping[int, Any]) -> BaseStation:
    x, y, z = geometry["origin"]
    rows = tuple((float(a), float(b), float(c)) for a, b, c in geometry["rotation"])
    if channel not in calibs:
        raise ValueError(f"base station {channel} has a geometry, but no calibration (calibs)")
    first, second = (
        Sweep(*(float(sweep[name]) for name in Sweep._fields))
        for sweep in calibs[channel]["sweeps"]
    )
    place = (float(x), float(y), float(z))
    return BaseStation(channel, place, rows, (first, second), int(calibs[channel]["uid"]))
