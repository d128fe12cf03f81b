"""What of the scene stands between drones and the beacons that they measure."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.engine.interventions import set_matter
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.runtime.simulation import Simulation

_RATE = 50  # Hz at most


class LinesOfSight:
    """Tells the drones' filters how much stands between each drone and each beacon.

    It looks at exact multiples of a period, so that no flight depends on how a user steps.

    Args:
        simulation: The simulation.
        beacons: (K, 3) places of base stations, then of anchors, m.
    """

    def __init__(self, simulation: Simulation, beacons: np.ndarray) -> None:
        freq = simulation.config.freq
        rate = next(rate for rate in range(min(_RATE, freq), 0, -1) if freq % rate == 0)
        self._simulation, self._beacons, self._period = simulation, beacons, freq // rate
        simulation.events.add(rate, self._look, "lines of sight")

    @classmethod
    def watch(cls, simulation: Simulation) -> LinesOfSight | None:
        """Return them for a simulation whose drones measure beacons, None for others."""
        sources = simulation.config.positioning
        places = [*(station.origin for station in sources.stations), *sources.anchors]
        if simulation.config.estimator == Estimator.none or not places:
            return None
        return cls(simulation, np.array(places))

    def _look(self, snapshot: Snapshot) -> None:
        if snapshot.tick % self._period == 0:
            matter = self._simulation.mirror.matter_before(self._beacons)
            set_matter(self._simulation.engine, snapshot.names, matter)
