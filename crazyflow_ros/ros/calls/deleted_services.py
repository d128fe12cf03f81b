"""Services of deleted drones, which refuse pending calls for a while before they are destroyed.

A client learns with a delay that the services of a deleted drone are gone; its calls in the
meantime would never get a response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.runtime import InvalidState

_SECONDS = 10.0  # of wall time, by which all clients have noticed


class Retirement:
    """Services kept for a while after their drone was deleted.

    Args:
        guard: Guard of the callbacks.
        delay: Calls a function after a time [s] in the executor's thread.
        destroy: Destroys a service.
    """

    def __init__(
        self,
        guard: CallbackGuard,
        delay: Callable[[float, Callable[[], object]], object],
        destroy: Callable[[Any], object],
    ) -> None:
        self._guard, self._delay, self._destroy = guard, delay, destroy
        self._retired: dict[str, dict[str, Any]] = {}  # by name: the services retired together

    def begin(self, services: Mapping[str, Any]) -> None:
        """Make services refuse all calls, and destroy them later.

        Args:
            services: The services by full name, as for `end`.
        """

        def refuse(name: str, *_: Any) -> None:
            raise InvalidState(f"{name} is gone with its drone, or by the parameter interfaces")

        def end() -> None:
            for name, service in together.items():
                if self._retired.get(name) is together:  # it was not taken back meanwhile
                    del self._retired[name]
                    self._destroy(service)

        together = {n: s for n, s in services.items() if n not in self._retired}
        for name, service in together.items():
            service.callback = self._guard.on_request(partial(refuse, name), name)
            self._retired[name] = together
        if together:
            self._delay(_SECONDS, end)

    def end(self, name: str, callback: Callable[[Any, Any], Any]) -> Any:
        """Reactivate a service whose drone has been added again.

        Args:
            name: Full name of the service, as for `begin`.
            callback: Callback as for a new service.

        Returns:
            The service, or None if no service of that name is retired.
        """
        if name not in self._retired:
            return None
        service = self._retired.pop(name)[name]
        service.callback = callback
        return service
