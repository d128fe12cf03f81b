"""The state and the commands to which a reset returns the drones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.engine.snapshot import Fields, sizes_of

_PARKED = 1e5  # m, altitude of free slots: far from the drones, and side by side


class InitialState:
    """State and inputs of all slots after a reset; at first, all slots are free.

    Attributes:
        inputs: See `CompiledWorld.inputs`, to write to.
    """

    def __init__(self, inputs: np.ndarray, n_rotors: int) -> None:
        """Take shape and type of the inputs."""
        self.inputs, self._n_rotors = np.zeros_like(inputs), n_rotors
        sizes = sizes_of(n_rotors)
        self._fields = {name: np.zeros((len(inputs), size)) for name, size in sizes.items()}
        for slot in range(len(inputs)):
            self.park(slot)

    def extended(self, inputs: np.ndarray) -> InitialState:
        """Return a copy for more slots, of which the new ones are free."""
        more, slots = InitialState(inputs, self._n_rotors), np.arange(len(self.inputs))
        more.set_fields(slots, self._fields)
        own = min(inputs.shape[1], self.inputs.shape[1])  # see `CompiledWorld.take_inputs`
        more.inputs[slots, :own] = self.inputs[:, :own]
        return more

    def fields(self, slots: np.ndarray) -> Fields:
        """Return copies of the fields of `SIZES`."""
        return {name: values[slots] for name, values in self._fields.items()}

    def set_fields(self, slots: np.ndarray, fields: Fields) -> None:
        """Set the fields of `SIZES`."""
        for name, values in self._fields.items():
            values[slots] = fields[name]

    def poses(self, slots: np.ndarray) -> np.ndarray:
        """Return positions and attitudes (xyzw), shape (n, 7)."""
        return np.hstack((self._fields["pos"][slots], self._fields["quat"][slots]))

    def set_poses(self, slots: Sequence[int], poses: np.ndarray) -> None:
        """Set positions and attitudes (xyzw), shape (n, 7)."""
        self._fields["pos"][slots], self._fields["quat"][slots] = poses[:, :3], poses[:, 3:]

    def park(self, slot: int) -> None:
        """Set the state of a free slot."""
        for values in (self.inputs, *self._fields.values()):
            values[slot] = 0
        self.set_poses([slot], np.array([[slot, 0, _PARKED, 0, 0, 0, 1]]))
