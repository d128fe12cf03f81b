"""Zenoh, by which simulators find and reach each other.

It has reliable messages in order, and liveliness tokens, which tell within milliseconds that a
process has ended, and within a lease that a host is silent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from crazyflow_ros.extras import extra
from crazyflow_ros.hosts.settings import Hosts

if TYPE_CHECKING:
    import zenoh

_ROOT = "crazyflow_ros"
_KEEP_ALIVE = 4  # in each lease, as Zenoh's default

OnPresence = Callable[[str, str, bool], None]
"""Takes name and life of another simulator, and whether it has come or gone. From any thread."""
OnMessage = Callable[[str, str, bytes], None]
"""Takes name and life of another simulator, and its message. From any thread."""


class Transport(Protocol):
    """Reaches the other simulators of a world.

    A simulator has one *life* at a time, a text that no other one has had. Messages of one
    simulator arrive in order, and after the news that it has come.
    """

    def open(self, on_presence: OnPresence, on_message: OnMessage) -> None:
        """Begin to listen."""

    def announce(self, life: str) -> None:
        """Announce presence with a life that replaces the previous one."""

    def send(self, message: bytes) -> None:
        """Send a message to all who are present."""

    def close(self) -> None:
        """Leave. From any thread, possibly more than once."""


class ZenohTransport:
    """Reaches the other simulators over Zenoh.

    Args:
        settings: Endpoints and names.

    Raises:
        ValueError: The configuration is refused; the message is Zenoh's.
        ModuleNotFoundError: Zenoh is not installed.
    """

    def __init__(self, settings: Hosts) -> None:
        with extra("hosts"):
            import zenoh
        self._zenoh, self._own = zenoh, f"{_ROOT}/{settings.world}/{settings.name}"
        self._all = f"{_ROOT}/{settings.world}/*/*"
        self._name = settings.name
        self._token: Any = None
        self._publisher: Any = None
        try:
            self._session = zenoh.open(_configured(zenoh, settings))
        except zenoh.ZError as error:
            raise ValueError(f"hosts: Zenoh refuses its configuration: {error}") from None

    def open(self, on_presence: OnPresence, on_message: OnMessage) -> None:
        """See `Transport`."""

        def heard(sample: Any) -> None:
            name, life = _origin(sample)
            if name != self._name:
                on_message(name, life, sample.payload.to_bytes())

        def noticed(sample: Any) -> None:
            on_presence(*_origin(sample), sample.kind == self._zenoh.SampleKind.PUT)

        # Before the token: who sees it may send at once.
        self._messages = self._session.declare_subscriber(self._all, heard)
        liveliness = self._session.liveliness()
        self._presences = liveliness.declare_subscriber(self._all, noticed, history=True)

    def announce(self, life: str) -> None:
        """See `Transport`."""
        before = self._token, self._publisher
        key, zenoh = f"{self._own}/{life}", self._zenoh
        self._publisher = self._session.declare_publisher(
            key,
            congestion_control=zenoh.CongestionControl.BLOCK,
            reliability=zenoh.Reliability.RELIABLE,
            express=True,  # no batches, which would wait for more messages
        )
        self._token = self._session.liveliness().declare_token(key)
        for declared in before:
            if declared is not None:
                declared.undeclare()

    def send(self, message: bytes) -> None:
        """See `Transport`."""
        self._publisher.put(message)

    def close(self) -> None:
        """See `Transport`."""
        if not self._session.is_closed():
            self._session.close()


def _origin(sample: Any) -> tuple[str, str]:
    _, _, name, life = str(sample.key_expr).split("/")
    return name, life


def _configured(zenoh: Any, settings: Hosts) -> zenoh.Config:
    """Return Zenoh's configuration: peers that know each other's endpoints, unless a file differs.

    Raises:
        ZError: Zenoh refuses it.
    """
    file = settings.transport_config
    config = zenoh.Config.from_file(file) if file else zenoh.Config()
    values: dict[str, Any] = {}
    if not file:
        values |= {"mode": "peer", "scouting/multicast/enabled": False}
    if settings.listen or not file:
        values["listen/endpoints"] = list(settings.listen)
    if settings.connect or not file:
        values["connect/endpoints"] = list(settings.connect)
    values["transport/link/tx/lease"] = round(settings.timeout * 1000)
    values["transport/link/tx/keep_alive"] = _KEEP_ALIVE
    for key, value in values.items():
        config.insert_json5(key, json.dumps(value))
    return config
