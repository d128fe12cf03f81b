"""A recorded flight as one HTML file: it opens without a network, and plays."""

from __future__ import annotations

import colorsys
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from browser import COARSE, needs_browser
from browser import Tab as BrowserTab
from known_recordings import NS, change, command, flight_event, reset, states, write
from page_tab import free_port, pinhole, until
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState

from crazyflow_ros.ros.messages.scene_markers import markers_of
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape
from crazyflow_ros.view.__main__ import main
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.recording_page import RecordingPage
from crazyflow_ros.view.replay.share.span import span_of
from crazyflow_ros.view.swarm import color_of

PARAMETERS = {"drone_model": "cf2x_L250"}
SECONDS, RATE = 120, 25
NAMES = ("cf0", "cf1", "cf2", "cf3")
CRASH = 61.0
LARGEST = 5_000_000  # bytes
SIZE = (1280, 800)


def place(time: float, drone: int) -> tuple[float, float, float]:
    """Where a drone is on its way [m]."""
    phase = drone * math.pi / 2
    return (
        math.cos(0.7 * time + phase),
        math.sin(0.9 * time + phase),
        1.2 + 0.3 * math.sin(time + drone),
    )


def flight() -> list[Any]:
    """Two minutes of four drones, whose attitudes and rotors no compression can foretell."""
    random = np.random.default_rng(0)
    entries: list[Any] = []
    joints = [f"{name}_rotor{i}" for name in NAMES for i in range(4)]
    for k in range(SECONDS * RATE + 1):
        time_ns = k * NS // RATE
        entry = states(time_ns, {name: place(k / RATE, row) for row, name in enumerate(NAMES)})
        for transform in entry[2].transforms:
            quat = Rotation.from_euler("xyz", random.normal(0, 0.1, 3)).as_quat()
            for axis, value in zip("xyzw", quat.tolist()):
                setattr(transform.rotation, axis, value)
        speeds = random.uniform(1500, 2500, len(joints)).tolist()
        rotors = JointState(name=joints, position=[0.0] * len(joints), velocity=speeds)
        rotors.header.stamp = entry[2].header.stamp
        entries += [entry, (time_ns, "/crazyflow/joint_states", rotors)]
    at = ", ".join(f"{value:.2f}" for value in place(CRASH, 1))
    entries += [
        command(NS, "cf0", "Takeoff", height=1.0, duration=2.0),
        flight_event(
            round((CRASH - 0.5) * NS), "cf1", "hit", f"hit east at ({at}) m, and flies on"
        ),
        flight_event(round(CRASH * NS), "cf1", "crashed", f"crashed at ({at}) m"),
    ]
    return sorted(entries, key=lambda entry: entry[0])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("share") / "four.mcap", flight(), PARAMETERS, 1 << 20)


@pytest.fixture(scope="module")
def shared(recorded: Path) -> Path:
    file = recorded.with_name("four.html")
    assert main([str(recorded), "--export", str(file)]) == 0
    return file


def box(x: float, moving: str = "") -> VisibleShape:
    """A box of a world, or of a body that moves."""
    pose = np.array([x, 0.0, 0.25]), np.array([0.0, 0.0, 0.0, 1.0])
    rgba = np.array([0.9, 0.1, 0.1, 1.0])
    return VisibleShape(ShapeForm.BOX, *pose, np.array([0.5, 0.5, 0.5]), rgba, frame=moving)


