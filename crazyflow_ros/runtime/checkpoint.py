"""Checkpoints: a simulation at one tick, to continue from bit for bit, in any process.

The file is a NumPy archive of arrays, one of which holds JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from crazyflow_ros.checks.archive import read_arrays, write_arrays
from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file, shown, shown_path
from crazyflow_ros.control import Control
from crazyflow_ros.control.memory import INTEGRAL, RATES
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.engine.compiled_world import WEATHER
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.form import POS_LOW, input_columns, width
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.resources import package_version
from crazyflow_ros.runtime.checkpoint_content import check_conditions, check_kept, check_orders
from crazyflow_ros.scene.conditions import STANDARD, Conditions

MOST_BYTES = 64 * 1024 * 1024
"""Largest size of a file, and of its arrays; a checkpoint of 10,000 drones has 10 MiB."""

_KIND = "crazyflow_ros checkpoint"
_FORMAT = f"{_KIND} 4"
_STATES = ("state/states.", f"state/plugins.{POS_LOW}")
_NEVER = -1  # tick of loss of a drone that is not lost
_REASON = 300  # characters of an error; some quote the whole content
_LARGEST = 1e9  # number in the state of a drone that is not lost
_GUSTS = f"state/{WEATHER}"
_STATE_INPUTS = input_columns(Control.state, QUADROTOR)  # of versions without other drones
# Settings that their checkpoints lack.
_OF_OLDER_VERSIONS = {"power_distribution": "clipped", "forces": []}
_OLDER_NAMES = {"state/controls.state.pos_err_i": f"state/controls.state.memory.{INTEGRAL}"} | {
    f"state/controls.{stage}.{old}": f"state/controls.{stage}.memory.{new}"
    for stage in ("attitude", "body_rate")
    for old, new in (
        *((name, name) for name in ("r_int_error", "prev_ang_vel")),
        ("prev_ang_vel_des", RATES),
    )
}
"""Present names of Mellinger's memory, by the fields in which older versions stored it."""
# Settings that may differ between the simulation and the checkpoint.
_FREE = (
    *("initial_poses", "real_time_factor", "start_paused", "watchdog_timeout", "max_drones"),
    *("wind", "gust_intensity", "gust_altitude"),  # of the start
)


