"""The first picture in a real browser: drones are large, seen, and stand out."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing
from socket import create_server
from typing import Any

import numpy as np
import pytest
from browser import Tab, needs_browser
from page_tab import until

from benchmark.chromium import open_chromium

pytest.importorskip("viser", reason="the extra view is not installed")
pytestmark = needs_browser

DRONES = np.array([[1.6, 0.9, 1.0], [-1.9, 0.7, 1.15], [1.35, -0.75, 1.3], [-0.3, -1.3, 1.45]])
LEAST = 40  # pixels across a drone
RESOLUTION = 0.6  # of the picture: a renderer without a graphics card takes seconds for a whole one
CONTRAST = 3.0  # of WCAG 2.2 for what is not text
SEEN = 20.0  # difference of two colours that is seen, of 255


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_chromium() as opened:
        yield opened


@pytest.fixture
def view() -> Iterator[Any]:
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    from crazyflow_ros.sim import Sim
    from crazyflow_ros.view import SimView

    with closing(SimView(Sim(n_drones=len(DRONES)), port=port)) as opened:
        put(opened, DRONES)
        yield opened


def put(view: Any, places: np.ndarray) -> None:
    sim = view._sim
    states = sim.data.states
    sim.data = sim.data.replace(states=states.replace(pos=states.pos.at[0].set(places)))
    view.show()


def settled(tab: Tab, before: np.ndarray | None = None) -> np.ndarray:
    """The picture once it stays the same, and is another one than before."""
    deadline, last = time.monotonic() + 60, None
    while time.monotonic() < deadline:
        now = tab.picture()
        is_new = before is None or np.abs(now - before).max() > SEEN
        if is_new and last is not None and np.abs(now - last).max() < 1:
            return now
        last = now
        tab.page.wait_for_timeout(300)
    raise AssertionError("the picture does not settle within 60 s")


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
    ahead = camera.look_at - camera.position
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    seen = (places - camera.position) @ np.stack([right, np.cross(ahead, right), ahead]).T
    focal = tab.size[1] / 2 / math.tan(camera.fov / 2)
    return np.array(tab.size) / 2 + focal * seen[:, :2] / seen[:, 2:]


@pytest.mark.parametrize(("scheme", "size"), [("light", (1280, 720)), ("dark", (390, 844))])
def test_the_first_picture_shows_drones(
    browser: Any, view: Any, scheme: str, size: tuple[int, int]
) -> None:
    tab = Tab(browser, f"{view.viewer.url}?fixedDpr={RESOLUTION}", size, color_scheme=scheme)
    until(lambda: view.viewer.shown.size.value > 1, "drawn sizes", 60)
    everything = settled(tab)
    pixels = in_picture(view, tab, DRONES)
    beside = np.array([0.02 * view.viewer.shown.size.value, 0, 0])  # the line up to the drone
    grounds = in_picture(view, tab, DRONES * [1, 1, 0] + beside)
    view.viewer.shown.names.value = view.viewer.shown.shadows.value = False
    view.show()
    plain = settled(tab, everything)
    (client,) = view.viewer.server.get_clients().values()
    view.viewer.cameras.choose(client, "free")
    put(view, DRONES + np.array([0, 0, 500]))
    empty = settled(tab, plain)
    if size[0] > 1000:  # the panel is open
        view.viewer.cameras.choose(client, "all drones")
        camera = tab.input_of("Camera")
        until(lambda: camera.input_value() == "all drones", "a camera that follows", 60)
        tab.page.mouse.move(size[0] / 4, size[1] / 2)
        tab.page.mouse.wheel(0, 100)
        until(lambda: camera.input_value() == "free", "a camera that its user moves", 60)
    assert tab.errors == []
    tab.close()

    drones, others = differ(plain, empty), differ(everything, plain)
    for number, (pixel, ground) in enumerate(zip(pixels, grounds)):
        column, row = pixel.round().astype(int)
        window = np.s_[
            max(row - LEAST, 0) : row + LEAST,
            max(column - LEAST, 0) : column + LEAST,
        ]
        own = drones[window]
        assert own.any(), f"drone {number} is not in the picture"
        hidden = (own & others[window]).sum() / own.sum()
        assert hidden < 0.15, f"drone {number} is hidden by its name"  # and not just by its line
        stands_out = own & (contrast(plain[window], empty[window]) >= CONTRAST)
        assert stands_out.sum() > 0.1 * own.sum(), f"drone {number} does not stand out"
        assert np.ptp(np.nonzero(stands_out)[1]) + 1 >= LEAST, f"drone {number} is too small"
        below = tuple(ground.round().astype(int)[::-1])
        assert contrast(everything[below], plain[below]) >= CONTRAST, f"shadow of drone {number}"
    text = luminance(everything[others])
    assert (text.max() + 0.05) / (text.min() + 0.05) >= 4.5, "names are not legible"
    horizon, floor = empty[2, size[0] // 2], empty[-2, size[0] // 4]
    assert np.abs(horizon - floor).max() > SEEN / 2, "there is no sky"
