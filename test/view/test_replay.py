"""A recording answers why a drone crashed: events, explanations, plots, and a second run."""

from __future__ import annotations

import csv
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from browser import COARSE, needs_browser
from browser import Tab as BrowserTab
from crazyflie_interfaces.srv import Takeoff
from crazyflow_ros_interfaces.srv import SetMotorEfficiency
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from known_recordings import (
    NS,
    change,
    command,
    flight_event,
    reset,
    states,
    status,
    write,
)
from mcap.reader import make_reader
from nav_msgs.msg import Odometry
from numpy.testing import assert_allclose
from page_tab import ShellTab, Tab, free_port, until
from PIL import Image
from rcl_interfaces.msg import Log
from rclpy.serialization import deserialize_message
from ros_client import Client, RosProcess, SimulatorProcess, own_domain
from sensor_msgs.msg import BatteryState
from std_msgs.msg import String

from crazyflow_ros.view.recording import Recording, after_silence, every
from crazyflow_ros.view.replay import events as events_module
from crazyflow_ros.view.replay.events import Event
from crazyflow_ros.view.replay.player import Player
from crazyflow_ros.view.replay.run import Run
from crazyflow_ros.view.replay.run_comparison import Alignment, first_difference, shift_ns
from crazyflow_ros.view.replay.why import explain

DOMAIN = own_domain("test_replay")
PARAMETERS = {"drone_model": "cf2x_L250", "wind": [0.0, 0.0, 0.0]}
MS = 1_000_000  # ns


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded flight that a failing motor ends."""
    path = tmp_path_factory.mktemp("replay") / "crashed.mcap"
    arguments = [f"record:={path}", "battery:=true", "real_time_factor:=4.0"]
    with SimulatorProcess(DOMAIN, arguments) as simulator:
        client = Client(DOMAIN)
        events = client.collect(DiagnosticStatus, "/crazyflow/flight_events")
        told = client.collect(DiagnosticArray, "/crazyflow/status")
        client.call(Takeoff, "cf0/takeoff", height=0.6)
        client.pass_time(2.5)
        count = len(told)  # they come by wall time, and tell of the battery
        client.until(lambda: len(told) > count, "the status")
        client.call(SetMotorEfficiency, "cf0/set_motor_efficiency", motor=2, efficiency=0.0)
        client.until(lambda: any(e.message.startswith("crashed") for e in events), "a crash")
        client.close()
        assert simulator.end(signal.SIGINT)[0] == 0
    return path


@pytest.fixture(scope="module")
def run(crashed: Path) -> Run:
    return scanned(crashed)


def scanned(path: Path) -> Run:
    run = Run(Recording(path))
    run.scan(lambda _: True)
    return run


def messages(path: Path, topic: str, kind: Any) -> list[tuple[int, Any]]:
    """Times [ns] and messages of a topic, read with the library's own reader."""
    with path.open("rb") as file:
        found = make_reader(file).iter_messages([topic])
        return [(m.log_time, deserialize_message(m.data, kind)) for _, _, m in found]


def said(found: list[Event]) -> list[tuple[float, str, str, str]]:
    return [(event.time_ns / NS, event.drone, event.kind, event.text) for event in found]


def hover(seconds: float, period: float = 0.01, drones: str = "cf0") -> list[Any]:
    """States of drones that stand still."""
    places = {name: (row, 0.0, 0.5) for row, name in enumerate(drones.split())}
    return [states(round(k * period * NS), places) for k in range(round(seconds / period) + 1)]


# A real flight.


