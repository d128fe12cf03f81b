"""~/scene: the world without the drones as markers, for RViz, Foxglove and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visualization_msgs.msg import MarkerArray

from crazyflow_ros.ros.messages.scene_markers import markers_of
from crazyflow_ros.ros.topics.state_topics import LATCHED_QOS
from crazyflow_ros.scene.shapes import world_shapes

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class SceneTopic:
    """Publishes the scene when it has changed."""

    def __init__(self, simulator: Host) -> None:
        self._simulator = simulator
        self._publisher = simulator.create_publisher(MarkerArray, "~/scene", LATCHED_QOS)
        self._model: object = None
        self._published: MarkerArray | None = None
        simulator.regular_calls.add(self._look)

    def _look(self) -> None:
        model = self._simulator.physics.mirror.model
        if model is not self._model:
            self._model = model
            self._simulator.worker.ask(self._publish)

    def _publish(self) -> None:
        markers = markers_of(world_shapes(self._simulator.physics.mirror.model))
        if markers != self._published:  # otherwise only drones have been added or removed
            self._published = markers
            self._publisher.publish(markers)
