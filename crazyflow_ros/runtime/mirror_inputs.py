"""What users of the mirror ask of the physics: rotor speeds, forces that last, and states."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from math import inf

import numpy as np

from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.interventions import command_rotors, rotors_obey
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import Raw
from crazyflow_ros.runtime.requests import Requests
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.state_changes import StateChanges, StateEdit
from crazyflow_ros.runtime.wrenches import MIRROR, TimedWrench
from crazyflow_ros.scene import Controls, MirrorState
from crazyflow_ros.scene.controls import Load


class MirrorInputs:
    """The `PhysicsRequests` of the mirror. Any thread posts, the physics thread applies.

    Args:
        simulation: The simulation.
        state: Changes its state.
        requests: The queue of requests.
    """

    def __init__(self, simulation: Simulation, state: StateChanges, requests: Requests) -> None:
        self._simulation, self._engine, self._requests = simulation, simulation.engine, requests
        self._edit_state = state.edit_state
        self.reset, self.notify_reset = state.reset, state.notify_reset
        self.capture_initial_state = state.capture_initial_state
        self._lock = threading.Lock()  # guards what is posted
        self._rotors: dict[str, np.ndarray] = {}
        self._told = False

    def apply_controls(self, names: Sequence[str], controls: Controls) -> None:
        """Apply rotor speeds and wrenches, see `Mirror.apply_control_data`.

        Raises:
            ValueError: A wrench is beyond its limits; the message names the drone.
            InvalidState: Too many wrenches are active already.
        """
        self.post(names, controls)
        if rotors_obey(self._engine):
            self._requests.ask(self.take)

    def set_state(self, state: MirrorState, controls: Controls | None = None) -> Future[Snapshot]:
        """Set the state of all drones, and apply control inputs, if there are any."""
        names = self._simulation.snapshot.names

        def plan() -> StateEdit:
            if controls is not None:
                self.apply_controls(names, controls)
            return lambda _: state

        return self._edit_state(plan)

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
        if not rotors_obey(self._engine):
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
            self._command(present, np.stack([posted[name] for name in present]))
        with self._lock:  # after the snapshot has them, because readers look here first
            self._rotors = {k: x for k, x in self._rotors.items() if x is not posted.get(k)}

    def controls(self, names: Sequence[str]) -> Controls:
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
        still = np.zeros(now.rotor_command.shape[1])
        return Controls(np.array([speeds.get(name, still) for name in names]), loads)

    def _command(self, names: Sequence[str], speeds: np.ndarray) -> None:
        """Command rotor speeds [rad/s], (n, r), without setpoints, whose planning takes longer."""
        now, is_new = self._simulation.snapshot, command_rotors(self._engine, names, speeds)
        assert now.rotor_command is not None
        command = now.rotor_command.copy()
        for i in np.flatnonzero(is_new).tolist():
            command[now.names.index(names[i])] = speeds[i]
            self._simulation.news.on_command.tell(names[i], Raw(speeds[i] / RPM), now.tick)
        if is_new.any():
            self._simulation.accept(replace(now, rotor_command=command))

    def _note_unused(self, names: Sequence[str], controls: Controls) -> None:
        """Say once that rotor speeds have no effect."""
        speeds = controls.rotor_speed
        if self._told or not (speeds != 0).any():
            return
        if (speeds != self.controls(names).rotor_speed).any():
            self._told = True
            why = "a door" if self._simulation.door else "the controllers of the drones"
            self._simulation.health.inform(
                f"ctrl of the mirror has no effect: {why} command the rotors; start without a door "
                "and with control=rotor_vel to command them"
            )
