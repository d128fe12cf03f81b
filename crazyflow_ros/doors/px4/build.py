"""Starts PX4 from a build, a process for each drone, and says when one has ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.doors.px4.airframe import NUMBER, airframe, file_name, simulator_model
from crazyflow_ros.throttled_logger import Logger

_AIRFRAMES = Path("init.d-posix", "airframes")
_CONSOLE = "console.log"
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Of util-linux: PX4 never ends by itself, but keeps a core busy once its simulator was killed."""
_ENDING = 3.0  # s from a polite signal to one that nobody survives
_ADVICE = (
    "build PX4 with `make px4_sitl_default` in PX4-Autopilot, and name its build/px4_sitl_default"
)


class Build:
    """A build of PX4 for SITL, and the processes that were started from it.

    Args:
        folder: The build: it has `bin/px4` and `etc`.
        work: Gets a folder for each process, with its parameters, logs and console.
        drone_model: Model of the drones, whose airframe PX4 gets.
        logger: Says which process has ended.

    Raises:
        ValueError: The folder has no build.
        OSError: A file cannot be written.
    """

    def __init__(self, folder: Path, work: Path, drone_model: str, logger: Logger) -> None:
        self._program = folder.resolve() / "bin" / "px4"
        self._work, self._drone_model, self._logger = work, drone_model, logger
        etc = folder.resolve() / "etc"
        for path in (self._program, etc / _AIRFRAMES):
            if not path.exists():
                there = f"there is no {shown_path(path)}"
                raise ValueError(f"--build: {shown_path(folder)} has no PX4: {there}; {_ADVICE}")
        if not os.access(self._program, os.X_OK):
            raise ValueError(f"--build: {shown_path(self._program)} cannot be run; {_ADVICE}")
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._ends = threading.Event()
        with ExitStack() as stack:
            own = tempfile.TemporaryDirectory(prefix="crazyflow_ros_px4_")
            self._etc = Path(stack.enter_context(own))
            _link(etc, self._etc, _AIRFRAMES.parts)
            name = file_name(drone_model)
            (self._etc / _AIRFRAMES / name).unlink(missing_ok=True)
            (self._etc / _AIRFRAMES / name).write_text(airframe(drone_model))
            self._closing = stack.pop_all()

    def start(self, instance: int, real_time_factor: float) -> Path:
        """Start a process, and return the file with what it prints; it ends with this thread.

        Args:
            instance: Its number, which gives all its ports.
            real_time_factor: Of the simulation; 0 if it is as fast as possible.

        Raises:
            OSError: It cannot be started, or its folder cannot be written.
        """
        folder = self._work / f"px4_{instance}"
        folder.mkdir(parents=True, exist_ok=True)
        variables = {
            "PX4_SYS_AUTOSTART": str(NUMBER),
            "PX4_SIM_MODEL": simulator_model(self._drone_model),
        }
        if real_time_factor > 1:
            variables["PX4_SIM_SPEED_FACTOR"] = f"{real_time_factor:g}"
        console, dies = folder / _CONSOLE, _DIES_WITH_US if shutil.which(_DIES_WITH_US[0]) else ()
        with console.open("wb") as output:
            process = subprocess.Popen(
                # As a daemon, without a shell; the last word is the folder with its scripts.
                [*dies, self._program, "-i", str(instance), "-d", self._etc],
                cwd=folder,
                env=os.environ | variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which ends the other one
            )
        self._processes[instance] = process
        watch = threading.Thread(
            target=self._watch, args=(instance, process, console), name="px4", daemon=True
        )
        watch.start()
        return console

    def _watch(self, instance: int, process: subprocess.Popen[bytes], console: Path) -> None:
        code = process.wait()
        if not self._ends.is_set():
            how = f"by the signal {-code}" if code < 0 else f"with the exit code {code}"
            self._logger.error(
                f"px4_{instance}: PX4 has ended {how}: see {shown_path(console)}, and start it "
                "again, or this program"
            )

    def close(self) -> None:
        """End all processes."""
        self._ends.set()
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._closing.close()


def _link(source: Path, target: Path, own: tuple[str, ...]) -> None:
    """Fill a folder with links to what is in another, except for a path of folders of its own."""
    for path in source.iterdir():
        if own and path.name == own[0]:
            (target / path.name).mkdir()
            _link(path, target / path.name, own[1:])
        else:
            (target / path.name).symlink_to(path)
