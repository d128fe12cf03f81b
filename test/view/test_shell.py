"""What lies over the picture, in a real browser: status line, start page, sticks, help."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("viser", reason="the extra view is not installed")

from browser import COARSE, LEAST_CONTRAST, ON_TOP, Tab, contrast, needs_browser
from invented_simulator import InventedSimulator
from page_tab import free_port, until
from paths import ROOT
from rclpy.node import Node
from ros_client import Client, own_domain
from sensor_msgs.msg import MultiDOFJointState

from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.page import SCRIPTS
from crazyflow_ros.view.page import Page as SimulatorPage
from crazyflow_ros.view.panel.sticks import KEYS
from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.viewer import Viewer

pytestmark = needs_browser

DOMAIN = own_domain("test_shell")
DESKTOP, PHONE = (1280, 720), (390, 844)
STATUS = {
    "name": "crazyflow",
    "others": ["lab/second"],
    "word": "crash",
    "state": "running",
    "factor": 0.97,
    "drones": 4,
    "drone": {"name": "cf0", "state": "taking off", "battery": 12},
    "records": True,
    "other": "python -m crazyflow_ros view --node NAME",
}
CRASH = "cf2: crashed at (1.20, -0.43, 0.02), upside down, after it hit the pillar; reset it"
ALARMS: list[dict[str, Any]] = [
    {"kind": "crashed", "ids": ["a"], "time": 1100.2, "text": CRASH, "button": "Reset cf2"},
    {"kind": "odd", "ids": ["b"], "time": None, "text": "<b>x</b>", "button": ""},
]
START = {
    "is_there": True, "name": "crazyflow", "domain": 1, "seconds": 0, "starts": False,
    "ended": None, "lines": [], "start": "", "others": [],
}  # fmt: skip
OPEN_ALL = "document.querySelectorAll('.head[aria-expanded=false]').forEach(one => one.click())"
NOTES = ".mantine-Notification-root"


class Page:
    """A page whose simulator is invented, and what its tabs have sent."""

    def __init__(self) -> None:
        self.sticks: list[Any] = []
        self.shell = Shell(SCRIPTS)
        self.shell.on("sticks", lambda _, content: self.sticks.append(content))
        self.viewer = Viewer(port=free_port(), shell=self.shell)
        for kind, content in (
            ("start", START), ("status", STATUS), ("time", 1102.4), ("alarms", ALARMS),
            ("keys", KEYS),
        ):  # fmt: skip
            self.shell.show(kind, content)
        panel = self.viewer.panel
        for number in range(10):
            with panel.section(f"Section {number}", is_open=False):
                panel.add("slider", f"Slider {number}", 0, min=0, max=1, step=0.1)
                panel.add("field", f"Text {number}", "")

    def tab(self, browser: Any, size: tuple[int, int], **options: Any) -> Tab:
        tab = Tab(browser, f"{self.viewer.url}?{COARSE}", size, **options)
        tab.page.get_by_text("Section 0", exact=True).wait_for(state="attached")
        tab.page.locator("#root").wait_for()
        return tab


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.viewer.close()


@pytest.fixture(scope="module")
def desktop(browser: Any, page: Page) -> Iterator[Tab]:
    tab = page.tab(browser, DESKTOP)
    yield tab
    assert tab.errors == []
    tab.close()


def wait_until_closed(tab: Tab) -> None:
    """Wait until the sheet of a phone's panel covers nothing."""
    handle = tab.page.locator(".shell-panel > .toggle")
    until(lambda: handle.bounding_box()["y"] > PHONE[1] - 80, "a closed sheet")


@pytest.fixture(scope="module")
def phone(browser: Any, page: Page) -> Iterator[Tab]:
    """With the sheet of its panel closed."""
    tab = page.tab(browser, PHONE, color_scheme="dark", has_touch=True, is_mobile=True)
    wait_until_closed(tab)
    yield tab
    assert tab.errors == []
    tab.close()


@pytest.mark.parametrize("name", ["desktop", "phone"])
def test_the_status_line_is_on_top_and_legible(
    request: pytest.FixtureRequest, page: Page, name: str
) -> None:
    """With every section of the panel open, light and dark, also on a phone."""
    tab: Tab = request.getfixturevalue(name)
    if name == "phone":
        tab.page.locator(".shell-panel > .toggle").click()
    tab.page.get_by_text("Section 0", exact=True).wait_for()
    tab.page.evaluate(OPEN_ALL)
    tab.page.get_by_text("Slider 9", exact=True).wait_for()
    texts = tab.page.locator(".shell-status .line span, .shell-status .words").all()
    shown = [text.inner_text() for text in texts]
    assert shown == [
        "crazyflow", "running", "1102.4 s", "0.97 ×", "4 drones", "cf0 taking off",
        "battery 12 %", "recording", "also running: lab/second", CRASH, "<b>x</b>",
    ]  # fmt: skip
    picture = tab.screen()
    for text, words in zip(texts, shown):
        assert text.evaluate(ON_TOP), words
        assert contrast(picture, text.bounding_box()) > LEAST_CONTRAST, words
    assert tab.page.title() == "crash · crazyflow · crazyflow_ros"
    tab.page.get_by_role("button", name=f"Dismiss: {CRASH}").click()
    assert tab.page.locator(".shell-status .words").all_inner_texts() == ["<b>x</b>"]
    new = {"kind": "new", "ids": ["c"], "time": 1.0, "text": "new", "button": ""}
    page.shell.show("alarms", [*ALARMS, new])
    tab.page.get_by_text("new", exact=True).wait_for()  # and what is dismissed stays away
    assert tab.page.locator(".shell-status .words").all_inner_texts() == ["<b>x</b>", "new"]
    both = ALARMS[0] | {"ids": ["a", "d"], "text": "cf2 and cf3: crashed"}
    page.shell.show("alarms", [both])  # until another drone joins
    tab.page.get_by_text("cf2 and cf3: crashed").wait_for()
    page.shell.show("alarms", ALARMS)
    if name == "phone":
        tab.page.locator(".shell-panel > .toggle").click()
        wait_until_closed(tab)