def lively() -> list[Any]:
    """A flight with a spawned and deleted drone, a reset, another world, and a body that moves."""
    entries: list[Any] = [
        (0, "/crazyflow/scene", markers_of([box(2.0)])),
        (3 * NS, "/crazyflow/scene", markers_of([box(-2.0), box(0.0, "crate")])),
    ]
    for k in range(6 * RATE + 1):
        time = k / RATE
        x = time if time < 4 else time - 4  # a reset brings it back
        there = {"cf0": (x, 0.0, 1.0)} | ({"late": (0.0, 1.0, 1.0)} if 2 <= time < 4 else {})
        entries.append(states(k * NS // RATE, there))
        time_ns, _, bodies = states(k * NS // RATE, {"crate": (0.0, -time, 0.5)})
        entries.append((time_ns, "/crazyflow/world/odometry", bodies))
    entries += [
        change(2 * NS, spawned={"name": "late"}),
        reset(4 * NS, "cf0"),
        flight_event(5 * NS, "cf0", "crashed", "crashed at (1.00, 0.00, 1.00) m"),
    ]
    return sorted(entries, key=lambda entry: entry[0])


class Opened(BrowserTab):
    """A file in a browser without a network.

    Attributes:
        requests: What it asked for, beside itself.
    """

    def __init__(self, browser: Any, file: Path) -> None:
        super().__init__(browser, "about:blank", SIZE, offline=True, color_scheme="light")
        self.requests: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
        self.page.goto(file.as_uri())
        self.wait("window.flight?.player")
        assert self.requests == [file.as_uri()]

    def wait(self, condition: str) -> None:
        """Wait until a condition holds: Playwright's own waiting is refused by the file's rules."""
        until(lambda: self.page.evaluate(condition), condition)

    def seek(self, time: float) -> None:
        """Go to a time [s], and wait until it is drawn, with the camera at rest."""
        self.page.evaluate("t => shell.send('replay', { do: 'seek', t })", time)
        self.wait(f"flight.player.t === {time} && flight.picture.isStill()")

    def pixel(self, name: str) -> np.ndarray | None:
        """Where the page draws a drone [pixels], (2,)."""
        found = self.page.evaluate("name => flight.picture.pixel_of(name)", name)
        return None if found is None else np.array(found)

    def names(self) -> set[str]:
        """Drones whose names stand in the picture."""
        return set(self.page.locator(".names span:visible").all_inner_texts())


@pytest.fixture(scope="module")
def tab(browser: Any, shared: Path) -> Iterator[Opened]:
    opened = Opened(browser, shared)
    yield opened
    assert opened.requests == [shared.as_uri()]
    assert opened.errors == []
    opened.close()


def test_two_minutes_of_four_drones_are_a_small_file(shared: Path) -> None:
    content = shared.read_text()
    assert shared.stat().st_size < LARGEST
    for word in ("http://", "https://"):  # but for namespaces and the licence
        found = {part.split('"')[0].split(")")[0] for part in content.split(word)[1:]}
        assert all(one.startswith(("www.w3.org/", "www.apache.org/")) for one in found), found
    assert "Apache License" in content[:2000]


@needs_browser
def test_the_drones_are_seen_where_they_were(tab: Opened) -> None:
    time = 30.0
    tab.seek(time)
    eye, target = tab.page.evaluate("[flight.picture.eye(), flight.picture.state.at]")
    dock = tab.page.locator(".dock").bounding_box()
    hidden = SIZE[1] - dock["y"]
    places = np.array([place(time, row) for row in range(len(NAMES))])
    expected = pinhole(places, eye, target, math.radians(50), SIZE) - [0, hidden / 2]
    shown = tab.screen()
    for row, name in enumerate(NAMES):
        found = tab.pixel(name)
        assert found is not None
        np.testing.assert_allclose(found, expected[row], atol=1.0)
        assert hue_is_near(shown, found, color_of(row)), name
    assert tab.names() == set(NAMES)
    tab.seek(32.0)
    assert np.abs(tab.screen().astype(int) - shown).max() > 50


def hue_is_near(picture: np.ndarray, pixel: np.ndarray, color: tuple[int, ...]) -> bool:
    """Whether pixels with the hue of a colour are around a place."""
    wanted = colorsys.rgb_to_hsv(*(value / 255 for value in color))[0]
    x, y = (round(value) for value in pixel.tolist())
    around = picture[max(y - 40, 0) : y + 40, max(x - 40, 0) : x + 40].reshape(-1, 3) / 255
    hues = np.array([colorsys.rgb_to_hsv(*one) for one in around.tolist()])
    away = np.abs((hues[:, 0] - wanted + 0.5) % 1 - 0.5)
    return int(((away < 0.04) & (hues[:, 1] > 0.35)).sum()) > 10


@needs_browser
def test_it_plays_pauses_and_is_scrubbed(tab: Opened) -> None:
    page, slider = tab.page, tab.page.get_by_role("slider", name="Time")
    tab.seek(10.0)
    before = tab.pixel("cf0")
    page.get_by_role("combobox", name="Speed").select_option("2")
    page.get_by_role("button", name="Play", exact=True).click()
    tab.wait("flight.player.t > 10.5")
    page.get_by_role("button", name="Pause", exact=True).click()
    assert float(slider.get_attribute("aria-valuenow") or "nan") > 10.5
    after = tab.pixel("cf0")
    assert before is not None and after is not None and np.abs(after - before).max() > 5
    box = page.locator(".track").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
    assert page.evaluate("flight.player.t") == pytest.approx(60.0, abs=0.2)


@needs_browser
def test_a_click_on_the_crash_says_why(tab: Opened) -> None:
    page = tab.page
    page.locator(".mark[data-group=crash]").click(force=True)
    card = page.get_by_role("region", name="Explanation of the event")
    card.get_by_text("It hit east").first.wait_for()
    assert page.evaluate("[flight.player.t, flight.player.drone]") == [CRASH, "cf1"]
    page.keyboard.press("g")
    legend = page.locator(".plot[data-row=height] .legend")
    legend.get_by_text(f"z {place(CRASH, 1)[2]:.2f}").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")


@needs_browser
def test_the_user_turns_zooms_and_selects(tab: Opened) -> None:
    page = tab.page
    tab.seek(30.0)
    before = page.evaluate("({ ...flight.picture.state })")
    page.mouse.move(640, 200)
    page.mouse.down()
    page.mouse.move(740, 240, steps=4)
    page.mouse.up()
    page.mouse.wheel(0, -300)
    tab.wait(f"flight.picture.state.distance < {before['distance']}")
    assert page.evaluate("flight.picture.state.turn") < before["turn"]
    pixel = tab.pixel("cf2")
    assert pixel is not None
    page.mouse.click(*pixel.tolist())
    tab.wait("flight.player.drone === 'cf2'")


@needs_browser
def test_spawns_a_reset_another_world_and_bodies_are_shown(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "lively.html"
    recording = write(tmp_path / "lively.mcap", lively(), PARAMETERS)
    assert main([str(recording), "--export", str(file)]) == 0
    opened = Opened(browser, file)
    seen = {}
    for time in (1.0, 3.5, 5.5):
        opened.seek(time)
        seen[time] = opened.names()
    assert seen == {1.0: {"cf0"}, 3.5: {"cf0", "late"}, 5.5: {"cf0"}}
    content = opened.page.evaluate("shell.content()")
    assert [round(world["since"], 2) for world in content["worlds"]] == [0.0, 3.0]
    crate = np.array(content["moving"]["bodies"]["crate"])
    np.testing.assert_allclose(crate[:, 2], -crate[:, 0], atol=0.05)
    # It does not fly back at the reset, but is there at once.
    middle = opened.page.evaluate("tracks.of_drone(flight.content.drones[0]).pose(3.98).at[0]")
    assert middle == pytest.approx(3.96, abs=0.03)
    assert opened.errors == []
    opened.close()


@needs_browser
def test_the_button_of_a_recordings_page_saves_the_file(
    browser: Any, recorded: Path, tmp_path: Path
) -> None:
    file = tmp_path / "four.html"
    page = RecordingPage(Recording(recorded), port=free_port())
    served = threading.Thread(target=page.run)
    served.start()
    try:
        tab = BrowserTab(browser, f"{page.viewer.url}?{COARSE}", accept_downloads=True)
        tab.page.wait_for_function("replay.known.read === 1")
        tab.page.evaluate("replay.ask('seek', { t: 60 })")
        tab.page.wait_for_function("!replay.known.player.plays")  # or the span goes along
        tab.page.evaluate("replay.look_at(60, 62)")
        with tab.page.expect_download() as saved:
            tab.page.get_by_role("button", name="Save the flight").click(force=True)
        assert saved.value.suggested_filename == file.name
        saved.value.save_as(file)
        opened = Opened(browser, file)
        span = opened.page.evaluate(
            "[flight.content.recording.begin, flight.content.recording.end]"
        )
        assert span == pytest.approx([60, 62])
        assert tab.errors == opened.errors == []
        tab.close()
        opened.close()
    finally:
        page.close()
        served.join()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{mcap}", "--export", "{html}"), "exists: --overwrite replaces it"),
        (("{mcap}", "--export", "{new}", "--begin", "500"), "there is nothing from 500"),
        (("{mcap}", "--export", "{new}", "--begin", "9", "--end", "9"), "after the beginning"),
        (("{text}", "--export", "{new}"), "MCAP"),
        (("{missing}", "--export", "{new}"), "missing.mcap"),
        (("{mcap}", "--export", "/nowhere/flight.html"), "/nowhere"),
        (("{mcap}", "--video", "{new}"), ".mp4, .gif, .webp"),
        (("{empty}", "--export", "{new}"), "empty.mcap"),
    ],
)
def test_what_cannot_be_shared_is_refused_with_the_reason(
    arguments: tuple[str, ...],
    message: str,
    recorded: Path,
    shared: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = tmp_path / "text.mcap"
    text.write_text("This is no recording.")
    empty = write(tmp_path / "empty.mcap", [], PARAMETERS)
    files = {"mcap": recorded, "html": shared, "new": tmp_path / "new.html", "text": text}
    files |= {"missing": tmp_path / "missing.mcap", "empty": empty}
    before = shared.read_bytes()
    assert main([one.format(**files) for one in arguments]) == 1
    assert message in capsys.readouterr().err
    assert shared.read_bytes() == before and not (tmp_path / "new.html").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--export", "a.html"), "need a recording"),
        (("a.mcap", "b.mcap", "--export", "a.html"), "one recording"),
        (("a.mcap", "--export", "a.pdf"), ".html"),
        (("a.mcap", "--begin", "1"), "are for --export"),
        (("a.mcap", "--video", "a.mp4", "--size", "big"), "1920x1080"),
    ],
)
def test_options_that_contradict_end_the_program(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_a_part_is_shared_and_a_long_flight_only_in_parts(recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "part.html"
    wanted = ["--begin", "60", "--end", "62.5"]
    assert main([str(recorded), "--export", str(file), *wanted]) == 0
    assert file.stat().st_size < 1_000_000
    ends = [states(0, {"cf0": (0, 0, 1)}), states(700 * NS, {"cf0": (0, 0, 1)})]
    long = Recording(write(tmp_path / "long.mcap", ends, PARAMETERS))
    with pytest.raises(ValueError, match="700 s are too long to share, at most 600 s"):
        span_of(long)
    assert span_of(long, 50.0, 90.0).seconds == 40.0
