"""The output of the compiled function as snapshots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.form import CONTACT, IMPACT, LOW, N_BELIEVED, N_DESIRED
from crazyflow_ros.engine.snapshot import Believed, Fields, Snapshot
from crazyflow_ros.estimation import Estimator

_TURN = 2 * np.pi  # rad


class Output:
    """Makes snapshots, and adds up how far the rotors turned.

    Args:
        config: The simulation.
        n_slots: Number of slots.
        has_desired: See `CompiledWorld`.

    Attributes:
        rotor_angle: (n_slots, 4) angles of the rotor joints [rad].
        rotor_vel: (n_slots, 4) their speeds [rad/s].
    """

    def __init__(self, config: SimulationConfig, n_slots: int, *, has_desired: bool) -> None:
        self._freq = config.freq
        start = LOW.stop + 3 * config.battery
        self._battery = slice(LOW.stop, start) if config.battery else None
        self._desired = slice(start, start + N_DESIRED) if has_desired else None
        self._has_estimator = config.estimator != Estimator.none
        self.rotor_angle = self.rotor_vel = np.zeros((n_slots, 4))

    def extend(self, n_slots: int) -> None:
        """Make room for more slots."""
        new = np.zeros((n_slots - len(self.rotor_vel), 4))
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
        columns[:, :, :3] += columns[:, :, LOW]
        snapshots, rotor_vel = [], columns[:, :, 25:29] * RPM
        for n, row, speeds in zip(stretches, columns[:, rows], rotor_vel):
            tick += n
            turned = (self.rotor_vel + speeds) * (n / self._freq / 2)
            self.rotor_angle = (self.rotor_angle + turned) % _TURN
            self.rotor_vel = speeds
            # Assigning the fields of a frozen dataclass takes seven times longer.
            snapshot = object.__new__(Snapshot)
            vars(snapshot).update(
                names=names,
                time_ns=self.time_ns(tick),
                pos=row[:, :3],
                quat=row[:, 3:7],
                vel=row[:, 7:10],
                ang_vel=row[:, 10:13],
                acc=row[:, 13:16],
                ang_acc=row[:, 16:19],
                body_vel=row[:, 19:22],
                specific_force=row[:, 22:25],
                rotor_angle=self.rotor_angle[rows],
                rotor_vel=speeds[rows],
                tick=tick,
                epoch=epoch,
                contact=row[:, CONTACT],
                impact=row[:, IMPACT],
                battery=None if self._battery is None else row[:, self._battery],
                believed=_believed(row) if self._has_estimator else None,
                desired=None if self._desired is None else row[:, self._desired],
            )
            snapshots.append(snapshot)
        return snapshots

    def time_ns(self, tick: int) -> int:
        """Return the simulation time of a tick [ns]."""
        return tick * 1_000_000_000 // self._freq


def _believed(row: np.ndarray) -> Believed:
    columns = row[:, -N_BELIEVED:].copy()
    starts = ~columns[:, 3:7].any(axis=1)  # filters that start with the true state in the next tick
    columns[starts, :10] = row[starts, :10]
    return Believed(*np.split(columns, [3, 7, 10], axis=1))


def _with(values: np.ndarray, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return a copy with other rows, because snapshots hold the present array."""
    values = values.copy()
    values[rows] = new
    return values
