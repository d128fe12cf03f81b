"""Zenoh between simulators: who is there, messages, and what is refused."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from physics_helpers import until

from crazyflow_ros.hosts import Hosts
from crazyflow_ros.hosts.transport import ZenohTransport

T = 60.0  # s


@pytest.fixture
def endpoints() -> list[str]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    found = [f"tcp/127.0.0.1:{server.getsockname()[1]}" for server in servers]
    for server in servers:
        server.close()
    return found


class Reached:
    """A simulator's transport, with what it has heard."""

    def __init__(self, settings: Hosts) -> None:
        self.present: list[tuple[str, str]] = []
        self.heard: list[tuple[str, str, bytes]] = []
        self.transport = ZenohTransport(settings)
        self.transport.open(self._notice, lambda *message: self.heard.append(message))

    def _notice(self, name: str, life: str, here: bool) -> None:
        (self.present.append if here else self.present.remove)((name, life))


def test_three_simulators_reach_each_other_in_any_order(endpoints: list[str]) -> None:
    pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")
    ends = {}
    for i in (2, 0, 1):  # the third one connects to those that are not there yet
        peers = tuple(name for name in "abc" if name != "abc"[i])
        settings = Hosts("abc"[i], peers, (), (endpoints[i],), tuple(endpoints[:i]))
        ends["abc"[i]] = Reached(settings)
        ends["abc"[i]].transport.announce(f"life{i}")
    for end in ends.values():
        until(lambda end=end: len({name for name, _ in end.present}) == 3, "all three", T)
    ends["c"].transport.send(b"first")
    ends["c"].transport.send(b"second")
    for name in "ab":
        until(lambda name=name: len(ends[name].heard) == 2, "messages", T)
        assert ends[name].heard == [("c", "life2", b"first"), ("c", "life2", b"second")]
    assert not ends["c"].heard  # not its own
    ends["b"].transport.announce("later")
    until(lambda: ("b", "life1") not in ends["a"].present, "the end of a life", T)
    assert ("b", "later") in ends["a"].present
    ends["c"].transport.close()
    until(lambda: ("c", "life2") not in ends["a"].present, "the end of c", T)
    for end in ends.values():
        end.transport.close()


def test_what_zenoh_refuses_is_said(endpoints: list[str], tmp_path: Path) -> None:
    pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")
    settings = {
        "nonsense": Hosts("a", ("b",), (), ("nonsense/1",)),
        "No such file": Hosts("a", ("b",), (), (), transport_config=str(tmp_path / "none.json5")),
    }
    for text, wrong in settings.items():
        with pytest.raises(ValueError, match=f"hosts: Zenoh refuses its configuration: .*{text}"):
            ZenohTransport(wrong)


def test_without_zenoh_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"eclipse-zenoh is not installed: .* pip install"
    ):
        ZenohTransport(Hosts("a", ("b",), (), ("tcp/127.0.0.1:1",)))
