"""Recording to MCAP: what is in the file, and what happens when it cannot be written."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from images import can_draw
from mcap.exceptions import McapError
from mcap.reader import make_reader
from mcap.records import Channel, Footer, Message
from mcap.stream_reader import StreamReader
from mcap_ros2.decoder import DecoderFactory
from paths import ROOT
from rclpy.logging import get_logger
from rclpy.qos import QoSProfile
from ros_client import (
    READY_TIMEOUT,
    TIMEOUT,
    Client,
    SimulatorProcess,
    numbers,
    own_domain,
    stamp_ns,
    time_ns,
)
from rosbags.highlevel import AnyReader
from scipy.spatial.transform import Rotation
from std_msgs.msg import String
from wire import check

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.ros.equipment import new_recorder
from crazyflow_ros.ros.messages.message_definitions import type_of
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.recording import recorder as recorder_module
from crazyflow_ros.ros.recording.recorder import Recorder

DOMAIN = own_domain("test_record")


def decoded(path: Path) -> dict[str, list[tuple[int, Any]]]:
    """Time and message of each topic in a file, read without rclpy."""
    found = defaultdict(list)
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, message, content in reader.iter_decoded_messages(log_time_order=False):
            found[channel.topic].append((message.log_time, content))
    return found


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded flight of one second, and a bit that is not complete."""
    path = tmp_path_factory.mktemp("record") / "flight.mcap"
    arguments = [f"record:={path}", "start_paused:=true", "publish_rates.range:=0"]
    with SimulatorProcess(DOMAIN, arguments) as simulator:
        client = Client(DOMAIN)
        command = PoseStamped()
        command.pose.position.z, command.pose.orientation.w = 1.0, 1.0
        assert client.advance(49) == 50
        client.publish("cf0/cmd_pose", command)
        push = WrenchStamped()
        push.header.frame_id, push.wrench.force.z = "cf0/base_link", 0.01
        assert client.advance(150) == 200
        client.publish("cf0/wrench", push)
        assert client.advance(300) == 500
        client.close()
        assert simulator.end(signal.SIGINT)[0] == 0
        assert "Traceback" not in simulator.log and "ERROR" not in simulator.log
    return path


def check_with_rosbags(path: Path) -> dict[str, list[int]]:
    """All messages as rosbags reads them; returns their stamps by topic."""
    stamps = defaultdict(list)
    with AnyReader([path]) as reader:
        for connection, time, payload in reader.messages():
            message = reader.deserialize(payload, connection.msgtype)
            if len(stamps[connection.topic]) < 10:
                check(payload, type_of(connection.msgtype))
            header = getattr(message, "header", None)
            stamp = header and header.stamp.sec * 1_000_000_000 + header.stamp.nanosec
            stamps[connection.topic].append(time if stamp is None else stamp)
    return stamps


def test_rosbags_reads_all_messages(flight: Path) -> None:
    read = check_with_rosbags(flight)
    assert {topic: len(messages) for topic, messages in decoded(flight).items()} == {
        topic: len(times) for topic, times in read.items()
    }


def test_file_is_one_of_ros_2(flight: Path) -> None:
    with flight.open("rb") as file:
        reader = make_reader(file)
        assert reader.get_header().profile == "ros2"
        summary = reader.get_summary()
        metadata, _ = reader.iter_metadata()
    assert {channel.message_encoding for channel in summary.channels.values()} == {"cdr"}
    assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
    (latched,) = [c for c in summary.channels.values() if c.topic == "/cf0/robot_description"]
    assert "durability: transient_local" in latched.metadata["offered_qos_profiles"]
    assert json.loads(metadata.metadata["parameters"])["drones"] == ["cf0"]