def test_events_stand_where_the_file_says(crashed: Path, run: Run) -> None:
    kept = [(event.time_ns, event.drone, event.text) for event in run.events]
    expected = messages(crashed, "/crazyflow/flight_events", DiagnosticStatus)
    assert any(message.message.startswith("crashed") for _, message in expected)
    assert {(time_ns, m.name, m.message) for time_ns, m in expected} <= set(kept)
    changes = [
        (time_ns, json.loads(message.data))
        for time_ns, message in messages(crashed, "/crazyflow/changes", String)
    ]
    (takeoff,) = (time_ns for time_ns, content in changes if "command" in content)
    (failure,) = (time_ns for time_ns, content in changes if "disturbance" in content)
    assert (takeoff, "cf0", "take off to 0.60 m") in kept
    assert (failure, "cf0", "motor 2 (rear left) gives 0% thrust") in kept
    assert [time_ns for time_ns, _, _ in kept] == sorted(time_ns for time_ns, _, _ in kept)


def test_a_crash_is_explained_by_what_led_to_it(crashed: Path, run: Run) -> None:
    (crash,) = (event for event in run.events if event.kind == "crashed")
    explanation = explain(run, crash, "")
    (failure,) = (event for event in run.events if event.kind == "motor")
    ago = (crash.time_ns - failure.time_ns) / NS
    assert "2 (rear left)" in explanation.cause and f"{ago:.2f} s" in explanation.cause
    assert failure in explanation.before
    facts = {fact.label: fact for fact in explanation.facts}
    odometry = dict(messages(crashed, "/cf0/odom", Odometry))[crash.time_ns]
    height, linear = odometry.pose.pose.position.z, odometry.twist.twist.linear
    assert facts["Height"].text.startswith(f"{height:.2f} m")
    speed = np.linalg.norm([linear.x, linear.y, linear.z])
    assert facts["Speed"].text.startswith(f"{speed:.2f} m/s")
    assert facts["Last command"].text.startswith("take off to 0.60 m")
    assert facts["Motors"].is_bad and facts["Tilt"].is_bad
    assert {"Battery", "Rotors", "Tracking error"} <= facts.keys()


def test_curves_have_the_reference(run: Run) -> None:
    track = run.overview.of("cf0")
    begin, end = (
        next(event.time_ns for event in run.events if event.kind == kind)
        for kind in ("take-off", "motor")
    )
    while_up = (track.times_ns > begin + 1.5 * NS) & (track.times_ns < end)
    np.testing.assert_allclose(track.reference[while_up, 2], 0.6, atol=0.1)
    assert np.nanmax(track.error[while_up]) < 0.1
    part = run.read(end - 300 * MS, end - 200 * MS, 1000).of("cf0")
    assert 0 < len(part.times_ns) <= 1000 and np.isfinite(part.error).all()


# Files with known content.


