"""Where drones start, and stand, when their world becomes another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from crazyflow_ros.engine.initial_poses import resettled, shown
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.simulation import Simulation


class _Start(NamedTuple):
    """Where a drone starts in the present world."""

    wish: np.ndarray
    """(7,) its initial pose in a world without anything in the way."""
    floor: float | None
    """Height of the floor to which this belongs [m]."""
    place: np.ndarray
    """(7,) its initial pose."""


class Starts:
    """Moves drones out of what is in their way in another world. Physics thread.

    Args:
        simulation: The drones.
        roster: Their scene.
    """

    def __init__(self, simulation: Simulation, roster: Roster) -> None:
        self._simulation, self._roster = simulation, roster
        self._kept: dict[str, _Start] = {}

    def resettle(self, before: float | None) -> list[str]:
        """Move drones that would be inside something in the present world; return which.

        Args:
            before: Height of the floor of the previous world [m]; None for none.
        """
        engine, roster, config = self._simulation.engine, self._roster, self._simulation.config
        names, floor, around = engine.names, roster.conditions.floor, roster.surroundings
        slots = engine.slots_of(names)
        wished = self._wished(names, engine.initial.poses(slots), before)
        initial = resettled(config, wished, before, floor, around)
        engine.initial.set_poses(slots.tolist(), initial)
        aside = (initial[:, :2] != wished[:, :2]).any(axis=1)
        self._tell_moved("will start at", names, initial, np.flatnonzero(aside))
        self._kept = {
            name: _Start(pose, before, place)
            for name, pose, place in zip(names, wished, engine.initial.poses(slots))
        }
        roster.start |= {k: pose for k, pose in zip(names, initial) if k in roster.start}
        now = self._simulation.evaluate(self._simulation.snapshot.tick)
        poses = np.hstack((now.pos, now.quat))
        new = resettled(config, poses, before, floor, around)
        moved = np.flatnonzero((new != poses).any(axis=1))
        for i in moved:
            at_rest = {k: np.zeros(n) for k, n in (("vel", 3), ("ang_vel", 3))}
            engine.put([names[i]], {"pos": new[i, :3], "quat": new[i, 3:]} | at_rest)
        self._tell_moved("has moved to", names, new, moved)
        return [names[i] for i in moved]

    def _wished(self, names: Sequence[str], present: np.ndarray, floor: float | None) -> np.ndarray:
        """Return the initial poses (M, 7) before worlds moved them, above the present floor."""
        poses = present.copy()
        for i, name in enumerate(names):
            kept = self._kept.get(name)
            if kept is not None and np.array_equal(kept.place, present[i]):
                poses[i] = kept.wish
                poses[i, 2] += (floor or 0.0) - (kept.floor or 0.0)
        return poses

    def _tell_moved(
        self, verb: str, names: Sequence[str], poses: np.ndarray, moved: Iterable[int]
    ) -> None:
        for i in moved:
            where = f"{shown(poses[i])}, where it is free in this world"
            self._simulation.health.inform(f"{names[i]} {verb} {where}")
