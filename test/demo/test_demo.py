import io
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
from geometry_msgs.msg import PoseStamped
from paths import ROOT
from rclpy.serialization import serialize_message
from ros_client import Client, own_domain
from std_srvs.srv import Empty

from crazyflow_ros.client.progress import ProgressLine
from crazyflow_ros.client.simulator_process import SimulatorError, SimulatorProcess
from crazyflow_ros.demo.arguments import Arguments, WrongArgument, usage
from crazyflow_ros.demo.client import STOREY
from crazyflow_ros.demo.messages import read_pose, read_poses
from crazyflow_ros.demo.place import ROOM_PADS, place_parameters
from crazyflow_ros.demo.record import Record, Track
from crazyflow_ros.demo.trajectory import (
    ALTITUDE,
    MOST_LAG,
    SHORTEST,
    SIZE,
    FigureEightPath,
    FlightPath,
    Glide,
    plan_flight,
)
from crazyflow_ros.drones import Drone

PAD = np.array([0.5, -0.5, 0.014])


def differences(
    flight: FlightPath | Glide | FigureEightPath, duration: float
) -> tuple[float, float]:
    """Largest difference of velocity and acceleration from finite differences."""
    step = 1e-3
    times = np.arange(0, duration + step / 2, step)
    motion = flight(times)
    vel = (motion.pos[2:] - motion.pos[:-2]) / (2 * step)
    acc = (motion.vel[2:] - motion.vel[:-2]) / (2 * step)
    return np.abs(vel - motion.vel[1:-1]).max(), np.abs(acc - motion.acc[1:-1]).max()


@pytest.mark.parametrize(
    "segment",
    [
        Glide(PAD, 2 * PAD, 2.5),
        FigureEightPath(PAD, SIZE, laps=2, duration=16.0),
        FigureEightPath(PAD, SIZE, laps=1, duration=7.0),
    ],
)
def test_segment_has_true_derivatives_and_rests_at_its_ends(
    segment: Glide | FigureEightPath,
) -> None:
    vel, acc = differences(segment, segment.duration)
    assert vel < 1e-5
    assert acc < 1e-3  # its derivative jumps where the phase has reached its rate
    ends = segment(np.array([0.0, segment.duration]))
    assert np.allclose(ends.vel, 0, atol=1e-12)
    assert np.allclose(ends.acc, 0, atol=1e-12)


def test_figure_eight_has_its_size_and_crosses_its_centre() -> None:
    figure = FigureEightPath(PAD, SIZE, laps=2, duration=16.0)
    offset = figure(np.linspace(0, 16, 16001)).pos - PAD
    assert np.allclose(offset.max(axis=0), SIZE, atol=1e-4)
    assert np.allclose(offset.min(axis=0), -SIZE, atol=1e-4)
    middle = figure(np.array([8.0]))
    assert np.allclose(middle.pos, PAD)
    assert np.linalg.norm(middle.vel) > 0.5


@pytest.mark.parametrize("duration", [SHORTEST, 30.0, 31.7, 120.0])
@pytest.mark.parametrize("lag", [0.0, MOST_LAG / 3, MOST_LAG])
def test_flight_is_smooth_moderate_and_as_long_as_asked(duration: float, lag: float) -> None:
    flight = plan_flight(PAD, duration, lag)
    assert flight.duration == pytest.approx(duration)
    vel, acc = differences(flight, duration)
    assert vel < 1e-5
    assert acc < 2e-3  # the third derivative jumps where segments join
    motion = flight(np.linspace(0, duration, 5000))
    assert np.linalg.norm(motion.vel, axis=1).max() < 1.2
    assert np.linalg.norm(motion.acc, axis=1).max() < 2.0


def test_flight_starts_and_ends_on_its_pad() -> None:
    flight = plan_flight(PAD, 30.0)
    start, up, end, later = flight(np.array([-1.0, flight.airborne[0], 30.0, 40.0])).pos
    assert np.array_equal(start, PAD)
    assert np.allclose(up, [*PAD[:2], ALTITUDE])
    assert np.allclose(end, PAD)
    assert np.array_equal(later, end)


