"""Services of drones that are gone: they refuse the calls that were on their way, and end later.

A client learns some time after a drone was deleted that its services are gone, and what it sends
meanwhile would never be answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
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
        self._retired: dict[str, dict[str, Any]] = {}  # by name, those that retired together

    def begin(self, services: Iterable[Any]) -> None:
        """Have services refuse everything from now on, and destroy them later."""

        def refuse(name: str, *_: Any) -> None:
            raise InvalidState(f"{name} is gone with its drone")

        def end() -> None:
            for name, service in together.items():
                if self._retired.get(name) is together:  # it has not come back meanwhile
                    del self._retired[name]
                    self._destroy(service)

        together = {s.service_name: s for s in services if s.service_name not in self._retired}
        for name, service in together.items():
            service.callback = self._door.on_request(partial(refuse, name), name)
            self._retired[name] = together
        if together:
            self._delay(_SECONDS, end)

    def end(self, name: str, callback: Callable[[Any, Any], Any]) -> Any:
        """Take a service back, whose drone has come back.

        Args:
            name: Its full name.
            callback: As for a new service.

        Returns:
            The service; None if there is none of that name.
        """
        if name not in self._retired:
            return None
        service = self._retired.pop(name)[name]
        service.callback = callback
        return service
