"""What a new tab gets before it says anything: all that its first picture shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import numpy as np
import page_tab
import pytest
import zstandard
from page_tab import ShellTab, frame_of, free_port, open_socket, until

pytest.importorskip("viser", reason="the extra view is not installed")

from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape
from crazyflow_ros.view.frame import looks_of
from crazyflow_ros.view.stage import DARK, LIGHT
from crazyflow_ros.view.viewer import Viewer

STAGE = {"/stage/surface", "/stage/sun", "/stage/fill", "/stage/ambient"}
FRAME = frame_of([(0.0, 0.0, 1.0)])
BOX = VisibleShape(ShapeForm.BOX, np.ones(3), FRAME.attitude[0], np.ones(3), np.ones(4))


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    with closing(Viewer(port=free_port())) as opened:
        opened.drawing.set_looks([looks_of("cf2x_L250")])
        opened.drawing.set_world([BOX])
        yield opened


class Tab(page_tab.Tab):
    """A tab that notes the nodes of its scene."""

    def __init__(self, port: int) -> None:
        self.scene: dict[str, list[dict[str, Any]]] = {}
        super().__init__(port)

    def _take(self, message: dict[str, Any]) -> None:
        super()._take(message)
        if "props" in message and str(message.get("name")).startswith("/"):
            self.scene.setdefault(message["name"], []).append(message["props"])


def first_message(port: int) -> set[str]:
    """The nodes in the first message to a tab that says nothing."""
    with open_socket(port) as connection:
        frame = connection.recv(page_tab.TIMEOUT)
    assert isinstance(frame, bytes)
    content = zstandard.decompress(frame[16 : 16 + int.from_bytes(frame[8:16], "little")])
    messages = msgspec.msgpack.decode(content)["messages"]
    return {message["name"] for message in messages if "props" in message and "name" in message}


def test_the_first_message_has_world_light_and_drones(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crazyflow_ros.view.viewer._UNSEEN", 600.0)  # a machine may be slow
    assert viewer.is_due  # also without a tab
    viewer.show(FRAME, 0.0)
    assert not viewer.is_due  # not again at once
    nodes = first_message(viewer.server.get_port())
    assert nodes >= STAGE | {"/world", "/edges", "/drones0", "/shadows"}


def test_every_frame_is_due_while_there_is_a_tab(viewer: Viewer) -> None:
    with Tab(viewer.server.get_port()):
        until(viewer.server.get_clients, "a tab")
        viewer.show(FRAME, 0.0)
        assert viewer.is_due


def test_dark_tabs_have_a_stage_of_their_own(viewer: Viewer) -> None:
    """With as many lights, for which the renderer of the tab has its programs already."""
    port = viewer.server.get_port()
    with Tab(port) as tab, ShellTab(port) as shell:
        shell.send("mark", tab.mark())
        shell.send("dark", False)
        until(lambda: set(tab.scene) >= STAGE, "the light stage")
        shell.send("dark", True)
        until(lambda: all(len(tab.scene[name]) == 2 for name in STAGE), "a dark stage")
        suns = [props["intensity"] for props in tab.scene["/stage/sun"]]
        assert suns == [LIGHT.sun, DARK.sun]
        assert {name for name in tab.scene if name.startswith("/stage/")} == STAGE
