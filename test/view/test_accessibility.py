"""The page for everybody: keys alone, contrast, names, alarms, and windows of all sizes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from browser import COARSE, CONTRAST, Tab, needs_axe, needs_browser
from invented_simulator import InventedSimulator
from known_recordings import NS, flight_event, states, write
from page_tab import free_port, until
from ros_client import own_domain

from crazyflow_ros.scene.frames import body_to_world, wxyz_to_xyzw
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.page import Page
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.recording_page import RecordingPage

pytestmark = needs_browser

DOMAIN = own_domain("test_accessibility")
LAPTOP = 1440, 900
TOUCH = {"has_touch": True, "is_mobile": True}
SIZES = {  # with and without a touch screen
    "phone, upright": ((390, 844), TOUCH),
    "phone, lying": ((844, 390), TOUCH),
    "tablet": ((1024, 768), TOUCH),
    "large": ((2560, 1440), {}),
}
SCREENS = (360, 640), (390, 844), (768, 1024), (1280, 800), (1920, 1080)
THEMES: dict[str, tuple[str, ...]] = {"light": (), "dark": (CONTRAST,)}
"""The rules of axe-core that are looked at, by default all: in the dark only colours differ."""
TABS = "Fly", "World", "Air", "Sensors", "Plots"
PRESS = "document.querySelectorAll('.shell-panel .head[aria-expanded={}]').forEach(x => x.click())"
FOLD_ALL, OPEN_ALL = PRESS.format("true"), PRESS.format("false")
TO_TOP = """() => {
    const top = Object.assign(document.createElement("i"), { tabIndex: -1 });
    document.body.prepend(top);
    top.focus();
    top.remove();
}"""

AnyPage = TypeVar("AnyPage", Page, RecordingPage)


@contextmanager
def running(page: AnyPage) -> Iterator[AnyPage]:
    """A page that is served in a thread."""
    thread = threading.Thread(target=page.run, daemon=True)
    thread.start()
    yield page
    page.close()
    thread.join(30.0)


@pytest.fixture(scope="module")
def simulator() -> Iterator[InventedSimulator]:
    with InventedSimulator(DOMAIN) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def page(simulator: InventedSimulator) -> Iterator[Page]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        follower = Follower()
    with closing(follower), running(Page(follower, port=free_port())) as page:
        yield page


@pytest.fixture
def drones(simulator: InventedSimulator, page: Page) -> InventedSimulator:
    """The simulator with four drones that fly."""
    simulator.fly(4)
    simulator.asked.clear()
    page.viewer.selected = "cf0"
    return simulator


class Tabs:
    """One tab at a time, since a software renderer draws each of them; it stays for the next test.

    Args:
        browser: The browser.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._tab: Tab | None = None
        self._what: Any = None

    def show(
        self, page: Any, size: tuple[int, int] = LAPTOP, theme: str = "light", **options: Any
    ) -> Tab:
        """A tab with the page in this size and theme."""
        if self._tab is None or self._what != (page, options):
            self.close()
            self._tab = Tab(self._browser, f"{page.viewer.url}?{COARSE}", size, **options)
            self._what = page, options
            self._tab.page.locator("canvas[data-engine]").wait_for(state="attached")
        tab = self._tab
        tab.size = size
        tab.page.set_viewport_size({"width": size[0], "height": size[1]})
        tab.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        tab.page.wait_for_function(
            "theme => document.documentElement.matches(theme === 'dark' ? '.dark' : ':not(.dark)')"
            " && !document.documentElement.matches('.unthemed, .unmarked')",
            arg=theme,
        )
        return tab

    def close(self) -> None:
        """Close it; nothing in it may have failed."""
        tab, self._tab = self._tab, None
        if tab is not None:
            tab.close()
            assert tab.errors == []


@pytest.fixture(scope="module")
def tabs(browser: Any) -> Iterator[Tabs]:
    tabs = Tabs(browser)
    yield tabs
    tabs.close()


@pytest.fixture
def tab(tabs: Tabs, page: Page, drones: InventedSimulator) -> Tab:
    """The page on a laptop, with four drones that fly."""
    tab = tabs.show(page)
    tab.page.keyboard.press("Escape")
    tab.page.locator(".shell-start").wait_for(state="hidden")
    tab.page.get_by_role("tab", name="Fly").click()
    tab.page.locator(".alarm").first.wait_for(state="hidden")
    return tab