@dataclass(frozen=True)
class Checkpoint:
    """Everything that the future of a simulation depends on, except commands from outside."""

    arrays: dict[str, np.ndarray]
    """State and inputs of the drones."""
    about: dict[str, Any]
    """Configuration, drones, time and commands, as JSON values."""

    def save(self, path: str | Path) -> None:
        """Write a file, completely or not at all. It may replace a checkpoint, but no other file.

        Raises:
            OSError: The file cannot be written.
            ValueError: There is another file.
        """
        write_file(path, self.to_bytes(), may_replace=_check_is_one)

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return write_arrays({"about": np.array(json.dumps(self.about)), **self.arrays})

    @staticmethod
    def load(path: str | Path | BinaryIO) -> Checkpoint:
        """Read a file by its path, or an open file. Its content is not trusted.

        Raises:
            ValueError: The file is missing, or is not a checkpoint; the message says what is wrong.
        """
        name = path if isinstance(path, str | Path) else "what was given"
        try:
            with _opened(path) as file:
                arrays = read_arrays(file, MOST_BYTES)
            about = _read_about(arrays.pop("about", None))
            checkpoint = Checkpoint(_renamed(arrays), about)
            if checkpoint.about["format"] != _FORMAT:
                raise ValueError(f"it is a {shown(checkpoint.about['format'])}, not a {_FORMAT}")
            check_kept(checkpoint.about, checkpoint._check_head())
        except (OSError, ValueError) as error:
            reason = str(error)[:_REASON]
            raise ValueError(f"{name} is not a checkpoint that can be read: {reason}") from None
        return checkpoint

    def _check_head(self) -> int:
        """Check configuration and names; return the ticks per second."""
        config, names = self.about.get("config"), self.about.get("names")
        freq = config.get("freq") if isinstance(config, dict) else None
        if type(freq) is not int or not 0 < freq <= 1_000_000:
            rule = "must have a 'freq' from 1 to 1000000"
            raise ValueError(f"'config' {rule}, got {shown(config)}")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"'names' must be a list of strings, got {shown(names)}")
        return freq

    def check(
        self,
        config: SimulationConfig,
        control: Control,
        names: tuple[str, ...],
        arrays: Mapping[str, np.ndarray],
        by_door: list[str],
        conditions: Conditions = STANDARD,
    ) -> None:
        """Check that a simulation can continue from this checkpoint.

        Args:
            config: Configuration of the simulation.
            control: Its control mode.
            names: Names of its drones.
            arrays: The `arrays` that a checkpoint of the simulation has now.
            by_door: Names of its drones that a door flies.
            conditions: Gravity, air and floor of its world.

        Raises:
            ValueError: The simulation cannot; the message names the first difference.
        """
        self._check_head()
        flown = self.about.get("by_door", by_door)  # older versions store none
        if flown != by_door:
            raise ValueError(
                f"in the checkpoint a door flies the drones {shown(flown)}, here {shown(by_door)}"
            )
        ours, theirs = described(config), _OF_OLDER_VERSIONS | self.about["config"]
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                kept = f"{shown(name)}={shown(theirs.get(name))}"
                here = ours.get(name)
                raise ValueError(f"the checkpoint has {kept}, this simulation has {here}")
        if tuple(self.about["names"]) != names:
            raise ValueError(
                f"the checkpoint is of the drones {shown(', '.join(self.about['names']))}, "
                f"here are {shown(', '.join(names))}"
            )
        for name in sorted(arrays.keys() | self.arrays.keys()):
            here, there = arrays.get(name), self.arrays.get(name)
            if here is None or there is None or _layout(here) != _layout(there):
                writer = shown(self.about.get("version", "an older version"))
                raise ValueError(
                    f"{writer} wrote the checkpoint, this is {package_version()}: "
                    f"{shown(name)} differs"
                )
        check_kept(self.about, config.freq)
        check_conditions(self.about, conditions)
        self._check_numbers()
        rules = Rules.of(config.drone_model, config.flight, conditions)
        check_orders(self.about, control, rules, self.about["tick"] * 1_000_000_000 // config.freq)

    def _check_numbers(self) -> None:
        """Refuse impossible numbers. Only the controllers of a lost drone may hold any number."""
        is_lost = self.arrays["lost"] >= 0
        for name, array in self.arrays.items():
            if array.dtype.kind != "f":
                continue
            usable = np.abs(array) <= _LARGEST
            is_state = array.ndim == 3 and name.startswith(_STATES)
            if name == "inputs" or (array.ndim == 3 and not is_state):
                usable |= is_lost[:, None]
            if not usable.all():
                where = np.unravel_index(np.flatnonzero(~usable)[0], array.shape)
                raise ValueError(f"{name} of the checkpoint holds {array[where]}")
        lost, tick = self.arrays["lost"], self.about["tick"]
        if not ((lost >= _NEVER) & (lost <= tick)).all():
            rule = f"must not be after the checkpoint's tick, {tick}"
            raise ValueError(f"'lost' {rule}, got {shown(lost)}")


def _renamed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint, also of an older version, by their present names."""
    new = {_OLDER_NAMES.get(name, name): array for name, array in arrays.items()}
    for name in ("inputs", "initial_inputs"):
        inputs = new.get(name, np.zeros(0))
        if inputs.dtype.kind == "f" and inputs.shape[1:] == (width(_STATE_INPUTS),):
            new[name] = _with_levels(inputs)
    gusts, lost = new.get(_GUSTS, np.zeros((1, 1, 1))), new.get("lost", np.zeros(0))
    if gusts.ndim == 1:  # those of versions in which all drones felt the same
        new[_GUSTS] = np.tile(gusts, (1, lost.size, 1))
    return new


def _with_levels(inputs: np.ndarray) -> np.ndarray:
    """Return inputs in state control with levels, where older versions had 1 for an armed drone.

    Their attitude commands had no quaternion. In other control modes any positive level serves.
    """
    column, quat, inputs = _STATE_INPUTS["level"].start, inputs[:, 9:13], inputs.copy()
    given = np.where(quat.any(axis=1), Level.state, Level.attitude)
    inputs[:, column] = np.where(inputs[:, column] == 1, given, inputs[:, column])
    return inputs


def _check_is_one(path: Path) -> None:
    """Check that a file is a checkpoint, of any version.

    Raises:
        ValueError: The file is something else.
    """
    try:
        with open_file(path, MOST_BYTES) as file:
            _read_about(read_arrays(file, MOST_BYTES).get("about"))
    except (OSError, ValueError) as error:
        name, reason = shown_path(path), str(error)[:_REASON]
        raise ValueError(f"{name} is not replaced, for it is not a checkpoint: {reason}") from None


def _opened(path: str | Path | BinaryIO) -> AbstractContextManager[BinaryIO]:
    if isinstance(path, str | Path):
        return open_file(path, MOST_BYTES)
    return nullcontext(path)


def _read_about(array: np.ndarray | None) -> dict[str, Any]:
    """Return the values of JSON text in an array.

    Raises:
        ValueError: There is no such text, or it is not that of a checkpoint.
    """
    if array is None or array.dtype.kind != "U" or array.ndim:
        raise ValueError("there is no text 'about' in it")
    try:
        about = json.loads(str(array))
    except RecursionError as error:
        raise ValueError(f"'about' is nested too deeply: {error}") from None
    if not isinstance(about, dict) or not str(about.get("format")).startswith(f"{_KIND} "):
        raise ValueError(f"it is not a {_KIND}")
    return about


def about(config: SimulationConfig, names: tuple[str, ...], **rest: Any) -> dict[str, Any]:
    """Return `Checkpoint.about`."""
    head = {"format": _FORMAT, "version": package_version()}
    return {**head, "config": described(config), "names": list(names), **rest}


def described(config: SimulationConfig) -> dict[str, Any]:
    """Return the settings of a configuration that a checkpoint must share."""
    values = {name: value for name, value in asdict(config).items() if name not in _FREE}
    described: dict[str, Any] = json.loads(json.dumps(values))  # tuples as lists
    return described


def _layout(array: np.ndarray) -> tuple[tuple[int, ...], np.dtype]:
    return array.shape, array.dtype
