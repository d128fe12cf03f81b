"""The processes of autopilots, one for each drone: a folder for each, and a word when one ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.checks.throttled_logger import Logger

CONSOLE = "console.log"
"""File in the folder of a process with what it prints."""
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Of util-linux: an autopilot may keep a core busy for ever once its simulator was killed."""
_ENDING = 3.0  # s from a polite signal to one that nobody survives


class Processes:
    """Processes of an autopilot.

    Args:
        name: Of the autopilot in names of folders, such as px4.
        title: In messages, such as PX4.
        work: Gets a folder for each process.
        logger: Says which process has ended.
    """

    def __init__(self, name: str, title: str, work: Path, logger: Logger) -> None:
        self._name, self._title, self._work, self._logger = name, title, work, logger
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ends = threading.Event()

    def folder(self, instance: int) -> Path:
        """Return the folder that a process works in, after it was made.

        Raises:
            OSError: It cannot be made.
        """
        folder = self._work / f"{self._name}_{instance}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def start(
        self,
        instance: int,
        command: Sequence[str | Path],
        variables: Mapping[str, str] | None = None,
    ) -> Path:
        """Start a process in its folder, and return the file with what it prints.

        It does not outlive the thread that calls this, where the machine has setpriv.

        Args:
            instance: Its number.
            command: Program and arguments.
            variables: For its environment, beside ours.

        Raises:
            OSError: It cannot be started, or its folder cannot be written.
        """
        folder = self.folder(instance)
        console, dies = folder / CONSOLE, _DIES_WITH_US if shutil.which(_DIES_WITH_US[0]) else ()
        with console.open("wb") as output:
            process = subprocess.Popen(
                [*dies, *command],
                cwd=folder,
                env=os.environ | dict(variables or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which ends the other one
            )
        self._processes.append(process)
        watch = threading.Thread(
            target=self._watch, args=(instance, process, console), name=self._name, daemon=True
        )
        watch.start()
        return console

    def _watch(self, instance: int, process: subprocess.Popen[bytes], console: Path) -> None:
        code = process.wait()
        if not self._ends.is_set():
            how = f"by the signal {-code}" if code < 0 else f"with the exit code {code}"
            self._logger.error(
                f"{self._name}_{instance}: {self._title} has ended {how}: see "
                f"{shown_path(console)}, and start it again, or this program"
            )

    def close(self) -> None:
        """End all processes."""
        self._ends.set()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
