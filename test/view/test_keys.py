"""The keys of a page in a real browser: when they fly, and when they are for something else."""

from __future__ import annotations

from collections.abc import Iterator
from socket import create_server
from typing import Any

import pytest

pytest.importorskip("viser", reason="the extra view is not installed")

from browser import Tab, needs_browser
from page_tab import until

from benchmark.chromium import open_chromium
from crazyflow_ros.view import server
from crazyflow_ros.view.shell import Shell

pytestmark = needs_browser


class Keys:
    """A page with a few inputs in a browser, and the keys that its server was told of."""

    def __init__(self, browser: Any) -> None:
        self.held: list[str] = []
        with create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        shell = Shell(["keys.js"])
        shell.on("sticks", self._take)
        self.viser = server.start("127.0.0.1", port, "test", "", shell)
        self.viser.gui.add_text("Text", "")
        self.box = self.viser.gui.add_checkbox("Box", False)
        self.choice = self.viser.gui.add_dropdown("Choice", ("first", "second"))
        address = f"http://127.0.0.1:{self.viser.get_port()}/?fixedDpr=0.05"
        self.tab = Tab(browser, address)
        self.page = self.tab.page
        self.tab.input_of("Text").wait_for()

    def _take(self, _: int, content: Any) -> None:
        self.held = content["keys"] if content else []

    def fly(self) -> None:
        """Press W, and see that it flies until it is let go."""
        self.page.keyboard.down("w")
        until(lambda: self.held == ["KeyW"], "a key that is held")
        self.page.keyboard.up("w")
        until(lambda: self.held == [], "a key that is let go")


@pytest.fixture(scope="module")
def keys() -> Iterator[Keys]:
    with open_chromium() as browser:
        keys = Keys(browser)
        yield keys
        assert keys.tab.errors == []
        keys.viser.stop()


def test_what_is_typed_does_not_fly(keys: Keys) -> None:
    keys.tab.input_of("Text").focus()
    keys.page.keyboard.type("wasd")
    assert keys.tab.input_of("Text").input_value() == "wasd"
    assert keys.held == []
    keys.tab.input_of("Text").blur()
    keys.fly()


def test_a_key_is_let_go_in_a_field_of_text(keys: Keys) -> None:
    keys.page.keyboard.down("w")
    until(lambda: keys.held == ["KeyW"], "a key that is held")
    keys.tab.input_of("Text").focus()
    keys.page.keyboard.up("w")
    until(lambda: keys.held == [], "a key that is let go")
    keys.tab.input_of("Text").blur()


def test_a_key_is_let_go_beside_another(keys: Keys) -> None:
    keys.page.keyboard.down("w")
    until(lambda: keys.held == ["KeyW"], "a key that is held")
    keys.page.keyboard.down("Control")
    keys.page.keyboard.up("w")
    keys.page.keyboard.up("Control")
    until(lambda: keys.held == [], "a key that is let go")


def test_keys_fly_after_a_click_on_a_box(keys: Keys) -> None:
    keys.page.get_by_label("Box").click()
    until(lambda: keys.box.value, "the click")
    keys.fly()


def test_keys_fly_after_a_choice(keys: Keys) -> None:
    keys.tab.input_of("Choice").click()
    keys.page.get_by_role("option", name="second").click()
    until(lambda: keys.choice.value == "second", "the choice")
    keys.fly()
