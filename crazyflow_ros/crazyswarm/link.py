"""The drones of a node as Crazyflies on UDP, for cflib and cfclient: the parameters crazyflie.*."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any

from crazyflow_ros.checks.plain_values import ParameterError, Spec
from crazyflow_ros.crazyflie import CrazyflieServer
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.link_config import LEAST_PORT, MOST_PORT, LinkConfig
from crazyflow_ros.crazyflie.pilot import CFLIB_ADVICE
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.crazyflie.supervisor_states import BRUSHLESS_MODEL
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.ros.host import Host
from crazyflow_ros.runtime import Extension

LINK = "crazyflie"
"""Name of the extension."""


@dataclass(frozen=True)
class CrazyflieLink(LinkConfig, Extension):
    """Connection of cflib and cfclient to the drones, by CRTP over UDP; off without a port."""

    port: Annotated[
        int,
        Spec(
            "UDP port of the first drone; the others follow; 0: off; cflib looks from 19850 on",
            0,
            MOST_PORT,
            least=LEAST_PORT,
        ),
    ] = 0

    def configured(self, config: SimulationConfig, values: Mapping[str, Any]) -> SimulationConfig:
        """See `Extension`: programs send poses, and messages say what works in them."""
        del values
        if not self.port:
            return config
        if config.can_pass_setpoints_on and not self.gentle:
            must_arm = config.drone_model == BRUSHLESS_MODEL
            flight = replace(config.flight, auto_arm=config.flight.auto_arm and not must_arm)
            config = replace(config, setpoint_modes=True, flight=flight)
        if config.estimator != Estimator.none:
            config = replace(config, positioning=replace(config.positioning, external=True))
        advice = config.flight.advice
        advice = replace(advice, call=f"{advice.call}, or {CFLIB_ADVICE.call}")
        return replace(config, flight=replace(config.flight, advice=advice))

    def add(self, host: Host) -> None:
        """See `Extension`."""
        if self.port:
            self.serve(host, self.new_fleet(host))

    def new_fleet(self, host: Host) -> Fleet:
        """Return the firmware of the drones, for what presents them as Crazyflies.

        Raises:
            ParameterError: The folder for stored parameters or the app cannot be used.
        """
        try:
            storage = Storage(self.storage)
        except ValueError as error:
            raise ParameterError("crazyflie.storage", str(error)) from None
        model = host.parameters.drone_model
        try:
            return Fleet(host.physics, model, self.decks, host.log, storage, self.app)
        except ValueError as error:
            raise ParameterError("crazyflie.app", str(error)) from None

    def serve(self, host: Host, fleet: Fleet) -> None:
        """Serve the drones.

        Args:
            host: The node.
            fleet: Their firmware.

        Raises:
            ParameterError: A port cannot be opened.
        """
        config = replace(self, seed=host.parameters.seed)
        try:
            server = CrazyflieServer(host.physics, config, fleet, host.log)
        except OSError as error:
            rule = f"{len(host.drones)} UDP ports from here on must be free"
            text = f"{rule}, got {self.port}: {error}"
            raise ParameterError("crazyflie.port", text) from None

        def close() -> None:
            with suppress(TimeoutError):  # the process ends in any case
                server.close()

        host.on_close(close)
        server.start()
        uris = list(server.uris.values())
        host.log.info(
            f"Crazyflies for cflib: {uris[0]}{f' to {uris[-1]}' if len(uris) > 1 else ''}"
        )
