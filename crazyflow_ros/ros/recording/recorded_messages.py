"""What a recording of the simulator says, over all its episodes, for a replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crazyflow_ros.checks.limits import open_file, shown
from crazyflow_ros.checks.mcap_file import LONGEST, recorded
from crazyflow_ros.checks.mcap_records import File, Message
from crazyflow_ros.resources import package_version
from crazyflow_ros.ros.recording.episode_file import METADATA
from crazyflow_ros.ros.recording.recorder import PARTIAL


class ReplayError(Exception):
    """A file that cannot be replayed; the message has the reason."""


class Head(NamedTuple):
    """What a recording says of itself."""

    parameters: Any
    version: str
    """Version of the package that wrote it; empty for one that did not say so."""
    periods: list[int]
    """Ticks between two looks at the simulation, of all that looked; older versions say nothing."""

    @property
    def writer(self) -> str:
        """Words for a message that say who wrote the file, empty if it was this version."""
        here = package_version()
        who = self.version or "an older version"
        return "" if self.version == here else f"{who} wrote the file, this is {here}"


def recorded_messages(files: list[Path]) -> Iterator[Any]:
    """Yield the head, if any; then topic, time [ns] and content of each message, of all episodes.

    Args:
        files: That of the first episode, to which those of the later ones are added.

    Raises:
        OSError: A file is missing.
        ReplayError: It is damaged, or not of such a recording.
    """
    for episode, present in enumerate(files):  # which grows
        origin_ns, begun = 0, False
        with open_file(present, sys.maxsize) as file:
            try:
                for item in recorded(file):
                    if isinstance(item, Message):
                        time_ns, begun = item.time_ns - origin_ns, True
                        if not 0 <= time_ns <= LONGEST:
                            raise ValueError(
                                f"there is a message on {shown(item.topic)} at {time_ns * 1e-9:.0f}"
                                f" s, expected from 0 to {LONGEST * 1e-9:.0f} s"
                            )
                        yield item.topic, time_ns, item.data
                    elif item.name == METADATA and "next" in item.metadata:
                        files.append(present.parent / item.metadata["next"])
                    elif item.name == METADATA and not begun:
                        origin_ns, parameters, periods = _parameters(item.metadata, episode)
                        begun = True
                        if not episode:
                            version = shown(item.metadata.get("version", ""))
                            yield Head(parameters, version, periods)
            except ValueError as error:
                raise ReplayError(str(error)) from None


def is_complete(path: Path) -> bool:
    """Return whether a file has its end."""
    with open_file(path, sys.maxsize) as file:
        return File(file).is_complete


def _parameters(metadata: Mapping[str, str], episode: int) -> tuple[int, Any, list[int]]:
    """Return the time in the file of simulated time 0 [ns], the parameters, and the periods."""
    if reason := metadata.get(PARTIAL):
        record_it = "start the simulator with record:=FILE to record all"
        raise ReplayError(f"it has {shown(reason)}; {record_it}")
    if (number := metadata.get("episode", "0")) != str(episode):
        first = metadata.get("first", "")
        raise ReplayError(f"it is episode {shown(number)} of {shown(first)}: replay that one")
    try:
        periods = json.loads(metadata.get("periods", "[]"))
        if not isinstance(periods, list) or not all(isinstance(n, int) and n > 0 for n in periods):
            raise ValueError(f"periods {shown(periods)}")
        return int(metadata.get("origin_ns", 0)), json.loads(metadata["parameters"]), periods
    except (KeyError, ValueError, RecursionError) as error:
        raise ReplayError(f"damaged: parameters cannot be read: {error}") from None