def focused(tab: Tab) -> str:
    """What has the focus: its role and its name."""
    return str(
        tab.page.evaluate(
            """() => {
                const one = document.activeElement;
                const name = one.ariaLabel ?? one.labels?.[0]?.textContent ?? one.innerText;
                return one === document.body ? "" : (name || one.outerHTML.slice(0, 80)).trim();
            }"""
        )
    )


def has_ring(tab: Tab) -> bool:
    """Whether what has the focus is marked, by the browser's own or another outline."""
    ring = "(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2)"
    return bool(tab.page.evaluate(f"{ring}(getComputedStyle(document.activeElement))"))


def way(tab: Tab, most: int = 100) -> list[str]:
    """What the Tab key goes to, from the top of the page until it leaves the page."""
    tab.page.evaluate(TO_TOP)
    names = []
    for _ in range(most):
        tab.page.keyboard.press("Tab")
        name = focused(tab)
        if not name:
            return names
        assert has_ring(tab), name
        names.append(name)
    raise AssertionError(f"no end: {names}")


def cancel(tab: Tab) -> None:
    """Say no to a question, which gives the focus back once it is away."""
    button = tab.page.get_by_role("button", name="Cancel")
    button.click()
    button.wait_for(state="hidden")


def in_order(expected: list[str], names: list[str]) -> bool:
    rest = iter(names)
    return all(any(name == one for name in rest) for one in expected)


@needs_axe
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_no_barrier_on_the_page(
    tabs: Tabs, page: Page, tab: Tab, drones: InventedSimulator, theme: str
) -> None:
    """With alarms, every section open, help, and a question."""
    tabs.show(page, theme=theme)
    drones.charges = {"cf3": 0.1}
    drones.crash("cf0", "cf1")
    see = tab.page.get_by_role
    see("button", name="Reset 2 drones").wait_for()
    see("button", name="Land cf3").wait_for()
    for name in TABS:
        see("tab", name=name).click()
        tab.page.evaluate(OPEN_ALL)
        assert tab.barriers(*THEMES[theme]) == [], name
    see("button", name="Keys and mouse").click()
    see("dialog", name="Keys and mouse").wait_for()
    assert tab.barriers(*THEMES[theme]) == []
    tab.page.keyboard.press("Escape")
    see("tab", name="Fly").click()
    see("button", name="Stop", exact=True).last.click()
    see("button", name="Cancel").wait_for()
    assert tab.barriers(*THEMES[theme]) == []
    cancel(tab)


def test_the_tab_key_reaches_everything_from_top_to_bottom(
    tab: Tab, drones: InventedSimulator
) -> None:
    tab.page.evaluate(FOLD_ALL)
    for name in ("Selected drone", "All drones"):
        tab.page.get_by_role("button", name=name).click()
    drones.crash("cf2")
    tab.page.get_by_role("button", name="Reset cf2").wait_for()
    names = way(tab)
    expected = [
        *("Keys and mouse", "Reset cf2", "Hide controls", "Pause", "Step", "Reset all", "Speed"),
        *(*TABS, "Selected drone", "Drone", "Take off", "Land", "Height [m]", "Fly to clicks"),
        *("Arm", "Disarm", "Stop", "Reset cf0", "All drones", "Take off", "Keys and gamepad"),
        *("Camera", "Recording", "Log", "Show", "Send", "Close Map"),
    ]
    assert in_order(expected, names), ", ".join(names)
    assert any(name.startswith("Map. Arrow keys") for name in names), names
    assert "Use them" not in names  # within a section that is folded
    tab.page.get_by_role("button", name="Keys and gamepad").focus()
    tab.page.keyboard.press("Enter")
    tab.page.get_by_label("Use them").wait_for()
    tab.page.keyboard.press("Tab")
    assert focused(tab) == "Use them"


def test_keys_move_a_cross_on_the_map_and_select_what_is_there(tab: Tab, page: Page) -> None:
    """The drones stand a metre apart; a press moves the cross by a quarter."""
    tab.page.locator("canvas.map[aria-label^='Map. Arrow keys']").focus()
    # cf0 is in the south-west, cf2 in the south-east, cf3 in the north-east.
    for key in (*["ArrowRight"] * 4, "Enter"):
        tab.page.keyboard.press(key)
    until(lambda: page.viewer.selected == "cf2", f"cf2, not {page.viewer.selected}")
    for key in (*["ArrowUp"] * 4, "Space"):
        tab.page.keyboard.press(key)
    until(lambda: page.viewer.selected == "cf3", f"cf3, not {page.viewer.selected}")


