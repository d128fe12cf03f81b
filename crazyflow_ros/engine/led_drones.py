"""Drones that are led: others say where they are and how they move, as of real ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crazyflow_ros.engine.form import Columns
from crazyflow_ros.engine.snapshot import Fields
from crazyflow_ros.scene.frames import world_to_body

_MOTION = ("vel", "ang_vel", "body_vel")


class LedDrones(dict[str, Fields]):
    """The velocities of led drones, by name.

    The compiled world holds them at rest where they were last said to be. Their rotors turn, so
    they push air down.
    """

    def lead(self, name: str, fields: Fields) -> None:
        """Show a drone with the velocity and the angular velocity among some fields."""
        motion = {**fields, "body_vel": world_to_body(fields["quat"], fields["vel"])}
        self[name] = {key: motion[key] for key in _MOTION}

    def show(self, slots: Mapping[str, int], columns: np.ndarray, output: Columns) -> None:
        """Write the velocities into the output of a compiled world, (n, M, k)."""
        for name, motion in self.items():
            for key, values in motion.items():
                columns[:, slots[name], output[key]] = values
