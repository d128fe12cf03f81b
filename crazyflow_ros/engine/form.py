"""The form of a compiled world: all that a caller of its compiled function has to know.

It uses only NumPy, so that it can be stored with the compiled code, and nothing has to be traced to
obtain it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.control import Control
from crazyflow_ros.sim.wind import N_NUMBERS

Leaves = dict[str, np.ndarray]
"""Leaves that change from tick to tick, by path in `SimData`; drones are on the second of three
axes."""

BESIDE_COMMAND = 11
"""Columns of the inputs after the command: level, wrench, loss of each motor."""

LOST = 29
"""Column of the output that marks drones that were lost in this stretch, see `isolation`."""
CONTACT = slice(LOST + 1, LOST + 7)
"""Columns of the output with the wrench of all contacts on each drone."""
IMPACT = CONTACT.stop
"""Column of the output with the largest contact of the stretch, see `HoldingStep`."""
LOW = slice(IMPACT + 1, IMPACT + 4)
"""Columns of the output with what positions lack in single precision; the last ones that are always
there."""
POS_LOW = "pos_low"
"""Name in `SimData.plugins` of what positions lack in single precision [m], (N, M, 3), see `ticks`.
"""

N_BELIEVED = 19
"""Columns of the output with a drone's estimate: position, attitude, velocity, variances."""

N_DESIRED = 14
"""Columns of the output with the desired values of a drone's controllers, see
`Snapshot.desired`."""

_LONGEST_OUTPUT = 512  # rows per call


@dataclass(frozen=True)
class Form:
    """Arguments and results of the compiled function.

    The first argument consists of the parts of `shapes`, end to end: the leaves of the state that
    are of the dtype of positions, the inputs, the phase with the number of stretches and their
    ticks, the wind, the commands of later stretches, and the gains. The second argument consists of
    vectors of the leaves of the other dtypes.
    """

    initial: Leaves
    """State after a reset."""
    n_drones: int
    control: Control
    """Meaning of commands."""
    control_period: int
    """Ticks between two runs of the outermost controller."""
    has_rotors: bool
    """Whether the model has rotors that turn."""
    feels_wind: bool
    """Whether the model has drag."""
    has_desired: bool
    """Whether there is a position controller, whose results take columns of the output."""
    n_columns: int
    """Numbers of each drone in a row of the output."""
    gains: Leaves
    """Initial gains of the controllers by name, see `control.gains`."""

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self.initial["states.pos"].dtype

    @cached_property
    def numbers(self) -> int:
        """Place of the numbers among the vectors of all dtypes."""
        return self._dtypes.index(self.dtype)

    @property
    def max_stretches(self) -> int:
        """Maximum number of stretches into which the ticks of a call are divided."""
        return max(1, min(_LONGEST_OUTPUT // self.n_drones, 16))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the parts of the first argument."""
        n, k, stretches = self.n_drones, self.control.sizes[0], self.max_stretches
        n_state = sum(leaf.size for leaf in self.initial.values() if leaf.dtype == self.dtype)
        return (
            (n_state,),
            (n, k + BESIDE_COMMAND),
            (2 + stretches,),
            (N_NUMBERS,),
            (stretches, n, k + 1),
            (n, sum(gain.size for gain in self.gains.values())),
        )

    @cached_property
    def ends(self) -> list[int]:
        """Ends of the parts of the first argument."""
        return np.cumsum([math.prod(shape) for shape in self.shapes]).tolist()

    @cached_property
    def _dtypes(self) -> list[np.dtype]:
        return list(dict.fromkeys(leaf.dtype for leaf in self.initial.values()))

    def gain(self, name: str) -> slice:
        """Return the columns of a gain among all gains.

        Raises:
            ValueError: It has no effect.
        """
        if name not in self.gains:
            raise ValueError(unknown("gain", name, self.gains))
        names = list(self.gains)
        start = sum(self.gains[other].size for other in names[: names.index(name)])
        return slice(start, start + self.gains[name].size)

    def packed(self, leaves: Leaves) -> list[np.ndarray]:
        """Return a state as vectors, one for each dtype; missing leaves get initial values."""
        parts: dict[np.dtype, list[np.ndarray]] = {dtype: [] for dtype in self._dtypes}
        for path, leaf in self.initial.items():
            parts[leaf.dtype].append(leaves.get(path, leaf).ravel())
        return [np.concatenate(part, dtype=dtype) for dtype, part in parts.items()]

    def unpacked(self, vectors: Sequence[np.ndarray]) -> Leaves:
        """Return copies of the leaves of a state, the inverse of `packed`."""
        starts, leaves = dict.fromkeys(self._dtypes, 0), {}
        for path, leaf in self.initial.items():
            start = starts[leaf.dtype]
            starts[leaf.dtype] = stop = start + leaf.size
            vector = vectors[self._dtypes.index(leaf.dtype)]
            leaves[path] = vector[start:stop].reshape(leaf.shape).copy()
        return leaves

    def joined(self, numbers: Any, rest: Sequence[Any]) -> tuple[Any, ...]:
        """Return the vectors of all dtypes, in order."""
        return (*rest[: self.numbers], numbers, *rest[self.numbers :])

    def parted(self, vectors: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """Return the numbers and the other vectors, the inverse of `joined`."""
        i = self.numbers
        return vectors[i], (*vectors[:i], *vectors[i + 1 :])
