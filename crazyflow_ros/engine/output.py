"""The output of the compiled function as snapshots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.form import GROUPS, POS_LOW, Columns, group_of, side_by_side
from crazyflow_ros.engine.snapshot import Believed, Fields, Snapshot

_TURN = 2 * np.pi  # rad
_FIELDS = (
    *("pos", "quat", "vel", "ang_vel", "acc", "ang_acc", "body_vel", "specific_force"),
    "contact",
)
_BELIEVED = side_by_side(GROUPS["believed"])


class Output:
    """Makes snapshots, and adds up how far the rotors turned.

    Args:
        config: The simulation.
        n_slots: Number of slots.
        columns: See `form.output_columns`.

    Attributes:
        rotor_angle: (n_slots, n) angles of the rotor joints [rad].
        rotor_vel: (n_slots, n) their speeds [rad/s].
    """

    def __init__(self, config: SimulationConfig, n_slots: int, columns: Columns) -> None:
        self._freq, self._columns = config.freq, columns
        self._fields = {name: columns[name] for name in _FIELDS}
        self._battery, self._desired = (group_of(columns, k) for k in ("battery", "desired"))
        self._believed, self._heard = group_of(columns, "believed"), columns.get("heard")
        n_rotors = columns["rotor_vel"].stop - columns["rotor_vel"].start
        self.rotor_angle = self.rotor_vel = np.zeros((n_slots, n_rotors))

    def extend(self, n_slots: int) -> None:
        """Make room for more slots."""
        new = np.zeros((n_slots - len(self.rotor_vel), self.rotor_vel.shape[1]))
        self.rotor_angle = np.concatenate((self.rotor_angle, new))
        self.rotor_vel = np.concatenate((self.rotor_vel, new))

    def set_rotors(self, slots: np.ndarray, fields: Fields) -> None:
        """Set angles or speeds of rotors, if they are among the fields."""
        if "rotor_angle" in fields:
            self.rotor_angle = _with(self.rotor_angle, slots, fields["rotor_angle"])
        if "rotor_vel" in fields:
            self.rotor_vel = _with(self.rotor_vel, slots, fields["rotor_vel"])

    def snapshots(
        self,
        columns: np.ndarray,
        rows: slice | np.ndarray,
        names: tuple[str, ...],
        tick: int,
        stretches: Sequence[int],
        epoch: int,
    ) -> list[Snapshot]:
        """Return the state after each stretch.

        Args:
            columns: See `CompiledWorld.advance`, float64; they are changed.
            rows: Slots of the drones.
            names: Names of the drones.
            tick: Tick before the first stretch.
            stretches: Ticks of each stretch.
            epoch: Number of resets so far.
        """
        own = self._columns
        columns[:, :, own["pos"]] += columns[:, :, own[POS_LOW]]
        snapshots, rotor_vel = [], columns[:, :, own["rotor_vel"]] * RPM
        commands = columns[:, rows, own["rotor_command"]] * RPM
        for n, row, speeds, command in zip(stretches, columns[:, rows], rotor_vel, commands):
            tick += n
            turned = (self.rotor_vel + speeds) * (n / self._freq / 2)
            self.rotor_angle = (self.rotor_angle + turned) % _TURN
            self.rotor_vel = speeds
            # Assigning the fields of a frozen dataclass takes seven times longer.
            snapshot = object.__new__(Snapshot)
            vars(snapshot).update(
                names=names,
                time_ns=self.time_ns(tick),
                rotor_angle=self.rotor_angle[rows],
                rotor_vel=speeds[rows],
                rotor_command=command,
                tick=tick,
                epoch=epoch,
                impact=row[:, own["impact"].start],
                battery=None if self._battery is None else row[:, self._battery],
                believed=None if self._believed is None else self._estimates(row),
                heard=None if self._heard is None else row[:, self._heard],
                desired=None if self._desired is None else row[:, self._desired],
                **{name: row[:, place] for name, place in self._fields.items()},
            )
            snapshots.append(snapshot)
        return snapshots

    def _estimates(self, row: np.ndarray) -> Believed:
        columns = row[:, self._believed].copy()
        starts = ~columns[:, _BELIEVED["quat"]].any(axis=1)
        if starts.any():  # filters that start with the true state in the next tick
            for name in ("pos", "quat", "vel"):
                columns[starts, _BELIEVED[name]] = row[starts, self._columns[name]]
        return Believed(**{name: columns[:, place] for name, place in _BELIEVED.items()})

    def time_ns(self, tick: int) -> int:
        """Return the simulation time of a tick [ns]."""
        return tick * 1_000_000_000 // self._freq


def _with(values: np.ndarray, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return a copy with other rows, because snapshots hold the present array."""
    values = values.copy()
    values[rows] = new
    return values
