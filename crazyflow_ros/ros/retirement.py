"""Services of drones that are gone: they refuse the calls that were on their way, and end later.

A client learns some time after a drone was deleted that its services are gone, and what it sends
meanwhile would never be answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crazyflow_ros.ros.door import Door
from crazyflow_ros.runtime import InvalidState

_SECONDS = 10.0  # of wall time, in which all clients learn of it


class Retirement:
    """Keeps services for a while after their drone is gone.

    Args:
        door: Guards their callbacks.
        delay: Calls a function after a time [s] in the thread of the executor.
        destroy: Destroys a service.
    """

    def __init__(
        self,
        door: Door,
        delay: Callable[[float, Callable[[], object]], object],
        destroy: Callable[[Any], object],
    ) -> None:
        self._door, self._delay, self._destroy = door, delay, destroy
        self._retired: dict[str, tuple[Any, object]] = {}

    def begin(self, service: Any) -> None:
        """Have a service refuse everything from now on, and destroy it later."""
        name = service.service_name
        if name in self._retired:
            return

        def refuse(request: Any, response: Any) -> None:
            raise InvalidState(f"{name} is gone with its drone")

        def end() -> None:
            if self._retired.get(name) == (service, refuse):  # it is still the same retirement
                del self._retired[name]
                self._destroy(service)

        self._retired[name] = service, refuse
        service.callback = self._door.on_request(refuse, name)
        self._delay(_SECONDS, end)

    def end(self, name: str, callback: Callable[[Any, Any], Any]) -> Any:
        """Take a service back, whose drone has come back.

        Args:
            name: Its full name.
            callback: As for a new service.

        Returns:
            The service; None if there is none of that name.
        """
        service, _ = self._retired.pop(name, (None, None))
        if service is not None:
            service.callback = callback
        return service
