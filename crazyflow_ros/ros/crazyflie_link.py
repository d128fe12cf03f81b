"""The drones as Crazyflies on UDP, for cflib and cfclient; disabled if no port is set."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from crazyflow_ros.checks.plain_values import ParameterError

if TYPE_CHECKING:
    from crazyflow_ros.crazyflie.fleet import Fleet
    from crazyflow_ros.ros.host import Host


def new_fleet(simulator: Host) -> Fleet:
    """Return the firmware of the drones, for what presents them as Crazyflies.

    Raises:
        ParameterError: The folder for stored parameters cannot be used.
    """
    from crazyflow_ros.crazyflie.fleet import Fleet  # the protocol, which few simulators need
    from crazyflow_ros.crazyflie.storage import Storage

    link = simulator.parameters.crazyflie
    try:
        storage = Storage(link.storage)
    except ValueError as error:
        raise ParameterError("crazyflie.storage", str(error)) from None
    drone_model = simulator.parameters.drone_model
    return Fleet(simulator.physics, drone_model, link.decks, simulator.log, storage)


def declare(simulator: Host, fleet: Fleet | None = None) -> None:
    """Serve the drones.

    Args:
        simulator: The node.
        fleet: Their firmware, if there is one already.

    Raises:
        ParameterError: A port cannot be opened.
    """
    p = simulator.parameters
    if not p.crazyflie.port:
        return
    from crazyflow_ros.crazyflie import CrazyflieServer

    config, logger = replace(p.crazyflie, seed=p.seed), simulator.log
    try:
        server = CrazyflieServer(simulator.physics, config, fleet or new_fleet(simulator), logger)
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