def test_drones_on_a_grid_stay_apart() -> None:
    times = np.linspace(0, 30, 3000)
    pads = [np.array([x, y, 0.014]) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    lags = np.linspace(0, MOST_LAG, 4)
    for i, a in enumerate(pads):
        for j, b in enumerate(pads):
            if a is b:
                continue
            pair = plan_flight(a, 30.0, lags[i]), plan_flight(b, 30.0, lags[j])
            distance = np.linalg.norm(pair[0](times).pos - pair[1](times).pos, axis=1)
            assert distance.min() > 0.45


@pytest.mark.parametrize(("duration", "lag"), [(SHORTEST - 1, 0), (np.nan, 0), (30, -0.1), (30, 2)])
def test_impossible_flights_are_refused(duration: float, lag: float) -> None:
    with pytest.raises(ValueError, match="got"):
        plan_flight(PAD, duration, lag)


def test_arguments_have_defaults_and_are_read() -> None:
    assert Arguments.parse([]).n_drones == 4
    given = Arguments.parse(["n_drones:=1", "real_time_factor:=0", "plot:=a/b.svg"])
    assert (given.n_drones, given.real_time_factor, given.plot) == (1, 0.0, "a/b.svg")
    assert Arguments.parse(["view:=false"]) == Arguments.parse([])
    assert "n_drones:=4" in usage() and "view:=false" in usage()


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
    parameters = place_parameters(Arguments.parse(words.split()))
    assert parameters.get("scene") == scene
    numbers = parameters.get("initial_poses", "").strip("[]").split(",")
    assert len(list(filter(None, numbers))) == 3 * poses


def test_what_make_sim_passes_on_is_understood() -> None:
    made = subprocess.run(
        ["make", "-n", "sim", "VIEW=1", "CAMERAS=1", "ARGS=duration:=20"], cwd=ROOT, text=True,
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    (words,) = re.findall(r"-m crazyflow_ros\.demo (.*)", made)
    given = Arguments.parse(words.split())
    assert (given.view, given.duration) == (True, 20.0)
    assert (ROOT / given.sensors).is_file()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("n_drones:=0", "n_drones: expected a whole number from 1 to 1000, got '0'"),
        ("n_drones:=two", "got 'two'"),
        ("real_time_factor:=-1", "real_time_factor: expected a number of at least 0, got '-1'"),
        ("real_time_factor:=nan", "got 'nan'"),
        ("view:=yes", "view: expected true or false, got 'yes'"),
        ("duration:=5", "duration: expected a number of at least 20, got '5'"),
        ("drone_model:=dji", f"one of {', '.join(Drone)}, got 'dji'"),
        ("plot:=flight", "ends in .png"),
        ("drones:=4", "there is no argument 'drones', only n_drones"),
        ("--fast", "expected name:=value, got '--fast'"),
    ],
)
def test_bad_arguments_are_refused_by_name(word: str, message: str) -> None:
    with pytest.raises(WrongArgument) as error:
        Arguments.parse([word])
    assert message in str(error.value)


def flown(offset: float = 0.0, end: float = 30.0, name: str = "cf0") -> Track:
    """A drone that flies `offset` above its path and lands."""
    flight = plan_flight(PAD, 30.0)
    times = np.arange(0, end, 0.02)
    pos = flight(times).pos + np.array([0, 0, offset])
    pos[:, 2] = np.maximum(pos[:, 2], PAD[2])
    return Track(name, flight, times, pos)


def test_record_measures_the_error_in_the_air() -> None:
    track = flown(0.015)
    assert track.mean_error == pytest.approx(0.015)
    assert track.max_error == pytest.approx(0.015)
    record = Record((track, flown(0.01, name="cf1")), simulated=30.5, elapsed=61.0, received=3000)
    assert record.factor == 0.5
    assert record.problems() == []
    assert "0.015 m" in record.summary() and "3000 messages received, 0 lost" in record.summary()


@pytest.mark.parametrize(
    ("track", "message"),
    [
        (flown(0.021), "mean tracking error 0.021 m, has to be below 0.02 m"),
        (flown(end=20.0), "above where it started"),
        (flown(end=2.0), "no pose was received"),
    ],
)
def test_record_tells_what_went_wrong(track: Track, message: str) -> None:
    problems = Record((flown(name="cf7"), track), 30.0, 30.0, 1).problems()
    assert any(message in problem for problem in problems)
    assert all(problem.startswith("cf0") for problem in problems)


def without(track: Track, lost: list[int]) -> Track:
    """The same flight, of which some poses did not arrive."""
    return replace(
        track, times=np.delete(track.times, lost), pos=np.delete(track.pos, lost, axis=0)
    )