def test_space_on_pause_pauses_and_does_nothing_else(tab: Tab, drones: InventedSimulator) -> None:
    tab.page.get_by_role("button", name="Pause").focus()
    tab.page.keyboard.press("Space")
    tab.page.get_by_role("button", name="Resume").wait_for()
    tab.page.keyboard.press("Space")
    tab.page.get_by_role("button", name="Pause").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Space")  # back at the drones
    until(lambda: len(drones.asked) == 3, f"three calls, not {drones.asked}")
    assert drones.asked == ["pause", "pause", "cf0/land"]


def test_crashes_are_one_alarm_whose_button_resets_the_drones(
    tab: Tab, drones: InventedSimulator
) -> None:
    drones.crash("cf1", "cf3", "cf0")
    alarms = tab.page.locator(".alarm")
    alarms.get_by_text("cf1, cf3 and cf0: crashed").wait_for()
    assert alarms.count() == 1
    assert "/reset" not in tab.page.locator("body").inner_text()
    alarms.get_by_role("button", name="Reset 3 drones").focus()
    tab.page.keyboard.press("Enter")
    alarms.wait_for(state="hidden")
    assert drones.asked == ["cf1/reset", "cf3/reset", "cf0/reset"]


def test_an_alarm_of_a_battery_lands_the_drone(tab: Tab, drones: InventedSimulator) -> None:
    drones.charges = {"cf1": 0.15}
    tab.page.get_by_role("button", name="Land cf1").click()
    until(lambda: drones.asked == ["cf1/land"], f"a landing, not {drones.asked}")
    drones.states = {"cf1": "landed"}
    tab.page.get_by_role("button", name="Reset cf1").wait_for()  # which fills it


def test_what_stops_rotors_is_no_larger_than_what_starts_them(
    tab: Tab, drones: InventedSimulator
) -> None:
    """And for all drones it asks, also while none flies."""
    drones.states = dict.fromkeys(drones.drones, "landed")
    buttons = tab.page.get_by_role("button", name="Stop", exact=True)
    take_off = tab.page.get_by_role("button", name="Take off").first.bounding_box()
    assert buttons.count() == 2  # of the selected drone, and of all
    for stop in (button.bounding_box() for button in buttons.all()):
        assert stop["width"] <= take_off["width"] and stop["height"] <= take_off["height"]
    tab.page.get_by_text("landed").first.wait_for()
    buttons.last.click()
    tab.page.get_by_text("All drones will be locked").wait_for()
    cancel(tab)
    assert drones.asked == []


def test_a_closed_panel_leaves_the_picture(tab: Tab, drones: InventedSimulator) -> None:
    tab.page.get_by_label("Hide controls").click()
    opener = tab.page.get_by_label("Show controls")
    opener.wait_for()
    drones.fly(3)
    tab.page.get_by_text("3 drones").wait_for()
    assert tab.page.locator("canvas[data-engine]").is_visible()
    assert tab.page.locator(".shell-start").is_hidden()
    opener.click()
    tab.page.get_by_role("tab", name="Fly").wait_for()


FONTS = """() => [...new Set([...document.querySelectorAll("body, body *")]
    .filter(one => one.checkVisibility() && !one.closest("code, noscript, style, script"))
    .filter(one => one.value || [...one.childNodes].some(
        node => node.nodeType === Node.TEXT_NODE && node.textContent.trim()))
    .map(one => getComputedStyle(one).fontFamily.replaceAll('"', "")))]"""


def test_everything_is_written_in_one_font(tab: Tab, drones: InventedSimulator) -> None:
    drones.crash("cf0")
    tab.page.get_by_role("button", name="Reset cf0").first.wait_for()
    for name in TABS:
        tab.page.get_by_role("tab", name=name).click()
        tab.page.evaluate(OPEN_ALL)
        fonts = tab.page.evaluate(FONTS)
        assert len(fonts) == 1, (name, fonts)
    tab.page.get_by_role("button", name="Keys and mouse").click()
    assert tab.page.evaluate(FONTS) == fonts
    tab.page.keyboard.press("Escape")


