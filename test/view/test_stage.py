"""The first picture in a real browser: drones are large, seen, and stand out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from browser import Tab, needs_browser
from page_tab import TIMEOUT, free_port, pinhole, until

pytest.importorskip("viser", reason="the extra view is not installed")
pytestmark = needs_browser

DRONES = np.array([[1.6, 0.9, 1.0], [-1.9, 0.7, 1.15], [1.35, -0.75, 1.3], [-0.3, -1.3, 1.45]])
LEAST = 40  # pixels across a drone
RESOLUTION = 0.6  # of the picture: a renderer without a graphics card takes seconds for a whole one
CONTRAST = 3.0  # of WCAG 2.2 for what is not text
SEEN = 20.0  # difference of two colours that is seen, of 255


@pytest.fixture
def view() -> Iterator[Any]:
    from crazyflow_ros.sim import Sim
    from crazyflow_ros.view import SimView

    with closing(SimView(Sim(n_drones=len(DRONES)), port=free_port())) as opened:
        put(opened, DRONES)
        yield opened


def put(view: Any, places: np.ndarray) -> None:
    sim = view._sim
    states = sim.data.states
    sim.data = sim.data.replace(states=states.replace(pos=states.pos.at[0].set(places)))
    view.show()


def settled(tab: Tab, before: np.ndarray | None = None) -> np.ndarray:
    """The picture once it stays the same, and is another one than before."""
    deadline, last = time.monotonic() + TIMEOUT, None
    while time.monotonic() < deadline:
        now = tab.picture()
        is_new = before is None or np.abs(now - before).max() > SEEN
        if is_new and last is not None and np.abs(now - last).max() < 1:
            return now
        last = now
        tab.page.wait_for_timeout(300)
    raise AssertionError(f"the picture does not settle within {TIMEOUT} s")


def luminance(picture: np.ndarray) -> np.ndarray:
    """WCAG's relative luminance of pixels (..., 3) from 0 to 255."""
    value = picture / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    a, b = luminance(first), luminance(second)
    return np.asarray((np.maximum(a, b) + 0.05) / (np.minimum(a, b) + 0.05))


def differ(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(first - second).max(axis=-1) > SEEN)


def in_picture(view: Any, tab: Tab, places: np.ndarray) -> np.ndarray:
    """Pixels of places (M, 3) for the camera that the tab has told, (M, 2)."""
    (client,) = view.viewer.server.get_clients().values()
    camera = client.camera
    return pinhole(places, camera.position, camera.look_at, camera.fov, tab.size)


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_the_first_picture_shows_drones(browser: Any, view: Any, size: tuple[int, int]) -> None:
    """Light and dark, each is large, hidden by nothing, and stands out, as does its shadow."""
    tab = Tab(browser, f"{view.viewer.url}?fixedDpr={RESOLUTION}", size, color_scheme="light")
    until(lambda: view.viewer.shown.size.value > 1, "drawn sizes")
    everything, unnamed, empty = {}, {}, {}
    last = settled(tab)  # perhaps without names yet

    def are_free() -> bool:
        return not any(covers(tab, pixel) for pixel in in_picture(view, tab, DRONES))

    until(are_free, "a picture in which nothing hides a drone")  # the panel may still come

    def look(pictures: dict[str, np.ndarray], *schemes: str) -> None:
        nonlocal last
        for scheme in schemes:
            tab.page.emulate_media(color_scheme=scheme)
            pictures[scheme] = last = settled(tab, last)

    look(everything, "dark", "light")
    pixels = in_picture(view, tab, DRONES)  # the camera may have moved since
    beside = np.array([0.02 * view.viewer.shown.size.value, 0, 0])  # the line up to the drone
    grounds = in_picture(view, tab, DRONES * [1, 1, 0] + beside)
    view.viewer.shown.names.value = False
    view.show()
    look(unnamed, "dark", "light")
    tab.page.evaluate("shell.send('camera', 'moved')")  # which frees it where it is
    until(lambda: tab.input_of("Camera").input_value() == "free", "a free camera")
    put(view, DRONES + 500)
    look(empty, "light", "dark")
    assert tab.errors == []
    tab.close()

    for scheme in everything:
        ground, drawn = empty[scheme], unnamed[scheme]
        drones, names = differ(drawn, ground), differ(everything[scheme], drawn)
        for number, (pixel, below) in enumerate(zip(pixels, grounds)):
            what = f"of drone {number}, {scheme}"
            own, around = window(pixel, LEAST, LEAST // 3), window(pixel, 2 * LEAST, 2 * LEAST)
            hidden = (drones[own] & names[own]).sum() / drones[own].sum()
            assert hidden < 0.02, f"{hidden:.0%} {what} is hidden by names"
            stands_out = drones[own] & (contrast(drawn[own], ground[own]) >= CONTRAST)
            across = np.ptp(np.nonzero(stands_out)[1]) + 1
            assert across >= LEAST, f"{across} pixels across {what} stand out"
            assert names[around].sum() > 100, f"there is no name {what}"
            spot = tuple(below.round().astype(int)[::-1])
            assert contrast(drawn[spot], ground[spot]) >= CONTRAST, f"shadow {what}"
        text = luminance(everything[scheme][names])
        assert (text.max() + 0.05) / (text.min() + 0.05) >= 4.5, "names are not legible"
        horizon, floor = ground[2, size[0] // 2], ground[-2, size[0] // 4]
        assert np.abs(horizon - floor).max() > SEEN / 2, "there is no sky"


def window(pixel: np.ndarray, columns: int, rows: int) -> tuple[slice, slice]:
    """The part of a picture that is so many pixels away from one at most."""
    column, row = pixel.round().astype(int)
    return np.s_[
        max(row - rows, 0) : row + rows + 1, max(column - columns, 0) : column + columns + 1
    ]


def covers(tab: Tab, pixel: np.ndarray) -> set[str]:
    """What lies over the picture of a drone, which is around a pixel."""
    found = tab.page.evaluate(
        """([x, y, half]) => {
            const found = [];
            for (let dx = -half; dx <= half; dx += half / 4)
                for (let dy = -half / 2; dy <= half / 2; dy += half / 4) {
                    const seen = document.elementFromPoint(x + dx, y + dy);
                    if (!seen?.matches("canvas[data-engine]"))
                        found.push(seen === null ? "outside" : seen.outerHTML.slice(0, 100));
                }
            return found;
        }""",
        [*pixel.tolist(), LEAST / 2],
    )
    return set(found)


def test_a_wheel_frees_the_camera(browser: Any, view: Any) -> None:
    tab = Tab(browser, f"{view.viewer.url}?fixedDpr={RESOLUTION}", (1280, 720))
    camera = tab.input_of("Camera")
    until(lambda: camera.input_value() == "all drones", "a camera that follows")
    tab.page.locator("canvas[data-engine]").wait_for()
    tab.page.mouse.move(300, 400)
    tab.page.mouse.wheel(0, 100)
    until(lambda: camera.input_value() == "free", "a camera that its user moves")
    assert tab.errors == []
    tab.close()
