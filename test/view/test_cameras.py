"""The cameras of tabs, as a tab without a browser sees them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import page_tab
import pytest
from page_tab import CAMERA, ShellTab, free_port, pinhole, until

pytest.importorskip("viser", reason="the extra view is not installed")

from crazyflow_ros.sim import Sim
from crazyflow_ros.view import SimView
from crazyflow_ros.view.cameras import ABOVE, ALL, BEHIND, BESIDE, FREE, NOSE
from crazyflow_ros.view.frame import looks_of
from crazyflow_ros.view.lens import FOV
from crazyflow_ros.view.swarm import radius_of

DRONES = np.array([[0.0, 0.0, 1.0], [1.0, 0.3, 0.6], [-0.5, 0.8, 1.4]])
WIDTH, HEIGHT, FREE_TO = 1280, 720, 900  # pixels; the panel covers the rest


class Tab(page_tab.Tab):
    """A tab that notes where its camera is sent, and tells how large its picture is."""

    def __init__(self, port: int) -> None:
        self.camera: dict[str, np.ndarray] = {}
        super().__init__(port)
        self.shell = ShellTab(port)
        self.shell.send("mark", self.mark())  # which of viser's tabs this is

    def __exit__(self, *_: object) -> None:
        self.shell.__exit__()
        super().__exit__()

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind.startswith("SetCamera") and not message.get("initial"):
            name = kind.removeprefix("SetCamera").removesuffix("Message")
            value = next(value for key, value in message.items() if key not in ("type", "initial"))
            self.camera[name] = np.array(value)
        super()._take(message)

    def show(self, **more: Any) -> None:
        picture = {"width": WIDTH, "height": HEIGHT, "free": [0, 0, FREE_TO, HEIGHT]}
        self.shell.send("picture", picture | more)

    def where(self) -> tuple[np.ndarray, np.ndarray]:
        return self.camera["Position"], self.camera["LookAt"]


@pytest.fixture(scope="module")
def view() -> Iterator[SimView]:
    sim = Sim(n_drones=len(DRONES), drone="cf2x_L250")
    sim.data = sim.data.replace(
        states=sim.data.states.replace(pos=sim.data.states.pos.at[0].set(DRONES))
    )
    with closing(SimView(sim, port=free_port())) as opened:
        yield opened


@pytest.fixture
def tab(view: SimView) -> Iterator[Tab]:
    with Tab(view.viewer.server.get_port()) as opened:
        yield opened


def in_picture(tab: Tab, places: np.ndarray) -> np.ndarray:
    """Pixels of places, (M, 2)."""
    return pinhole(places, *tab.where(), FOV, (WIDTH, HEIGHT))


def test_a_new_tab_sees_all_drones_beside_the_panel(view: SimView, tab: Tab) -> None:
    """Even if no frame follows, as between the steps of a `Sim`."""
    tab.shell.send("picture", {"width": -1})  # which is none
    tab.show()
    until(lambda: {"Position", "LookAt", "Fov"} <= tab.camera.keys(), "a camera")
    assert tab.value("Camera") == ALL
    assert tab.camera["Fov"] == pytest.approx(FOV)
    seen = in_picture(tab, DRONES)
    assert (seen > 0).all() and (seen < [FREE_TO, HEIGHT]).all()
    assert np.ptp(seen, axis=0).max() > 0.3 * FREE_TO, "they could be larger"
    across = 2 * radius_of(looks_of("cf2x_L250")) * view.viewer.shown.size.value
    depth = (DRONES - tab.where()[0]) @ (np.subtract(*tab.where()[::-1]))
    depth /= np.linalg.norm(np.subtract(*tab.where()))
    focal = HEIGHT / 2 / math.tan(FOV / 2)
    assert (focal * across / depth >= 44).all(), "pixels"


def test_the_camera_is_free_once_its_user_moves_it_and_comes_back(view: SimView, tab: Tab) -> None:
    tab.show()
    until(lambda: "LookAt" in tab.camera, "a camera")
    tab.shell.send("camera", "moved")
    until(lambda: tab.value("Camera") == FREE, "a free camera")
    here = {"position": [3, 3, 3], "look_at": [0, 0, 1], "fov": 1.0}
    tab.send(CAMERA | here)
    tab.camera.clear()
    view.show()
    tab.set("Camera", ABOVE)
    # The frames after the server has heard of it send the camera.
    until(lambda: view.show() or "LookAt" in tab.camera, "a camera from above")
    position, look_at = tab.where()
    assert (look_at - position)[2] < -0.98 * np.linalg.norm(look_at - position)


@pytest.mark.parametrize("mode", [BESIDE, BEHIND, NOSE])
def test_cameras_follow_the_selected_drone(view: SimView, tab: Tab, mode: str) -> None:
    tab.show()
    until(lambda: "LookAt" in tab.camera, "a camera")
    view.viewer.selected = "drone 1"
    tab.set("Camera", mode)
    place = DRONES[1]

    def follows() -> bool:
        view.show()
        position, look_at = tab.where()
        near = np.linalg.norm(position - place)
        if mode == NOSE:
            return bool(near < 0.5 and (look_at - position)[0] > 0.99)
        behind = mode != BEHIND or (position[0] < place[0] - 0.2 and position[2] > place[2])
        return bool(np.allclose(look_at, place, atol=0.01) and 0.2 < near < 3 and behind)

    until(follows, mode)


def test_the_camera_of_an_address_is_left_alone(view: SimView, tab: Tab) -> None:
    tab.show(hasOwnCamera=True)
    until(lambda: tab.value("Camera") == FREE, "a free camera")
    view.show()
    assert "LookAt" not in tab.camera
    tab.set("Camera", ALL)
    # The frames after the server has heard of it send the first one.
    until(lambda: view.show() or "LookAt" in tab.camera, "a camera")


def test_a_free_camera_goes_along_with_a_drone_that_is_flown(view: SimView, tab: Tab) -> None:
    tab.show(hasOwnCamera=True)
    until(lambda: tab.value("Camera") == FREE, "a free camera")
    place, look_at = [0.0, -4.0, 1.0], [-3.0, 0.0, 1.0]  # the drone is right of the picture
    tab.send(CAMERA | {"position": place, "look_at": look_at, "fov": FOV})
    client = next(iter(view.viewer.server.get_clients().values()))
    until(lambda: np.allclose(client.camera.look_at, look_at), "the tab's camera")
    view.viewer.selected = "drone 1"
    view.show()
    assert not tab.camera, "nobody flies"
    view.viewer.cameras.goes_along = True
    view.show()
    view.viewer.cameras.goes_along = False
    until(lambda: "LookAt" in tab.camera, "a camera that goes along")
    pixel = in_picture(tab, DRONES[1:2])[0]
    assert 0 < pixel[0] < FREE_TO and 0 < pixel[1] < HEIGHT
    turned = np.cross(np.subtract(*tab.where()), np.subtract(place, look_at))
    assert np.allclose(turned, 0, atol=1e-3), "it only moves, and does not turn"


def test_many_drones_are_not_drawn_over_each_other() -> None:
    sim, port = Sim(n_drones=49, drone="cf2x_L250"), free_port()  # in a grid of 1 m
    with closing(SimView(sim, port=port)) as view, Tab(port) as tab:
        tab.show()
        until(lambda: view.viewer.shown.size.value > 1, "drawn sizes")
        across = 2 * radius_of(looks_of("cf2x_L250")) * view.viewer.shown.size.value
        assert 0.3 < across < 0.7
