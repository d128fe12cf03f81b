"""Log variables of the Lighthouse and Loco decks, computed from what a drone's filter has heard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from crazyflow_ros.crazyflie.telemetry import Telemetry
from crazyflow_ros.estimation import Positioning, Ranging

Value = Callable[[Telemetry], float]

_BITS = 16
_STATIONS = 2  # with angles in the log
_NUMBERS = 8  # of anchors in the log
_NOTHING, _NO_DATA, _IN_USE = range(3)  # states of the system
_ALL = 0xFFFF


def variables() -> dict[str, tuple[str, Value]]:
    """Return type and value of each variable by name."""
    found: dict[str, tuple[str, Value]] = {
        "lighthouse.bsAvailable": ("uint16", lambda t: _ALL if t.sources.stations else 0),
        "lighthouse.bsReceive": ("uint16", _received),
        "lighthouse.bsActive": ("uint16", _active),
        "lighthouse.bsCalUd": ("uint16", lambda _: 0.0),
        "lighthouse.bsCalCon": ("uint16", _received),
        "lighthouse.bsCalVal": ("uint16", lambda t: t.stations_valid[1]),
        "lighthouse.bsGeoVal": ("uint16", lambda t: t.stations_valid[0]),
        "lighthouse.status": ("uint8", _status),
        "lighthouse.comSync": ("uint8", lambda t: bool(t.sources.stations)),
        "ranging.state": ("uint16", _ranging),
        "loco.mode": ("uint8", lambda t: _kind(t).number if t.sources.anchors else 0),
    }
    for i, name in enumerate(("x", "y", "z", "delta")):
        found[f"lighthouse.{name}"] = "float", partial(_crossing, i)
    for station in range(_STATIONS):
        for plane, axis in enumerate("xy"):
            own = station, plane
            found[f"lighthouse.rawAngle{station}{axis}lh2"] = "float", partial(_raw, *own)
            found[f"lighthouse.angle{station}{axis}_0lh2"] = "float", partial(_corrected, *own)
            found[f"lighthouse.angle{station}{axis}"] = "float", partial(_emulated, *own)
            found[f"lighthouse.rawAngle{station}{axis}"] = "float", lambda _: 0.0  # of version 1
    for i in range(_NUMBERS):
        found[f"ranging.distance{i}"] = "float", partial(_anchor, Ranging.twr, i)
        pair = f"tdoa2.d{(i - 1) % _NUMBERS}-{i}"
        found[pair] = "float", partial(_anchor, Ranging.tdoa2, i)
        found[f"tdoa2.cc{i}"] = "float", partial(_clock, i)
    return found


def silence(sources: Positioning, heard: np.ndarray | None) -> str:
    """Return why an estimator does not find its place, empty if it does.

    Args:
        sources: What it measures.
        heard: What it has heard of beacons, see `Snapshot.heard`.
    """
    if sources.flow or sources.motion_capture:
        return ""
    stations, anchors = (_from(sources, heard, name) for name in ("lighthouse", "loco"))
    if not (stations or anchors):
        return "it measures no position; add a deck, or send poses (cf.extpos)"
    if any(own[-2] > 0 for own in stations) or any(own[-1] > 0 for own in anchors):
        return ""
    names = [kind for kind, own in (("base station", stations), ("anchor", anchors)) if own]
    return f"no {' or '.join(names)} is received"


def _from(sources: Positioning, heard: np.ndarray | None, system: str) -> list[np.ndarray]:
    """Return what was heard of each station (`lighthouse`) or anchor (`loco`)."""
    beacons = sources.stations if system == "lighthouse" else sources.anchors
    if not beacons or heard is None:
        return []
    from crazyflow_ros.estimation import lighthouse, radio_anchors  # with JAX
    from crazyflow_ros.estimation.beacons import columns

    size = (lighthouse if system == "lighthouse" else radio_anchors).HEARD
    numbers = heard[columns(sources)[system]]
    return [numbers[i * size : (i + 1) * size] for i in range(len(beacons))]


def _stations(t: Telemetry) -> dict[int, np.ndarray]:
    """Return what was heard of each station, by its channel."""
    own = _from(t.sources, t.heard, "lighthouse")
    return {station.channel: heard for station, heard in zip(t.sources.stations, own)}


def _received(t: Telemetry) -> float:
    return sum(1 << channel for channel, own in _stations(t).items() if own[8] > 0)


def _active(t: Telemetry) -> float:
    geometries, calibrations = t.stations_valid
    return int(_received(t)) & geometries & calibrations


def _status(t: Telemetry) -> float:
    if not _received(t):
        return _NOTHING
    return _IN_USE if _active(t) else _NO_DATA


def _crossing(i: int, t: Telemetry) -> float:
    from crazyflow_ros.estimation.beacons import columns
    from crazyflow_ros.estimation.lighthouse import POSITION

    if not t.sources.stations or t.heard is None:
        return 0.0
    return float(t.heard[columns(t.sources)["lighthouse"].stop - POSITION + i])


def _raw(channel: int, plane: int, t: Telemetry) -> float:
    own = _stations(t).get(channel)
    return 0.0 if own is None else float(own[plane])


def _pair(channel: int, t: Telemetry) -> tuple[float, float]:
    """Return the angles of sensor 0 without what the station's calibration explains, rad."""
    from crazyflow_ros.estimation.light_planes import without_errors

    own = _stations(t).get(channel)
    if own is None or not own[:2].any():
        return 0.0, 0.0
    (station,) = (each for each in t.sources.stations if each.channel == channel)
    first, second = without_errors((own[0:1], own[1:2]), station.sweeps)
    return float(first[0]), float(second[0])


def _corrected(channel: int, plane: int, t: Telemetry) -> float:
    return _pair(channel, t)[plane]


def _emulated(channel: int, plane: int, t: Telemetry) -> float:
    """Return an angle as of a station of version 1, rad."""
    from crazyflow_ros.estimation.light_planes import beam

    first, second = (np.array([angle]) for angle in _pair(channel, t))
    if plane == 0:
        return float(first[0] + second[0]) / 2
    return float(np.arctan(beam(first, second)[1][0]))


def _kind(t: Telemetry) -> Ranging:
    return Ranging(t.sources.ranging)


def _anchors(t: Telemetry) -> list[np.ndarray]:
    """Return what was heard of each anchor."""
    return _from(t.sources, t.heard, "loco")


def _ranging(t: Telemetry) -> float:
    return sum(1 << i for i, own in enumerate(_anchors(t)[:_BITS]) if own[3] > 0)


def _anchor(kind: Ranging, i: int, t: Telemetry) -> float:
    own = _anchors(t)
    return float(own[i][0]) if i < len(own) and _kind(t) is kind else 0.0


def _clock(i: int, t: Telemetry) -> float:
    """Return the ratio of an anchor's clock to the drone's, which is exact here."""
    own = _anchors(t)
    return float(_kind(t) is Ranging.tdoa2 and i < len(own) and own[i][3] > 0)
