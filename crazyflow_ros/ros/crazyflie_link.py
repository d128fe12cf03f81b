"""The drones as Crazyflies on UDP, for cflib and cfclient; disabled if no port is set."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.crazyflie import CrazyflieServer

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


def declare(simulator: SimulatorNode) -> None:
    """Serve the drones.

    Raises:
        ParameterError: A port cannot be opened.
    """
    p = simulator.parameters
    if not p.crazyflie.port:
        return
    config, logger = replace(p.crazyflie, seed=p.seed), simulator.log
    try:
        server = CrazyflieServer(simulator.physics, config, simulator.fleet, logger)
    except OSError as error:
        rule = f"{len(simulator.drones)} UDP ports from here on must be free"
        text = f"{rule}, got {p.crazyflie.port}: {error}"
        raise ParameterError("crazyflie.port", text) from None

    def close() -> None:
        with suppress(TimeoutError):  # the process ends in any case
            server.close()

    simulator.on_close(close)
    server.start()
    uris = list(server.uris.values())
    logger.info(f"Crazyflies for cflib: {uris[0]}{f' to {uris[-1]}' if len(uris) > 1 else ''}")
