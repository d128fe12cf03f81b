"""Radio waves between a Crazyradio and Crazyflies: times on the air, power received, losses.

Sources: nRF24L01+ Product Specification 1.0 (packets 7.3, times 7.5 and table 18, sensitivity 5.4),
ITU-R P.525 (free space), COST 231 final report, 4.7 (walls), firmware of Crazyradio and nRF51.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1, log, log1p, log10, pi
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.groups import UNUSED_GROUP

SETTLING_NS = 130_000
"""Time in which a radio changes between sending and receiving."""

_OVERHEAD = 8  # bytes of preamble, address and checksum
_CONTROL = 9  # bits of length, number and "no acknowledgement"
_POWER = 20.0  # dBm, sent by Crazyradio PA and 2.0, and by a Crazyflie 2.x
_WAVE = 299_792_458.0 / 2.48e9  # m, on channel 80
_NEAREST = 0.1  # m, below which antennas are not far from one another
_ERRORS = 1e-3  # share of wrong bits by which data sheets define the sensitivity
_LIGHT, _HEAVY = 3.4, 6.9  # dB of a wall
_THICK = 0.1  # m of a heavy wall
_DRAWINGS = 2  # geom group of visual geoms
_MOST_HITS = 64  # surfaces on the way
_PASS = 1e-6  # m, past a surface


class AirRate(NamedTuple):
    """A rate of bits on the air."""

    bits: float
    """1/s."""
    retry_ns: int
    """Time after a packet without an acknowledgement until it is sent again; the firmware of
    Crazyradio derives it from the longest acknowledgement."""
    sensitivity: float
    """Power [dBm] at which one bit of a thousand is wrong."""

    def time_ns(self, size: int) -> int:
        """Return the time on the air of a packet of `size` bytes."""
        return round((8 * (_OVERHEAD + size) + _CONTROL) / self.bits * 1e9)

    def loss(self, power: float, size: int) -> float:
        """Return the share of packets that arrive with a wrong bit.

        Args:
            power: Power received [dBm].
            size: Bytes of a packet.
        """
        # Frequency shift keying, detected without its phase: errors are exp(-ratio / 2) / 2.
        ratio = -2 * log(2 * _ERRORS) * 10 ** ((power - self.sensitivity) / 10)
        return -expm1((8 * (_OVERHEAD + size) + _CONTROL) * log1p(-0.5 * exp(-ratio / 2)))


AIR_RATES = {
    "250K": AirRate(250e3, 1_500_000, -94.0),
    "1M": AirRate(1e6, 500_000, -85.0),
    "2M": AirRate(2e6, 500_000, -82.0),
}
"""Rates by the names that addresses of drones have for them."""


class Air:
    """What is between the antenna of the Crazyradios and the drones.

    Args:
        mirror: The scene.
        antenna: (3,) m, world frame.
    """

    def __init__(self, mirror: Mirror, antenna: np.ndarray) -> None:
        self._mirror, self._antenna = mirror, antenna
        self._groups = np.ones(mujoco.mjNGROUP, np.uint8)
        self._groups[[_DRAWINGS, UNUSED_GROUP]] = 0
        self._model: mujoco.MjModel | None = None

    def powers(self, names: Sequence[str], places: np.ndarray) -> dict[str, float]:
        """Return the power received [dBm], by drone; the same both ways. From any thread.

        Args:
            names: Names of the drones.
            places: (M, 3) m, where they are.
        """
        self._look()
        return {name: self._power(place) for name, place in zip(names, places)}

    def _look(self) -> None:
        """Look where the things of the scene are."""
        with self._mirror.mutex:
            model = self._mirror.model
            if model is not self._model:
                self._model, self._data = model, mujoco.MjData(model)
                drones = [model.body(f"drone:{name}").id for name in self._mirror.names]
                own = np.isin(model.body_rootid, drones)[model.geom_bodyid]
                self._passes = own | (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
            if not self._passes.all():
                self._mirror.copy_physics_data(self._data)

    def _power(self, place: np.ndarray) -> float:
        way = place - self._antenna
        distance = max(float(np.linalg.norm(way)), _NEAREST)
        free = 20 * log10(4 * pi * distance / _WAVE)
        walls = 0.0 if self._passes.all() else self._walls(way / distance, distance)
        return _POWER - free - walls

    def _walls(self, direction: np.ndarray, distance: float) -> float:
        """Return what the solids on the way of a ray take away [dB]."""
        assert self._model is not None
        entered: dict[int, float] = {}  # geoms in which the ray is, and where it has entered them
        hit, at, loss = np.zeros(1, np.int32), 0.0, 0.0
        for _ in range(_MOST_HITS):
            found = mujoco.mj_ray(
                self._model, self._data, self._antenna + at * direction, direction,
                self._groups, 1, -1, hit,
            )  # fmt: skip
            at += found
            if found < 0 or at >= distance:
                break
            geom = int(hit[0])
            if self._passes[geom]:
                pass
            elif geom in entered:
                loss += _HEAVY if at - entered.pop(geom) >= _THICK else _LIGHT
            else:
                entered[geom] = at
            at += _PASS
        return loss