@pytest.mark.parametrize(
    ("lost", "gaps"),
    [
        ([], 0),
        ([500], 1),
        ([500, 501, 502, 900], 2),
        ([0, 1, 2], 0),
        ([*range(1400, 1500)], 0),
        ([0, 700, 701, 1499], 1),
    ],
)
def test_lost_poses_are_counted(lost: list[int], gaps: int) -> None:
    track = without(flown(), lost)
    assert track.lost == len(lost)
    assert len(track.gaps) == gaps
    record = Record((track, flown(name="cf1")), 30.0, 30.0, 3000 - len(lost))
    assert f", {len(lost)} lost" in record.summary()


def test_hardly_any_pose_has_no_gaps() -> None:
    for kept in (0, 1):
        track = without(flown(), [*range(kept, 1500)])
        assert track.gaps.size == 0 and track.lost == 0
        assert "no pose was received" in track.problems()[0]


@pytest.fixture
def plot() -> Any:
    return pytest.importorskip("crazyflow_ros.demo.plot", exc_type=ImportError)


def lines(axes: Any, label: str) -> np.ndarray:
    """(2, K) what is drawn under a label."""
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return np.array(line.get_data(), float)


@pytest.mark.parametrize("count", [1, 9])
def test_plot_is_drawn(plot: Any, count: int, tmp_path: Path) -> None:
    tracks = tuple(flown(0.01 * i, name=f"cf{i}") for i in range(count))
    plot.save_plot(Record(tracks, 30.5, 30.5, 100), tmp_path / "flight.png")
    assert (tmp_path / "flight.png").read_bytes().startswith(b"\x89PNG")


def test_plot_of_a_drone_that_was_never_heard_of_is_drawn(plot: Any, tmp_path: Path) -> None:
    silent = without(flown(name="cf1"), [*range(1500)])
    plot.save_plot(Record((silent,), 30.0, 30.0, 0), tmp_path / "flight.png")
    title = plot.draw(Record((flown(0.01), silent), 30.0, 30.0, 0)).get_suptitle()
    assert "mean error 1.0 cm" in title


def test_lines_are_interrupted_where_messages_were_lost(plot: Any) -> None:
    lost = [*range(600, 640), 1000]
    figure = plot.draw(Record((without(flown(), lost), flown(name="cf1")), 30.0, 30.0, 2959))
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
    title = plot.draw(Record((flown(),), 30.0, 30.0, 1500)).get_suptitle()
    assert title == "1 drone, 30 s at real-time factor 1, mean error 0.0 cm"
    one = plot.draw(Record((without(flown(), [7]),), 30.0, 30.0, 1499)).get_suptitle()
    assert "1 message lost" in one


def test_the_limit_is_drawn_and_named(plot: Any) -> None:
    error = plot.draw(Record((flown(0.015),), 30.0, 30.0, 1500)).axes[2]
    assert "limit for the mean error: 2 cm" in [text.get_text() for text in error.texts]
    assert [2.0, 2.0] in [list(line.get_ydata()) for line in error.lines]
    assert np.nanmax(lines(error, "cf0")[1]) == pytest.approx(1.5)  # cm, as the limit


@pytest.mark.parametrize("count", [1, 8])
def test_few_drones_are_in_the_legend(plot: Any, count: int) -> None:
    tracks = tuple(flown(name=f"cf{i}") for i in range(count))
    figure = plot.draw(Record(tracks, 30.0, 30.0, 100))
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
    figure = plot.draw(Record(tracks, 30.0, 30.0, 100))
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


def test_serialised_poses_are_read_together() -> None:
    messages = []
    for sec, nanosec, x in ((7, 999_999_999, 1.5), (0, 0, -2.5), (2**31 - 1, 20_000_000, 1e-300)):
        message = PoseStamped()
        message.header.frame_id = "map"
        message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
        message.pose.position.x, message.pose.position.z = x, 3 * x
        messages.append(serialize_message(message))
    times_ns, pos = read_poses(messages)
    for message, time_ns, place in zip(messages, times_ns.tolist(), pos):
        expected_ns, expected = read_pose(message)
        assert time_ns == expected_ns and np.array_equal(place, expected)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_stays_on_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgressLine, "REFRESH", 0.0)
    stream = Terminal()
    progress = ProgressLine(stream)
    progress.show(1.0, 30.0, "a long story")
    progress.show(2.0, 30.0, "landing")
    progress.close()
    first, second = stream.getvalue().strip("\r\n").split("\r")
    assert "1.0 of 30.0 s" in first and "2.0 of 30.0 s" in second
    assert len(second) >= len(first)
    assert "\n" not in stream.getvalue()[:-1]


