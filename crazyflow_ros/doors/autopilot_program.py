"""Programs that simulate drones for an autopilot without ROS, and start it from a build."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from crazyflow_ros.checks.plain_values import Declaration, declarations
from crazyflow_ros.checks.program_end import on_end
from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.doors.autopilot import Autopilot
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.runtime.door_settings import (
    AutopilotStart,
    DoorContext,
    DoorSettings,
    StartsAutopilots,
)
from crazyflow_ros.scene import scene_path
from crazyflow_ros.xla.compiled_files import open_cache
from crazyflow_ros.xla.start_up import StartUp

_MOST_DRONES = 100
_FAILED, _REFUSED = 1, 2


class _Settings(DoorSettings, StartsAutopilots, Protocol):
    """Settings of a door with autopilots, with a field `port` for the first drone."""


def run(
    settings: type[_Settings], autopilot: Autopilot, words: Sequence[str] | None, program: str
) -> int:
    """Run the program of an autopilot until a signal arrives.

    Args:
        settings: Settings of its door.
        autopilot: The autopilot.
        words: Words of the command line, by default those of the process.
        program: Name of the program.

    Returns:
        Exit code: 0, 1 if the simulation failed, 2 if it cannot start.
    """
    given = _parser(settings, autopilot, program).parse_args(words)
    try:
        return _run(settings, autopilot, given)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return _REFUSED


def _parser(
    settings: type[_Settings], autopilot: Autopilot, program: str
) -> argparse.ArgumentParser:
    title = autopilot.title
    parser = argparse.ArgumentParser(
        prog=program,
        description=f"Simulate drones that {title} flies {autopilot.pace}, one for each.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("-n", "--drones", type=int, default=1, help="number of drones")
    parser.add_argument(
        "--build", type=Path, help=f"folder of a build of {title}, which is started from it"
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(f"{autopilot.name}_work"),
        help=f"folder for the parameters, logs and console of each {title}",
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
    for option in _options(settings):
        help = option.spec.description.replace("%", "%%")
        if option.kind is bool:
            parser.add_argument(f"--{option.name}", action="store_true", help=help)
        else:
            parser.add_argument(
                f"--{option.name}", type=option.kind, default=option.default, help=help
            )
    return parser


def _options(settings: type[_Settings]) -> list[Declaration]:
    """Return the settings that are options; only the node reads a gamepad."""
    return [option for option in declarations(settings) if "." not in option.name]


def _run(settings_of: type[_Settings], autopilot: Autopilot, given: Namespace) -> int:
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
    first = autopilot.instance_near(given.port)
    names = tuple(f"{name}_{first + i}" for i in range(given.drones))
    settings = settings_of(
        **{option.name: getattr(given, option.name) for option in _options(settings_of)}
    )
    if given.view:
        from crazyflow_ros.view import PhysicsView  # which imports packages that may be missing
    with ExitStack() as stack:
        started = None
        if given.build is not None:
            start = AutopilotStart(given.build, given.work, config, names, logger, given.wipe)
            started = settings.autopilots(start)
            stack.callback(started.close)
        door = settings.open(DoorContext.of(config, names, logger))
        stack.callback(door.close)
        code_cache = open_cache(logger.warning)
        stack.callback(code_cache.close)
        with StartUp.of_cache(logger.info).compiling(len(names), config.compiled_part()):
            physics = PhysicsThread(config, names, door, logger)
        stack.callback(physics.stop)
        if given.view:
            view = PhysicsView(physics)
            stack.callback(view.close)
            view.start()
            print(f"the page is at {view.viewer.url}", flush=True)
        ends = threading.Event()
        physics.news.on_failure(lambda _: ends.set())
        on_end(ends.set)
        physics.start()
        if started is None:
            for i, drone in enumerate(names):
                print(f"{drone}: {autopilot.who_connects(given.port, i)}", flush=True)
        else:
            for line in started.start():
                print(line, flush=True)
        ends.wait()
    return _FAILED if physics.failed is not None else 0
