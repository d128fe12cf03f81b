"""Every command, with a running simulator: in this process, which saves hundreds of starts.

What a process has of its own, such as its exit code and signals, is tested with processes.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rclpy
import yaml
from command_processes import TIMEOUT, Done, command, environment, run_python
from description_corpus import stl
from mcap.reader import make_reader
from paths import ROOT
from rclpy.context import Context
from rclpy.node import Node
from ros_client import Client, SimulatorProcess, own_domain

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")
pytest.importorskip("crazyflow_ros_interfaces.srv", reason="not installed")

DOMAIN = own_domain("test_running_commands")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def simulator(checkpoints: Path) -> Iterator[SimulatorProcess]:
    """With room for a drone and for shapes, so that nothing is compiled later."""
    arguments = ["drones:=[cf0,cf1]", "real_time_factor:=4.0", "max_drones:=3"]
    arguments += ["scene:=race_track", f"checkpoint_folder:={checkpoints}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))  # of the commands in this process
        with SimulatorProcess(DOMAIN, arguments) as process:
            said("world load floor")
            yield process


@pytest.fixture(scope="module")
def client(simulator: SimulatorProcess) -> Iterator[Client]:
    with Client(DOMAIN) as client:
        yield client


@pytest.fixture
def standing(simulator: SimulatorProcess, client: Client) -> SimulatorProcess:
    """Time goes on, and all drones are at their start."""
    client.pause(False)
    client.reset()
    return simulator


def run(words: str) -> Done:
    return run_python(DOMAIN, "-m", "crazyflow_ros", *shlex.split(words))


def said(words: str, folder: Path = ROOT) -> str:
    """What a command prints that succeeds."""
    done = command(words, folder)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def refused(words: str, code: int = 1, folder: Path = ROOT) -> str:
    """Why a command is refused."""
    return reason(command(words, folder), code)


def reason(done: Done, code: int) -> str:
    """What a refused command says."""
    assert (done.returncode, done.stdout) == (code, ""), (done.args, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return problem(done.stderr)


def problem(told: str) -> str:
    """What a process says on its standard error; on a busy machine it may also have waited."""
    return "".join(line for line in told.splitlines(True) if not line.startswith("[INFO]"))


def each(function: Callable[[str], str], *words: str) -> list[str]:
    """The results of several commands."""
    return [function(one) for one in words]


def test_processes(standing: SimulatorProcess) -> None:
    """They print, exit and find their simulator as the commands of the other tests do."""
    listed = run("list")
    assert listed.returncode == 0 and re.search(r"^cf1 +idle +\(", listed.stdout, re.M)
    assert not problem(listed.stderr)
    assert "there is no drone 'cf7', have cf0, cf1" in reason(run("takeoff cf7"), 1)
    assert "from 1 on, not 0" in reason(run("step 0"), 2)


def test_flights(standing: SimulatorProcess) -> None:
    assert re.fullmatch(r"cf1 hovers at \(0\.50, -0\.50, 0\.[67]\d\) m\n", said("takeoff cf1 0.7"))
    place = "(0.5"
    assert said("go-to cf1 0.5 0.5 0.8 --duration 2").startswith(f"cf1 hovers at {place}")
    listed = said("list").splitlines()
    assert listed[0].split() == ["drone", "state", "position"]
    assert re.match(r"cf0 +idle +\(-0\.50, -0\.50, 0\.01\) m", listed[1])
    assert re.match(r"cf1 +flying +\(0\.5", listed[2])
    assert len(listed) == 3
    low = refused("go-to cf1 0.5 0.5 -1")
    assert re.match(r"go-to: cf1 has not arrived .* it rests 1\.\d\d m from its goal, at", low)
    # cf0 flies although cf1 is refused.
    told = refused("takeoff all 0.5")
    assert "cf1/takeoff is refused" in told and "cf0/takeoff" not in told
    assert re.search(r"^cf0 +flying +\(.*0\.[45]\d\) m$", said("list"), re.M)
    landed = said("land all").splitlines()
    assert [line.partition(" at ")[0] for line in landed] == ["cf0 stands", "cf1 stands"]
    assert "land: cf1/land is refused: cf1: land needs a drone in the air" in refused("land cf1")
    unknown, stands = each(refused, "takeoff cf7", "takeoff cf0 -1")
    assert "takeoff: there is no drone 'cf7', have cf0, cf1" in unknown
    assert stands.startswith("takeoff: cf0/takeoff is refused: ")


def test_stopped_rotors_and_resets(standing: SimulatorProcess) -> None:
    assert said("emergency cf1") == "rotors of cf1 are stopped, until a reset\n"
    assert re.search(r"^cf1 +locked .*\n\ncf1: locked", said("list"), re.M | re.S)
    assert "cf1: it is locked" in refused("takeoff cf1")
    assert said("reset cf1") == "cf1 is back at its start\n"
    assert said("reset") == "all drones are back at their start\n"
    assert said("disarm cf0") == "disarmed: cf0\n" and said("arm all") == "armed: cf0, cf1\n"


def test_time(standing: SimulatorProcess) -> None:
    stands = re.fullmatch(r"time stands still at (\d+\.\d{3}) s\n", said("pause"))
    assert stands
    begin = float(stands[1])
    assert said("step").endswith(f"time stands still at {begin + 0.002:.3f} s\n")
    assert said("step 500") == f"500 ticks later, time stands still at {begin + 1.002:.3f} s\n"
    # Without time nobody arrives; where the drones are is known nevertheless.
    assert refused("takeoff cf0") == "takeoff: time stands still: resume the simulation first\n"
    status, listed = each(said, "status", "list")
    assert re.search(r"^simulation +paused$", status, re.M)
    assert re.search(rf"^time +{begin + 1.002:.3f} s, tick \d+$", status, re.M)
    assert re.search(r"^cf0 +idle +\(-0\.50, -0\.50, 0\.01\) m$", listed, re.M)
    none, negative = each(lambda words: refused(words, 2), "step 0", "step -4")
    assert "from 1 on, not 0" in none and "from 1 on, not -4" in negative
    assert said("resume") == "time goes on\n"
    assert refused("step 5") == "step: the simulation is not paused\n"


def test_drones_and_objects_come_and_go(standing: SimulatorProcess) -> None:
    # Time goes on, in which it settles on the floor.
    assert re.fullmatch(r"new is at \(2\.00, 0\.00, 0\.0[0-2]\) m\n", said("spawn new 2 0"))
    assert said("spawn g 3 1 0.5 1.57 --model gate") == "g is at (3.00, 1.00, 0.50) m\n"
    listed = said("list")
    assert re.search(r"^new +idle +\(2\.00", listed, re.M) and listed.endswith("\nobjects: g\n")
    assert re.match(r"new hovers at \(2\.00, 0\.00", said("takeoff new 0.5"))
    taken, other, unknown, file, gone = each(
        refused, "spawn new", "spawn b --model hb_x500", "spawn b --model gat",
        "spawn b --model ./gat.xml", "remove nw",
    )  # fmt: skip
    assert taken == "spawn: new exists already: choose another name\n"
    assert "all drones of this simulator are cf2x_L250: start one with drone_model:=hb" in other
    assert "there is no object 'gat', and no file of that name; did you mean 'gate'?" in unknown
    assert f"there is no file {ROOT / 'gat.xml'}" in file
    assert gone == "remove: there is no drone or object 'nw'; did you mean 'new'?\n"
    assert said("remove new") == "new is removed\n" and said("remove g") == "g is removed\n"
    assert "new" not in said("list")


def test_worlds(standing: SimulatorProcess, tmp_path: Path) -> None:
    listed, current, first = each(said, "world list", "world current", "param get scene")
    assert {line.split()[0] for line in listed.splitlines()} >= {"floor", "room", "race_track"}
    assert (current, first) == ("floor\n", "race_track\n")
    assert "did you mean 'race_track'?" in refused("world load race_trak")
    assert said("world load race_track").startswith("world race_track is loaded; time stands")
    assert "\nobjects: gate0, gate1" in said("list")
    assert said("world unload").startswith("no world is loaded any more")
    nothing, still = each(refused, "world current", "takeoff cf0")
    assert nothing == "world current: no world is loaded\n"
    assert still == "takeoff: time stands still: no world is loaded\n"
    assert "no world is loaded" in said("list")
    assert said("world load floor").startswith("world floor is loaded")
    # Time has jumped back to its start, where it stands still. A file of this folder goes as text.
    (tmp_path / "wall.xml").write_text("<mujoco><body name='wall'><geom size='1'/></body></mujoco>")
    inner = "<worldbody><geom type='plane' size='0 0 1'/><include file='wall.xml'/></worldbody>"
    (tmp_path / "yard.xml").write_text(f"<mujoco model='yard'>{inner}</mujoco>")
    assert said("world load yard.xml", tmp_path).startswith("world yard is loaded")
    assert said("list").endswith("\nobjects: wall\n")
    mesh = "<mujoco><asset><mesh name='m' file='m.stl'/></asset></mujoco>"
    (tmp_path / "mesh.xml").write_text(mesh)
    assert "mesh.xml" in refused("world load mesh.xml", folder=tmp_path)  # which is not there
    (tmp_path / "m.stl").write_bytes(stl())
    needs = refused("world load mesh.xml", folder=tmp_path)
    assert f"start the simulator with world_folders:=[{tmp_path}]" in needs
    assert said("world load floor").startswith("world floor is loaded")
    assert said("resume") == "time goes on\n"
    assert "cf0 hovers at" in said("takeoff cf0 0.5")


def test_wind(standing: SimulatorProcess) -> None:
    assert said("wind set 2 0") == "wind is 2.0 m/s from the west, without gusts\n"
    assert said("wind get") == "wind is 2.0 m/s from the west, without gusts\n"
    assert said("param get wind") == "[2.0, 0.0, 0.0]\n"
    assert "wind must be within 30 m/s" in refused("wind set 100 0")
    assert said("wind set 0 0 --gusts 0") == "there is no wind\n"


def test_parameters(standing: SimulatorProcess, tmp_path: Path) -> None:
    assert said("param set real_time_factor 3") == "real_time_factor is 3.0\n"
    got, flight, described, fixed = each(
        said, "param get real_time_factor", "param list flight.auto",
        "param describe gust_intensity", "param describe freq",
    )  # fmt: skip
    assert got == "3.0\n" and flight.split() == ["flight.auto_arm", "true"]
    assert "from 0 to 10" in described and "while running" in described
    assert "only at the start" in fixed
    unknown, negative, text, late = each(
        refused, "param get wnd", "param set real_time_factor -1",
        "param set real_time_factor fast", "param set scene room",
    )  # fmt: skip
    assert "there is no parameter 'wnd'; did you mean 'wind'?" in unknown
    assert all("real_time_factor" in told for told in (negative, text))
    assert "scene can only be set at the start" in late
    said("param dump all.yaml", tmp_path)
    content = said("param dump")
    assert content == (tmp_path / "all.yaml").read_text()
    check_is_read_by_rcl(tmp_path / "all.yaml")
    assert "have these values already" in said("param load all.yaml", tmp_path)
    values = yaml.safe_load(content)
    own = values["/crazyflow"]["ros__parameters"]
    own["real_time_factor"], own["flight"]["speed"] = 4.0, 0.0
    (tmp_path / "changed.yaml").write_text(yaml.safe_dump(values))
    assert said("param load changed.yaml", tmp_path) == "real_time_factor is 4.0\n"
    own["real_time_factor"], own["freq"] = 2.0, 1000
    (tmp_path / "late.yaml").write_text(yaml.safe_dump(values))
    assert "freq can only be set at the start" in refused("param load late.yaml", folder=tmp_path)
    assert said("param get real_time_factor") == "4.0\n"  # all or none
    (tmp_path / "other.yaml").write_text("/other: {ros__parameters: {a: 1}}")
    (tmp_path / "broken.yaml").write_text("a: [")
    for file, reason in (
        ("other", "no parameters of /crazyflow, but of /other"),
        ("broken", "line "),
        ("nothing", "No such file"),
    ):
        assert reason in refused(f"param load {file}.yaml", 2, tmp_path)


def check_is_read_by_rcl(file: Path) -> None:
    """A node of this name starts with a file of parameters, which rcl reads."""
    context = Context()
    rclpy.init(args=["--ros-args", "--params-file", str(file)], context=context)
    try:
        node = Node(
            "crazyflow", context=context, automatically_declare_parameters_from_overrides=True
        )
        assert node.get_parameter("drones").value == ["cf0", "cf1"]
        assert node.get_parameter("publish_rates.odom").value == 100
        node.destroy_node()
    finally:
        context.try_shutdown()


def test_topics_and_services(standing: SimulatorProcess) -> None:
    topics, odometry, services, every, rate = each(
        said, "topics", "topics 'cf0*nav_msgs/msg/Od'", "services takeoff", "services --all",
        "hz /clock --once",
    )  # fmt: skip
    assert "/cf0/odom" in topics and "/_action/" not in topics
    assert odometry.split() == ["/cf0/odom", "nav_msgs/msg/Odometry"]
    names = [line.split()[0] for line in services.splitlines()]
    of_all = ["/all/takeoff", "/crazyflow/drones/takeoff"]
    assert sorted(names) == sorted([*of_all, "/cf0/takeoff", "/cf1/takeoff"])
    assert "/crazyflow/get_parameters" in every
    assert re.fullmatch(r"[\d.]+ messages a second, [\d.]+ a simulated second\n", rate)
    pose, covariances, latched, relative = each(
        said, "echo /cf1/pose --once", "echo /cf1/odom --once",
        "echo /cf0/robot_description --once", "echo cf0/imu --once",
    )  # fmt: skip
    assert yaml.safe_load(pose.removesuffix("---\n"))["header"]["frame_id"] == "map"
    assert re.search(r"covariance:\n  - [\d.e-]+\n  - 0\.0\n", covariances)  # arrays of NumPy
    assert "<robot" in latched and "angular_velocity" in relative
    for told, hint in zip(
        each(refused, "echo /cf0/odm", "hz /cf0/rang", "call /crazyflow/stp", "pub /cf0/cm_pose"),
        ("/cf0/odom", "/cf0/range", "/crazyflow/step", "/cf0/cmd_pose"),
    ):
        assert f"did you mean '{hint}'?" in told


def test_messages_and_requests_of_any_type(standing: SimulatorProcess) -> None:
    goal = "{pose: {position: {x: 0.5, z: 0.8}, orientation: {w: %s}}}"
    sent = said(f"pub /cf0/cmd_pose --once '{goal % 1.0}'")
    assert sent == "1 message sent to /cf0/cmd_pose, which has 1 subscriber\n"
    zero = refused(f"pub /cf0/cmd_pose --once '{goal % 0}'")
    assert zero.startswith("pub: cf0/cmd_pose is ignored: ") and "quaternion" in zero
    several = "--rate 50 --times 25 '{twist: {linear: {z: 0.2}}}'"
    assert said(f"pub cf1/cmd_vel {several}").startswith("25 messages sent to cf1/cmd_vel, ")
    assert re.search(r"^cf1 +(flying|taking off)", said("list"), re.M)
    nobody, no_type = each(
        refused, "pub /nobody --type std_msgs/msg/Empty", "pub /nobody --type std_msgs/msg/Empt"
    )
    assert "nobody subscribes to /nobody" in nobody and "std_msgs/msg/Empt" in no_type
    answer = yaml.safe_load(said("call crazyflow/get_current_world"))
    assert answer["world"]["name"] in ("floor", "race_track")
    assert said("call /all/land '{duration: {sec: 2}}'") == "/all/land is done\n"
    battery, early, wrong = each(
        refused, "call /cf0/set_battery '{charge: 7}'", "call /crazyflow/step",
        "call /cf0/go_to '{goal: {x: .nan}}'",
    )  # fmt: skip
    assert battery.startswith("call: ") and early == "call: the simulation is not paused\n"
    assert "cf0/go_to is refused" in wrong
    for told, reason in zip(
        each(
            lambda words: refused(words, 2),
            "call /cf0/takeoff '{hight: 1.0}'",
            "call /cf0/takeoff '{height: high}'",
            "call /cf0/takeoff '{height: 1'",
            "pub /cf0/cmd_pose '[1, 2]' --once",
            "pub /cf0/cmd_pose --times 0",
            "pub /cf0/cmd_pose --rate 0",
        ),
        ("did you mean 'height'?", "height is a number", "is not YAML", "has fields", "--times",
         "--rate"),
    ):  # fmt: skip
        assert reason in told


def test_transforms(standing: SimulatorProcess) -> None:
    said("takeoff cf1 0.6")
    found, static, unknown = (
        said("transform map cf1/base_link"),
        said("transform cf1/base_link cf1/range_link"),
        refused("transform map cf1/base_lnk"),
    )
    assert re.search(r"^position +\(0\.5\d*, -0\.[45]\d*, 0\.[56]\d*\) m$", found, re.M)
    assert re.search(r"^time +\d+\.\d{3} s$", found, re.M) and re.search(r"time +all", static)
    assert "there is no frame 'cf1/base_lnk'; did you mean 'cf1/base_link'?" in unknown


def test_the_script_of_the_page(standing: SimulatorProcess) -> None:
    page = (ROOT / "docs" / "guides" / "command_line.md").read_text()
    block = page.rpartition("## From Python")[2]
    script = "".join(line[4:] + "\n" for line in block.splitlines() if line.startswith("    "))
    done = run_python(DOMAIN, "-c", script)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^cf7 idle \[ ?2\. +-?0\. +0\.0", done.stdout, re.M)
    assert re.search(r"^\[ ?2\.", done.stdout.splitlines()[-1])
    assert said("remove cf7") == "cf7 is removed\n" and "west" in said("wind get")
    said("wind set 0 0")


LISTENER = """
import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from tf2_ros import TransformException
from tf2_ros.buffer import Buffer
from tf2_ros.static_transform_broadcaster import StaticTransformBroadcaster
from tf2_ros.transform_broadcaster import TransformBroadcaster
from tf2_ros.transform_listener import TransformListener

