"""Changes of the parameters `wind`, `gust_intensity` and `gust_altitude` at run time."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter

from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.runtime import Snapshot, Wind

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_NAMES = {"wind": "mean", "gust_intensity": "gust_intensity", "gust_altitude": "gust_altitude"}
"""Parameters and the corresponding fields of `Wind`."""


class WindParameters:
    """Synchronisation of the wind with the parameters, and of the parameters with a checkpoint."""

    def __init__(self, simulator: Host) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        self._wind = self._physics.world.wind
        self._asked: Future[Snapshot] | None = None
        simulator.node.add_on_set_parameters_callback(self._check)
        simulator.node.add_post_set_parameters_callback(self._apply)

    def follow_checkpoint(self) -> None:
        """Set the parameters to the present wind."""
        self._wind = self._physics.world.wind
        parameters = [
            Parameter(name, value=plain(getattr(self._wind, field)))
            for name, field in _NAMES.items()
        ]
        # At once, else each asks for a wind.
        result = self._simulator.node.set_parameters_atomically(parameters)
        if not result.successful:
            self._simulator.log.warning(
                f"the parameters do not show the wind of the checkpoint: {result.reason}"
            )

    def _check(self, changes: list[Parameter[Any]]) -> SetParametersResult:
        """Refuse a wind in which the drones of this simulator cannot fly."""
        own = {change.name: change.value for change in changes if change.name in _NAMES}
        if "wind" in own:
            own["wind"] = tuple(own["wind"])
        try:
            replace(self._simulator.parameters, **own)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply(self, changes: list[Parameter[Any]]) -> None:
        if not any(change.name in _NAMES for change in changes):
            return
        get = self._simulator.get_parameter
        wind = Wind(**{field: get(name).value for name, field in _NAMES.items()})
        if wind == self._wind:
            return
        if self._asked is not None:
            self._asked.cancel()  # preparing the first gusts is slow; only the latest wind matters
        self._wind, self._asked = wind, self._physics.world.disturb(wind)
        self._asked.add_done_callback(self._report)

    def _report(self, asked: Future[Snapshot]) -> None:
        if not asked.cancelled() and (error := asked.exception()) is not None:
            self._simulator.log.warning(f"the wind is unchanged: {error}")
