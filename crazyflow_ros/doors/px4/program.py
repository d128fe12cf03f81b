"""The program `px4`: drones for PX4 without ROS, and PX4 itself where there is a build of it."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

from crazyflow_ros.checks.plain_values import declarations
from crazyflow_ros.doors.px4.build import Build
from crazyflow_ros.doors.px4.door import Px4
from crazyflow_ros.doors.settings import DoorContext
from crazyflow_ros.end_signals import on_end
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene import scene_path
from crazyflow_ros.throttled_logger import ThrottledLogger
from crazyflow_ros.xla.compiled_files import open_cache
from crazyflow_ros.xla.start_up import StartUp

FIRST_PORT = 4560
"""TCP port of PX4's instance 0; the others follow."""
_MOST_DRONES = 100
_FAILED, _REFUSED = 1, 2


def main(words: Sequence[str] | None = None, program: str = "px4") -> int:
    """Run the program until a signal arrives.

    Args:
        words: Words of the command line, by default those of the process.
        program: How it is called.

    Returns:
        Exit code: 0, 1 if the simulation failed, 2 if it cannot start.
    """
    given = _parser(program).parse_args(words)
    try:
        return _run(given)
    except (ValueError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return _REFUSED


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Simulate drones that PX4 flies in lock-step, one PX4 for each.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("-n", "--drones", type=int, default=1, help="number of drones")
    parser.add_argument("--build", type=Path, help="build of PX4, from which PX4 is started, too")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("px4_work"),
        help="gets a folder for each PX4, with its parameters, logs and console",
    )
    parser.add_argument("--model", default="hb_x500", help="drone model, or path of its folder")
    parser.add_argument("--scene", default="floor", help="scene, or path of an MJCF file")
    parser.add_argument("--freq", type=int, default=500, help="physics ticks per second")
    parser.add_argument("--seed", type=int, default=0, help="seed of the errors of the sensors")
    parser.add_argument(
        "--real-time-factor",
        type=float,
        default=1.0,
        help="simulated seconds per second; 0: as many as possible",
    )
    for option in declarations(Px4):
        help = option.spec.description.replace("%", "%%")
        if option.kind is bool:
            parser.add_argument(f"--{option.name}", action="store_true", help=help)
        else:
            parser.add_argument(
                f"--{option.name}", type=option.kind, default=option.default, help=help
            )
    return parser


def _run(given: Namespace) -> int:
    if not 1 <= given.drones <= _MOST_DRONES:
        raise ValueError(f"--drones must be from 1 to {_MOST_DRONES}, got {given.drones}")
    first = given.port - FIRST_PORT
    if given.build is not None and first < 0:
        raise ValueError(
            f"--port must be at least {FIRST_PORT} with --build, which is that of PX4's instance "
            f"0, got {given.port}"
        )
    logging.basicConfig(format="%(levelname)s: %(message)s")
    logging.getLogger("px4").setLevel(logging.INFO)
    logger = ThrottledLogger(logging.getLogger("px4"))
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
    names = [f"px4_{max(first, 0) + i}" for i in range(given.drones)]
    settings = Px4(**{field.name: getattr(given, field.name) for field in fields(Px4)})
    with ExitStack() as stack:
        build = None
        if given.build is not None:
            build = Build(given.build, given.work, config.drone_model, logger)
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
        for i, name in enumerate(names):
            instance = max(first, 0) + i
            print(f"{name}: {_who_connects(settings.port + i, instance)}", flush=True)
            if build is not None:
                console = build.start(instance, config.real_time_factor)
                print(f"{name}: PX4 prints to {console}", flush=True)
        ends.wait()
    return _FAILED if physics.failed is not None else 0


def _who_connects(port: int, instance: int) -> str:
    local, remote = 14580 + instance, min(14540 + instance, 14549)
    return (
        f"PX4 -i {instance} on TCP {port}; QGroundControl on UDP 14550; MAVSDK "
        f"udpin://127.0.0.1:{remote}; MAVROS fcu_url:=udp://:{remote}@127.0.0.1:{local}"
    )
