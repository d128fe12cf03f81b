"""The pages of a `Sim` and of a simulation without ROS in a real browser."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Tab, needs_browser
from page_tab import free_port, pinhole, until

pytest.importorskip("viser", reason="the extra view is not installed")

pytestmark = needs_browser

CAMERA, LOOK = np.array([-0.9, -0.5, 0.8]), np.array([0.0, 0.0, 0.3])
FOV = math.radians(75)
QUERY = (  # with a resolution that does not follow the speed of the renderer
    f"?initialCameraPosition={','.join(map(str, CAMERA))}"
    f"&initialCameraLookAt={','.join(map(str, LOOK))}&fixedDpr=1"
)


def in_picture(place: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Pixel of a place in the world: viser's camera has 75 degrees."""
    return pinhole(place[None], CAMERA, LOOK, FOV, size)[0]


def seen_at(tab: Tab, empty: np.ndarray) -> np.ndarray | None:
    """Middle of what is in the picture and was not in the empty one; None: nothing."""
    changed = np.abs(tab.picture() - empty).max(axis=-1) > 24
    rows, columns = np.nonzero(changed)
    return None if len(rows) < 20 else np.array([columns.mean(), rows.mean()])


def settled(look: Any, what: str) -> np.ndarray:
    """What is seen once it stays the same: a software renderer draws a few times a second."""
    deadline, before = time.monotonic() + 60, None
    while time.monotonic() < deadline:
        now = look()
        if now is not None and before is not None and np.abs(now - before).max() < 0.5:
            return np.asarray(now)
        before = now
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within 60 s")


def without_drones(tab: Tab, put_away: Callable[[], None]) -> np.ndarray:
    """The picture once the drones that are in it are away."""
    before = settled(tab.picture, "picture with drones")
    put_away()
    until(lambda: seen_at(tab, before) is not None, "a picture without drones", 60)
    return settled(tab.picture, "picture without drones")


def wait_until_seen(tab: Tab, empty: np.ndarray, pixel: np.ndarray) -> None:
    """Wait until what is not in the empty picture is at a pixel, and nowhere else."""
    deadline, seen = time.monotonic() + 60, None
    while seen is None or np.abs(seen - pixel).max() > 5:
        assert time.monotonic() < deadline, f"expected a drone at {pixel}, saw one at {seen}"
        seen = seen_at(tab, empty)


def hide(tab: Tab, *switches: str) -> None:
    tab.page.get_by_text("Show", exact=True).click()
    for switch in switches:
        tab.page.get_by_label(switch, exact=True).uncheck()


def ask_size(tab: Tab, size: int) -> None:
    tab.input_of("Size of drones").select_option(f"{size} ×")


def until_handled(tab: Tab) -> None:
    """Wait until the page has handled what it was sent before, in turn with what it is sent now."""
    ask_size(tab, 2)
    tab.page.get_by_text("drawn 2 times").wait_for()
    ask_size(tab, 1)
    tab.page.get_by_text("Drones are drawn").wait_for(state="hidden")


def test_a_simulation_without_ros_is_shown(browser: Any, tmp_path: Path) -> None:
    """Its drones where they are, other scenes later, and what happens to the drones."""
    from crazyflow_ros.flight import Takeoff
    from crazyflow_ros.runtime import DroneState, PhysicsThread, SimulationConfig
    from crazyflow_ros.view import PhysicsView

    physics = PhysicsThread(SimulationConfig(start_paused=True), ["cf0"])
    with closing(PhysicsView(physics, port=free_port())) as view:
        physics.start()
        view.start()
        tab = Tab(browser, view.viewer.url + QUERY)
        tab.page.get_by_text("cameras follow cf0").wait_for()
        hide(tab, "Names", "Trails", "Shadows")

        def put_at(*pos: float) -> None:
            physics.state.set_drone_states({"cf0": DroneState(pos=pos)}).result(60)

        empty = without_drones(tab, lambda: put_at(0.0, 0.0, 50.0))
        for place in (np.array([0.1, 0.1, 0.4]), np.array([0.1, -0.3, 0.2])):
            put_at(*place)
            wait_until_seen(tab, empty, in_picture(place, tab.size))
        physics.fly({"cf0": Takeoff(0.5)}).result(60)
        upside_down = DroneState(pos=(0.1, 0.1, 0.1), quat=(1.0, 0.0, 0.0, 0.0))
        physics.state.set_drone_states({"cf0": upside_down}).result(60)
        physics.step(500).result(60)
        tab.page.get_by_text("cf0: crashed at (0.10, 0.1").wait_for()
        scene = tmp_path / "ball.xml"
        scene.write_text(BALL)
        physics.world.set_scene(scene).result(60)
        ball = np.array([0.0, 0.0, 0.5])
        until(lambda: is_red(tab, in_picture(ball, tab.size)), "another scene", 60)
        assert tab.errors == []
        tab.close()
    physics.stop()


BALL = """<mujoco><worldbody><geom type="plane" size="0 0 1"/>
<geom size="0.1" pos="0 0 0.5" rgba="1 0 0 1" contype="0" conaffinity="0"/></worldbody></mujoco>"""


def is_red(tab: Tab, pixel: np.ndarray) -> bool:
    column, row = pixel.round().astype(int)
    red, green, blue = tab.picture()[row, column, :3].tolist()
    return bool(red > green + 80 and red > blue + 80)


def test_drones_of_a_sim_are_drawn_as_large_as_asked(browser: Any) -> None:
    """Where they are, and so many times as large: a drone covers the square of it in pixels."""
    from crazyflow_ros.sim import Sim
    from crazyflow_ros.view import SimView

    sim = Sim(n_worlds=2)
    with closing(SimView(sim, port=free_port())) as view:
        assert view.viewer.url in view._repr_html_()
        tab = Tab(browser, view.viewer.url + QUERY)
        tab.page.get_by_text("World", exact=True).wait_for()
        hide(tab, "Names", "Trails", "Shadows")
        ask_size(tab, 1)
        note = tab.page.get_by_text("Drones are drawn")
        place = np.array([0.1, 0.1, 0.4])

        def put_at(z: float) -> None:
            pos = sim.data.states.pos.at[0].set([*place[:2], z])
            sim.data = sim.data.replace(states=sim.data.states.replace(pos=pos))
            view.show()

        def covered(empty: np.ndarray) -> np.ndarray:
            return np.array([(np.abs(tab.picture() - empty).max(axis=-1) > 24).sum()])

        put_at(50.0)
        until_handled(tab)
        empty = settled(tab.picture, "picture without a drone")
        put_at(float(place[2]))
        note.wait_for(state="hidden")
        pixel = in_picture(place, tab.size)
        wait_until_seen(tab, empty, pixel)
        before = settled(partial(covered, empty), "a drone")
        ask_size(tab, 3)
        note.wait_for()
        assert "3 times" in note.inner_text()
        view.show()
        until(lambda: covered(empty)[0] > 5 * before[0], "a larger drone", 60)
        assert settled(partial(covered, empty), "a larger drone")[0] < 13 * before[0]
        wait_until_seen(tab, empty, pixel)
        ask_size(tab, 1)
        note.wait_for(state="hidden")
        assert tab.errors == []
        tab.close()