def test_all_that_a_file_may_say_becomes_events(tmp_path: Path) -> None:
    pose = PoseStamped()
    pose.pose.position.x = 1.5
    velocity, push = TwistStamped(), WrenchStamped()
    velocity.twist.linear.x, push.wrench.force.z = 0.5, -0.25
    running, paused = {"paused": "false"}, {"paused": "true"}
    entries = [
        *hover(3.0),
        *hover(8.0, drones="cf0 cf1")[310:],
        command(100 * MS, "cf0", "Takeoff", height=0.5, duration=0.0),
        command(200 * MS, "cf0", "GoTo", pos=[1, 0, 0.5], relative=True, duration=2.0),
        command(300 * MS, "cf0", "Land", height=0.0, duration=0.0),
        command(400 * MS, "cf0", "Emergency"),
        command(500 * MS, "cf0", "GoTo", pos="nonsense"),
        (600 * MS, "/cf0/cmd_pose", pose),
        (4600 * MS, "/cf1/power/battery", BatteryState(voltage=3.1, percentage=0.125)),
        *((k * 100 * MS, "/cf0/cmd_vel", velocity) for k in range(10, 20)),
        (4000 * MS, "/cf0/cmd_vel", velocity),
        (700 * MS, "/cf0/external_wrench", push),
        status(1000 * MS, running | {"battery of cf0": "3.90 V, 80%"}),
        status(2000 * MS, paused),
        status(2000 * MS, paused),
        status(2500 * MS, running | {"battery of cf0": "3.20 V, 15%"}),
        status(3500 * MS, running, {"cf1": "its state is not finite", "camera": "has failed"}),
        status(4500 * MS, running, {"cf1": "its state is not finite", "camera": "has failed"}),
        reset(5000 * MS, "cf0, cf1"),
        change(5100 * MS, disturbance={"kind": "Wind", "mean": [3, 0, 0], "gust_intensity": 1.0}),
        change(5200 * MS, disturbance={"kind": "BatteryCharge", "drone": "cf0", "charge": 0.5}),
        change(5300 * MS, names=["cf0", "cf1"], state={"pos": [[2, 0, 0.5], [1, 0, 0.5]]}),
        change(5350 * MS, request="untune", arguments={"name": "cf0"}),
        change(5400 * MS, disturbance={"kind": "nonsense"}),
        (5500 * MS, "/crazyflow/changes", String(data="{")),
        flight_event(6000 * MS, "cf0", "hit", "hit east at (0.00, 0.00, 0.50) m, and flies on"),
        (6100 * MS, "/rosout", Log(level=30, name="crazyflow", msg="cf0: hit east at (0.00, "
            "0.00, 0.50) m, and flies on (2 more in the last 5 s)")),
        (6200 * MS, "/rosout", Log(level=40, name="planner", msg="no way")),
    ]  # fmt: skip
    run = scanned(write(tmp_path / "all.mcap", sorted(entries, key=lambda e: e[0]), PARAMETERS))
    assert said(run.events) == [
        (0.1, "cf0", "take-off", "take off to 0.50 m"),
        (0.2, "cf0", "go_to", "go by (1.00, 0.00, 0.50) m in 2 s"),
        (0.3, "cf0", "landing", "land"),
        (0.4, "cf0", "emergency", "emergency stop: the rotors stop, and the drone is locked"),
        (0.5, "cf0", "GoTo", "GoTo"),
        (0.6, "cf0", "cmd_pose", "cmd_pose: fly to (1.50, 0.00, 0.00) m"),
        (0.7, "cf0", "push", "pushed with (0.00, 0.00, -0.25) N"),
        (1.0, "cf0", "cmd_vel", "cmd_vel: fly with (0.50, 0.00, 0.00) m/s"),
        (2.0, "", "pause", "paused"),
        (2.0, "", "resume", "resumed"),
        (2.5, "cf0", "battery low", "battery low: 3.20 V, 15% of its charge left"),
        (3.1, "cf1", "spawned", "spawned"),
        (3.5, "", "failure", "camera: has failed"),
        (3.5, "cf1", "lost", "lost: its state is not finite"),
        (4.0, "cf0", "cmd_vel", "cmd_vel: fly with (0.50, 0.00, 0.00) m/s"),
        (4.6, "cf1", "battery low", "battery low: 3.10 V, 12% of its charge left"),
        (5.0, "", "reset", "reset of all drones (state)"),
        (5.1, "", "wind", "mean wind (3.00, 0.00, 0.00) m/s, gusts of 1 m/s"),
        (5.2, "cf0", "battery replaced", "battery with 50% charge"),
        (5.3, "cf0", "moved", "moved to (2.00, 0.00, 0.50) m by hand"),
        (5.4, "", "nonsense", "nonsense"),
        (5.5, "", "unreadable", run.events[-3].text),
        (6.0, "cf0", "hit", "hit east at (0.00, 0.00, 0.50) m, and flies on"),
        (6.2, "", "log", "planner: no way"),
    ]
    assert "/crazyflow/changes" in run.events[-3].text


def test_too_many_events_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "MOST", 5)
    hits = [flight_event(k * MS, "cf0", "hit", f"hit {k}") for k in range(20)]
    crash = flight_event(30 * MS, "cf0", "crashed", "crashed")
    path = write(tmp_path / "many.mcap", [*hits, crash, *hover(1.0)[3:]], PARAMETERS)
    run = scanned(path)
    assert [event.kind for event in run.events] == ["hit"] * 5 + ["crashed"]
    assert run.left_out == {"hit": 15}