def test_nothing_of_viser_is_seen(desktop: Tab, page: Page) -> None:
    """Neither its name, nor its notes, nor its settings."""
    tab = desktop
    tab.page.locator(NOTES).first.wait_for(state="attached")  # its note on software
    tab.page.keyboard.press("Control+k")  # would open its list of commands
    tab.page.evaluate("() => new Promise(done => requestAnimationFrame(done))")
    assert "viser" not in tab.page.locator("html").inner_text().lower()
    assert "webgl" not in tab.page.locator("body").inner_text().lower()
    own = f".tabler-icon-adjustments, .tabler-icon-share, .tabler-icon-cloud-check, {NOTES}"
    assert tab.page.locator(own).count() >= 3  # else viser has changed
    assert not any(element.is_visible() for element in tab.page.locator(own).all())
    assert tab.page.locator(".mantine-Modal-content, .mantine-Spotlight-content").count() == 0
    with urlopen(page.viewer.url) as answer:
        head = answer.read(4000).decode(errors="replace")
    assert "<title>crazyflow_ros</title>" in head and "data:image/svg+xml;base64" in head
    assert "maximum-scale" not in head and "user-scalable" not in head  # who needs it may zoom
    assert "iser" not in head.partition("<style")[0]


def test_a_phone_has_sticks(phone: Tab, page: Page) -> None:
    tab = phone
    touch = tab.page.context.new_cdp_session(tab.page)
    left, right = (
        (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] / 2)
        for box in (pad.bounding_box() for pad in tab.page.locator(".pad").all())
    )

    def hold(*places: tuple[float, float], kind: str = "touchMove") -> None:
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def axes() -> Any:
        return page.sticks[-1] and page.sticks[-1]["axes"]

    page.sticks.clear()
    hold(left[:2], right[:2], kind="touchStart")
    hold((left[0], left[1] - left[2]), (right[0] + right[2], right[1]))
    until(lambda: page.sticks and axes() == [0, -1, 1, 0], "up and to the right")
    hold((left[0], left[1] - left[2]), (right[0] + 2, right[1]))
    until(lambda: axes() == [0, -1, 0, 0], "the dead zone")
    hold(kind="touchEnd")
    until(lambda: not any(axes()), "the end")
    page.sticks.clear()
    tab.page.get_by_role("button", name="Land").tap()
    until(lambda: len(page.sticks) >= 2 and not page.sticks[-1]["keys"], "the end of the key")
    assert page.sticks[0]["keys"] == ["Space"]


def test_keys_are_explained_where_they_are_used_first(desktop: Tab) -> None:
    tab = desktop
    hint, sheet = tab.page.locator(".shell-hint"), tab.page.get_by_role("dialog")
    assert not hint.is_visible() and not sheet.is_visible()
    tab.page.keyboard.press("r")
    hint.wait_for()
    assert "W S ahead, back" in hint.inner_text()
    tab.page.keyboard.press("?")
    sheet.wait_for()
    assert "take off or land" in sheet.inner_text()
    tab.page.keyboard.press("Escape")
    sheet.wait_for(state="hidden")
    tab.page.locator(".shell-status .help").click()
    sheet.wait_for()


@contextmanager
def serving(port: int) -> Iterator[None]:
    """A page that follows a simulator of this domain."""
    with closing(Follower()) as follower:
        page = SimulatorPage(follower, port=port)
        thread = threading.Thread(target=page.run, daemon=True)
        thread.start()
        yield
        page.close()
        thread.join(30.0)


def check_command(text: str) -> None:
    """The command works as it is written, also where no environment is activated."""
    bare = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
    command = [*shlex.split(text), "--help"]
    done = subprocess.run(command, env=bare, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "usage" in done.stdout.lower(), (text, done.stdout, done.stderr)


def test_a_simulator_is_waited_for_and_its_end_and_that_of_the_page_are_told(
    browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    port = free_port()
    with closing(Client(DOMAIN)) as client:
        other = Node("second", namespace="/lab", context=client.node.context)
        other.create_publisher(MultiDOFJointState, "second/odometry", 1)
        with serving(port):
            tab = Tab(browser, f"http://127.0.0.1:{port}/?{COARSE}", (720, 480))
            start, see = tab.page.locator(".shell-start"), tab.page.get_by_text
            see("Waiting for the simulator").wait_for()
            assert f"crazyflow in the ROS domain {DOMAIN}" in start.inner_text()
            assert re.search(r"\b\d+:\d\d\b", start.inner_text())
            see("view --node second --namespace /lab").wait_for()
            check_command(start.locator(".how code").inner_text())
            assert tab.page.title() == "waiting · crazyflow · crazyflow_ros"
            look = "canvas => getComputedStyle(canvas).filter"
            for _ in range(2):  # and the next one
                with InventedSimulator(DOMAIN):
                    start.wait_for(state="hidden")
                    see("running", exact=True).wait_for()
                    see("also running: lab/second").wait_for()
                    assert tab.page.locator("canvas[data-engine]").evaluate(look) == "none"
                see("The simulator ended at t = ").wait_for()
                assert "grayscale(1)" in tab.page.locator("canvas[data-engine]").evaluate(look)
        see("The page's program has ended").wait_for()
        with serving(port):  # another one, at the same address
            see("The page's program has ended").wait_for(state="hidden")
            see("Waiting for the simulator").wait_for()
        other.destroy_node()
        tab.close()
