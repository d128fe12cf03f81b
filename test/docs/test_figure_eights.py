"""`make sim`: its arguments, its picture, and that it leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from figure_eight_tracks import flown, without
from figure_eights import ROOM_PADS, arguments, parameters
from paths import ROOT
from ros_client import Client, own_domain
from std_srvs.srv import Empty

from crazyflow_ros.client.figure_eight import FlightRecord, plan_flight
from crazyflow_ros.client.figure_eight.flight_path import ALTITUDE, MOST_LAG
from crazyflow_ros.client.figure_eight.formation import STOREY


def test_arguments_have_defaults_and_are_read() -> None:
    assert arguments([]).n_drones == 4
    given = arguments(["n_drones:=1", "real_time_factor:=0", "plot:=a/b.svg"])
    assert (given.n_drones, given.real_time_factor, given.plot) == (1, 0.0, Path("a/b.svg"))
    assert arguments(["view:=false"]) == arguments([])


def test_a_flight_that_is_shown_has_the_room_to_itself() -> None:
    """All drones keep away from what is in it: measured by MuJoCo, for the largest drone."""
    spec = mujoco.MjSpec.from_file(str(ROOT / "urdf_mjcf" / "room.xml"))
    ball = spec.worldbody.add_body(name="ball", mocap=True)
    radius = 0.4  # m, more than the hb_x500 with its rotors
    ball.add_geom(name="ball", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0])
    model = spec.compile()
    data = mujoco.MjData(model)
    others = [number for number in range(model.ngeom) if model.geom(number).name != "floor"]
    others.remove(model.geom("ball").id)
    for number, pad in enumerate(ROOM_PADS):
        path = plan_flight(
            np.array([*pad, 0.08]), 30.0, MOST_LAG * number / 3, ALTITUDE + STOREY * number
        )
        for place in path(np.arange(0.0, 30.0, 0.05)).pos:
            data.mocap_pos[0] = place
            mujoco.mj_kinematics(model, data)
            for other in others:
                distance = mujoco.mj_geomDistance(
                    model, data, model.geom("ball").id, other, 1.0, None
                )
                assert distance > 0, f"pad {number} at {place}: {model.geom(other).name}"


@pytest.mark.parametrize(
    ("words", "scene", "poses"),
    [
        ("", None, 0),
        ("view:=true", "room", 4),
        ("view:=true n_drones:=1 drone_model:=hb_x500", "room", 1),
        ("view:=true n_drones:=5", None, 0),
        ("view:=true scene:=race_track", "race_track", 0),
        ("scene:=room n_drones:=2", "room", 2),
    ],
)
def test_the_scene_is_the_room_where_it_is_shown(words: str, scene: str | None, poses: int) -> None:
    values = parameters(arguments(words.split()))
    assert values.get("scene") == scene
    numbers = values.get("initial_poses", "").strip("[]").split(",")
    assert len(list(filter(None, numbers))) == 3 * poses


def test_what_make_sim_passes_on_is_understood() -> None:
    made = subprocess.run(
        ["make", "-n", "sim", "VIEW=1", "CAMERAS=1", "ARGS=duration:=20"], cwd=ROOT, text=True,
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    (words,) = re.findall(r"figure_eights\.py (.*)", made)
    given = arguments(words.split())
    assert (given.view, given.duration) == ("true", 20.0)
    assert (ROOT / given.sensors).is_file()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("n_drones:=0", "n_drones: expected a number from 1 to 1000, got '0'"),
        ("n_drones:=two", "n_drones: invalid int value: 'two'"),
        ("real_time_factor:=-1", "real_time_factor: expected a number at least 0, got '-1'"),
        ("real_time_factor:=nan", "got 'nan'"),
        ("view:=yes", "view: invalid choice: 'yes'"),
        ("duration:=5", "duration: expected a number at least 20, got '5'"),
        ("drone_model:=dji", "there is no drone 'dji', only "),
        ("plot:=flight", "ends in .png"),
        ("drones:=4", "unrecognized arguments: --drones=4"),
        ("--fast", "expected name:=value, got '--fast'"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    word: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        arguments([word])
    assert error.value.code == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def plot() -> Any:
    return pytest.importorskip("flight_plot", exc_type=ImportError)


def lines(axes: Any, label: str) -> np.ndarray:
    """(2, K) what is drawn under a label."""
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return np.array(line.get_data(), float)


@pytest.mark.parametrize("count", [1, 9])
def test_plot_is_drawn(plot: Any, count: int, tmp_path: Path) -> None:
    tracks = tuple(flown(0.01 * i, name=f"cf{i}") for i in range(count))
    plot.save_plot(FlightRecord(tracks, 30.5, 30.5, 100), tmp_path / "flight.png")
    assert (tmp_path / "flight.png").read_bytes().startswith(b"\x89PNG")


def test_plot_of_a_drone_that_was_never_heard_of_is_drawn(plot: Any, tmp_path: Path) -> None:
    silent = without(flown(name="cf1"), [*range(1500)])
    plot.save_plot(FlightRecord((silent,), 30.0, 30.0, 0), tmp_path / "flight.png")
    title = plot.draw(FlightRecord((flown(0.01), silent), 30.0, 30.0, 0)).get_suptitle()
    assert "mean error 1.0 cm" in title


def test_lines_are_interrupted_where_messages_were_lost(plot: Any) -> None:
    lost = [*range(600, 640), 1000]
    figure = plot.draw(FlightRecord((without(flown(), lost), flown(name="cf1")), 30.0, 30.0, 2959))
    assert "41 messages lost" in figure.get_suptitle()
    above, side, error = figure.axes
    for axes in (above, side, error):
        interrupted = np.isnan(lines(axes, "cf0")).any(axis=0)
        assert interrupted.sum() == 2
        assert not np.isnan(lines(axes, "cf1")).any()
    times, _ = lines(error, "cf0")
    assert np.nanmax(np.diff(times)) < 0.021  # what is connected is one message apart
    assert np.flatnonzero(np.isnan(times)).tolist() == [600, 961]
    for axes, plane in ((above, [0, 1]), (side, [0, 2])):
        path = lines(axes, "cf0")
        assert np.array_equal(path[:, 601], flown().pos[640, plane])


def test_title_tells_of_lost_messages_only_if_there_are_any(plot: Any) -> None:
    title = plot.draw(FlightRecord((flown(),), 30.0, 30.0, 1500)).get_suptitle()
    assert title == "1 drone, 30 s at real-time factor 1, mean error 0.0 cm"
    one = plot.draw(FlightRecord((without(flown(), [7]),), 30.0, 30.0, 1499)).get_suptitle()
    assert "1 message lost" in one


def test_the_limit_is_drawn_and_named(plot: Any) -> None:
    error = plot.draw(FlightRecord((flown(0.015),), 30.0, 30.0, 1500)).axes[2]
    assert "limit for the mean error: 2 cm" in [text.get_text() for text in error.texts]
    assert [2.0, 2.0] in [list(line.get_ydata()) for line in error.lines]
    assert np.nanmax(lines(error, "cf0")[1]) == pytest.approx(1.5)  # cm, as the limit


@pytest.mark.parametrize("count", [1, 8])
def test_few_drones_are_in_the_legend(plot: Any, count: int) -> None:
    tracks = tuple(flown(name=f"cf{i}") for i in range(count))
    figure = plot.draw(FlightRecord(tracks, 30.0, 30.0, 100))
    (legend,) = figure.legends
    entries = zip(legend.get_texts(), legend.get_lines())
    colours = {text.get_text(): line.get_color() for text, line in entries}
    assert list(colours) == [*(track.name for track in tracks), "planned"]
    for axes in figure.axes:
        drawn = {line.get_label(): line.get_color() for line in axes.lines}
        assert all(drawn[track.name] == colours[track.name] for track in tracks)


@pytest.mark.parametrize(("count", "named"), [(9, 9), (16, 16), (32, 16), (40, 14), (100, 15)])
def test_a_colour_bar_names_many_drones(plot: Any, count: int, named: int) -> None:
    track = flown()
    tracks = tuple(replace(track, name=f"cf{i}") for i in range(count))
    figure = plot.draw(FlightRecord(tracks, 30.0, 30.0, 100))
    above, _, _, bar = figure.axes
    names = [text.get_text() for text in bar.get_yticklabels()]
    assert (len(names), names[0], names[-1]) == (named, "cf0", f"cf{count - 1}")
    assert bar.yaxis_inverted()  # the first one is on top, as in a legend
    drawn = {line.get_label(): line.get_color() for line in above.lines}
    (patches,) = (
        c for c in bar.collections if hasattr(c, "get_cmap") and c.get_array() is not None
    )
    for name, place in zip(names, bar.get_yticks()):
        assert patches.to_rgba(place) == pytest.approx(drawn[name])


Demo = Callable[..., "subprocess.Popen[str]"]
COMMAND = [sys.executable, str(ROOT / "examples" / "18_figure_eights" / "figure_eights.py")]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """Starts the demonstration, and ends it if it is still there."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, f"plot:={tmp_path}/flight.png", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"ROS_DOMAIN_ID": str(own_domain(__name__))},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"the demonstration ended without {text!r}")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int, within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_a_warning_of_the_simulator_is_a_failure_that_is_named(demo: Demo, tmp_path: Path) -> None:
    (scene := tmp_path / "sea.xml").write_text(
        '<mujoco><option density="1000"/><worldbody><geom type="plane" size="0 0 1"/></worldbody>'
        "</mujoco>"
    )
    process = demo("n_drones:=1", "real_time_factor:=0", "duration:=20", f"scene:={scene}")
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 1, output
    (failure,) = re.findall(r"^FAILED: .*", output, re.MULTILINE)
    assert "simulator's log says [WARN]" in failure and "the density of the medium" in failure


def test_a_drone_that_does_not_land_is_a_failure_that_is_named(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = own_domain(__name__)
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
    process = demo("n_drones:=2", "real_time_factor:=3", "duration:=20")
    with Client(domain) as client:
        read_until(process, "tracking error")
        client.call(Empty, "cf1/emergency")
        assert client.set_parameter("real_time_factor", 0.0).successful
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 1, output
    assert "FAILED: cf1: it is locked, has to be landed" in output
    assert "FAILED: cf0" not in output


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(demo: Demo, number: signal.Signals) -> None:
    process = demo("n_drones:=1")
    read_until(process, " ready")
    (simulator,) = children(process.pid)
    os.kill(process.pid, number)
    code = process.wait(timeout=10)
    assert gone(simulator, within=5)
    assert code == (130 if number is signal.SIGINT else -number)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
def test_death_of_the_simulator_is_reported(demo: Demo) -> None:
    process = demo("n_drones:=1")
    read_until(process, " ready")
    os.kill(children(process.pid)[0], signal.SIGKILL)
    output, _ = process.communicate(timeout=10)
    assert process.returncode == 1
    assert "the simulator ended by signal 9" in output