def test_a_contact_explains_what_follows(tmp_path: Path) -> None:
    places = [
        states(k * 10 * MS, {"cf0": (2.0 * k / 100, 0, 1), "cf1": (9, 9, 1)}) for k in range(150)
    ]
    entries = [
        *places,
        command(200 * MS, "cf0", "GoTo", pos=[5.0, 0.0, 1.0], duration=0.0),
        flight_event(1000 * MS, "cf0", "hit", "hit wall at (2.00, 0.00, 1.00) m, and flies on"),
        flight_event(1400 * MS, "cf0", "crashed", "crashed at (2.80, 0.00, 1.00) m: upside down"),
        flight_event(1450 * MS, "cf1", "crashed", "crashed at (9.00, 9.00, 1.00) m"),
    ]
    run = scanned(write(tmp_path / "hit.mcap", sorted(entries, key=lambda e: e[0]), PARAMETERS))
    crashes = [event for event in run.events if event.kind == "crashed"]
    first, second = (explain(run, event, "") for event in crashes)
    assert all(what in first.cause for what in ("wall at 0.00 m/s", "0.40 s", "(5.00, 0.00, 1.00)"))
    assert [event.kind for event in first.before] == ["go_to", "hit"]
    assert "wall" not in second.cause and second.before == []


def test_files_of_other_recorders_are_played(tmp_path: Path) -> None:
    origin = 1_700_000_000 * NS
    entries = [(origin + time_ns, topic, m) for time_ns, topic, m in hover(1.0)]
    recording = Recording(write(tmp_path / "rosbag2.mcap", entries))
    assert (recording.begin_ns, recording.zero_ns) == (origin, origin)
    assert recording.step_ns == 10 * MS and recording.seconds == 1.0
    assert len(recording.notes) == 1
    frame = recording.frame(origin + 500 * MS)
    assert frame is not None and frame.names == ("cf0",)
    unknown = {"drone_model": "elsewhere/my_drone"}
    assert "drawn as cf2x_L250" in Recording(write(tmp_path / "b.mcap", entries, unknown)).notes[0]


def test_files_without_states_say_which_topics_they_have(tmp_path: Path) -> None:
    other = write(tmp_path / "other.mcap", [(0, "/chatter", String(data="hello"))])
    with pytest.raises(ValueError, match="/chatter") as caught:
        Recording(other)
    assert str(other) in str(caught.value)


