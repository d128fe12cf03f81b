"""Programs that simulate drones for an autopilot, without ROS, and start it from its build."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from crazyflow_ros.checks.plain_values import Declaration, declarations
from crazyflow_ros.checks.program_end import on_end
from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.doors.processes import CONSOLE
from crazyflow_ros.doors.settings import DoorContext, DoorSettings
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene import scene_path
from crazyflow_ros.xla.compiled_files import open_cache
from crazyflow_ros.xla.start_up import StartUp

if TYPE_CHECKING:
    from crazyflow_ros.view import PhysicsView

_MOST_DRONES = 100
_FAILED, _REFUSED = 1, 2


class AutopilotBuild(Protocol):
    """A build of an autopilot, and the processes that were started from it."""

    def start(self, instance: int) -> Path:
        """Start the process of an instance, and return the file with what it prints.

        Raises:
            OSError: It cannot be started, or its folder cannot be written.
        """

    def close(self) -> None:
        """End all processes."""


@dataclass(frozen=True)
class AutopilotStart:
    """What a build has to know of the simulation that its processes fly in."""

    build: Path
    """Where it is, as given."""
    work: Path
    """Gets a folder for each process."""
    config: SimulationConfig
    settings: Any
    """Of the door."""
    logger: Logger
    wipe: bool = False
    """Whether the folders of earlier processes are removed first."""


@dataclass(frozen=True)
class Autopilot:
    """An autopilot with a door, and processes that can be started."""

    name: str
    """Of the program, and in names of drones and folders."""
    title: str
    """In messages."""
    settings: type[DoorSettings]
    """Of its door; they have a field `port`, of the first drone."""
    first_port: int
    """Port of instance 0."""
    ports: int
    """From one instance to the next."""
    freq: int
    """Default of the physics ticks per second."""
    build: Callable[[AutopilotStart], AutopilotBuild]
    """Raises ValueError if the folder has no build, OSError if a file cannot be written."""
    connects: Callable[[int, int], str]
    """Says for a port and an instance who connects where."""
    model: str = "hb_x500"
    """Default of the drone model."""
    pace: str = "in lock-step"
    """How it flies, in the description."""


class StartedAutopilots:
    """A process of an autopilot for each drone of its door.

    Args:
        autopilot: The autopilot.
        start: The simulation, and the build.
        drones: Names of the drones, in the order of the door.

    Raises:
        ValueError: The folder has no build, or the port is not that of an instance.
        OSError: A file cannot be written.
    """

    def __init__(self, autopilot: Autopilot, start: AutopilotStart, drones: Sequence[str]) -> None:
        self._autopilot, self._drones, self._start = autopilot, drones, start
        self._first, self._port = (
            first_instance(autopilot, start.settings.port),
            start.settings.port,
        )
        self._build = autopilot.build(start)

    def start(self) -> Iterator[str]:
        """Start the processes one after another, and say who connects where and who prints where.

        Raises:
            OSError: A process cannot be started, or its folder cannot be written.
        """
        for i, drone in enumerate(self._drones):
            yield f"{drone}: {who_connects(self._autopilot, self._port, i)}"
            if self._start.wipe:
                _wipe(self._start.work / f"{self._autopilot.name}_{self._first + i}")
            console = self._build.start(self._first + i)
            yield f"{drone}: {self._autopilot.title} prints to {console}"

    def close(self) -> None:
        """End all processes."""
        self._build.close()


def _wipe(folder: Path) -> None:
    """Remove the folder of an earlier process; others, which have no console, stay."""
    if (folder / CONSOLE).is_file():
        shutil.rmtree(folder)


def first_instance(autopilot: Autopilot, port: int) -> int:
    """Return the instance whose port the first drone has.

    Raises:
        ValueError: No instance has it.
    """
    first = autopilot.first_port
    instance, rest = divmod(port - first, autopilot.ports)
    if instance < 0 or rest:
        steps = f", plus a multiple of {autopilot.ports}" if autopilot.ports > 1 else ""
        raise ValueError(
            f"port must be at least {first}{steps} with a build, which is that of "
            f"{autopilot.title}'s instance 0, got {port}"
        )
    return instance


def who_connects(autopilot: Autopilot, port: int, drone: int) -> str:
    """Say who connects where.

    Args:
        autopilot: The autopilot.
        port: Port of the first drone.
        drone: Index of the drone.
    """
    instance = max(0, (port - autopilot.first_port) // autopilot.ports) + drone
    return autopilot.connects(port + drone * autopilot.ports, instance)


def run(autopilot: Autopilot, words: Sequence[str] | None, program: str) -> int:
    """Run the program of an autopilot until a signal arrives.

    Args:
        autopilot: The autopilot.
        words: Words of the command line, by default those of the process.
        program: How it is called.

    Returns:
        Exit code: 0, 1 if the simulation failed, 2 if it cannot start.
    """
    given = _parser(autopilot, program).parse_args(words)
    try:
        return _run(autopilot, given)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return _REFUSED


def _parser(autopilot: Autopilot, program: str) -> argparse.ArgumentParser:
    title = autopilot.title
    parser = argparse.ArgumentParser(
        prog=program,
        description=f"Simulate drones that {title} flies {autopilot.pace}, one for each.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("-n", "--drones", type=int, default=1, help="number of drones")
    parser.add_argument(
        "--build", type=Path, help=f"build of {title}, from which {title} is started, too"
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(f"{autopilot.name}_work"),
        help=f"gets a folder for each {title}, with its parameters, logs and console",
    )
    parser.add_argument(
        "--wipe", action="store_true", help="remove these folders first, to begin afresh"
    )
    parser.add_argument(
        "--model", default=autopilot.model, help="drone model, or path of its folder"
    )
    parser.add_argument("--scene", default="floor", help="scene, or path of an MJCF file")
    parser.add_argument("--freq", type=int, default=autopilot.freq, help="physics ticks per second")
    parser.add_argument(
        "--view", action="store_true", help="show and steer the simulation on a page in a browser"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the errors of the sensors")
    parser.add_argument(
        "--real-time-factor",
        type=float,
        default=1.0,
        help="simulated seconds per second; 0: as many as possible",
    )
    for option in _options(autopilot):
        help = option.spec.description.replace("%", "%%")
        if option.kind is bool:
            parser.add_argument(f"--{option.name}", action="store_true", help=help)
        else:
            parser.add_argument(
                f"--{option.name}", type=option.kind, default=option.default, help=help
            )
    return parser


def _options(autopilot: Autopilot) -> list[Declaration]:
    """Return the settings that are options: without ROS there is nobody who reads a gamepad."""
    return [option for option in declarations(autopilot.settings) if "." not in option.name]


def _page() -> type[PhysicsView]:
    from crazyflow_ros import view

    return view.PhysicsView  # which imports packages that may be missing


def _run(autopilot: Autopilot, given: Namespace) -> int:
    if not 1 <= given.drones <= _MOST_DRONES:
        raise ValueError(f"--drones must be from 1 to {_MOST_DRONES}, got {given.drones}")
    name = autopilot.name
    logging.basicConfig(format="%(levelname)s: %(message)s")
    logging.getLogger(name).setLevel(logging.INFO)
    logger = ThrottledLogger(logging.getLogger(name))
    config = SimulationConfig.of(
        RealisticOptions(
            drone_model=given.model,
            scene=given.scene,
            freq=given.freq,
            seed=given.seed,
            real_time_factor=given.real_time_factor,
        )
    )
    scene_path(config.scene)  # which is known before anything is compiled
    first = max(0, (given.port - autopilot.first_port) // autopilot.ports)
    names = [f"{name}_{first + i}" for i in range(given.drones)]
    of_door: Any = autopilot.settings
    settings = of_door(
        **{option.name: getattr(given, option.name) for option in _options(autopilot)}
    )
    page = _page() if given.view else None
    with ExitStack() as stack:
        started = None
        if given.build is not None:
            start = AutopilotStart(given.build, given.work, config, settings, logger, given.wipe)
            started = StartedAutopilots(autopilot, start, names)
            stack.callback(started.close)
        door = settings.open(DoorContext.of(config, names, logger))
        stack.callback(door.close)
        code_cache = open_cache(logger.warning)
        stack.callback(code_cache.close)
        with StartUp.of_cache(logger.info).compiling(len(names), config.compiled_part()):
            physics = PhysicsThread(config, names, door, logger)
        stack.callback(physics.stop)
        if page is not None:
            view = page(physics)
            stack.callback(view.close)
            view.start()
            print(f"the page is at {view.viewer.url}", flush=True)
        ends = threading.Event()
        physics.news.on_failure(lambda _: ends.set())
        on_end(ends.set)
        physics.start()
        if started is None:
            for i, drone in enumerate(names):
                print(f"{drone}: {who_connects(autopilot, given.port, i)}", flush=True)
        else:
            for line in started.start():
                print(line, flush=True)
        ends.wait()
    return _FAILED if physics.failed is not None else 0
