"""The page's server: whom it refuses, and what it leaves out."""

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import urlopen

import pytest

viser = pytest.importorskip("viser", reason="the page needs viser")

from page_tab import (  # noqa: E402
    CAMERA,
    CLICK,
    PROTOCOL,
    TIMEOUT,
    ShellTab,
    Tab,
    open_socket,
    pack,
    until,
)
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402
from websockets.sync.client import ClientConnection, connect  # noqa: E402

from crazyflow_ros.view import page_server  # noqa: E402
from crazyflow_ros.view.access import new_token  # noqa: E402
from crazyflow_ros.view.controls import PageControls, User, fits  # noqa: E402
from crazyflow_ros.view.page_server import is_welcome  # noqa: E402
from crazyflow_ros.view.shell import Feed, Shell  # noqa: E402
from crazyflow_ros.view.shell.shell import PATH  # noqa: E402


class Server:
    """A page's server with a few inputs, and what it received."""

    def __init__(self, address: str = "127.0.0.1", token: str = "") -> None:
        self.sticks: list[tuple[int, Any]] = []
        self.shell = Shell(["keys.js"])
        self.shell.on("sticks", self._take)
        self.clicks: list[Any] = []
        self.token = token
        self.viser = page_server.start(address, 8300, "test", token, self.shell)
        self.port = self.viser.get_port()
        panel = PageControls(self.shell)
        self.button = panel.add("button", "Button")
        self.button.on_change(self._click)
        self.slider = panel.add("slider", "Slider", 0.5, min=0.0, max=1.0, step=0.1)
        self.count = panel.add("number", "Count", 3)
        self.choice = panel.add("choice", "Choice", options=("a", "b"))
        self.group = panel.add("buttons", "Group", options=("a", "b"))
        self.text = panel.add("field", "Text", "")
        self.box = panel.add("switch", "Box", False)
        self.vector = panel.add("vector", "Vector", [0.0, 0.0, 0.0])
        self.inputs = (
            self.button, self.slider, self.count, self.choice,
            self.group, self.text, self.box, self.vector,
        )  # fmt: skip

    def _take(self, tab: int, content: Any) -> None:
        self.sticks.append((tab, content))

    def _click(self, user: User, _: Any) -> None:
        self.clicks.append(user)

    def get(self, path: str = "/", **headers: str) -> http.client.HTTPResponse:
        """Response to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def open(self, path: str = "/", **options: Any) -> ClientConnection:
        """A WebSocket, as a page opens it."""
        return open_socket(self.port, path, **options)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.viser.stop()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that other machines may reach, so with a token."""
    server = Server("0.0.0.0", new_token())
    yield server
    server.viser.stop()


def test_the_page_has_the_scripts_of_its_shell(server: Server) -> None:
    response = server.get(Accept_Encoding="gzip")
    body = response.read()
    assert response.status == 200
    assert b"KeyW" in body and b"</html>" in body
    assert response.getheader("X-Frame-Options") == "SAMEORIGIN"


def test_keys_stay_with_the_camera_where_nothing_flies() -> None:
    """On the page of a recording or a `Sim`."""
    server = page_server.start("127.0.0.1", 8300, "test", "", Shell())
    with urlopen(f"http://127.0.0.1:{server.get_port()}", timeout=TIMEOUT) as answer:
        body = answer.read()
    server.stop()
    assert b"KeyW" not in body and b"</html>" in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8300", "192.168.1.4", "[::2]", ""])
