"""Python client of a running simulator for scripts: flies drones and sleeps in simulated time.

    from crazyflow_ros.client import SimulatorClient

    with SimulatorClient() as simulation:
        cf0 = simulation.drone("cf0")
        cf0.takeoff(1.0)
        for x, y in ((1, 0), (1, 1), (0, 1), (0, 0)):
            cf0.go_to(x, y, 1.0)
        cf0.land()

It uses only topics and services that are open to any other program. `SimulatorProcess` starts a
simulator, for programs that bring their own.

Names are imported on first use: the help of the command line needs no ROS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.client.drone import DroneClient
    from crazyflow_ros.client.errors import NoSimulator, SimulationError
    from crazyflow_ros.client.ongoing_flight import OngoingFlight
    from crazyflow_ros.client.service_calls import ANSWER, ServiceCall
    from crazyflow_ros.client.session import Session
    from crazyflow_ros.client.simulator import SimulatorClient
    from crazyflow_ros.client.simulator_process import (
        SimulatorError,
        SimulatorProcess,
        choose_domain,
        interruptible,
    )

__all__ = [
    "ANSWER",
    "DroneClient",
    "NoSimulator",
    "OngoingFlight",
    "ServiceCall",
    "Session",
    "SimulationError",
    "SimulatorClient",
    "SimulatorError",
    "SimulatorProcess",
    "choose_domain",
    "interruptible",
]

__getattr__ = lazy(
    __name__,
    {
        "ANSWER": "service_calls",
        "DroneClient": "drone",
        "NoSimulator": "errors",
        "OngoingFlight": "ongoing_flight",
        "ServiceCall": "service_calls",
        "Session": "session",
        "SimulationError": "errors",
        "SimulatorClient": "simulator",
        "SimulatorError": "simulator_process",
        "SimulatorProcess": "simulator_process",
        "choose_domain": "simulator_process",
        "interruptible": "simulator_process",
    },
)

MODULES = ("connection", "errors", "service_calls", "session", "simulator_arguments")
"""Modules that extensions may import, with all their public names."""
