"""Settings of a simulator that shares its time with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import Names, ParameterError, Spec, check

_MOST = 64  # simulators


@dataclass(frozen=True)
class Hosts:
    """Settings of one of several simulators; in the node, the parameters hosts.name and so on."""

    name: Annotated[
        str, Spec("Name of this simulator among those that share one time; empty: it is alone")
    ] = ""
    peers: Annotated[Names, Spec("Names of the other simulators")] = ()
    drones: Annotated[
        Names, Spec("Those of `drones` that this simulator commands, senses and publishes")
    ] = ()
    listen: Annotated[
        Names, Spec("Zenoh's endpoints for others to connect to, for example ['tcp/0.0.0.0:7447']")
    ] = ()
    connect: Annotated[
        Names, Spec("Zenoh's endpoints to connect to, for example ['tcp/192.168.1.10:7447']")
    ] = ()
    world: Annotated[
        str, Spec("Name of the shared world; simulators of other worlds do not meet")
    ] = "world"
    timeout: Annotated[
        float, Spec("Silence on the network after which a simulator counts as gone [s]", 0.5, 3600)
    ] = 10.0
    transport_config: Annotated[
        str, Spec("File with Zenoh's configuration in JSON5, for example for TLS; empty: defaults")
    ] = ""

    def check(self, drones: Sequence[str]) -> None:
        """Check the settings of a simulator with these drones.

        Raises:
            ValueError: A setting is not usable; the message names it.
        """
        check(self)
        names = (self.name, *self.peers)
        for where, name in (("world", self.world), *(("name or peers", name) for name in names)):
            try:
                limits.drone_name(name)
            except ValueError as error:
                raise ValueError(f"hosts.{where}: {error}") from None
        if len(set(names)) < len(names):
            raise ParameterError("hosts.peers", "names that differ from each other", list(names))
        if not 1 <= len(self.peers) < _MOST:
            raise ParameterError("hosts.peers", f"1 to {_MOST - 1} names", list(self.peers))
        for drone in self.drones:
            if drone not in drones:
                raise ParameterError("hosts.drones", limits.unknown("drone", drone, drones))
        if len(set(self.drones)) < len(self.drones):
            raise ParameterError("hosts.drones", "names that differ", list(self.drones))
        if not (self.listen or self.connect or self.transport_config):
            raise ParameterError("hosts.connect", "an endpoint here or in hosts.listen", [])
