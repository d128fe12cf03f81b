"""Control inputs that others write to the mirror: rotor speeds, and forces that last."""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Sequence
from math import inf

import numpy as np

from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.wrenches import MIRROR, TimedWrench
from crazyflow_ros.scene import Controls
from crazyflow_ros.scene.controls import Load


class MirrorInputs:
    """The control inputs of the mirror. Any thread posts, the physics thread applies.

    Args:
        simulation: The simulation.
        health: Logs rotor speeds without effect.
    """

    def __init__(self, simulation: Simulation, health: Health) -> None:
        self._simulation, self._health = simulation, health
        self._lock = threading.Lock()  # guards what is posted
        self._rotors: dict[str, np.ndarray] = {}
        self._told = False

    def post(self, names: Sequence[str], controls: Controls) -> None:
        """Apply inputs of drones from the next tick on; their rotor speeds wait for `take`.

        Raises:
            ValueError: A force is beyond its limits; the message names the drone.
            InvalidState: Too many wrenches are active already.
        """
        wrenches: dict[Hashable, tuple[str, TimedWrench | None]] = {}
        for load in controls.loads:
            try:
                wrench = TimedWrench(load.force, load.torque, inf, load.in_body, load.point)
            except ValueError as error:
                raise ValueError(f"{load.drone}: {error}") from None
            wrenches[MIRROR, load.drone, load.part] = load.drone, wrench
        self._simulation.wrenches.replace(wrenches, [(MIRROR, name) for name in names])
        if not self._simulation.rotors_obey:
            self._note_unused(names, controls)
            return
        with self._lock:
            self._rotors |= dict(zip(names, controls.rotor_speed))

    def take(self) -> None:
        """Put posted rotor speeds into force. Physics thread only."""
        with self._lock:
            posted = self._rotors.copy()
        present = [name for name in self._simulation.snapshot.names if name in posted]
        if present:
            self._simulation.command_rotors(present, np.stack([posted[name] for name in present]))
        with self._lock:  # after the snapshot has them, because readers look here first
            self._rotors = {k: x for k, x in self._rotors.items() if x is not posted.get(k)}

    def forget(self, names: Collection[str]) -> None:
        """Drop posted rotor speeds of drones."""
        with self._lock:
            self._rotors = {k: x for k, x in self._rotors.items() if k not in names}

    def latest(self, names: Sequence[str]) -> Controls:
        """Return the inputs of drones, posted or in force; zeros for unknown drones."""
        with self._lock:
            posted = self._rotors.copy()
        now, wrenches = self._simulation.snapshot, self._simulation.wrenches.group(MIRROR)
        assert now.rotor_command is not None
        speeds = dict(zip(now.names, now.rotor_command)) | posted
        loads = [
            Load(name, part, np.array(x.force), np.array(x.torque), x.in_body, np.array(x.point))
            for (_, name, *parts), x in wrenches.items()
            for part in parts  # older checkpoints have none, but a sum over all parts
            if name in names
        ]
        return Controls(np.array([speeds.get(name, np.zeros(4)) for name in names]), loads)

    def _note_unused(self, names: Sequence[str], controls: Controls) -> None:
        """Say once that rotor speeds have no effect."""
        speeds = controls.rotor_speed
        if self._told or not (speeds != 0).any():
            return
        if (speeds != self.latest(names).rotor_speed).any():
            self._told = True
            why = "a door" if self._simulation.by_door else "the controllers of the drones"
            self._health.inform(
                f"ctrl of the mirror has no effect: {why} command the rotors; start without a door "
                "and with control=rotor_vel to command them"
            )
