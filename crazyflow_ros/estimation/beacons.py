"""The memory of a drone's filter for base stations and radio anchors: one row of named columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import Matrix3
from crazyflow_ros.estimation import lighthouse, radio_anchors
from crazyflow_ros.estimation.instrument_readings import PoseReading, Random
from crazyflow_ros.estimation.kalman import Belief
from crazyflow_ros.estimation.lighthouse import LighthouseSettings
from crazyflow_ros.estimation.positioning import Positioning, Ranging
from crazyflow_ros.estimation.radio_anchors import LocoSettings

_DRAWN = 0x10C0  # together with the seed, for the errors of beacons


@lru_cache(64)
def columns(positioning: Positioning) -> Mapping[str, slice]:
    """Return the columns by name; none without base stations and anchors.

    `matter` is how much of the scene stands between the drone and each station, then each anchor
    [m]. `lighthouse` and `loco` are what was heard, see `HEARD` of both modules; `known` is what
    the firmware knows of the stations, see `lighthouse.KNOWN`; parameters have the firmware's
    names.
    """
    n_stations, n_anchors = len(positioning.stations), len(positioning.anchors)
    sizes: dict[str, int] = {}
    if n_stations:
        sizes["lighthouse"] = n_stations * lighthouse.HEARD + lighthouse.POSITION
    if n_anchors:
        sizes["loco"] = n_anchors * radio_anchors.HEARD
    if n_stations or n_anchors:
        sizes["matter"] = n_stations + n_anchors
        sizes["errors"] = 2 * n_stations + n_anchors
    if n_stations:
        sizes |= {"lighthouse gate": lighthouse.GATE, "known": n_stations * lighthouse.KNOWN}
    if n_anchors:
        sizes["loco gate"] = radio_anchors.GATE
    sizes |= dict.fromkeys(_defaults(positioning), 1)
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends)}


def heard(positioning: Positioning) -> slice:
    """Return the columns of all that was heard, the first ones."""
    own = columns(positioning)
    return slice(0, own["matter"].start if own else 0)


def initial(positioning: Positioning, n_worlds: int, n_drones: int, seed: int) -> np.ndarray | None:
    """Return the initial memory (N, M, k), None without beacons; drones of a world share errors."""
    own = columns(positioning)
    if not own:
        return None
    memory = np.zeros((n_worlds, n_drones, max(each.stop for each in own.values())))
    n_stations, n_anchors = len(positioning.stations), len(positioning.anchors)
    stds = np.repeat((lighthouse.ERROR_STD, radio_anchors.ERROR_STD), (2 * n_stations, n_anchors))
    drawn = np.random.default_rng((seed, _DRAWN)).standard_normal((n_worlds, 1, len(stds)))
    memory[..., own["errors"]] = drawn * stds
    if n_stations:
        known = [number for station in positioning.stations for number in station.numbers]
        memory[..., own["known"]] = known
    for name, value in _defaults(positioning).items():
        memory[..., own[name]] = value
    return memory


def restarted(positioning: Positioning, memory: np.ndarray) -> np.ndarray:
    """Return the memory (..., k) of filters that start again: outlier filters are open."""
    new = memory.copy()
    for name, own in columns(positioning).items():
        if name.endswith("gate"):
            new[..., own] = 0
    return new


def fused(
    belief: Belief,
    memory: tuple[Array, ...],
    positioning: Positioning,
    now: PoseReading,
    rot: Matrix3,
    count: Array,
    random: Random,
    dt: float,
) -> tuple[Belief, tuple[Array, ...]]:
    """Return the belief after what the decks hear of beacons in a step, and the new memory.

    Args:
        belief: The belief before.
        memory: The columns.
        positioning: The beacons.
        now: The true motion.
        rot: Attitude of the belief before the prediction.
        count: Number of the step.
        random: Random numbers.
        dt: Time step, s.
    """
    own, n = columns(positioning), len(positioning.stations)
    new = list(memory)
    matter, errors = memory[own["matter"]], memory[own["errors"]]
    if positioning.stations:
        given = [memory[own[name]][0] for name in _defaults(positioning) if _is_light(name)]
        belief, new[own["lighthouse"]], new[own["lighthouse gate"]] = lighthouse.fused(
            belief,
            memory[own["lighthouse"]],
            memory[own["lighthouse gate"]],
            LighthouseSettings(*given),
            memory[own["known"]],
            errors,
            matter,
            positioning.stations,
            now,
            rot,
            count,
            random,
            dt,
        )
    if positioning.anchors:
        given = [memory[own[name]][0] for name in _defaults(positioning) if not _is_light(name)]
        belief, new[own["loco"]], new[own["loco gate"]] = radio_anchors.fused(
            belief,
            memory[own["loco"]],
            memory[own["loco gate"]],
            LocoSettings(*given),
            errors[2 * n :],
            matter[n:],
            positioning.anchors,
            Ranging(positioning.ranging),
            now.pos,
            count,
            random,
            dt,
        )
    return belief, tuple(new)


def _is_light(name: str) -> bool:
    return name.startswith("lighthouse.")


def _defaults(positioning: Positioning) -> dict[str, float]:
    """Return the parameters of the firmware that have an effect, and their defaults."""
    found: dict[str, float] = {}
    if positioning.stations:
        light = LighthouseSettings()._asdict()
        found |= {f"lighthouse.{name}": float(value) for name, value in light.items()}
    if positioning.anchors:
        kind = "tdoa2" if positioning.ranging == Ranging.tdoa2 else "tdoa3"
        for name, value in LocoSettings()._asdict().items():
            found[f"{kind if name == 'stddev' else 'loco'}.{name}"] = float(value)
    return found
