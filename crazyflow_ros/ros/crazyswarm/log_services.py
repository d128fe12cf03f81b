"""<drone>/add_logging and <drone>/remove_logging."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crazyflie_interfaces.srv import AddLogging, RemoveLogging

from crazyflow_ros.ros.crazyswarm.configuration import LogTopic

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.server import CrazyflieServer


def declare(simulator: CrazyflieServer) -> None:
    """Create the services."""
    log_topics = simulator.log_topics

    def begin(drone: str, request: AddLogging.Request, response: Any) -> Any:
        topic = LogTopic.of(
            request.topic_name, request.frequency, list(request.vars), "add_logging"
        )
        log_topics.add(drone, topic)
        response.success = True
        return response

    def end(drone: str, request: RemoveLogging.Request, response: Any) -> Any:
        log_topics.remove(drone, request.topic_name)
        response.success = True
        return response

    def add(drone: str) -> None:
        simulator.create_service(AddLogging, f"{drone}/add_logging", partial(begin, drone))
        simulator.create_service(RemoveLogging, f"{drone}/remove_logging", partial(end, drone))

    simulator.for_each_drone(add)