def covered(page: Page, tab: Tab, simulator: InventedSimulator) -> list[str] | None:
    """The drones that something lies over, or that are not in the picture; None: not known yet.

    By the camera that viser's page tells: a pinhole whose z axis points ahead, and y down.
    """
    clients = list(page.viewer.server.get_clients().values())
    if len(clients) != 1:
        return None
    camera, (width, height) = clients[0].camera, tab.size
    if abs(camera.image_width * height / max(camera.image_height, 1) / width - 1) > 0.05:
        return None  # of the window before
    turn = wxyz_to_xyzw(np.asarray(camera.wxyz))
    axes = np.stack([body_to_world(turn, axis) for axis in np.eye(3)])
    right, down, ahead = axes @ (simulator.places() - camera.position).T
    focal = height / 2 / np.tan(camera.fov / 2)
    pixels = np.stack([width / 2 + focal * right / ahead, height / 2 + focal * down / ahead])
    free = tab.page.evaluate(
        "places => places.map(place => document.elementFromPoint(...place)?.dataset.engine ?? '')",
        pixels.T.tolist(),
    )
    return [name for name, is_free in zip(simulator.drones, free) if not is_free]


OUTSIDE = """() => [...document.querySelectorAll(
    ".shell-status .line > span, .alarm, .alarm button, #cards button, .switch, .pad")]
    .filter(one => one.getClientRects().length)
    .filter(one => {
        const box = one.getBoundingClientRect();
        return box.left < 0 || box.right > innerWidth || box.bottom > innerHeight;
    }).map(one => one.className || one.textContent)"""


FREE = """() => {
    const parts = Array.from({ length: 40 }, (_, number) => (number + 0.5) / 40);
    const isFree = ([x, y]) => document.elementFromPoint(x, y)?.dataset.engine !== undefined;
    const places = parts.flatMap(x => parts.map(y => [x * innerWidth, y * innerHeight]));
    return places.filter(isFree).length / places.length;
}"""
"""Share of the window in which the picture is seen."""


@pytest.mark.parametrize("name", SIZES)
def test_nothing_lies_over_drones_in_windows_of_any_size(
    tabs: Tabs, page: Page, drones: InventedSimulator, name: str
) -> None:
    """Of one drone and of 100, with crashes; nothing is wider than the window or fills it."""
    size, options = SIZES[name]
    tab = tabs.show(page, size, **options)
    for count in (1, 100):
        drones.fly(count)
        tab.page.get_by_text(re.compile(f"^{count} drones?$")).wait_for()
        drones.crash(*drones.drones[:4])
        whom = "cf0" if count == 1 else "4 drones"
        tab.page.locator(".alarm").get_by_role("button", name=f"Reset {whom}").wait_for()
        until(
            lambda: covered(page, tab, drones) == [],
            f"{count} drones in sight, not {covered(page, tab, drones)} covered",
        )
        across = "[document.documentElement.scrollWidth, innerWidth]"
        assert tab.page.evaluate(across) == [size[0], size[0]]
        assert tab.page.evaluate(OUTSIDE) == []
        assert tab.page.evaluate(FREE) > 0.55


@needs_axe
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [*SCREENS, SIZES["phone, lying"][0]], ids=str)
def test_axe_finds_no_barrier_on_screens_of_any_size(
    tabs: Tabs, page: Page, drones: InventedSimulator, size: tuple[int, int], theme: str
) -> None:
    """With the panel closed, as it is at first on a phone, and open."""
    tab = tabs.show(page, size, theme, **(TOUCH if min(size) < 700 else {}))
    drones.crash("cf0")
    tab.page.get_by_role("button", name="Reset cf0").first.wait_for()
    shown, hidden = (tab.page.get_by_label(f"{what} controls") for what in ("Hide", "Show"))
    is_phone = size[0] < 577 or size[1] < 500
    assert hidden.is_visible() == is_phone
    if is_phone:
        assert tab.barriers() == []
        hidden.tap()
    for name in TABS:
        tab.page.get_by_role("tab", name=name).click()
        assert tab.barriers() == [], name
    shown.click()
    tab.page.get_by_role("tab", name="Fly").wait_for(state="hidden")
    assert tab.barriers() == []
    if not is_phone:
        hidden.click()