def test_every_topic_is_there_though_nobody_subscribes(flight: Path) -> None:
    messages = decoded(flight)
    for topic in ("/cf0/odom", "/cf0/pose", "/cf0/imu", "/cf0/joint_states", "/tf", "/clock"):
        times = np.array([time for time, _ in messages[topic]])
        grid = [stamp_ns(tick) for tick in (1, *range(5, 501, 5), 50)]
        assert set(grid) <= set(times.tolist()), topic
        assert (np.diff(times) >= 0).all()
    for topic in ("/cf0/robot_description", "/tf_static"):
        assert len(messages[topic]) == 1
    assert "/cf0/range" not in messages
    for time, odometry in messages["/cf0/odom"]:
        assert time_ns(odometry.header.stamp) == time
    assert messages["/cf0/odom"][-1][1].pose.pose.position.z > 0.2


def test_rotors_turn_as_their_joints_and_are_in_one_channel(flight: Path) -> None:
    messages = decoded(flight)
    robot = ElementTree.fromstring(messages["/cf0/robot_description"][0][1].data)
    joints = {joint.get("name"): joint for joint in robot.iter("joint")}
    poses = {
        (time, transform.child_frame_id): transform
        for time, message in messages["/tf"]
        for transform in message.transforms
    }
    assert {child for _, child in poses} == {"cf0/base_link", *(f"cf0/rotor{i}" for i in range(4))}
    time, state = messages["/cf0/joint_states"][-1]
    assert any(state.position)
    for name, angle in zip(state.name, state.position):
        joint = joints[name]
        origin, axis = (
            [float(number) for number in joint.find(tag).get(key).split()]
            for tag, key in (("origin", "xyz"), ("axis", "xyz"))
        )
        roll_pitch_yaw = [float(number) for number in joint.find("origin").get("rpy").split()]
        expected = Rotation.from_euler("xyz", roll_pitch_yaw)
        expected *= Rotation.from_rotvec(np.multiply(axis, angle))
        pose = poses[time, joint.find("child").get("link")]
        assert pose.header.frame_id == joint.find("parent").get("link")
        assert time_ns(pose.header.stamp) == time
        np.testing.assert_allclose(numbers(pose.transform.translation), origin, atol=1e-6)
        found = Rotation.from_quat(numbers(pose.transform.rotation))
        assert (found * expected.inv()).magnitude() < 1e-4
    with flight.open("rb") as file:
        topics = [c.topic for c in make_reader(file).get_summary().channels.values()]
    assert len(topics) == len(set(topics))


