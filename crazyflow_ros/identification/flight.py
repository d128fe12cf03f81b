"""Recorded flights: states and commands at common times."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.limits import (
    ANGLE,
    FORCE,
    POSITION,
    QUATERNION,
    Limit,
    open_file,
    shown_path,
    vector,
)
from crazyflow_ros.extras import extra

SAMPLES = 1_000_000
"""Most samples of a flight."""
FILE_BYTES = 2 << 30
"""Largest file."""
_TIMES = Limit(1e10, "s")  # as of a wall clock
_LEAST_SAMPLES = 50
_LONGEST_GAP = 0.1  # s; attitudes turn too far meanwhile
_COLUMNS = (
    "time", "x", "y", "z", "qx", "qy", "qz", "qw", "roll", "pitch", "yaw", "thrust",
)  # fmt: skip


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
            "time": vector("time", self.time, (n,), _TIMES),
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
    """Read a flight.

    Args:
        path: `.npz` with the arrays of `Flight`; `.csv` with a first line of the names time, x, y,
            z, qx, qy, qz, qw, roll, pitch, yaw and thrust; or `.mcap` with the topics
            `<drone>/odom` (`nav_msgs/msg/Odometry`) and `<drone>/command`
            (`std_msgs/msg/Float64MultiArray`), as the simulator records with `control:=attitude`.
        drone: Name of the drone in the recording.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file, or not such a flight.
        ModuleNotFoundError: The package that reads MCAP is not installed.
    """
    readers = {".npz": _read_npz, ".csv": _read_csv}
    suffix = Path(path).suffix.lower()
    if suffix != ".mcap" and suffix not in readers:
        raise ValueError(f"a flight must be a file .npz, .csv or .mcap, got {shown_path(path)!r}")
    open_file(path, FILE_BYTES).close()
    try:
        arrays = _read_mcap(path, drone) if suffix == ".mcap" else readers[suffix](path)
        return RecordedFlight(**arrays)
    except ValueError as error:
        raise ValueError(f"{shown_path(path)}: {error}") from None


def _read_npz(path: str | Path) -> Mapping[str, np.ndarray]:
    names = RecordedFlight.__dataclass_fields__
    if not zipfile.is_zipfile(path):
        raise ValueError("not an NPZ file")
    try:
        with np.load(path, allow_pickle=False) as file:
            if missing := [name for name in names if name not in file]:
                raise ValueError(f"there is no array {', '.join(missing)}")
            return {name: file[name] for name in names}
    except (zipfile.BadZipFile, EOFError, TypeError, MemoryError) as error:
        raise ValueError(f"not an NPZ file: {error}") from None


def _read_csv(path: str | Path) -> Mapping[str, np.ndarray]:
    with open(path, encoding="utf-8") as file:
        names = [name.strip() for name in file.readline(4096).split(",")]
        if missing := [name for name in _COLUMNS if name not in names]:
            raise ValueError(f"the first line lacks the names {', '.join(missing)}")
        table = np.loadtxt(file, delimiter=",", ndmin=2, max_rows=SAMPLES + 1)
    if table.shape[-1] != len(names):
        raise ValueError(f"lines must have {len(names)} numbers, got {table.shape[-1]}")
    ordered = table[:, [names.index(name) for name in _COLUMNS]]
    time, pos, quat, command = np.split(ordered, [1, 4, 8], axis=1)
    return {"time": time[:, 0], "pos": pos, "quat": quat, "command": command}


def _read_mcap(path: str | Path, drone: str) -> Mapping[str, np.ndarray]:
    with extra("record"):
        from mcap.exceptions import EndOfFile
        from mcap.reader import NonSeekingReader
        from mcap_ros2.decoder import DecoderFactory
    poses, commands = list[list[float]](), list[list[float]]()
    endings = (f"/{drone}/odom", f"/{drone}/command")
    with open(path, "rb") as file:
        reader = NonSeekingReader(file, decoder_factories=[DecoderFactory()])
        try:
            for _, channel, message, content in reader.iter_decoded_messages(log_time_order=False):
                if channel.topic.endswith(endings[0]):
                    poses.append([message.log_time * 1e-9, *_pose(content)])
                elif channel.topic.endswith(endings[1]):
                    commands.append([message.log_time * 1e-9, *content.data])
                if len(poses) > SAMPLES or len(commands) > SAMPLES:
                    raise ValueError(f"more than {SAMPLES} messages")
        except EndOfFile:  # a simulator that was killed has not completed its file
            pass
        except Exception as error:  # a damaged file may contain anything
            raise ValueError(f"not a readable MCAP file: {str(error)[:300]}") from None
    for topic, found in zip(endings, (poses, commands)):
        if not found:
            raise ValueError(f"there are no messages of {topic[1:]}")
    if any(len(row) != 5 for row in commands):
        raise ValueError(f"{drone}/command must have 4 numbers: record with control:=attitude")
    table, orders = np.array(poses), np.array(commands)
    table = table[np.append(np.diff(table[:, 0]) != 0, True)]  # a pose can be published again
    latest = np.searchsorted(orders[:, 0], table[:, 0] + 1e-9, side="right") - 1
    table, latest = table[latest >= 0], latest[latest >= 0]
    return {
        "time": table[:, 0],
        "pos": table[:, 1:4],
        "quat": table[:, 4:],
        "command": orders[latest, 1:],
    }


def _pose(odometry: Any) -> list[float]:
    position, q = odometry.pose.pose.position, odometry.pose.pose.orientation
    return [position.x, position.y, position.z, q.x, q.y, q.z, q.w]
