"""The panel steers a running simulator, from tabs without a browser and in Chromium."""

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from browser import COARSE, needs_browser
from browser import Tab as BrowserTab
from diagnostic_msgs.msg import DiagnosticArray
from mcap.reader import make_reader
from nav_msgs.msg import Odometry
from page_tab import ShellTab, StickSocket, Tab, free_port, until
from rcl_interfaces.srv import GetParameters
from ros_client import (
    READY_TIMEOUT,
    Client,
    RosProcess,
    SimulatorProcess,
    own_domain,
    time_ns,
)
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, MultiDOFJointState
from std_srvs.srv import SetBool

from crazyflow_ros.ros.recording.replay import ReplayError, replay
from crazyflow_ros.view.recording import Recording

DOMAIN = own_domain("test_panel")
ARGUMENTS = ["drones:=[cf0,cf1]", "battery:=true", "max_drones:=3"]
SIZE = 720, 320  # pixels, of which the panel covers the right
MIDDLE = 0.4, 0.3  # m, the place on the floor in the middle of the window
LOOK = f"?{COARSE}&initialCameraPosition=-1.5,-1,2&initialCameraLookAt={MIDDLE[0]},{MIDDLE[1]},0"


@pytest.fixture(scope="module")
def simulators() -> Iterator[list[SimulatorProcess]]:
    """The simulator that runs, as the last one."""
    started = [SimulatorProcess(DOMAIN, ARGUMENTS).__enter__()]
    yield started
    for simulator in started:
        simulator.__exit__(None, None, None)