@pytest.mark.skipif(not shutil.which("rerun"), reason="rerun-sdk, 200 MB, is not installed")
def test_rerun_accepts_a_recording_and_converts_it_with_rotors(
    flight: Path, tmp_path: Path
) -> None:
    def rerun(*arguments: str | Path) -> str:
        done = subprocess.run(["rerun", *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "PROBLEM" not in rerun("mcap", "check", flight)
    converted = tmp_path / "flight.rrd"
    rerun("mcap", "convert", flight, "-o", converted)
    rerun("rrd", "verify", converted)
    assert "cf0/rotor3" in rerun("rrd", "print", "-vvv", converted)


def test_layout_for_rerun_adds_what_the_drone_did_and_the_scene(
    flight: Path, tmp_path: Path
) -> None:
    chunk = pytest.importorskip("rerun.chunk", reason="rerun-sdk, 200 MB, is not installed")
    arranged = tmp_path / "flight.rrd"
    layout = [sys.executable, ROOT / "examples" / "08_rerun_layout.py", flight, "--save", arranged]
    subprocess.run(layout, check=True, timeout=120)
    scalars, paths = defaultdict(list), set()
    for part in chunk.RrdReader(arranged).stream().to_chunks():
        paths.add(part.entity_path)
        batch = part.to_record_batch()
        if "Scalars:scalars" in batch.schema.names:
            scalars[part.entity_path] += batch.column("Scalars:scalars").flatten().to_pylist()
    odometry = [content for _, content in decoded(flight)["/cf0/odom"]]
    heights = [content.pose.pose.position.z for content in odometry]
    speeds = [np.linalg.norm(numbers(content.twist.twist.linear)) for content in odometry]
    np.testing.assert_allclose(sorted(scalars["/cf0/height"]), sorted(heights))
    np.testing.assert_allclose(sorted(scalars["/cf0/speed"]), sorted(speeds))
    assert {"/cf0/trail", "/tf", "/cf0/imu"} < paths
    assert any(path.startswith("/crazyflow/scene/") for path in paths)


def test_command_has_the_time_at_which_it_took_effect(flight: Path) -> None:
    ((time, command),) = decoded(flight)["/cf0/cmd_pose"]
    assert time == stamp_ns(50)
    assert command.pose.position.z == 1.0


def test_force_is_there_as_long_as_it_acts(flight: Path) -> None:
    messages = decoded(flight)["/cf0/external_wrench"]
    times = [time for time, _ in messages]
    sizes = [np.linalg.norm(numbers(content.wrench.force)) for _, content in messages]
    assert (times[0], times[-1]) == (stamp_ns(200), stamp_ns(250))
    np.testing.assert_allclose(sizes, [0.01] * (len(sizes) - 1) + [0.0])  # turned, not changed


def until_the_file_breaks_off(records: Iterator[Any], topic: str) -> Iterator[Message]:
    """Messages of a topic."""
    numbers = set()
    with suppress(McapError, struct.error):
        for record in records:
            if isinstance(record, Channel) and record.topic == topic:
                numbers.add(record.id)
            assert not isinstance(record, Footer)
            if isinstance(record, Message) and record.channel_id in numbers:
                yield record


def test_killed_simulator_leaves_a_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "killed.mcap"
    arguments = [f"record:={path}", "real_time_factor:=0.0"]
    with SimulatorProcess(DOMAIN, arguments) as simulator:
        client = Client(DOMAIN)
        status = client.collect(DiagnosticArray, "crazyflow/status")

        def recorded() -> int:
            values = {v.key: v.value for m in status[-1:] for v in m.status[0].values}
            return int(values.get("recorded_messages", 0))

        client.until(lambda: recorded() > 1000 and path.stat().st_size > 100_000, "messages")
        client.close()
        simulator.end(signal.SIGKILL)
    with path.open("rb") as file:
        records = StreamReader(file).records
        times = [stamp.log_time for stamp in until_the_file_breaks_off(records, "/cf0/odom")]
    assert len(times) > 100
    assert set(np.diff(times[1:])) == {10_000_000}  # without a gap


SENSORS = """
all:
  scan: {type: lidar, rate: 10, samples: 36}
  baro: {type: barometer, rate: 50}
"""
CAMERA = """
  eye: {type: camera, rate: 10, width: 32, height: 24, data_types: [depth], renderer: opengl}
"""
IN_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup ignores
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Terminal:
    """A simulator in a terminal of its own, which records its sensors as fast as possible."""

    def __init__(self, folder: Path, domain: int) -> None:
        self.path, self.log = folder / "sensors.mcap", ""
        sensors = folder / "sensors.yaml"
        sensors.write_text(SENSORS + CAMERA * can_draw())
        values = f"record:={self.path}", f"sensors:={sensors}", "real_time_factor:=0.0"
        arguments = [word for value in values for word in ("-p", value)]
        self._screen, inside = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_TERMINAL, "-m", "crazyflow_ros", "--ros-args", *arguments],
            stdin=inside, stdout=inside, stderr=inside, start_new_session=True, cwd=ROOT,
            env={**os.environ, "ROS_DOMAIN_ID": str(domain)},
        )  # fmt: skip
        os.close(inside)

    def until_recorded(self, size: int) -> None:
        deadline = monotonic() + READY_TIMEOUT
        while not self.path.is_file() or self.path.stat().st_size < size:
            assert monotonic() < deadline, self.log
            assert self._read(), self.log

    def interrupt(self) -> None:
        os.write(self._screen, b"\x03")
        while self._read():
            pass
        self.close()

    def close(self) -> None:
        os.close(self._screen)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _read(self) -> bool:
        """Read what is on the screen now; returns whether there may be more later."""
        if select.select([self._screen], [], [], 0.1)[0]:
            try:
                self.log += os.read(self._screen, 4096).decode(errors="replace")
            except OSError:  # all that have written have ended
                return False
        return True