class Listener(Node):
    def __init__(self):
        super().__init__("listener", parameter_overrides=[
            rclpy.Parameter("use_sim_time", value=True)])
        self.buffer = Buffer()
        self.listener = TransformListener(self.buffer, self)
        self.static = StaticTransformBroadcaster(self)
        self.static.sendTransform(self.message("cf1/range_link", "mount", 0.25))
        self.moving = TransformBroadcaster(self)
        self.timer = self.create_timer(0.1, self.look)

    def message(self, parent, child, z):
        made = TransformStamped(child_frame_id=child)
        made.header.frame_id = parent
        made.header.stamp = self.get_clock().now().to_msg()
        made.transform.translation.z = z
        return made

    def look(self):
        self.moving.sendTransform(self.message("mount", "carrot", 1.0))
        try:
            found = self.buffer.lookup_transform("map", "carrot", rclpy.time.Time())
        except TransformException as error:
            self.get_logger().info(f"not yet: {error}")
            return
        at = found.transform.translation
        print(at.x, at.y, at.z)
        raise SystemExit

rclpy.init()
try:
    rclpy.spin(Listener())
except SystemExit:
    pass
"""


def test_a_transform_listener_as_courses_have_it(standing: SimulatorProcess) -> None:
    pytest.importorskip("tf2_ros", reason="make setup installs it")
    done = run_python(DOMAIN, "-c", LISTENER)
    assert done.returncode == 0, done.stderr
    x, y, z = map(float, done.stdout.split())
    # The sensor looks down, along its x axis, so that its z axis points ahead.
    assert (round(x, 1), round(y, 1)) == (1.8, -0.5) and -0.05 < z < 0.05


def test_checkpoints(standing: SimulatorProcess, checkpoints: Path, tmp_path: Path) -> None:
    said("takeoff cf0 0.5")
    path = re.escape(str(checkpoints / "hover.npz"))
    written = said("checkpoint save hover.npz", tmp_path)  # whatever folder this is
    assert re.fullmatch(path + r" written, at tick \d+\n", written)
    said("land cf0")
    restored = said("checkpoint restore hover.npz", tmp_path)
    assert re.fullmatch(path + r" loaded, at tick \d+\n", restored)
    assert re.search(r"^cf0 +flying +\(.*0\.[45]\d\) m$", said("list"), re.M)
    missing = refused("checkpoint restore hoover.npz")
    assert "no checkpoint 'hoover.npz', only hover.npz; did you mean 'hover.npz'?" in missing
    elsewhere = refused(f"checkpoint save {tmp_path}/hover.npz")
    assert "checkpoint must be the name of a file, without '/'" in elsewhere
    (checkpoints / "other.npz").write_text("no checkpoint")
    assert "other.npz is not a checkpoint" in refused("checkpoint restore other.npz")
    assert "other.npz is not replaced" in refused("checkpoint save other.npz")


def test_a_recording_in_the_background(standing: SimulatorProcess, tmp_path: Path) -> None:
    assert "nothing is being recorded" in refused("record stop")
    started = said("record start flight.mcap", tmp_path)
    assert (
        started == f"all topics are recorded into {tmp_path / 'flight.mcap'}, until record stop\n"
    )
    assert "a recording is under way" in refused("record start other.mcap", folder=tmp_path)
    said("takeoff cf0 0.3")
    stopped = re.fullmatch(r"(\d+) messages in (.*)\n", said("record stop"))
    assert stopped and stopped[2] == str(tmp_path / "flight.mcap")
    with (tmp_path / "flight.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None and summary.statistics is not None
    assert summary.statistics.message_count == int(stopped[1]) > 100
    assert "/cf0/odom" in {channel.topic for channel in summary.channels.values()}
    exists, nowhere = each(
        lambda file: refused(f"record start {file}", folder=tmp_path), "flight.mcap", "no/f.mcap"
    )
    assert f"{tmp_path / 'flight.mcap'} exists already" in exists
    assert "nothing is recorded: " in nowhere and "no/f.mcap" in nowhere


@contextmanager
def start(words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a command, which ends with the block at the latest."""
    command = [sys.executable, "-m", "crazyflow_ros", *shlex.split(words)]
    options |= {"env": environment(DOMAIN), "cwd": ROOT, "text": True}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_ends_quietly(standing: SimulatorProcess, client: Client) -> None:
    with start("echo /cf0/odom") as echo, start("pub /cf1/cmd_vel '{}' --rate 5") as publish:
        assert echo.stdout is not None and echo.stdout.readline() == "header:\n"
        seen = client.node.count_publishers
        client.until(lambda: seen("/cf1/cmd_vel"), "publisher", timeout=TIMEOUT)
        for process in (echo, publish):
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=TIMEOUT)
            assert process.returncode == 130 and not problem(told)


