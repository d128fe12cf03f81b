"""The program `python -m crazyflow_ros.crazyflie` after its ports have opened."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.crtp_server import CrazyflieServer
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.link_config import LinkConfig
from crazyflow_ros.crazyflie.lock_step import fly
from crazyflow_ros.crazyflie.pilot import CFLIB_ADVICE
from crazyflow_ros.crazyflie.ports import Ports
from crazyflow_ros.crazyflie.signals import Signals
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.crazyflie.supervisor_states import BRUSHLESS_MODEL
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.engine.initial_poses import poses_of
from crazyflow_ros.estimation.decks import positioning
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene import scene_path
from crazyflow_ros.scripts.child import Child
from crazyflow_ros.xla.compiled_files import open_cache
from crazyflow_ros.xla.start_up import StartUp

_FAILED = 1


def run(
    n_drones: int,
    link: LinkConfig,
    ports: Ports,
    signals: Signals,
    command: Sequence[str] | None,
    **options: Any,
) -> int:
    """Simulate until a signal arrives, or until a program ends.

    Args:
        n_drones: Number of drones.
        link: The link.
        ports: The open ports of the drones.
        signals: Receives the signals of this process.
        command: A program to run once the drones are ready, with its arguments; None for none.
        options: The other options of the command line that are given, see `__main__.parser`.

    Returns:
        Exit code, see `__main__.main`.

    Raises:
        ValueError: An option is not usable; the message says which.
        OSError: A file or a port is not usable.
        ModuleNotFoundError: The page needs packages that are not installed.
    """
    logging.basicConfig(format="%(levelname)s: %(message)s")
    logging.getLogger("crazyflie").setLevel(logging.INFO)
    logger = ThrottledLogger(logging.getLogger("crazyflie"))
    if has_page := options.pop("view"):
        from crazyflow_ros.view import PhysicsView  # which imports packages that may be missing
    in_lock_step, factor = options.pop("lock_step"), options.get("real_time_factor", 0.0)
    config = _config(n_drones, link, start_paused=in_lock_step, **options)
    storage = Storage(link.storage)
    with ExitStack() as stack:
        code_cache = open_cache(logger.warning)
        stack.callback(code_cache.close)
        names = [f"cf{i}" for i in range(n_drones)]
        with StartUp.of_cache(logger.info).compiling(len(names), config.compiled_part()):
            physics = PhysicsThread(config, names, logger=logger)
        stack.callback(physics.stop)
        if has_page:
            view = PhysicsView(physics)
            stack.callback(view.close)
            view.start()
            logger.info(f"the page is at {view.viewer.url}")
        if in_lock_step:
            return fly(command or (), physics, link, logger, storage, ports, signals, factor)
        fleet = Fleet(physics, config.drone_model, link.decks, logger, storage, link.app)
        server = CrazyflieServer(physics, link, fleet, logger, ports)
        stack.callback(server.close)
        physics.news.on_failure(lambda _: os.kill(os.getpid(), signal.SIGTERM))
        physics.start()
        server.start()
        signals.keep()
        if command is not None:
            address = {"CFLIB_URI": next(iter(server.uris.values()))}
            child = Child(command, os.environ | address)
            stack.callback(child.close)
            signals.pass_on(child.send)
            code = child.wait() or 0
        else:
            for name, uri in server.uris.items():
                print(f"{name}: {uri}", flush=True)
            signals.wait()
            code = 0
    return _FAILED if physics.failed is not None else code


def _config(
    n_drones: int,
    link: LinkConfig,
    *,
    model: str = RealisticOptions.drone_model,
    positions: Sequence[float],
    motion_capture: bool,
    capture_dropout: float,
    capture_delay: float,
    **options: Any,
) -> SimulationConfig:
    """Return the simulation that the command line asks for.

    Raises:
        ValueError: An option is not usable.
    """
    poses = poses_of("--positions", positions, n_drones)
    if poses is not None:
        poses[:, 2] = poses[:, 2].clip(min=rest_height(model))
    arms_itself = link.gentle or model != BRUSHLESS_MODEL
    flight = FlightConfig(exact_durations=True, advice=CFLIB_ADVICE, auto_arm=arms_itself)
    usual = {} if link.gentle else {"controller": str(Controller.pid)}
    sources = positioning(link.decks, link.anchors, link.ranging, link.lighthouse)
    measured = replace(
        sources,
        motion_capture=motion_capture,
        capture_dropout=capture_dropout,
        capture_delay=capture_delay,
        external=True,
    )
    config = SimulationConfig.of(
        RealisticOptions(drone_model=model, flight=flight, **usual | options),
        initial_poses=poses,
        positioning=measured,
        setpoint_modes=not link.gentle,
    )
    scene_path(config.scene)  # which is known before anything is compiled
    return config