@pytest.fixture(scope="module")
def client(simulators: list[SimulatorProcess]) -> Iterator[Client]:
    client = Client(DOMAIN)
    yield client
    client.close()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of recordings."""
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def port(simulators: list[SimulatorProcess], recordings: Path) -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "crazyflow_ros.view", "--port", str(port)]
    with RosProcess([*command, "--recordings", str(recordings)], DOMAIN) as page:
        page.wait_for("The page is at")
        yield port


@pytest.fixture
def tab(port: int, client: Client) -> Iterator[Tab]:
    """A tab of a page that shows two drones on the floor, in time that goes on."""
    with Tab(port) as tab:
        # The world that a test has loaded last may still be compiled.
        until(lambda: client.call(SetBool, "crazyflow/pause", data=False).success, "the world")
        client.reset()
        until(lambda: tab.value("Drone") in ("cf0", "cf1"), "the drones")
        tab.set("Drone", "cf0")
        tab.set("Size of drones", "1 ×")  # so that clicks beside them hit the floor
        until(lambda: "position" in tab.text(), "the state of the drone")
        yield tab


def place(client: Client, drone: str = "cf0") -> np.ndarray:
    """Where a drone is now [m]."""
    position = client.latest(Odometry, f"{drone}/odom").pose.pose.position
    return np.array([position.x, position.y, position.z])


def arrives(client: Client, goal: Any, drone: str = "cf0") -> None:
    """Wait until a drone is at a place; NaN: anywhere."""
    client.until(
        lambda: np.nanmax(np.abs(place(client, drone) - goal)) < 0.03, f"{drone} at {goal}"
    )


def take_off(tab: Tab, client: Client, height: float) -> None:
    tab.set("Height [m]", height)
    tab.set("Flight", "Take off")
    arrives(client, (np.nan, np.nan, height))


def hovers(tab: Tab) -> None:
    """Wait until the selected drone does not move."""
    until(lambda: "0.00, 0.00, 0.00 m/s" in tab.text(), "a hover")


def tells(tab: Tab, text: str) -> str:
    """Wait for a notification with a text, and return it."""
    return until(lambda: next((n for n in tab.notifications if text in n), ""), f"a note: {text}")


def stands_still(client: Client) -> bool:
    """Return whether two messages of /clock have the same time."""
    return len({time_ns(client.latest(Clock, "/clock").clock) for _ in range(3)}) == 1


def status(client: Client) -> dict[str, str]:
    values = client.latest(DiagnosticArray, "crazyflow/status").status[0].values
    return {pair.key: pair.value for pair in values}


def options(tab: Tab, label: str, number: int = 0) -> list[str]:
    return tab.elements[tab.find(label, number)]["options"]


def parameter(client: Client, name: str) -> Any:
    answer = client.call(GetParameters, "crazyflow/get_parameters", names=[name])
    return list(answer.values[0].double_array_value)


def test_pause_stops_the_clock_and_step_advances_it(tab: Tab, client: Client, port: int) -> None:
    with ShellTab(port) as shell:
        tab.set("Time", "Pause")
        client.until(lambda: stands_still(client), "a clock that stands still")
        before = time_ns(client.latest(Clock, "/clock").clock)
        until(lambda: shell.next("time") == before / 1e9, "the time that stands still on the page")
        tab.set("Time", "Step")
        client.until(lambda: time_ns(client.latest(Clock, "/clock").clock) > before, "a step")
        assert stands_still(client)
        until(lambda: options(tab, "Time")[0] == "Resume", "the button")
        assert shell.next("time") > before / 1e9
    tab.set("Time", "Resume")
    client.until(lambda: not stands_still(client), "a clock that goes on")


def test_speed_is_the_real_time_factor(tab: Tab, client: Client) -> None:
    tab.set("Speed", "0.5 ×")
    client.until(lambda: status(client)["requested_factor"] == "0.5", "the factor")
    for factor in (3.0, 1.0):  # by somebody else
        client.set_parameter("real_time_factor", factor)
        until(lambda shown=f"{factor:g} ×": tab.value("Speed") == shown, "the factor on the page")


def test_a_drone_takes_off_flies_to_a_click_and_lands(tab: Tab, client: Client) -> None:
    take_off(tab, client, 0.8)
    tab.click_on_floor(0.7, -0.4)
    arrives(client, (0.7, -0.4, 0.8))
    hovers(tab)  # it lands where it is
    tab.set("Flight", "Land")
    arrives(client, (0.7, -0.4, 0.01))


def drag(tab: Tab, node: str, begin: Any, end: Any) -> None:
    """Drag a node of the scene from where a ray of the camera ends to where another one does."""
    nowhere = {"start_screen_pos": [0.0, 0.0], "end_screen_pos": [0.0, 0.0], "instance_index": None}
    for phase, place in (("start", begin), ("update", end), ("end", end)):
        places = {"start_position": list(begin), "end_position": list(place)}
        message = {
            "type": "SceneNodeDragMessage",
            "phase": phase,
            "name": node,
            **nowhere,
            **places,
        }
        tab.send(message | {"button": "left", "modifier": None, "owner": ""})


def test_a_goal_is_dragged_along_the_floor_and_in_height(tab: Tab, client: Client) -> None:
    take_off(tab, client, 0.8)
    hovers(tab)
    x, y, _ = tab.value("Goal [m]")
    drag(tab, "/goal/ring", (x + 0.2, y, 0.0), (x + 0.7, y - 0.4, 0.0))
    arrives(client, (x + 0.5, y - 0.4, 0.8))
    until(lambda: abs(tab.value("Goal [m]")[0] - x - 0.5) < 0.02, "the goal in the panel")
    hovers(tab)
    drag(tab, "/goal/arrow", (x + 0.5, y - 0.4, 0.9), (x + 0.5, y - 0.4, 1.4))
    arrives(client, (x + 0.5, y - 0.4, 1.3))
    tab.set("Goal [m]", [0, 0.2, 0.5])  # with keys alone
    tab.set("Fly there", True)
    arrives(client, (0.0, 0.2, 0.5))


def test_a_click_on_a_drone_selects_it_and_moves_nothing(tab: Tab, client: Client) -> None:
    x, y, _ = before = place(client, "cf1")
    tab.click_on_floor(float(x), float(y))
    until(lambda: tab.value("Drone") == "cf1", "the other drone")
    assert place(client, "cf0")[2] < 0.05
    np.testing.assert_allclose(place(client, "cf1"), before, atol=0.01)


def test_a_click_is_not_a_goal_where_that_is_switched_off(tab: Tab, client: Client) -> None:
    tab.set("Fly to clicks", False)
    tab.click_on_floor(0.3, 0.2)
    tab.set("Fly to clicks", True)
    until(lambda: tab.value("Fly to clicks"), "the switch")
    client.pass_time(0.5)  # in which it would climb
    assert place(client)[2] < 0.05


def test_keys_fly_the_drone_until_they_are_let_go(tab: Tab, port: int, client: Client) -> None:
    start = place(client)
    with StickSocket(port) as sticks:

        def flies() -> bool:
            sticks.hold("KeyW")
            return bool(place(client)[0] > start[0] + 0.5)

        client.until(flies, "a flight ahead")
    hovers(tab)
    assert place(client)[2] > 0.3


def test_the_switch_takes_off_and_lands(tab: Tab, port: int, client: Client) -> None:
    tab.set("Height [m]", 0.4)
    with StickSocket(port) as sticks:
        sticks.hold("Space")
        arrives(client, (np.nan, np.nan, 0.4))
        sticks.hold()
        sticks.hold("Space")
        arrives(client, (np.nan, np.nan, 0.01))


def test_a_refusal_is_told_to_who_clicked_and_to_the_log(tab: Tab, port: int) -> None:
    with Tab(port) as other:
        tab.set("Time", "Step")
        assert "Step: " in tells(tab, "paused")
        until(lambda: "Step: " in other.text(), "the log")
        assert not other.notifications


def test_a_refusal_that_only_the_log_has_is_told(tab: Tab, client: Client) -> None:
    until(lambda: "idle" in tab.text(), "a drone that stands")  # else the page asks
    tab.set("Rotors", "Stop")
    client.until(lambda: "locked" in status(client)["flight_states"], "the emergency stop")
    tab.set("Flight", "Take off")
    assert "Take off: cf0: " in tells(tab, "reset")
    tab.set("Reset cf0", True)
    client.until(lambda: "locked" not in status(client)["flight_states"], "the reset")


@pytest.mark.parametrize(
    ("button", "number", "whom"), [("Stop", 1, "all drones"), ("Disarm", 0, "cf0")]
)
def test_rotors_stop_in_the_air_only_after_a_yes(
    tab: Tab, port: int, client: Client, button: str, number: int, whom: str
) -> None:
    take_off(tab, client, 0.6)
    with Tab(port) as other:
        until(lambda: other.value("Drone") == "cf0", "the drones")
        tab.set("Rotors", button, number)
        until(lambda: tab.questions, "the question")
        assert "cf0 is flying at 0." in tab.questions[-1]["text"]
        assert not other.questions
        tab.tell("answer", False)
    assert place(client)[2] > 0.5
    tab.set("Rotors", button, number)
    until(lambda: len(tab.questions) == 2, "the question")
    assert tab.questions[-1]["yes"] == f"{button}: {whom}"
    tab.tell("answer", True)
    client.until(lambda: place(client)[2] < 0.1, "a fall")


def test_wind_and_motors(tab: Tab, client: Client) -> None:
    tab.set("Wind [m/s]", [1.5, 0, 0])
    client.until(lambda: parameter(client, "wind") == [1.5, 0.0, 0.0], "the wind")
    client.set_parameter("wind", [0.0, 0.0, 0.0])  # by somebody else
    until(lambda: tab.value("Wind [m/s]") == [0, 0, 0], "calm air on the page")
    take_off(tab, client, 0.5)
    tab.set("Front right", 0.0)
    client.until(lambda: place(client)[2] < 0.1, "a fall")
    until(lambda: "cf0: crashed at" in tab.text(), "a word in the log")
    assert tab.text().count("cf0: crashed at") == 1
    assert tab.value("Front right") == 0.0
    tab.set("Reset cf0", True)
    until(lambda: tab.value("Front right") == 1.0, "a repaired motor on the page")


def test_drones_come_and_go(tab: Tab, client: Client) -> None:
    until(lambda: "drone cf2x_L250" in options(tab, "Kind"), "what to add")
    tab.set("Kind", "drone cf2x_L250")
    tab.set("Name", "extra")
    tab.set("Place [m]", [1, 1, 0])
    tab.set("Add", True)
    until(lambda: "extra" in options(tab, "Drone"), "the drone", READY_TIMEOUT)
    arrives(client, (1.0, 1.0, 0.01), "extra")
    until(lambda: "extra" in options(tab, "Which"), "what to remove")
    tab.set("Which", "extra")
    tab.set("Remove", True)
    until(lambda: "extra" not in options(tab, "Drone"), "its end")


def test_objects_are_placed_by_clicks_and_fall(tab: Tab, client: Client) -> None:
    until(lambda: "box" in options(tab, "Kind"), "what to add")
    tab.set("Kind", "box")
    tab.set("Place with clicks", True)
    tab.click_on_floor(1.5, 1.0)
    until(lambda: "box" in options(tab, "Which"), "the box", READY_TIMEOUT)
    height = 0.0

    def note(message: MultiDOFJointState) -> None:
        nonlocal height
        height = message.transforms[message.joint_names.index("box")].translation.z

    subscription = client.node.create_subscription(
        MultiDOFJointState, "crazyflow/world/odometry", note, 10
    )
    client.until(lambda: abs(height - 0.1) < 0.01, "a box that lies on the floor")
    client.node.destroy_subscription(subscription)
    assert place(client)[2] < 0.05  # the drone stays
    tab.set("Remove with clicks", True)
    until(lambda: not tab.value("Place with clicks"), "one of the two")
    tab.click_on_floor(1.5, 1.0)
    until(lambda: "box" not in options(tab, "Which"), "its end", READY_TIMEOUT)
    tab.set("Remove with clicks", False)


def test_worlds_are_loaded(tab: Tab, client: Client) -> None:
    until(lambda: "race_track" in options(tab, "World"), "the worlds")
    for world in ("race_track", "floor"):
        tab.set("World", world)
        tab.set("Load world", True)
        has_gates = world == "race_track"
        until(
            lambda has_gates=has_gates: (len(options(tab, "Which")) > 2) == has_gates,
            world,
            READY_TIMEOUT,
        )


def test_topics_are_recorded_between_two_clicks(tab: Tab, client: Client, recordings: Path) -> None:
    tab.set("Record", True)
    until(lambda: re.search(r"[1-9]\d\d messages in", tab.text()), "messages in the file")
    client.reset()
    take_off(tab, client, 0.5)
    tab.set("Stop recording", True)
    until(lambda: tab.find("Record"), "the end")
    (path,) = recordings.iterdir()
    assert str(path) in tab.text()
    recording = Recording(path)
    heights = [
        frame.position[0, 2]
        for time_ns in range(recording.begin_ns, recording.end_ns, 50_000_000)
        if (frame := recording.frame(time_ns)) is not None
    ]
    assert min(heights) < 0.05 < 0.45 < max(heights)
    assert recording.world(recording.end_ns)
    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None and summary.statistics is not None
    topics = {channel.topic for channel in summary.channels.values()}
    assert {"/clock", "/cf0/pose", "/cf1/odom", "/tf_static", "/rosout"} <= topics
    with pytest.raises(ReplayError, match="only topics as a subscriber received them"):
        replay(path)


def test_plots_have_the_values_of_the_simulator_and_begin_anew(
    tab: Tab, port: int, client: Client
) -> None:
    """A file of a plot against messages that another process of ROS has received."""
    told: dict[int, tuple[float, ...]] = {}

    def note(message: Odometry) -> None:
        p = message.pose.pose.position
        told[time_ns(message.header.stamp)] = p.x, p.y, p.z

    subscription = client.node.create_subscription(Odometry, "cf0/odom", note, 50)
    client.until(lambda: told, "odometry")
    tab.set("Plot", "position")
    tab.set("Height [m]", 0.7)
    with ShellTab(port) as shell:
        shell.want("plot0")
        assert shell.next("plot0")["title"] == "position of cf0"
        tab.set("Flight", "Take off")
        arrives(client, (np.nan, np.nan, 0.7))
        assert shell.next("plot0")["rows"]
        until(lambda: float(table(shell, 0)[-1]["z set [m]"] or 0) > 0.699, "the end of the way")
        rows = table(shell, 0)
        client.pass_time(0.1)
        common = [row for row in rows if ns(row["time [s]"]) in told]
        assert len(common) > 10
        for row in common:
            shown = [float(row[f"{axis} [m]"]) for axis in "xyz"]
            np.testing.assert_allclose(shown, told[ns(row["time [s]"])], atol=1e-9)
        on_way = [row for row in rows if row["z set [m]"] and 0.1 < float(row["z [m]"]) < 0.6]
        assert all(abs(float(row["z [m]"]) - float(row["z set [m]"])) < 0.15 for row in on_way)
        tab.set("Reset cf0", True)
        until(lambda: ns(table(shell, 0)[0]["time [s]"]) > ns(rows[-1]["time [s]"]), "a new plot")
    client.node.destroy_subscription(subscription)


def table(shell: ShellTab, number: int) -> list[dict[str, str]]:
    """What a plot saves as a file."""
    shell.send("csv", number)
    file = shell.next("file")
    assert file["name"].endswith(".csv") and file["type"] == "text/csv"
    return list(csv.DictReader(io.StringIO(file["text"])))


def ns(seconds: str) -> int:
    whole, _, part = seconds.partition(".")
    return int(whole) * 10**9 + int(part)


def test_all_drones_and_sensors_are_plotted(tab: Tab, port: int, client: Client) -> None:
    with ShellTab(port) as shell:
        for name, head in (
            ("errors of all", ["cf0 [m]", "cf1 [m]"]),
            ("batteries of all", ["cf0 [%]", "cf1 [%]"]),
            ("range", ["range [m]"]),
        ):
            until(lambda name=name: name in options(tab, "Plot"), name)
            tab.set("Plot", name)
            rows = until(
                lambda head=head: [row for row in table(shell, 0) if [*row][1:] == head], name
            )
            if name == "batteries of all":
                assert 90 < float(rows[-1]["cf1 [%]"]) <= 100
        for content in (9, -1, True, "0", [0]):  # no plot
            shell.send("csv", content)
        tab.set("Plot", "position")
        until(lambda: "x [m]" in table(shell, 0)[0], "the position")


def test_the_map_shows_what_moves_and_what_is_clicked_on_flies(
    tab: Tab, port: int, client: Client
) -> None:
    tab.set("Height [m]", 0.5)
    with ShellTab(port) as shell:
        shell.want("map")
        first = shell.next("map")
        assert first["names"] == ["cf0", "cf1"] and first["names"][first["selected"]] == "cf0"
        for number, drone in enumerate(first["names"]):
            np.testing.assert_allclose(
                first["drones"][str(number)][:2], place(client, drone)[:2], atol=0.02
            )
        shell.send("map_send", [0.6, -0.4])
        shown, goals = first["drones"]["0"], []

        def is_there() -> bool:
            change = shell.next("map")
            assert "outlines" not in change and "1" not in change.get("drones", {})
            shown[:] = change.get("drones", {}).get("0", shown)
            goals.extend(change.get("goals", {}).values())
            return bool(np.abs(np.subtract(shown[:2], [0.6, -0.4])).max() < 0.02)

        until(is_there, "the drone on the map")
        assert [0.6, -0.4] in goals
        arrives(client, (0.6, -0.4, 0.5))
        shell.send("map_select", "cf1")
        until(lambda: tab.value("Drone") == "cf1", "the other drone")
        for content in ("nobody", 1, ["cf0"]):
            shell.send("map_select", content)
        for content in ([1], [1, 2, 3], ["1", "2"], [True, False], {"x": 1}, "there"):
            shell.send("map_send", content)
        shell.send("map_send", [1e9, 0])
        assert "more than 50 m" in shell.next("note")["text"]
        tab.set("Drone", "cf0")
        tab.find("Reset cf0")  # it is selected
        tab.set("Front right", 0.0)
        until(lambda: shell.next("map").get("down") == [0], "a crash on the map")
        tab.set("Reset cf0", True)
        until(lambda: shell.next("map").get("down") == [], "its end")
        shell.want("map", False)
        shell.send("csv", 0)
        until(lambda: shell.receive()[0] == "file", "the last message of the map")
        tab.set("Flight", "Take off")
        arrives(client, (np.nan, np.nan, 0.5))
        shell.send("csv", 0)
        kinds = [""]
        while kinds[-1] != "file":
            kinds.append(shell.receive()[0])
        assert "map" not in kinds
    assert place(client, "cf1")[2] < 0.05


def test_sensors_are_listed_with_readings_and_drawn(tab: Tab, port: int, client: Client) -> None:
    take_off(tab, client, 0.5)
    with ShellTab(port) as shell:
        shell.want("sensors")

        def row() -> dict[str, Any]:
            rows = {one["name"]: one for one in shell.next("sensors")["rows"]}
            return dict(rows.get("range", {}))

        until(lambda: re.fullmatch(r"0\.[45]\d\d m", row().get("text", "")), "a reading")
        assert row()["drawn"] is False
        shell.send("draw", ["range", True])
        until(lambda: row()["drawn"], "the switch")
        for content in ("range", ["nothing", True], [1, 2], [["range"], True]):
            shell.send("draw", content)
        shell.send("draw", ["range", False])
        until(lambda: row()["drawn"] is False, "the switch")


def test_a_camera_is_shown_or_how_to_get_one(tab: Tab, port: int, client: Client) -> None:
    """The picture comes from this process, as from any camera."""
    with ShellTab(port) as shell:
        shell.want("onboard cameras")
        shell.want("onboard picture")
        assert "sensors:=" in shell.next("onboard cameras")["text"]
        publisher = client.node.create_publisher(Image, "cf0/eye/image_raw", 1)
        until(lambda: shell.next("onboard cameras")["cameras"] == ["eye"], "the camera")
        client.until(publisher.get_subscription_count, "somebody who looks")
        message = Image(height=16, width=16, encoding="rgb8", data=bytes([200, 40, 40] * 256))

        def shown() -> Any:  # a reader that does not know of its publisher yet misses messages
            publisher.publish(message)
            kind, content = shell.receive()
            return content if kind == "onboard picture" else None

        with PIL.Image.open(io.BytesIO(until(shown, "the picture"))) as picture:
            np.testing.assert_allclose(np.asarray(picture)[8, 8], [200, 40, 40], atol=20)
        shell.want("onboard cameras", False)
        client.until(lambda: not publisher.get_subscription_count(), "nobody who looks")
        client.node.destroy_publisher(publisher)


@pytest.fixture(scope="module")
def page(browser: Any, port: int) -> Iterator[Any]:
    """The page in a browser; nothing on it may fail."""
    opened = BrowserTab(browser, f"http://127.0.0.1:{port}/{LOOK}", SIZE)
    opened.page.get_by_text("Take off").first.wait_for()
    yield opened.page
    assert not opened.errors


@needs_browser
def test_a_click_on_the_floor_in_a_browser(page: Any, tab: Tab, client: Client) -> None:
    tab.set("Height [m]", 0.5)
    page.mouse.click(SIZE[0] / 2, SIZE[1] / 2)
    arrives(client, (*MIDDLE, 0.5))


@needs_browser
def test_a_plot_moves_in_a_browser_and_is_made_large_and_saved(page: Any, tab: Tab) -> None:
    page.get_by_role("tab", name="Plots").click()
    image = "canvas => canvas.toDataURL()"
    small = page.locator("figure canvas.plot").first
    small.wait_for()
    before = small.evaluate(image)
    until(lambda: small.evaluate(image) != before, "another picture")
    page.get_by_role("button", name="Large").first.click()
    large = page.locator("#card-plot0 canvas.plot")
    large.wait_for()
    assert large.bounding_box()["width"] > small.bounding_box()["width"]
    with page.expect_download() as saved:
        page.locator("#card-plot0").get_by_role("button", name="PNG").click()
    with PIL.Image.open(saved.value.path()) as picture:
        assert picture.size == (2000, 1000)
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 10
    with page.expect_download() as saved:
        page.locator("#card-plot0").get_by_role("button", name="CSV").click()
    assert saved.value.suggested_filename == "position_of_cf0.csv"
    assert saved.value.path().read_text().startswith("time [s],x [m],")
    page.locator("#card-plot0").get_by_role("button", name="Close").click()
    large.wait_for(state="hidden")
    page.get_by_role("tab", name="Fly").click()


CUT_OFF = """() => {
    const block = element => {
        while (getComputedStyle(element).display === "inline") element = element.parentElement;
        return element;
    };
    return [...document.querySelectorAll("label, button, button *, [role=tab], td, strong, span")]
        .filter(element => element.textContent.trim() && element.getClientRects().length)
        .filter(element => {
            const text = document.createRange();
            text.selectNodeContents(element);
            const [inner, outer] = [text, block(element)].map(one => one.getBoundingClientRect());
            return inner.left < outer.left - 1 || inner.right > outer.right + 1
                || outer.left < 0 || outer.right > innerWidth;
        })
        .map(element => element.textContent);
}"""


@needs_browser
@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_no_label_is_cut_off(page: Any, tab: Tab, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    if size[0] < size[1]:  # a phone, whose panel begins closed
        page.get_by_role("button", name="Show controls").click()
    for name in ("Fly", "World", "Air", "Sensors", "Plots"):
        page.get_by_role("tab", name=name).click()
        for folder in ("Keys and gamepad", "Recording", "Log", "Show"):
            header = page.get_by_text(folder, exact=True)
            if name == "Fly" and header.count() and size[0] > 1000:
                header.click()
        assert page.evaluate(CUT_OFF) == [], name
    page.get_by_role("tab", name="Fly").click()
    page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})


def test_a_simulator_that_is_started_again_without_topics_of_the_swarm_is_followed(
    tab: Tab, client: Client, simulators: list[SimulatorProcess], port: int
) -> None:
    simulators[-1].end()
    with ShellTab(port) as shell:
        waits = until(
            lambda: [one for one in [shell.next("start")] if not one["is_there"]],
            "the page that waits",
        )[0]
        assert (waits["name"], waits["domain"]) == ("crazyflow", DOMAIN)
    again = [*ARGUMENTS, "publish_rates.swarm:=0", "drones:=[solo]"]
    simulators.append(SimulatorProcess(DOMAIN, again).__enter__())
    until(lambda: tab.value("Drone") == "solo", "the new drone")
    until(lambda: "race_track" in options(tab, "World"), "the worlds")
    tab.set("Flight", "Take off")
    tab.set("Time", "Pause")
    client.until(lambda: stands_still(client), "a clock that stands still")
