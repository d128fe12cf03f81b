"""The link between simulated Crazyflies and their clients: ports, losses and delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from crazyflow_ros.checks.plain_values import Spec, check
from crazyflow_ros.estimation.decks import USUAL, Anchors, DeckNames, RangingName, Stations

FIRST_PORT = 19850
"""Port of the first drone; cflib looks for drones on ten ports from here on."""

PROBE = b"\xff"
"""Packet without meaning; programs that search for drones expect an answer to it."""

LEAST_PORT, MOST_PORT = 1024, 65535
"""Ports that users may open; lower ones belong to the system."""


@dataclass(frozen=True)
class LinkConfig:
    """The link between the Crazyflies and their clients.

    Raises:
        ValueError: A value is not allowed.
    """

    port: Annotated[
        int, Spec("UDP port of the first drone; the others follow", LEAST_PORT, MOST_PORT)
    ] = FIRST_PORT
    address: Annotated[
        str, Spec("Address of the network interface to listen on; 0.0.0.0: all of them")
    ] = "127.0.0.1"
    decks: DeckNames = USUAL
    anchors: Anchors = ()
    ranging: RangingName = "twr"
    lighthouse: Stations = ""
    loss: Annotated[float, Spec("Share of packets that are lost, each way", 0.0, 0.99)] = 0.0
    latency: Annotated[float, Spec("Delay of packets [s of wall time], each way", 0.0, 10.0)] = 0.0
    storage: Annotated[
        str, Spec("Folder in which stored parameters survive a restart; empty: they do not")
    ] = ""
    seed: int = 0
    """Seed of the losses."""

    def __post_init__(self) -> None:
        check(self)
