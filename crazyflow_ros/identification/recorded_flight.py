"""Recorded flights: states and commands at common times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.limits import ANGLE, FORCE, POSITION, QUATERNION, shown_path, vector
from crazyflow_ros.flight_logs import FlightLog, read_flight_log
from crazyflow_ros.flight_logs.flight_log import SAMPLES, TIME

_LEAST_SAMPLES = 50
_LONGEST_GAP = 0.1  # s; attitudes turn too far meanwhile


@dataclass(frozen=True)
class RecordedFlight:
    """Samples of one flight. Each command holds until the next sample."""

    time: np.ndarray
    """(n,) s, increasing."""
    pos: np.ndarray
    """(n, 3) m, world frame."""
    quat: np.ndarray
    """(n, 4) xyzw, body to world."""
    command: np.ndarray
    """(n, 4) commanded roll, pitch, yaw [rad] and collective thrust [N]."""

    def __post_init__(self) -> None:
        n = np.size(self.time)
        if not _LEAST_SAMPLES <= n <= SAMPLES:
            raise ValueError(f"a flight must have {_LEAST_SAMPLES} to {SAMPLES} samples, got {n}")
        checked = {
            "time": vector("time", self.time, (n,), TIME),
            "pos": vector("pos", self.pos, (n, 3), POSITION),
            "quat": vector("quat", self.quat, (n, 4), QUATERNION),
            "command": vector("command", self.command, (n, 4), ANGLE),
        }
        vector("thrust", checked["command"][:, 3], (n,), FORCE)
        gaps = np.diff(checked["time"])
        if not (gaps > 0).all() or gaps.max() > _LONGEST_GAP:
            worst = int(np.argmin(gaps) if gaps.min() <= 0 else np.argmax(gaps))
            raise ValueError(
                f"time must increase by at most {_LONGEST_GAP:g} s from sample to sample, got "
                f"{gaps[worst]:g} s after sample {worst}"
            )
        norms = np.linalg.norm(checked["quat"], axis=1)
        if norms.min() < 1e-3:
            raise ValueError(f"quat of sample {int(norms.argmin())} is the zero quaternion")
        checked["quat"] /= norms[:, None]
        for name, array in checked.items():
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, log: FlightLog) -> Self:
        """Return the poses of a log since the first attitude command, each with its command.

        Raises:
            ValueError: There are no attitude commands, too few samples, or too long a gap.
        """
        if log.attitude_command is None:
            raise ValueError("there are no attitude commands: record with control:=attitude")
        since = log.pose.time >= log.attitude_command.time[0]
        time, (pos, quat) = log.pose.time[since], np.split(log.pose.values[since], [3], axis=1)
        return cls(time, pos, quat, log.attitude_command.held_at(time))

    @property
    def rpy(self) -> np.ndarray:
        """(n, 3) roll, pitch and yaw [rad]; the yaw continues beyond half a turn."""
        return np.unwrap(Rotation.from_quat(self.quat).as_euler("xyz"), axis=0)

    def between(self, start: float, end: float) -> Self:
        """Return the part between two times since the first sample [s].

        Raises:
            ValueError: There are too few samples.
        """
        since = self.time - self.time[0]
        chosen = (since >= start) & (since <= end)
        return type(self)(
            *(array[chosen] for array in (self.time, self.pos, self.quat, self.command))
        )


def read_flight(path: str | Path, drone: str = "cf0") -> RecordedFlight:
    """Read a flight, of any format that has attitude commands.

    Args:
        path: A file or folder as of `read_flight_log`.
        drone: Name of the drone in an MCAP file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file, or not such a flight.
        ModuleNotFoundError: The package that reads MCAP is not installed.
    """
    log = read_flight_log(path, drone)
    try:
        return RecordedFlight.of(log)
    except ValueError as error:
        raise ValueError(f"{shown_path(path)}: {error}") from None