def test_ctrl_c_during_a_flight_says_that_the_drone_flies_on(
    standing: SimulatorProcess, client: Client
) -> None:
    with start("takeoff cf0 5 --duration 600") as flight:
        client.until(lambda: "taking off" in said("list"), "the take-off", timeout=TIMEOUT)
        flight.send_signal(signal.SIGINT)
        _, told = flight.communicate(timeout=TIMEOUT)
        assert flight.returncode == 130
        assert problem(told).strip() == "cf0 flies on, nobody waits for it any more"


def test_output_that_nobody_reads_is_no_error(standing: SimulatorProcess) -> None:
    for words, line in (("echo /cf0/odom", "header:\n"), ("topics --all", "/all")):
        piped = f"{sys.executable} -m crazyflow_ros {words} | head -n 1"
        done = subprocess.run(
            piped, shell=True, env=environment(DOMAIN), timeout=TIMEOUT, text=True,
            capture_output=True, check=False, cwd=ROOT,
        )  # fmt: skip
        assert done.stdout.startswith(line) or words.startswith("topics")
        assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_a_simulator_in_a_namespace_that_starts_paused(standing: SimulatorProcess) -> None:
    """At time 0, where its clock repeats that; another simulator is there, too."""
    arguments = ["-r", "__ns:=/a", "-r", "/clock:=clock", "-r", "/tf:=tf", "-r"]
    arguments += ["/tf_static:=tf_static", "-p", "start_paused:=true", "-p", "drones:=[b0,b1]"]
    arguments += ["-p", "dynamics:=so_rpy", "-p", "publish_rates.odom:=0"]
    with SimulatorProcess(DOMAIN, arguments):
        for wait in (2, 5, 20, 60):  # a busy machine finds them late
            missing = refused(f"list --namespace /b --wait {wait}")
            if "/a/" in missing:
                break
        assert f"there is no simulator /b/crazyflow in ROS domain {DOMAIN}, waited" in missing
        assert "there is /a/crazyflow, /crazyflow" in missing
        assert re.search(r"^b1 +idle", said("list --namespace /a"), re.M)
        assert said("resume --namespace /a") == "time goes on\n"
        assert "b0 hovers at" in said("takeoff b0 0.5 --namespace /a")
        found, told = (
            said("transform map b0/base_link --namespace /a"),
            said("echo b0/pose --once --namespace /a"),
        )
        assert re.search(r"^position +\(.*, 0\.[45]\d*\) m$", found, re.M)
        assert "frame_id: map" in told
        calm = refused("wind set 2 0 --namespace /a")
        assert "wind needs first_principles or so_rpy_rotor_drag" in calm
        low = refused("pub b0/cmd_pose '{pose: {position: {x: .nan}}}' --once --namespace /a")
        assert low.startswith("pub: b0/cmd_pose is ignored: ")