@pytest.mark.parametrize("end", [Terminal.interrupt, Terminal.close])
def test_ctrl_c_and_a_closed_terminal_end_a_recording_of_sensors_cleanly(
    tmp_path: Path, end: Callable[[Terminal], None]
) -> None:
    terminal = Terminal(tmp_path, DOMAIN)
    try:
        terminal.until_recorded(200_000)
        end(terminal)
        assert terminal.process.wait(TIMEOUT) == 0, terminal.log
    finally:
        terminal.kill()
    for word in ("ERROR", "Error", "Traceback"):
        assert word not in terminal.log
    stamps = check_with_rosbags(terminal.path)
    for sensor, period_ns in (("scan", 100_000_000), ("baro", 20_000_000)):
        assert set(np.diff(stamps[f"/cf0/{sensor}"])) == {period_ns}
    assert "/cf0/eye/depth/image_raw" in stamps or not can_draw()


def test_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    for path, kind in (
        (tmp_path / "no" / "a.mcap", FileNotFoundError),
        (tmp_path / "no" / "a", OSError),
    ):
        with pytest.raises(kind, match=str(path)):
            Recorder(path, {}, get_logger("test"))


def test_a_recorder_neither_empties_a_file_nor_waits_for_a_reader(tmp_path: Path) -> None:
    earlier, link, fifo = tmp_path / "earlier", tmp_path / "link", tmp_path / "fifo"
    earlier.write_text("a flight")
    link.symlink_to(earlier)
    os.mkfifo(fifo)
    for path in (earlier, link):
        with pytest.raises(FileExistsError, match=str(path)):
            Recorder(path, {}, get_logger("test"))
    with pytest.raises(OSError, match=str(fifo)):
        Recorder(fifo, {}, get_logger("test"))
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OSError, match="it is a FIFO"):
            Recorder(fifo, {}, get_logger("test"))
    finally:
        os.close(reader)
    assert earlier.read_text() == "a flight"


def test_earlier_recording_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "flight.mcap"
    path.write_text("a flight")
    expected = rf"record: cannot create .*{path}.* \(File exists\)"
    with pytest.raises(ParameterError, match=expected):
        new_recorder(Parameters(record=str(path)), {}, get_logger("test"))
    assert path.read_text() == "a flight"
    for odd in ("flight.db3", "flight.2026.1"):  # which readers would not take for MCAP files
        with pytest.raises(ParameterError, match=rf"{odd} \(expected the suffix .mcap, or none"):
            new_recorder(Parameters(record=str(tmp_path / odd)), {}, get_logger("test"))
        assert not (tmp_path / odd).exists()


def test_messages_that_cannot_be_written_in_time_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "_MAX_QUEUED", 250)
    path = tmp_path / "slow.mcap"
    recorder = Recorder(path, {}, get_logger("test"))
    publisher = SimpleNamespace(
        handle=MagicMock(), topic_name="/text", msg_type=String, qos_profile=QoSProfile(depth=10)
    )
    recorder.time_ns = lambda: 7
    tap = recorder.tap(publisher)
    for i in range(5):
        tap.publish(String(data=f"{i}" * 80))
    assert recorder.status().dropped == 3  # of 89 bytes each
    recorder.start()
    recorder.close(10.0)
    assert [(t, m.data[0]) for t, m in decoded(path)["/text"]] == [(7, "0"), (7, "1")]
