"""`python -m crazyflow_ros.crazyflie`: simulated Crazyflies for cflib and cfclient, without ROS."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from crazyflow_ros.code_cache import open_cache
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.link import FIRST_PORT, LinkConfig
from crazyflow_ros.crazyflie.lock_step import fly
from crazyflow_ros.crazyflie.memories import DECKS
from crazyflow_ros.crazyflie.positioning import positioning
from crazyflow_ros.crazyflie.server import CrazyflieServer
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.drones import DEFAULT_DRONE, Drone
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.start_up import StartUp

_MOST_DRONES = 100  # each of which has its own port and address
_WRONG_USAGE = 2


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    link, config = LinkConfig(), SimulationConfig()
    program = argparse.ArgumentParser(
        prog="python -m crazyflow_ros.crazyflie",
        description="Simulates Crazyflies, for cflib and cfclient on udp://127.0.0.1:19850 ff.",
        epilog="Then start a program of cflib: CFLIB_URI=udp://127.0.0.1:19850 python script.py",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    program.add_argument("drones", type=int, nargs="?", default=1, help="number of drones")
    program.add_argument("--model", default=DEFAULT_DRONE, choices=list(Drone), help="drone model")
    program.add_argument("--scene", default=config.scene, help="name, or path of an MJCF file")
    program.add_argument(
        "--real-time-factor",
        type=float,
        help="simulated seconds per second; by default 1, in lock-step as many as possible",
    )
    program.add_argument(
        "--lock-step",
        action="store_true",
        help="let the program after -- live in simulated time: it flies as fast as possible, and "
        "each time the same",
    )
    program.add_argument("--battery", action="store_true", help="let the batteries run down")
    program.add_argument(
        "--wind", type=float, nargs=3, default=config.wind, metavar=("X", "Y", "Z"), help="m/s"
    )
    program.add_argument("--port", type=int, default=FIRST_PORT, help="UDP port of the first drone")
    program.add_argument(
        "--address", default=link.address, help="interface to listen on; 0.0.0.0: all"
    )
    program.add_argument("--decks", nargs="*", default=list(link.decks), choices=list(DECKS))
    program.add_argument(
        "--anchors", type=float, nargs="*", default=[], help="x, y, z of each radio anchor [m]"
    )
    program.add_argument(
        "--estimator", default=config.estimator, choices=list(Estimator), help="source of the state"
    )
    program.add_argument(
        "--motion-capture", action="store_true", help="the estimator also measures poses"
    )
    program.add_argument("--loss", type=float, default=0.0, help="share of packets lost, each way")
    program.add_argument(
        "--latency", type=float, default=0.0, help="delay of packets [s], each way"
    )
    program.add_argument(
        "--storage",
        default=link.storage,
        metavar="FOLDER",
        help="folder that keeps stored parameters",
    )
    return program


def main(args: Sequence[str] | None = None) -> int:
    """Simulate until SIGINT or SIGTERM.

    Args:
        args: Command line, by default that of the process.

    Returns:
        Exit code: 0 after a signal, 1 if the simulation failed.
    """
    words = list(sys.argv[1:] if args is None else args)
    end = words.index("--") if "--" in words else len(words)
    given, command = parser().parse_args(words[:end]), words[end + 1 :]
    logging.basicConfig(format="%(levelname)s: %(message)s")
    logger = logging.getLogger("crazyflie")
    logger.setLevel(logging.INFO)
    code_cache = open_cache(logger.warning)
    start_up = StartUp.of_cache(logger.info)
    try:
        if not 1 <= given.drones <= _MOST_DRONES:
            raise ValueError(f"drones must be from 1 to {_MOST_DRONES}, got {given.drones}")
        if given.lock_step != bool(command):
            raise ValueError("--lock-step needs a program: --lock-step -- python script.py")
        link = LinkConfig(
            given.address,
            given.port,
            tuple(given.decks),
            tuple(given.anchors),
            given.loss,
            given.latency,
            given.storage,
        )
        storage = Storage(link.storage)
        config = SimulationConfig(
            drone_model=given.model,
            scene=given.scene,
            true_mass=True,
            estimator=given.estimator,
            positioning=replace(
                positioning(link.decks, link.anchors),
                motion_capture=given.motion_capture,
                external=True,
            ),
            battery=given.battery,
            wind=tuple(given.wind),
            real_time_factor=1.0 if given.real_time_factor is None else given.real_time_factor,
            start_paused=given.lock_step,
            ground_effect=True,
            downwash=True,
            flight=FlightConfig(exact_durations=True),
        )
        names = [f"cf{i}" for i in range(given.drones)]
        with start_up.compiling(len(names), config.compiled_part()):
            physics = PhysicsThread(config, names, logger=logger)
        if given.lock_step:
            return fly(command, physics, link, logger, given.real_time_factor or 0.0)
        fleet = Fleet(physics, given.model, link.decks, logger, storage)
        server = CrazyflieServer(physics, link, fleet, logger)
    except (ValueError, OSError) as error:
        print(f"crazyflie: {error}", file=sys.stderr)
        return _WRONG_USAGE
    physics.on_failure(lambda _: os.kill(os.getpid(), signal.SIGTERM))
    signals = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # in all threads, for `sigwait`
    physics.start()
    server.start()
    for name, uri in server.uris.items():
        print(f"{name}: {uri}", flush=True)
    signal.sigwait(signals)
    server.close()
    physics.stop()
    code_cache.close()
    return 0 if physics.failed is None else 1


if __name__ == "__main__":
    sys.exit(main())
