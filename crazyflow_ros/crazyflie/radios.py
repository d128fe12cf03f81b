"""The Crazyradios of a server, and the air between them and the drones."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from crazyflow_ros.crazyflie.air import Air
from crazyflow_ros.crazyflie.crazyradio import Crazyradio, RadioLink
from crazyflow_ros.crazyflie.link_config import LinkConfig
from crazyflow_ros.crazyflie.power import PowerState
from crazyflow_ros.crazyflie.station import Station
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.scene import Mirror

_PERIOD = 100_000_000  # ns between two looks where the drones are


class Radios:
    """Radios that share the drones.

    Args:
        config: The link.
        rate: Rate on the air.
        mirror: The scene.
        clock: Returns the time of the link [ns].
    """

    def __init__(
        self, config: LinkConfig, rate: str, mirror: Mirror, clock: Callable[[], int]
    ) -> None:
        self._radios = [
            Crazyradio(rate, config.loss, (config.seed, i), clock) for i in range(config.radios)
        ]
        self._air, self._clock = Air(mirror, np.array(config.antenna)), clock
        self._first, self._look_at = config.port, clock()
        self._powers: dict[str, float] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Look where the drones are, from time to time."""
        now = self._clock()
        if now >= self._look_at or self._powers.keys() != set(snapshot.names):
            self._look_at = now + _PERIOD
            self._powers = self._air.powers(snapshot.names, snapshot.pos)

    def power(self, station: Station) -> float:
        """Return the power [dBm] that a drone receives; -inf if its radio is off."""
        if station.firmware.power.state is PowerState.all_off:
            return -inf
        return self._powers.get(station.name, -inf)

    def join(self, station: Station, on_lost: Callable[[], None]) -> RadioLink:
        """Return a new link to a drone; see `RadioLink`."""
        return self._of(station).join(lambda: self.power(station), on_lost)

    def reaches(self, station: Station) -> bool:
        """Return whether a drone answers one who looks for it."""
        return self._of(station).reaches(self.power(station))

    def _of(self, station: Station) -> Crazyradio:
        return self._radios[(station.port - self._first) % len(self._radios)]

    def run(self) -> None:
        """Do what is due."""
        for radio in self._radios:
            radio.run()

    def next_due(self) -> int | None:
        """Return when `run` has to be called [ns]; None if no packet waits."""
        return min(
            (due for radio in self._radios if (due := radio.next_due()) is not None), default=None
        )
