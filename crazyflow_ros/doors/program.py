"""Programs that simulate drones for an autopilot, without ROS, and start it from its build."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from crazyflow_ros.checks.plain_values import declarations
from crazyflow_ros.doors.settings import DoorContext, DoorSettings
from crazyflow_ros.end_signals import on_end
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene import scene_path
from crazyflow_ros.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.xla.compiled_files import open_cache
from crazyflow_ros.xla.start_up import StartUp

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
class Start:
    """What a build has to know of the simulation that its processes fly in."""

    build: Path
    """Where it is, as given."""
    work: Path
    """Gets a folder for each process."""
    config: SimulationConfig
    settings: Any
    """Of the door."""
    logger: Logger


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
    build: Callable[[Start], AutopilotBuild]
    """Raises ValueError if the folder has no build, OSError if a file cannot be written."""
    connects: Callable[[int, int], str]
    """Says for a port and an instance who connects where."""
    model: str = "hb_x500"
    """Default of the drone model."""
    pace: str = "in lock-step"
    """How it flies, in the description."""


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
    except (ValueError, OSError) as error:
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
        "--model", default=autopilot.model, help="drone model, or path of its folder"
    )
    parser.add_argument("--scene", default="floor", help="scene, or path of an MJCF file")
    parser.add_argument("--freq", type=int, default=autopilot.freq, help="physics ticks per second")
    parser.add_argument("--seed", type=int, default=0, help="seed of the errors of the sensors")
    parser.add_argument(
        "--real-time-factor",
        type=float,
        default=1.0,
        help="simulated seconds per second; 0: as many as possible",
    )
    for option in declarations(autopilot.settings):
        help = option.spec.description.replace("%", "%%")
        if option.kind is bool:
            parser.add_argument(f"--{option.name}", action="store_true", help=help)
        else:
            parser.add_argument(
                f"--{option.name}", type=option.kind, default=option.default, help=help
            )
    return parser


def _first_instance(autopilot: Autopilot, given: Namespace) -> int:
    first, port = autopilot.first_port, given.port
    instance, rest = divmod(port - first, autopilot.ports)
    if given.build is not None and (instance < 0 or rest):
        steps = f", plus a multiple of {autopilot.ports}" if autopilot.ports > 1 else ""
        raise ValueError(
            f"--port must be at least {first}{steps} with --build, which is that of "
            f"{autopilot.title}'s instance 0, got {port}"
        )
    return max(instance, 0)


def _run(autopilot: Autopilot, given: Namespace) -> int:
    if not 1 <= given.drones <= _MOST_DRONES:
        raise ValueError(f"--drones must be from 1 to {_MOST_DRONES}, got {given.drones}")
    first, name = _first_instance(autopilot, given), autopilot.name
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
    names = [f"{name}_{first + i}" for i in range(given.drones)]
    of_door: Any = autopilot.settings
    settings = of_door(**{field.name: getattr(given, field.name) for field in fields(of_door)})
    with ExitStack() as stack:
        build = None
        if given.build is not None:
            build = autopilot.build(Start(given.build, given.work, config, settings, logger))
            stack.callback(build.close)
        door = settings.open(DoorContext.of(config, names, logger))
        stack.callback(door.close)
        code_cache = open_cache(logger.warning)
        stack.callback(code_cache.close)
        with StartUp.of_cache(logger.info).compiling(len(names), config.compiled_part()):
            physics = PhysicsThread(config, names, door, logger)
        stack.callback(physics.stop)
        ends = threading.Event()
        physics.on_failure(lambda _: ends.set())
        on_end(ends.set)
        physics.start()
        for i, drone in enumerate(names):
            instance, port = first + i, settings.port + i * autopilot.ports
            print(f"{drone}: {autopilot.connects(port, instance)}", flush=True)
            if build is not None:
                console = build.start(instance)
                print(f"{drone}: {autopilot.title} prints to {console}", flush=True)
        ends.wait()
    return _FAILED if physics.failed is not None else 0
