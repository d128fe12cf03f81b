"""A tab of the page without a browser: what viser's page sends and receives."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import SocketKind
from typing import Any, Self

import msgspec
import numpy as np
import viser
import zstandard
from ports import free_ports
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.shell.shell import PATH

PROTOCOL = f"viser-v{viser.__version__}"
TIMEOUT = 120.0  # s, a machine may be slow and busy
CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1, 0, 0, 0],
    "position": [0, 0, 1],
    "fov": 1.0,
    "near": 0.1,
    "far": 100.0,
    "image_height": 100,
    "image_width": 100,
    "look_at": [0, 0, 0],
    "up_direction": [0, 0, 1],
}
CLICK = {
    "type": "ScenePointerMessage",
    "event_type": "click",
    "ray_origin": [0, 0, 1],
    "ray_direction": [0, 0, -1],
    "screen_pos": [[0.5, 0.5]],
    "modifier": None,
}


def free_port() -> int:
    """A free TCP port."""
    return free_ports(kind=SocketKind.SOCK_STREAM)


def frame_of(places: Any, names: Sequence[str] = (), time: float = 0.0, rotors: float = 0) -> Frame:
    """Upright drones at places (M, 3) [m], by default cf0, cf1, ..., at a time [s]."""
    count = len(places)
    upright = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    names = tuple(names or (f"cf{number}" for number in range(count)))
    position, speeds = np.array(places, float).reshape(-1, 3), np.full((count, QUADROTOR), rotors)
    return Frame(round(time * 1e9), names, position, upright, np.zeros((count, 3)), speeds)


def pinhole(
    places: np.ndarray, position: Any, look_at: Any, fov: float, size: tuple[float, float]
) -> np.ndarray:
    """Pixels of places (M, 3) [m] in the picture of a level camera, (M, 2).

    Args:
        places: All of them before the camera.
        position: Where the camera is [m].
        look_at: Where it looks [m].
        fov: Its vertical angle of view [rad].
        size: Width and height of the picture [pixels].
    """
    ahead = np.subtract(look_at, position) / np.linalg.norm(np.subtract(look_at, position))
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    seen = (places - np.asarray(position)) @ np.stack([right, np.cross(ahead, right), ahead]).T
    assert (seen[:, 2] > 0).all()
    return np.array(size) / 2 + size[1] / 2 / math.tan(fov / 2) * seen[:, :2] / seen[:, 2:]


def pack(message: Any) -> bytes:
    """A message as a browser sends it."""
    return msgspec.msgpack.encode(message)


def open_socket(port: int, path: str = "/", **options: Any) -> ClientConnection:
    """A WebSocket, as a page opens it."""
    address = f"127.0.0.1:{port}"
    options.setdefault("origin", f"http://{address}")
    if path == "/":
        options.setdefault("subprotocols", [PROTOCOL])
    options.setdefault("open_timeout", TIMEOUT)
    return connect(f"ws://{address}{path}", max_size=None, **options)


def until(condition: Callable[[], Any], what: str, timeout: float = TIMEOUT) -> Any:
    """Wait until a condition holds, and return it."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        time.sleep(0.01)
    return value