def test_other_names_of_this_machine_are_refused(server: Server, host: str) -> None:
    assert server.get(Host=host).status == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_own_names_of_this_machine_are_served(server: Server, host: str) -> None:
    assert server.get(Host=f"{host}:{server.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
@pytest.mark.parametrize("path", ["/", PATH])
def test_pages_of_others_cannot_connect(server: Server, origin: str, path: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        server.open(path, origin=origin)


@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", "?other=1"])
def test_without_the_token_there_is_nothing_but_a_refusal(guarded: Server, given: str) -> None:
    for path in ("/", "/index.html", "/assets/x.js", PATH):
        response = guarded.get(path + given)
        assert response.status == 403
        assert guarded.token.encode() not in response.read()
    for path in ("/", PATH):
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://127.0.0.1:{guarded.port}{path}{given}", subprotocols=[PROTOCOL])


def test_the_token_opens_the_page_and_a_cookie_keeps_it_open(guarded: Server) -> None:
    response = guarded.get(f"/?token={guarded.token}")
    assert response.status == 200
    cookie = response.getheader("Set-Cookie")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert guarded.get("/", Cookie=cookie.partition(";")[0]).status == 200


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match="Errno 99"):
        page_server.start("192.0.2.1", 8300, "test", "", Shell())


def test_tabs_share_their_inputs(server: Server) -> None:
    one, other = Tab(server.port), Tab(server.port)
    until(lambda: len(server.viser.get_clients()) >= 2, "two tabs")
    one.set("Slider", 0.25)
    until(lambda: other.value("Slider") == 0.25, "the value of the other tab")
    assert server.slider.value == 0.25


def test_messages_arrive_until_the_tab_closes(server: Server) -> None:
    server.sticks.clear()
    held = {"keys": ["KeyW"], "axes": []}
    with server.open(PATH) as tab:
        tab.send(json.dumps({"kind": "sticks", "content": held}))
        tab.send(b"\x00\x01")  # not a text
        for text in (
            "",
            "null",
            "[]",
            "{",
            "3",
            "[" * 900,
            "{" * 2000,
            '{"kind": [], "content": 1}',
        ):
            tab.send(text)
        tab.send(json.dumps({"kind": "unknown", "content": 1}))
        tab.send(json.dumps({"kind": "sticks", "content": {"keys": ["KeyW" * 1000]}}))
        until(lambda: server.sticks, "the keys")
    until(lambda: server.sticks[-1][1] is None, "the end")
    (first, content), (last, _) = server.sticks
    assert content == held and first == last


def test_a_tab_is_told_what_is_shown_and_what_changes(server: Server) -> None:
    server.shell.show("status", {"text": "a"})
    with ShellTab(server.port) as tab:
        assert tab.next("status") == {"text": "a"}
        for text in "aab":  # what has not changed is not sent again
            server.shell.show("status", {"text": text})
        assert tab.receive() == ("status", {"text": "b"})
    with pytest.raises(ValueError, match="JSON"):
        server.shell.show("status", float("nan"))


def test_one_function_hears_a_kind(server: Server) -> None:
    with pytest.raises(ValueError, match="'sticks'"):
        server.shell.on("sticks", lambda *_: None)


def unshown(tab: ShellTab) -> tuple[str, Any]:
    """The next message that not all tabs get."""
    shown = "status", "control"
    return next(message for message in iter(tab.receive, None) if message[0] not in shown)


def test_a_tab_gets_what_it_wants_once_all_of_it_and_then_changes(server: Server) -> None:
    feed = Feed(server.shell, "map")
    assert not feed.is_wanted
    with ShellTab(server.port) as first, ShellTab(server.port) as second:
        first.want("map")
        until(lambda: feed.is_wanted, "the want")
        feed.send("change", lambda: "all")
        feed.send("change", lambda: "all")
        assert [unshown(first), unshown(first)] == [("map", "all"), ("map", "change")]
        second.want("map")
        until(lambda: len(server.shell.wanting("map")) == 2, "the other want")
        feed.send(None, lambda: "all")
        server.shell.send("picture", b"\0\xff", server.shell.wanting("map"))
        assert [unshown(second), unshown(second)] == [("map", "all"), ("picture", b"\0\xff")]
        assert unshown(first) == ("picture", b"\0\xff")  # and nothing before
        first.want("map", False)
        first.want("map")  # again: all of it
        until(lambda: max(server.shell.wanting("map")) > 2, "the third want")
        feed.send("change", lambda: "all")
        assert unshown(first) == ("map", "all")
        with pytest.raises(ValueError, match="picture"):
            server.shell.send("picture", bytes(1 << 20), server.shell.wanting("map"))
        for content in ("map", [], ["map"], [1, True], [["map"], True]):
            first.send("want", content)
        for number in range(100):  # so many are not kept
            first.want(f"{number}")
        before = len(server.sticks)
        first.send("sticks", {})
        until(lambda: len(server.sticks) > before, "all of them")
        assert not server.shell.wanting("99") and len(server.shell.wanting("1")) == 1
    until(lambda: not feed.is_wanted, "closed tabs")


def test_another_version_of_the_page_is_sent_away(server: Server) -> None:
    tab = server.open(subprotocols=["viser-v0.0.1"])
    with pytest.raises(ConnectionClosed) as caught:
        tab.recv(TIMEOUT)
    assert caught.value.rcvd.code == 1002


def fitting(server: Server) -> list[tuple[Any, Any]]:
    return [
        (server.button, True), (server.slider, 1), (server.slider, 0.3), (server.count, -5),
        (server.choice, "b"), (server.group, "a"), (server.text, "x" * 200), (server.box, True),
        (server.vector, [1, 2.5, -3]),
    ]  # fmt: skip


def unfitting(server: Server) -> list[tuple[Any, Any]]:
    return [
        (server.button, "x"), (server.button, {}), (server.slider, "0.3"), (server.slider, 1.1),
        (server.slider, -1e308), (server.slider, float("nan")), (server.slider, True),
        (server.slider, None), (server.count, 1e300), (server.count, "9" * 400),
        (server.choice, "c"), (server.choice, ["a"]), (server.group, True), (server.text, 3),
        (server.text, "x" * 201), (server.box, 1), (server.vector, [1, 2]),
        (server.vector, [1, 2, "3"]), (server.vector, [1, 2, float("inf")]), (server.vector, 1),
    ]  # fmt: skip


def test_values_that_inputs_cannot_have_are_left_out(server: Server) -> None:
    for control, value in fitting(server):
        assert fits(control.properties, value), (control.label, value)
    for control, value in unfitting(server):
        assert not fits(control.properties, value), (control.label, value)
    assert not fits({"kind": "text"}, "x")  # what is no input


def test_a_tab_cannot_use_the_inputs_of_viser(server: Server) -> None:
    for name in ("value", "update_cb", "props"):
        message = {"type": "GuiUpdateMessage", "uuid": "x", "updates": {name: True}}
        assert not is_welcome(pack(message))


def test_messages_of_features_that_are_off_are_left_out() -> None:
    for kind in ("ShareUrlRequest", "ShareUrlDisconnect", "ResetGuiMessage"):
        assert not is_welcome(pack({"type": kind}))
    upload = {
        "type": "FileTransferStartUpload", "source_component_uuid": "x", "transfer_uuid": "x",
        "filename": "x", "mime_type": "x", "part_count": 1, "size_bytes": 1,
    }  # fmt: skip
    assert not is_welcome(pack(upload))


def test_cameras_and_clicks_have_to_be_whole() -> None:
    for whole in (CAMERA, CLICK):
        assert is_welcome(pack(whole))
        for name, value in whole.items():
            without = {key: value for key, value in whole.items() if key != name}
            assert not is_welcome(pack(without)), f"without {name}"
            wrong = whole | {name: {"a": 1} if value is None else [["x"]]}
            assert not is_welcome(pack(wrong)), f"wrong {name}"
        assert not is_welcome(pack(whole | {"extra": 1}))


def hostile(server: Server, rng: random.Random) -> Callable[[], Any]:
    """What makes one hostile message after the other."""
    choose = rng.choice
    names = ["type", "uuid", "updates", "value", "name", "ray_origin", "__class__"]
    kinds = ["GuiUpdateMessage", "ViewerCameraMessage", "ShareUrlRequest", "ResetGuiMessage"]
    values = [None, True, -1, 2**63, 1e308, float("nan"), "x" * 2000, [], {}, [[[]]], b"\xff"]
    texts = ["", "{}", '{"keys": 1}', "[" * 1000, "\u0000", "9" * 5000]

    def wrong_shape() -> bytes:
        pairs = {choose(names): choose(values) for _ in range(rng.randrange(5))}
        return pack(pairs | {"type": choose(kinds)})

    def wrong_value() -> str:
        control, value = choose(unfitting(server))
        content = choose([[control.properties["id"], value], [value, value], [value], value])
        return json.dumps({"kind": "control", "content": content}, default=str)

    makers = [
        wrong_shape,
        wrong_value,
        lambda: rng.randbytes(rng.randrange(200)),
        lambda: b"\x91" * rng.randrange(1, 60_000),  # deep
        lambda: choose(texts),
    ]
    return lambda: choose(makers)()


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.soak)])
def test_hostile_messages_stop_nothing(server: Server, count: int) -> None:
    witness = Tab(server.port)
    until(lambda: server.viser.get_clients(), "the witness")
    server.slider.value = 0.5
    states = [control.properties for control in server.inputs[1:]]
    rng = random.Random(count)
    messages = hostile(server, rng)

    def attack(number: int) -> None:
        done = 0
        while done < count // 8:
            path = PATH if number % 4 == 0 else "/"
            try:
                with server.open(path) as tab:
                    for _ in range(100):
                        done += 1
                        tab.send(messages())
                    if number % 2:
                        tab.send(b"\x00" * (1 << 17))  # too long: ends the connection
            except ConnectionClosed:
                pass

    attacks = [threading.Thread(target=attack, args=(number,)) for number in range(8)]
    for thread in attacks:
        thread.start()
    answers = 0
    while any(thread.is_alive() for thread in attacks):
        before = len(server.clicks)
        witness.set("Button", True)
        until(lambda before=before: len(server.clicks) > before, "a click meanwhile")
        answers += 1
        time.sleep(0.05)
    assert answers
    assert [control.properties for control in server.inputs[1:]] == states
    server.slider.value = 0.75
    until(lambda: witness.value("Slider") == 0.75, "a value of the server")
    assert server.get().status == 200


def test_a_socket_that_is_no_browser_stops_nothing(server: Server) -> None:
    rng = random.Random(1)
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as connection:
            connection.sendall(rng.randbytes(200))
    idle = [socket.create_connection(("127.0.0.1", server.port), TIMEOUT) for _ in range(20)]
    assert server.get().status == 200
    for connection in idle:
        connection.close()


def test_a_browser_that_does_not_read_costs_others_nothing(server: Server) -> None:
    dead = server.open(max_queue=1)
    dead.send(pack(CAMERA))
    witness = Tab(server.port)
    until(lambda: len(server.viser.get_clients()) >= 2, "the tabs")
    for number in range(300):
        server.text.value = f"{number}" + "x" * 20_000
    server.text.value = "the last"
    until(lambda: witness.value("Text") == "the last", "the last value")
    dead.socket.close()
