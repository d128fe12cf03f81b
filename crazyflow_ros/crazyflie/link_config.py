"""The link between simulated Crazyflies and their clients: ports, losses and delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from crazyflow_ros.checks.plain_values import Numbers, ParameterError, Spec, check
from crazyflow_ros.estimation.decks import USUAL, Anchors, DeckNames, RangingName, Stations

FIRST_PORT = 19850
"""Port of the first drone; cflib looks for drones on ten ports from here on."""

PROBE = b"\xff"
"""Packet without meaning; programs that search for drones expect an answer to it."""

LEAST_PORT, MOST_PORT = 1024, 65535
"""Ports that users may open; lower ones belong to the system."""

_USUAL_RATE = "2M"


def _check_place(name: str, place: Any) -> None:
    if len(place) != 3:
        raise ParameterError(name, "three numbers", place)


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
    radio: Annotated[
        str,
        Spec(
            "Data rate of the simulated Crazyradio; none: packets pass at once",
            choices=("none", "250K", "1M", _USUAL_RATE),
        ),
    ] = "none"
    radios: Annotated[int, Spec("Number of Crazyradios, which share the drones", 1, 16)] = 1
    antenna: Annotated[
        Numbers, Spec("Where the Crazyradios are: x, y, z [m]", check=_check_place)
    ] = (0.0, 0.0, 1.0)
    loss: Annotated[
        float,
        Spec(
            "Share of packets lost on the air, each way; the radio is one of 2M unless chosen",
            0.0,
            0.99,
        ),
    ] = 0.0
    latency: Annotated[float, Spec("Delay of packets [s of wall time], each way", 0.0, 10.0)] = 0.0
    app: Annotated[
        str,
        Spec(
            "App of each drone, which answers packets of the app channel: the name of one that an "
            "installed package has, or file.py:Class; empty: none"
        ),
    ] = ""
    storage: Annotated[
        str, Spec("Folder in which stored parameters survive a restart; empty: they do not")
    ] = ""
    gentle: Annotated[
        bool,
        Spec(
            "Fly setpoints along bounded paths, and hover or stop without them, instead of by the "
            "firmware's rules; without arming, tumble check and locks"
        ),
    ] = False
    seed: int = 0
    """Seed of the losses."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def rate(self) -> str | None:
        """Rate of the radio; None without one. What gets lost is lost on the air."""
        if self.radio == "none":
            return _USUAL_RATE if self.loss else None
        return self.radio