class Tab:
    """A tab, which reads what the server sends in a thread.

    Args:
        port: Port of the server.

    Attributes:
        elements: What the panel consists of, by number: the properties of each.
        notifications: Texts of the notes.
        questions: What was asked.
        frames: Number of frames that have arrived.
    """

    def __init__(self, port: int) -> None:
        self.elements: dict[int, dict[str, Any]] = {}
        self.notifications: list[str] = []
        self.questions: list[dict[str, str]] = []
        self.frames, self._mark = 0, ""
        self._own: dict[str, Any] = {}
        self.connection, self.panel = open_socket(port), open_socket(port, PATH)
        self.send(CAMERA)
        for work in (self._read, self._read_panel):
            threading.Thread(target=work, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self.panel.close()

    def _read_panel(self) -> None:
        with suppress(ConnectionClosed):
            for message in self.panel:
                if isinstance(message, str):
                    self._take_panel(**json.loads(message))

    def _take_panel(self, kind: str, content: Any) -> None:
        if kind == "control":
            self.elements[content["id"]] = content
        elif kind == "note" and "text" in content:
            self.notifications.append(f"{content['title']}: {content['text']}")
        elif kind == "question":
            self.questions.append(content)
        else:
            self._own[kind] = content

    def _read(self) -> None:
        try:
            for frame in self.connection:
                packed = int.from_bytes(frame[8:16], "little")
                content = zstandard.decompress(frame[16 : 16 + packed])
                self._take_frame(msgspec.msgpack.decode(content), frame)
        except ConnectionClosed:
            pass

    def _take_frame(self, content: dict[str, Any], frame: bytes) -> None:
        for message in content["messages"]:
            self._take(message)
        self.frames += 1

    def _take(self, message: dict[str, Any]) -> None:
        content = str(message.get("props", {}).get("content", ""))
        if not self._mark and 'data-mark="' in content:
            self._mark = content.partition('data-mark="')[2].partition('"')[0]
            self.tell("mark", self._mark)

    def send(self, message: Any) -> None:
        """Send a message."""
        self.connection.send(pack(message))

    def tell(self, kind: str, content: Any) -> None:
        """Send a content through the shell."""
        self.panel.send(json.dumps({"kind": kind, "content": content}))

    def find(self, label: str, number: int = 0) -> int:
        """The number of the input with a label; of several the one with this place."""

        def found() -> list[int]:
            return [
                element["id"]
                for element in sorted(self.elements.values(), key=lambda one: one["id"])
                if element["label"] == label and element["kind"] not in ("section", "tab", "place")
            ]

        return until(lambda: len(found()) > number, f"an input {label!r}") and found()[number]

    def value(self, label: str, number: int = 0) -> Any:
        """The value of an input."""
        element = self.elements[self.find(label, number)]
        return self._own.get(element.get("own", ""), element["value"])

    def set(self, label: str, value: Any, number: int = 0) -> None:
        """Give an input a value, or click on a button."""
        element = self.elements[self.find(label, number)]
        if own := element.get("own"):
            self._own[own] = value  # the server is told, and tells nobody
            self.tell(own, value)
        else:
            self.tell("control", [element["id"], value])

    def click_on_floor(self, x: float, y: float) -> None:
        """Click on a place of the floor [m], seen from above."""
        self.send(CLICK | {"ray_origin": [x, y, 9.0]})

    def text(self) -> str:
        """All texts of the panel."""
        elements = list(self.elements.values())
        return " ".join(str(element.get("content", "")) for element in elements)

    def mark(self) -> str:
        """The mark by which the shell knows this tab."""
        return until(lambda: self._mark, "a mark")


class ShellTab:
    """What the shell of a tab sends and receives."""

    def __init__(self, port: int) -> None:
        self._connection = open_socket(port, PATH)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, kind: str, content: Any) -> None:
        """Send a content."""
        self._connection.send(json.dumps({"kind": kind, "content": content}))

    def want(self, kind: str, is_wanted: bool = True) -> None:
        """Ask for a kind of content from now on, or not any more."""
        self.send("want", [kind, is_wanted])

    def receive(self) -> tuple[str, Any]:
        """The next message: its kind and its content."""
        message = self._connection.recv(TIMEOUT)
        if isinstance(message, bytes):
            kind, _, content = message.partition(b"\0")
            return kind.decode(), content
        return (decoded := json.loads(message))["kind"], decoded["content"]

    def next(self, kind: str) -> Any:
        """The content of the next message of a kind."""
        return until(lambda: [one for name, one in [self.receive()] if name == kind], kind)[0]


class StickSocket(ShellTab):
    """The keys and sticks of a tab."""

    def hold(self, *keys: str) -> None:
        """Hold these keys, as the page says it again and again."""
        self.send("sticks", {"keys": keys, "axes": []})
