"""The keys of a page in a real browser: when they fly, and when they are for what has the focus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra view is not installed")

from browser import Tab, needs_browser
from page_tab import free_port, until

from crazyflow_ros.view import page_server
from crazyflow_ros.view.controls import PageControls
from crazyflow_ros.view.shell import Shell

pytestmark = needs_browser


class Keys:
    """A page with a few inputs in a browser, and the keys that its server was told of."""

    def __init__(self, browser: Any) -> None:
        self.held: list[str] = []
        shell = Shell(["keys.js"])
        shell.on("sticks", self._take)
        self.viser = page_server.start("127.0.0.1", free_port(), "test", "", shell)
        panel = PageControls(shell)
        panel.add("field", "Text", "")
        self.box = panel.add("switch", "Box", False)
        self.choice = panel.add("choice", "Choice", options=("first", "second"))
        self.pressed = list[str]()
        button = panel.add("button", "Button")
        button.on_change(lambda *_: self.pressed.append("Button"))
        group = panel.add("buttons", "Group", options=("One", "Two"))
        group.on_change(lambda _, value: self.pressed.append(value))
        self.slider = panel.add("slider", "Slider", 0.5, min=0.0, max=1.0, step=0.1)
        panel.add("vector", "Vector", [0.0, 0.0, 0.0])
        with panel.inside(panel.add("tabs")), panel.tab("Tab"):
            panel.add("place", "shortcuts")
        with panel.section("Folded", is_open=False):
            panel.add("switch", "Within", False)
        address = f"http://127.0.0.1:{self.viser.get_port()}/?fixedDpr=0.05"
        self.tab = Tab(browser, address, (720, 640))
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
def keys(browser: Any) -> Iterator[Keys]:
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


def test_keys_fly_after_a_click_on_a_box_and_a_choice(keys: Keys) -> None:
    keys.page.get_by_label("Box").click()
    until(lambda: keys.box.value, "the click")
    keys.fly()
    keys.tab.input_of("Choice").click()
    keys.tab.input_of("Choice").select_option("second")
    until(lambda: keys.choice.value == "second", "the choice")
    keys.fly()


CONTROLS = {
    "button": ("button", "Button"),
    "button of a group": ("button", "One"),
    "checkbox": ("switch", "Box"),
    "dropdown": ("combobox", "Choice"),
    "slider": ("slider", "Slider"),
    "number": ("spinbutton", "Vector, y"),
    "text": ("textbox", "Text"),
    "tab": ("tab", "Tab"),
    "header of a section": ("button", "Folded"),
    "switch": ("switch", "Keyboard shortcuts"),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_no_key_acts_on_the_page_while_a_control_has_the_focus(keys: Keys, control: str) -> None:
    """Neither on the drone nor on viser's camera."""
    role, name = CONTROLS[control]
    (client,) = keys.viser.get_clients().values()
    before = client.camera.position.copy(), client.camera.wxyz.copy()
    element = keys.page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
    element.focus()
    for key in ("w", "s", "a", "d", "q", "e", "r", "f", "Space", "ArrowLeft", "ArrowUp", "Space"):
        keys.page.keyboard.down(key)
        assert keys.held == []
        keys.page.keyboard.up(key)
    keys.page.keyboard.press("Escape")
    keys.page.wait_for_function("document.activeElement === document.body")
    keys.fly()  # what was sent before has arrived
    after = client.camera.position, client.camera.wxyz
    np.testing.assert_allclose(np.concatenate(after), np.concatenate(before))


def test_space_and_enter_press_what_has_the_focus(keys: Keys) -> None:
    for key, name in (("Space", "Button"), ("Enter", "Two"), ("Space", "Two")):
        keys.pressed.clear()
        keys.page.get_by_role("button", name=name, exact=True).focus()
        keys.page.keyboard.press(key)
        until(lambda: keys.pressed, f"a click on {name}")
        assert keys.pressed == [name]
    within = keys.page.get_by_label("Within")
    for key in ("Enter", "Space"):  # opens and closes
        header = keys.page.get_by_role("button", name="Folded")
        header.focus()
        keys.page.keyboard.press(key)
        within.wait_for(state="visible" if key == "Enter" else "hidden")
        assert header.get_attribute("aria-expanded") == str(key == "Enter").lower()
    keys.page.keyboard.press("Escape")


@pytest.mark.parametrize("name", ["Button", "One", "Folded"])
def test_keys_fly_after_a_click_on_a_button(keys: Keys, name: str) -> None:
    keys.page.get_by_role("button", name=name, exact=True).click()
    keys.fly()


def test_shortcuts_are_off_in_a_browser_that_has_switched_them_off(keys: Keys) -> None:
    """Also after the page was opened anew, and not in another browser."""
    keys.page.get_by_label("Keyboard shortcuts").uncheck()
    keys.page.reload()
    switch = keys.page.get_by_label("Keyboard shortcuts")
    switch.wait_for()
    assert not switch.is_checked()
    (client,) = until(lambda: list(keys.viser.get_clients().values()), "the tab of viser")
    before = client.camera.position.copy()
    for key in ("w", "Space", "a"):
        keys.page.keyboard.down(key)
        assert keys.held == []
        keys.page.keyboard.up(key)
    np.testing.assert_allclose(client.camera.position, before)
    other = Tab(keys.page.context.browser, keys.page.url)
    assert other.page.get_by_label("Keyboard shortcuts").is_checked()
    other.close()
    switch.check()
    keys.fly()
