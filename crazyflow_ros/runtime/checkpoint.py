"""Checkpoints: a simulation at one tick, to go on from bit for bit, in this process or another.

In a file it is NumPy's archive of arrays, of which one holds JSON.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.setpoints import Pose, Raw, Setpoint, Trajectory, Velocity

_FORMAT = "crazyflow_ros checkpoint 2"
_KINDS = {kind.__name__: kind for kind in (Pose, Velocity, Trajectory, Raw)}
# How it runs, not what runs.
_FREE = ("initial_poses", "real_time_factor", "start_paused", "watchdog_timeout", "max_drones")


@dataclass(frozen=True)
class Checkpoint:
    """All that the future of a simulation depends on, but for what is commanded from outside."""

    arrays: dict[str, np.ndarray]
    """State and inputs of the drones."""
    about: dict[str, Any]
    """What JSON can hold: configuration, drones, time, what they are told."""

    def save(self, path: str | Path) -> None:
        """Write a file, which is complete or not there.

        Raises:
            OSError: It cannot be written.
        """
        part = Path(f"{path}.part")
        try:
            with part.open("wb") as file:
                self.write(file)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def write(self, file: BinaryIO) -> None:
        """Write into an open file."""
        arrays: dict[str, Any] = {"about": np.array(json.dumps(self.about)), **self.arrays}
        np.savez(file, **arrays)

    @staticmethod
    def load(path: str | Path | BinaryIO) -> Checkpoint:
        """Read a file, open or not.

        Raises:
            ValueError: It is not there, or not that of a checkpoint.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(str(arrays.pop("about")))
        except (OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is not a checkpoint that can be read: {error}") from None
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise ValueError(f"{path} is not a {_FORMAT}")
        return Checkpoint(arrays, about)

    def check(
        self, config: SimulationConfig, names: tuple[str, ...], arrays: Mapping[str, np.ndarray]
    ) -> None:
        """See whether a simulation can go on from here.

        Args:
            config: Of the simulation.
            names: Of its drones.
            arrays: Its own `arrays`.

        Raises:
            ValueError: It cannot; the message tells the first thing that differs.
        """
        ours, theirs = described(config), self.about["config"]
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                raise ValueError(
                    f"the checkpoint is of {name}={theirs.get(name)}, this is {ours.get(name)}"
                )
        if tuple(self.about["names"]) != names:
            raise ValueError(
                f"the checkpoint is of the drones {', '.join(self.about['names'])}, "
                f"here are {', '.join(names)}"
            )
        for name in sorted(arrays.keys() | self.arrays.keys()):
            here, there = arrays.get(name), self.arrays.get(name)
            if here is None or there is None or _layout(here) != _layout(there):
                raise ValueError(f"the checkpoint is of another version: {name} differs")


def about(config: SimulationConfig, names: tuple[str, ...], **rest: Any) -> dict[str, Any]:
    """`Checkpoint.about`."""
    return {"format": _FORMAT, "config": described(config), "names": list(names), **rest}


def described(config: SimulationConfig) -> dict[str, Any]:
    """What a configuration simulates."""
    return {name: value for name, value in asdict(config).items() if name not in _FREE}


def from_setpoint(setpoint: Setpoint) -> dict[str, Any]:
    """A setpoint as JSON can hold it.

    Raises:
        ValueError: It is of a kind of its own.
    """
    kind = type(setpoint).__name__
    if kind not in _KINDS:
        raise ValueError(f"a setpoint of the kind {kind} cannot be kept in a checkpoint")
    names = [field.name for field in fields(_KINDS[kind]) if field.init]
    return {"kind": kind} | {name: _plain(getattr(setpoint, name)) for name in names}


def to_setpoint(values: Mapping[str, Any]) -> Setpoint:
    """Inverse of `from_setpoint`."""
    rest = dict(values)
    setpoint: Setpoint = _KINDS[rest.pop("kind")](**rest)
    return setpoint


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist() if value is not None else None


def _layout(array: np.ndarray) -> tuple[tuple[int, ...], np.dtype]:
    return array.shape, array.dtype