def test_progress_is_sparse_elsewhere() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)
    for second in range(20):
        progress.show(second, 30.0, "landing")
    progress.close()
    assert stream.getvalue().count("\n") == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (occupied := tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(SimulatorError, match=f"cannot write {occupied}/simulator.log .*folder"):
        SimulatorProcess({}, occupied / "simulator.log")


def test_simulator_that_fails_is_reported_with_its_log(tmp_path: Path) -> None:
    parameters = {"drone_model": "no_such_drone"}
    with SimulatorProcess(parameters, tmp_path / "log") as simulator:
        simulator.wait(60)
        with pytest.raises(SimulatorError, match="no_such_drone"):
            simulator.check()


Demo = Callable[..., "subprocess.Popen[str]"]
COMMAND = [sys.executable, "-m", "crazyflow_ros.demo"]


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


def test_drones_take_off_fly_and_land(demo: Demo, tmp_path: Path) -> None:
    process = demo("n_drones:=2", "real_time_factor:=0", "duration:=20")
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 0, output
    assert "cf1" in output and "messages received" in output
    assert (tmp_path / "flight.png").stat().st_size > 10_000


def test_a_warning_of_the_simulator_is_a_failure_that_is_named(demo: Demo, tmp_path: Path) -> None:
    floor, egg = '<geom type="plane" size="0 0 1"/>', 'name="egg" type="ellipsoid" size="1 1 1"'
    (scene := tmp_path / "egg.xml").write_text(
        f'<mujoco><worldbody>{floor}<geom {egg} pos="9 9 1"/></worldbody></mujoco>'
    )
    process = demo("n_drones:=1", "real_time_factor:=0", "duration:=20", f"scene:={scene}")
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 1, output
    (failure,) = re.findall(r"^FAILED: .*", output, re.MULTILINE)
    assert "simulator's log says [WARN]" in failure and "fly through the ellipsoid egg" in failure


def test_a_drone_that_does_not_land_is_a_failure_that_is_named(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = own_domain(__name__)
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
    process = demo("n_drones:=2", "real_time_factor:=2", "duration:=20")
    read_until(process, "tracking error")
    with Client(domain) as client:
        client.call(Empty, "cf1/emergency")
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 1, output
    assert "FAILED: cf1: it is locked, has to be landed" in output
    assert "FAILED: cf0" not in output


def test_client_flies_the_drones_of_a_simulator_in_a_namespace() -> None:
    environment = {**os.environ, "ROS_DOMAIN_ID": str(1 + os.getpid() % 100)}
    fleet = ["--ros-args", "-r", "__ns:=/fleet"]
    parameters = ["drones:=[alpha,beta]", "start_paused:=true", "real_time_factor:=0.0"]
    settings = [word for parameter in parameters for word in ("-p", parameter)]
    simulator = subprocess.Popen(
        [sys.executable, "-m", "crazyflow_ros", *fleet, *settings], env=environment
    )
    client = [sys.executable, "-m", "crazyflow_ros.demo.flight", *fleet, "-p", "duration:=20"]
    try:
        flight = subprocess.run(
            client, env=environment, capture_output=True, text=True, timeout=180, check=False
        )
        assert flight.returncode == 0, flight.stderr
        assert "beta" in flight.stdout
    finally:
        simulator.terminate()
        assert simulator.wait(5) == 0


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


def test_a_busy_machine_is_told_of_and_is_no_fault_of_the_simulator(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    left_out = "[WARN] [1.0] [crazyflow]: sensors: readings were left out 2 times so far: they take"
    (log := tmp_path / "simulator.log").write_text(f"[INFO] [0.5] [crazyflow]: ready\n{left_out}\n")
    simulator = SimulatorProcess.__new__(SimulatorProcess)
    simulator.log = log
    assert not simulator.has_complained()
    assert capfd.readouterr().err == f"the simulator's log says {left_out}\n"
    log.write_text(f"{left_out}\n[ERROR] [2.0] [crazyflow]: cf0 crashed\n")
    assert simulator.has_complained()
    assert "FAILED: the simulator's log says [ERROR]" in capfd.readouterr().err