@needs_axe
def test_axe_finds_no_barrier_while_there_is_no_simulator(tabs: Tabs) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        follower = Follower("nobody")
    with closing(follower), running(Page(follower, port=free_port())) as page:
        for theme, rules in THEMES.items():
            tab = tabs.show(page, (1024, 768), theme)
            tab.page.get_by_text("Waiting for the simulator").wait_for()
            assert tab.barriers(*rules) == []
        boxes = (tab.page.locator(f".shell-start {of}").bounding_box() for of in ("h1", ".card"))
        title, card = boxes
        assert title["x"] - card["x"] > 15 and title["y"] - card["y"] > 15  # within a margin
        tabs.close()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingPage]:
    """The page of a flight in which two drones hit each other, and one crashes."""
    hits = [flight_event(round(k * NS / 10), "cf1", "hit", "hit cf0") for k in (5, 9, 14)]
    crash = flight_event(2 * NS, "cf0", "crashed", "crashed at (0.00, 0.10, 0.02) m: upside down")
    places = {"cf0": (0.0, 0.0, 0.5), "cf1": (1.0, 0.0, 0.5)}
    flight = [states(round(k * NS / 50), places) for k in range(151)]
    path = tmp_path_factory.mktemp("accessible") / "flight.mcap"
    write(path, [*hits, crash, *flight], {"drone_model": "cf2x_L250", "wind": [0.0, 0.0, 0.0]})
    with running(RecordingPage(Recording(path), port=free_port())) as page:
        yield page


def open_recording(tabs: Tabs, page: RecordingPage) -> Tab:
    tab = tabs.show(page)
    tab.page.get_by_text("Crashes 1").wait_for()
    tab.page.keyboard.press("Home")  # it plays from the beginning
    tab.page.get_by_role("button", name="Play", exact=True).wait_for()
    return tab


def time_of(tab: Tab) -> float:
    return float(tab.page.get_by_role("slider", name="Time").get_attribute("aria-valuenow") or -1)


def test_a_recording_is_read_with_keys_alone(tabs: Tabs, recording: RecordingPage) -> None:
    tab = open_recording(tabs, recording)
    press = tab.page.keyboard.press
    names = way(tab)
    assert in_order(["Hide controls", "Show", "Close Map", "Play", "Time", "Speed"], names), names
    # A button takes Space, and the slider arrows: nothing else acts.
    tab.page.get_by_role("button", name="List of the events").focus()
    press("Space")
    lines = tab.page.locator(".events .lines .line")
    assert lines.count() == 4
    assert tab.page.get_by_role("button", name="Play", exact=True).count() == 1
    tab.page.get_by_role("slider", name="Time").focus()
    press("Home")
    until(lambda: time_of(tab) == 0.0, "the beginning")
    press("n")
    press("Shift+ArrowRight")
    until(lambda: time_of(tab) == 1.0, "a second later")
    # A line of the list opens the card, which takes the focus and gives it back.
    lines.last.focus()
    press("Enter")
    card = tab.page.get_by_role("region", name="Explanation of the event")
    card.wait_for()
    until(lambda: time_of(tab) == 2.0, "the crash")
    until(lambda: focused(tab) == "Explanation of the event", "the focus")
    press("Tab")
    assert focused(tab) == "Close"
    press("Escape")
    card.wait_for(state="hidden")
    until(lambda: "crashed at" in focused(tab), "the line of the list")
    press("Escape")
    press("p")  # back at the drones, where letters act
    until(lambda: time_of(tab) == 1.4, "the event before")
    press("Escape")
    press("l")
    lines.first.wait_for(state="hidden")


@needs_axe
def test_axe_finds_no_barrier_on_the_page_of_a_recording(
    tabs: Tabs, recording: RecordingPage
) -> None:
    """With the list, the card of an event, and plots."""
    tab = open_recording(tabs, recording)
    tab.page.keyboard.press("l")
    tab.page.keyboard.press("g")
    tab.page.locator(".events .line", has_text="crashed at").click()
    tab.page.get_by_role("region", name="Explanation of the event").wait_for()
    tab.page.evaluate(OPEN_ALL)
    for theme, rules in THEMES.items():
        tabs.show(recording, theme=theme)
        assert tab.barriers(*rules) == [], theme
