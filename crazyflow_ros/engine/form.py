"""The form of a compiled world: all that a caller of its compiled function has to know.

It can be stored with the compiled code, and then nothing has to be traced to obtain it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.control import Control
from crazyflow_ros.sim.compile.packing import Packing
from crazyflow_ros.sim.wind import N_NUMBERS

T = TypeVar("T", bound=Any)
Leaves = dict[str, np.ndarray]
"""Leaves that change from tick to tick, by path in `SimData`; drones are on the second of three
axes."""

Columns = dict[str, slice]
"""Columns of a table by name, side by side."""

WIND, GUSTS = "wind", "gusts"
"""Entries of `data.plugins`: the wind's numbers, and the state of each drone's filters."""
_GUST_RATE = 100  # Hz of simulated time, minimum, unless the tick rate is lower
_EXACT = 2**24  # the largest integer up to which float32 is exact


def counted(freq: int) -> int:
    """Return the number of ticks after which the tick count starts again, and the gusts repeat.

    It is a multiple of every period, and small enough to be exact in single precision. At 500 Hz it
    is nine hours.
    """
    return _EXACT // freq * freq


def gust_period(freq: int) -> int:
    """Return the ticks between two updates of the gusts, which change little in that time."""
    return next(n for n in range(max(1, freq // _GUST_RATE), 0, -1) if freq % n == 0)


def side_by_side(sizes: Mapping[str, int]) -> Columns:
    """Return columns of these sizes."""
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - n, end) for (name, n), end in zip(sizes.items(), ends)}


def width(columns: Columns) -> int:
    """Return the number of columns."""
    return max(own.stop for own in columns.values())


def input_columns(control: Control, n_rotors: int, ground: int = 0) -> Columns:
    """Return the columns of a drone's inputs; command and level are first, side by side.

    Args:
        control: Meaning of the command.
        n_rotors: Number of rotors.
        ground: Number of heights of the ground below rotors, which only `MovingBodies` gives.
    """
    command = control.sizes_for(n_rotors)[0]
    sizes = {"command": command, "level": 1, "wrench": 6, "motor_loss": n_rotors}
    return side_by_side(sizes | ({"ground": ground} if ground else {}))


POS_LOW = "pos_low"
"""Name in `SimData.plugins` of what positions lack in single precision [m], (N, M, 3), see
`holding_step`."""

GROUPS = {
    "battery": {"voltage": 1, "current": 1, "drawn": 1},
    "desired": {"attitude": 4, "rates": 3, "wrench": 4, "integral": 3},
    "believed": {"pos": 3, "quat": 4, "vel": 3, "variances": 9, "deck": 4},
}
"""Sizes of the fields of a snapshot that it may lack, by group and name."""


def output_columns(groups: Iterable[str], n_rotors: int, heard: int = 0) -> Columns:
    """Return the columns of the output, which have the names of a snapshot's fields.

    Rotor speeds and their commands are in RPM; `lost` marks drones that were lost in this stretch,
    see `isolation`.

    Args:
        groups: Which of `GROUPS` there are; their names are `battery.voltage` and so on.
        n_rotors: Number of rotors of a drone.
        heard: Numbers that a drone heard of beacons, see `Snapshot.heard`.
    """
    sizes = {"pos": 3, "quat": 4, "vel": 3, "ang_vel": 3, "acc": 3, "ang_acc": 3, "body_vel": 3}
    sizes |= {"specific_force": 3, "rotor_vel": n_rotors, "rotor_command": n_rotors, "lost": 1}
    sizes |= {"contact": 6, "impact": 1, POS_LOW: 3}
    more = {f"{group}.{name}": n for group in groups for name, n in GROUPS[group].items()}
    return side_by_side(sizes | more | ({"heard": heard} if heard else {}))


def gain_columns(gains: Mapping[str, np.ndarray]) -> Columns:
    """Return the columns of gains with these values."""
    return side_by_side({name: gain.size for name, gain in gains.items()})


def group_of(columns: Columns, group: str) -> slice | None:
    """Return the columns of a group such as `desired`; None if there are none."""
    own = [part for name, part in columns.items() if name.startswith(f"{group}.")]
    return slice(own[0].start, own[-1].stop) if own else None


_LONGEST_OUTPUT = 512  # rows per call


@dataclass(frozen=True)
class Form:
    """Arguments and results of the compiled function.

    The first argument consists of the parts of `shapes`, end to end. The second argument consists
    of vectors of the leaves whose dtype is not that of positions.
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
    inputs: Columns
    """See `input_columns`."""
    outputs: Columns
    """See `output_columns`."""
    gains: Leaves
    """Initial gains of the controllers by name, see `control.gains`."""
    has_order: bool = False
    """Whether there is an order of the drones, see `shapes`."""

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self.initial["states.pos"].dtype

    @property
    def n_rotors(self) -> int:
        """Number of rotors of a drone."""
        return self.inputs["motor_loss"].stop - self.inputs["motor_loss"].start

    @cached_property
    def numbers(self) -> int:
        """Place of the numbers among the vectors of all dtypes."""
        return self._packing.dtypes.index(self.dtype)

    @property
    def max_stretches(self) -> int:
        """Maximum number of stretches into which the ticks of a call are divided."""
        return max(1, min(_LONGEST_OUTPUT // self.n_drones, 16))

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the parts of the first argument.

        `state` is the leaves of the dtype of positions, `counts` the phase, the number of stretches
        and the ticks of each; `later` is command and level of the stretches after the first;
        `order` is that of `aerodynamics.downwash_in_order`.
        """
        n, stretches, given = self.n_drones, self.max_stretches, self.inputs["level"].stop
        n_state = sum(leaf.size for leaf in self.initial.values() if leaf.dtype == self.dtype)
        return {
            "state": (n_state,),
            "inputs": (n, width(self.inputs)),
            "counts": (2 + stretches,),
            "wind": (N_NUMBERS,),
            "later": (stretches, n, given),
            "gains": (n, sum(gain.size for gain in self.gains.values())),
            **({"order": (2, n)} if self.has_order else {}),
        }

    @cached_property
    def size(self) -> int:
        """Length of the first argument."""
        return sum(map(math.prod, self.shapes.values()))

    def parts(self, arguments: T) -> dict[str, T]:
        """Return the parts of the first argument, of any library."""
        found, start = {}, 0
        for name, shape in self.shapes.items():
            found[name] = arguments[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)
        return found

    @cached_property
    def _packing(self) -> Packing:
        return Packing(list(self.initial.values()))

    def gain(self, name: str) -> slice:
        """Return the columns of a gain among all gains.

        Raises:
            ValueError: The gain has no effect.
        """
        if name not in self.gains:
            raise ValueError(unknown("gain", name, self.gains))
        return gain_columns(self.gains)[name]

    def packed(self, leaves: Leaves) -> Sequence[np.ndarray]:
        """Return a state as vectors, one for each dtype; missing leaves get initial values."""
        return self._packing.pack([leaves.get(path, own) for path, own in self.initial.items()])

    def unpacked(self, vectors: Sequence[np.ndarray]) -> Leaves:
        """Return copies of the leaves of a state, the inverse of `packed`."""
        leaves = self._packing.unpack(tuple(vectors))
        return {path: leaf.copy() for path, leaf in zip(self.initial, leaves)}

    def views(self, numbers: np.ndarray) -> Leaves:
        """Return the leaves of the dtype of positions, in the memory of `numbers`."""
        found, start = {}, 0
        for path, leaf in self.initial.items():
            if leaf.dtype == self.dtype:
                found[path] = numbers[start : start + leaf.size].reshape(leaf.shape)
                start += leaf.size
        return found

    def joined(self, numbers: Any, rest: Sequence[Any]) -> tuple[Any, ...]:
        """Return the vectors of all dtypes, in order."""
        return (*rest[: self.numbers], numbers, *rest[self.numbers :])

    def parted(self, vectors: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """Return the numbers and the other vectors, the inverse of `joined`."""
        i = self.numbers
        return vectors[i], (*vectors[:i], *vectors[i + 1 :])


def place(high: np.ndarray, low: np.ndarray, slots: np.ndarray, pos: np.ndarray) -> None:
    """Write positions as sums of two numbers; those of drones that stay keep all their digits."""
    moves = pos != high[slots] + low[slots].astype(float)
    high[slots] = np.where(moves, pos, high[slots])
    low[slots] = np.where(moves, pos - high[slots].astype(float), low[slots])