def test_few_messages_are_chosen_from_many() -> None:
    times, period = np.arange(0, 100, 3) * MS, every(10 * MS)
    chosen = np.concatenate([period(part) for part in np.split(times, [5, 20])])
    assert (times[chosen] // MS).tolist() == [0, 12, 21, 30, 42, 51, 60, 72, 81, 90]
    bursts, silence = np.array([0, 1, 2, 50, 51, 99]) * MS, after_silence(20 * MS)
    chosen = np.concatenate([silence(part) for part in np.split(bursts, [2])])
    assert (bursts[chosen] // MS).tolist() == [0, 50, 99]


def test_the_file_of_a_killed_simulator_is_played_to_its_end(tmp_path: Path) -> None:
    path = write(tmp_path / "killed.mcap", hover(4.0), PARAMETERS)
    whole = path.read_bytes()
    ends = []
    for size in (len(whole) * 3 // 4, len(whole) - 4, 3000):
        path.write_bytes(whole[:size])
        run = scanned(path)
        assert "no end" in run.recording.notes[0]
        last = run.recording.end_ns
        assert run.recording.frame(last) is not None and run.overview.times_ns[-1] == last
        ends.append(last / NS)
    assert ends[1] == 4.0 and 2.0 < ends[0] < 4.0 and 0.0 < ends[2] < 1.0


def test_a_world_that_cannot_be_read_is_noted(tmp_path: Path) -> None:
    entries = [(0, "/crazyflow/scene", String(data="x" * 200)), *hover(0.5)]
    recording = Recording(write(tmp_path / "a.mcap", entries, PARAMETERS))
    assert recording.world(0) == []
    assert len(recording.notes) == 1


def test_time_that_goes_back_is_noted(tmp_path: Path) -> None:
    twice = [*hover(2.0), *hover(2.0)]
    assert len(Recording(write(tmp_path / "a.mcap", twice, PARAMETERS)).notes) == 1
    assert Recording(write(tmp_path / "b.mcap", hover(2.0), PARAMETERS)).notes == []


# Two runs.


def ramps(begin: float, slope: float, seconds: float = 6.0) -> list[Any]:
    """A drone that rises from `begin` [s] on, and goes along x with `slope` [m/s] 2 s later."""
    times = np.arange(0, seconds, 0.01)
    z = np.clip(times - begin, 0.0, 1.0)
    x = slope * np.maximum(times - begin - 2.0, 0.0)
    return [
        states(round(t * NS), {"cf0": (along, 0.0, up), "cf1": (9.0, 9.0, 0.0)})
        for t, along, up in zip(times.tolist(), x.tolist(), z.tolist())
    ]


def test_runs_differ_where_they_were_made_to(tmp_path: Path) -> None:
    first = scanned(write(tmp_path / "a.mcap", ramps(1.0, 0.5), PARAMETERS))
    same = scanned(write(tmp_path / "b.mcap", ramps(1.0, 0.5), PARAMETERS))
    late = scanned(write(tmp_path / "c.mcap", ramps(1.5, 0.4), PARAMETERS))
    shift = shift_ns(first, same, Alignment.START)
    assert shift == 0
    assert first_difference(first.recording, same.recording, 0, 0.001) is None
    found = first_difference(first.recording, late.recording, 0, 0.2)
    assert found is not None and found.drone == "cf0"
    assert found.time_ns == pytest.approx(1.2 * NS, abs=0.02 * NS)  # one rises, one does not
    assert found.distance == pytest.approx(0.2, abs=0.02)
    shift = shift_ns(first, late, Alignment.TAKEOFF)
    assert shift == pytest.approx(0.5 * NS, abs=0.03 * NS)
    found = first_difference(first.recording, late.recording, round(0.5 * NS), 0.1)
    assert found is not None and found.drone == "cf0"
    assert found.time_ns == pytest.approx(4.0 * NS, abs=0.02 * NS)  # 0.1 m/s apart from 3 s on
    still = scanned(write(tmp_path / "d.mcap", hover(1.0), PARAMETERS))
    assert shift_ns(first, still, Alignment.TAKEOFF) is None


# Time.


def test_the_player_plays_stops_and_loops() -> None:
    player = Player(10 * NS, 20 * NS)
    player.advance(1.5)
    assert player.time_ns == round(11.5 * NS)
    player.speed = 2.0
    player.advance(100.0)
    assert player.time_ns == 20 * NS  # the end is seen
    player.advance(0.1)
    assert player.time_ns == 10 * NS and player.plays
    player.loops = False
    player.advance(100.0)
    assert player.time_ns == 20 * NS and not player.plays
    player.toggle()
    assert player.time_ns == 10 * NS and player.plays
    player.play_slowly(15 * NS)
    assert player.time_ns == 13 * NS and player.speed == 0.25
    for _ in range(200):
        player.advance(0.1)
    assert player.time_ns == round(15.5 * NS) and not player.plays
    player.stop(99 * NS)
    assert player.time_ns == 20 * NS
    player.seek(0)
    assert player.time_ns == 10 * NS


# The page.


class ReplayShell(ShellTab):
    """The shell of a tab: the latest message of each kind."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.shown: dict[str, Any] = {}

    def ask(self, do: str, **more: Any) -> None:
        self.send("replay", {"do": do, **more})

    def until(self, condition: Any, what: str) -> Any:
        """Wait until a condition holds for what is shown."""

        def holds() -> Any:
            if not (found := condition(self.shown)):  # what stays the same is not sent again
                self.shown.update([self.receive()])
            return found

        return until(holds, what)


class SceneTab(Tab):
    """A tab that knows all places at which something was drawn [mm]."""

    def __init__(self, port: int) -> None:
        self.drawn: set[tuple[int, ...]] = set()
        super().__init__(port)

    def _take_frame(self, content: dict[str, Any], frame: bytes) -> None:
        lengths = content.get("binaryBufferLengths", [])
        ends = len(frame) - sum(lengths) + np.cumsum(lengths, dtype=int)
        for end, length in zip(ends.tolist(), lengths):
            if length % 12 == 0:
                places = np.frombuffer(frame[end - length : end], np.float32).reshape(-1, 3)
                places = places[np.isfinite(places).all(axis=1)]
                self.drawn.update(map(in_mm, places.tolist()))


def in_mm(place: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(1000 * value) for value in place)


@pytest.fixture(scope="module")
def port(crashed: Path) -> Iterator[int]:
    with page_of(crashed) as port:
        yield port


@contextmanager
def page_of(*paths: Path) -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "crazyflow_ros.view", *map(str, paths), "--port", str(port)]
    with RosProcess(command, DOMAIN) as process:
        process.wait_for("The page is at")
        yield port
        assert process.end()[0] == 0


def test_whatever_a_tab_asks_the_page_plays_on(port: int) -> None:
    nonsense = [
        *(None, [], "x", {"do": ["seek"]}, {"do": "nonsense"}, {"do": "seek", "t": "1"}),
        *({"do": "seek"}, {"do": "seek", "t": 1e300}, {"do": "step", "n": 10**9}),
        *({"do": "event", "run": 5, "number": 0}, {"do": "event", "run": 0, "number": -1}),
        *({"do": "event"}, {"do": "speed", "value": 1e9}, {"do": "select", "drone": ["cf0"]}),
        *({"do": "window", "begin": 5, "end": 1}, {"do": "align", "value": "nonsense"}),
        *({"do": "limit", "value": -1}, {"do": "mode", "value": {}}, {"do": "loop"}),
    ]
    with ReplayShell(port) as shell:
        shell.until(lambda shown: shown.get("events", {}).get("share") == 1, "all events")
        for content in nonsense:
            shell.send("replay", content)
        shell.ask("seek", t=1.25)
        shell.until(lambda shown: shown.get("player", {}).get("t") == 1.25, "a time")
        assert not shell.shown["player"]["plays"]
        assert shell.shown["recording"]["notes"] == []


def check_files(tab: BrowserTab, recording: Path) -> None:
    """The plots as a table have the heights of the file, and as a picture they are one."""
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="Save the curves").click()
    with Path(saved.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    heights = np.array([[row["time [s]"], row["Height: z [m]"]] for row in rows], float)
    odometry = messages(recording, "/cf0/odom", Odometry)
    times = np.array([time_ns / NS for time_ns, _ in odometry])
    expected = np.interp(heights[:, 0], times, [m.pose.pose.position.z for _, m in odometry])
    assert len(rows) > 100 and {row["run"] for row in rows} == {recording.stem}
    assert_allclose(heights[:, 1], expected, atol=2e-3)
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="Save the plots").click()
    with Image.open(saved.value.path()) as picture:
        assert picture.format == "PNG" and min(picture.size) > 200


def test_the_map_shows_where_a_drone_has_crashed(crashed: Path, port: int, run: Run) -> None:
    (crash,) = (event for event in run.events if event.kind == "crashed")
    place = dict(messages(crashed, "/cf0/odom", Odometry))[crash.time_ns].pose.pose.position
    with ShellTab(port) as shell:
        shell.send("replay", {"do": "seek", "t": run.recording.begin_ns / NS})
        shell.want("map")
        first = shell.next("map")
        assert (first["names"], first["down"], first["canSend"]) == (["cf0"], [], False)
        shell.send("replay", {"do": "seek", "t": crash.time_ns / NS})
        change = shell.next("map")
        assert change["down"] == [0]
        assert change["drones"]["0"][:2] == pytest.approx([place.x, place.y], abs=0.006)


@needs_browser
def test_a_click_on_the_crash_shows_the_drone_then_and_why(
    browser: Any, crashed: Path, port: int, run: Run
) -> None:
    (crash,) = (event for event in run.events if event.kind == "crashed")
    place = dict(messages(crashed, "/cf0/odom", Odometry))[crash.time_ns].pose.pose.position
    with SceneTab(port) as scene:
        tab = BrowserTab(browser, f"http://127.0.0.1:{port}/?{COARSE}#t=0.5")
        bar = tab.page.get_by_role("slider", name="Time")
        bar.wait_for()
        tab.page.wait_for_function("replay.known.player?.t === 0.5")  # of the address
        mark = tab.page.locator(f".mark[data-time='{crash.time_ns / NS:g}']")
        mark.wait_for()
        begin, end = run.recording.begin_ns, run.recording.end_ns
        share = (crash.time_ns - begin) / (end - begin)
        box, marked = bar.bounding_box(), mark.bounding_box()
        middle = marked["x"] + marked["width"] / 2
        assert middle == pytest.approx(box["x"] + share * box["width"], abs=2)
        scene.drawn.clear()
        mark.click(force=True)  # a software renderer is never still
        card = tab.page.get_by_role("region", name="Explanation of the event")
        card.get_by_text("Motor 2 (rear left) gives 0% thrust").first.wait_for()
        assert float(bar.get_attribute("aria-valuenow") or "nan") == crash.time_ns / NS
        assert tab.page.evaluate("replay.known.player.drone") == "cf0"
        drawn = in_mm((place.x, place.y, place.z))
        until(lambda: drawn in scene.drawn, f"the drone drawn at {drawn} mm, not {scene.drawn}")
        tab.page.wait_for_function(f"location.hash === '#t={crash.time_ns / NS:g}'")
        tab.page.keyboard.press("Escape")
        card.wait_for(state="hidden")
        tab.page.keyboard.press("Home")
        tab.page.wait_for_function("replay.known.player.t === replay.known.recording.begin")
        tab.page.keyboard.press("ArrowRight")
        tab.page.wait_for_function("replay.known.player.t > replay.known.recording.begin")
        tab.page.keyboard.press("Space")
        tab.page.get_by_role("button", name="Pause").wait_for()
        tab.page.keyboard.press("g")
        check_files(tab, crashed)
        assert tab.errors == []
        tab.close()


def test_a_second_run_is_compared(tmp_path: Path) -> None:
    first = write(tmp_path / "one.mcap", ramps(1.0, 0.5), PARAMETERS)
    crash = flight_event(5000 * MS, "cf0", "crashed", "crashed at (1.00, 0.00, 1.00) m")
    entries = sorted([*ramps(1.5, 0.4), crash], key=lambda entry: entry[0])
    second = write(tmp_path / "other.mcap", entries, PARAMETERS)
    with page_of(first, second) as port, ReplayShell(port) as shell:
        found = shell.until(lambda shown: shown.get("difference", {}).get("t"), "a difference")
        assert found == pytest.approx(1.11, abs=0.03)
        assert "other" in shell.shown["recording"]["names"]
        shell.ask("align", value="first take-off")
        shell.until(lambda shown: (shown["difference"]["t"] or 0) > 3.5, "another alignment")
        assert shell.shown["difference"]["t"] == pytest.approx(4.0, abs=0.05)
        assert shell.shown["difference"]["drone"] == "cf0"
        with SceneTab(port) as scene:
            shell.ask("event", run=1, number=0)
            shell.until(lambda shown: shown.get("card"), "a card")
            assert shell.shown["card"]["t"] == pytest.approx(4.5, abs=0.03)
            shell.until(lambda shown: shown["player"]["drone"] == "cf0 (2)", "a selected ghost")
            shell.until(lambda shown: len(shown["curves"]["runs"]) == 2, "curves of both")
            until(lambda: (600, 0, 1000) in scene.drawn, "the ghost in its place")
