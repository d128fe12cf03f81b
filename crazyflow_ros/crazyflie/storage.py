"""Stored parameters of the Crazyflies, which survive a restart: JSON files in a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file, shown

_MOST_BYTES = 100_000  # of a file
_NAME = re.compile(r"\w{1,100}", re.ASCII)  # of a drone


class Storage:
    """A folder with a file `<drone>.json` of parameters and their values for each drone.

    Args:
        folder: Path of the folder, which is created if necessary; empty to store nothing.

    Raises:
        ValueError: The path is not a folder, and none can be created there.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).expanduser() if folder else None
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except (OSError, ValueError, RuntimeError) as error:
                raise ValueError(f"cannot use the folder {folder!r}: {error}") from None

    def load(self, drone: str) -> dict[str, float]:
        """Return the stored values of a drone by full name of the parameter.

        Raises:
            ValueError: The file cannot be read, or has invalid content; the message names it.
        """
        path = self._path(drone)
        if path is None:
            return {}
        try:
            with open_file(path, _MOST_BYTES) as file:
                values = json.loads(file.read())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not read: {error}") from None
        if not isinstance(values, dict) or not all(
            type(value) in (int, float) for value in values.values()
        ):
            raise ValueError(f"{path} is not read: expected numbers by name, got {shown(values)}")
        return values

    def save(self, drone: str, values: Mapping[str, float]) -> None:
        """Replace all stored values of a drone in one step.

        Raises:
            OSError: The file cannot be written.
        """
        path = self._path(drone)
        if path is not None:
            write_file(path, json.dumps(dict(sorted(values.items())), indent=2).encode())

    def _path(self, drone: str) -> Path | None:
        if self._folder is None or not _NAME.fullmatch(drone):
            return None
        return self._folder / f"{drone}.json"
