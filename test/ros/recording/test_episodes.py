"""Recordings over resets, checkpoints and worlds: each file is one flight for any reader."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from mcap.reader import make_reader
from rclpy.logging import get_logger
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_client import Client, SimulatorProcess, own_domain
from rosbags.highlevel import AnyReader
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import DeleteEntity, LoadWorld, ResetSimulation, SpawnEntity
from std_msgs.msg import String
from std_srvs.srv import Trigger

from crazyflow_ros.flight_logs import read_flight_log
from crazyflow_ros.ros.recording.episode_file import Channel
from crazyflow_ros.ros.recording.recorder import Recorder
from crazyflow_ros.ros.recording.replay import ReplayError, replay
from crazyflow_ros.view.recording import Recording

DOMAIN = own_domain("test_episodes")
S = 10**9  # ns
WORLD = '<mujoco><worldbody><geom type="plane" size="0 0 1"/>{}</worldbody></mujoco>'
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
ENDS = (801, 400, 600, 1000, 201)
"""Last ticks of the episodes, after which follow two resets, a checkpoint, a world, and the end."""


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders that rosbag2 knows, of a drone that begins again four times."""
    first = tmp_path_factory.mktemp("episodes") / "flight"
    arguments = [f"record:={first}", "start_paused:=true", "max_drones:=2"]
    arguments += [f"checkpoint_folder:={first.parent}", "checkpoint:=late.checkpoint"]
    with SimulatorProcess(DOMAIN, arguments) as simulator, Client(DOMAIN) as client:
        command = PoseStamped()
        command.pose.position.z, command.pose.orientation.w = 1.0, 1.0

        def fly(ticks: int) -> None:
            client.publish("cf0/cmd_pose", command)
            client.advance(ticks)

        fly(800)
        client.call(ResetSimulation, "crazyflow/reset_simulation")
        guest = {"name": "guest", "entity_resource": Resource(uri="cf2x_L250")}
        pose = PoseStamped()
        pose.pose.position.x = 2.0
        client.call(SpawnEntity, "crazyflow/spawn_entity", initial_pose=pose, **guest)
        fly(399)
        client.call(DeleteEntity, "crazyflow/delete_entity", entity="guest")
        client.call(ResetSimulation, "crazyflow/reset_simulation")
        fly(499)
        assert client.call(Trigger, "crazyflow/save_checkpoint").success
        client.advance(100)
        assert client.call(Trigger, "crazyflow/load_checkpoint").success
        fly(500)
        shelf = WORLD.format('<body pos="1 1 1"><geom type="box" size=".1 .1 .1"/></body>')
        world = {"world_resource": Resource(resource_string=shelf)}
        client.call(LoadWorld, "crazyflow/load_world", **world)
        fly(200)
        assert simulator.end(signal.SIGINT)[0] == 0
        for word in ("Traceback", "ERROR"):
            assert word not in simulator.log
    names = ["flight", *(f"flight_{i}" for i in range(1, 5))]
    assert sorted(path.name for path in first.parent.iterdir() if path.is_dir()) == names
    return [first.with_name(name) for name in names]


def times_of(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        messages = make_reader(file).iter_messages(log_time_order=False)
        return np.array([message.log_time for *_, message in messages])


def test_each_file_is_monotone_and_one_flight_for_mcap_and_rosbags(flights: list[Path]) -> None:
    for folder, end in zip(flights, ENDS):
        bag = folder / f"{folder.name}_0.mcap"
        times = times_of(bag)
        assert (np.diff(times) >= 0).all() and times[-1] == end * S // 500
        latest: dict[str, int] = {}
        with AnyReader([folder]) as reader:
            assert reader.message_count == len(times)
            assert (reader.start_time, reader.end_time) == (times[0], times[-1] + 1)
            for connection, time, payload in reader.messages():
                message: Any = reader.deserialize(payload, connection.msgtype)
                header = getattr(message, "header", None)
                assert header is None or header.stamp.sec * S + header.stamp.nanosec <= time
                if connection.topic in ("/cf0/odom", "/clock"):
                    stamp = getattr(message, "clock", None) or message.header.stamp
                    assert stamp.sec * S + stamp.nanosec == time >= latest.get(connection.topic, 0)
                    latest[connection.topic] = time
        assert latest["/cf0/odom"] == end * S // 500


def test_each_file_begins_with_parameters_and_what_late_subscribers_receive(
    flights: list[Path],
) -> None:
    for number, folder in enumerate(flights):
        with (folder / f"{folder.name}_0.mcap").open("rb") as file:
            reader = make_reader(file)
            latched = set()
            for _, channel, _ in reader.iter_messages(log_time_order=False):
                if "transient_local" not in channel.metadata["offered_qos_profiles"]:
                    break
                latched.add(channel.topic)
            first = next(reader.iter_metadata()).metadata
        assert {"/cf0/robot_description", "/tf_static"} <= latched
        assert ("/crazyflow/scene" in latched) == (number > 0)  # it comes with the first states
        assert "/guest/robot_description" not in latched  # which had gone
        assert first["episode"] == str(number) and '"drones": ["cf0"]' in first["parameters"]


def test_metadata_is_that_of_rosbag2(flights: list[Path]) -> None:
    """As `rosbag2_storage/yaml.hpp` of Jazzy and Kilted reads it."""
    for folder in flights:
        text = (folder / "metadata.yaml").read_text()
        assert "&id" not in text  # simple readers know no anchors
        bag = yaml.safe_load(text)["rosbag2_bagfile_information"]
        assert (bag["version"], bag["storage_identifier"]) == (9, "mcap")
        (file,) = bag["files"]
        assert bag["relative_file_paths"] == [file["path"]] == [f"{folder.name}_0.mcap"]
        assert isinstance(bag["custom_data"], dict) and isinstance(bag["ros_distro"], str)
        counts = {}
        for topic in bag["topics_with_message_count"]:
            about, counts[topic["topic_metadata"]["name"]] = (
                topic["topic_metadata"],
                topic["message_count"],
            )
            assert about["serialization_format"] == "cdr" and about["type"].count("/") == 2
            assert about["type_description_hash"] == ""
            (qos,) = about["offered_qos_profiles"]
            assert qos["history"] == "keep_last" and qos["liveliness"] == "automatic"
        with (folder / file["path"]).open("rb") as content:
            reader = make_reader(content)
            summary = reader.get_summary()
            inside = [m.metadata for m in reader.iter_metadata() if m.name == "rosbag2"]
        assert summary is not None and summary.statistics is not None
        assert counts == {
            channel.topic: summary.statistics.channel_message_counts[number]
            for number, channel in summary.channels.items()
        }
        assert [yaml.safe_load(entry["serialized_metadata"]) for entry in inside] == [bag]


def test_a_recording_of_episodes_replays_bit_for_bit_and_only_from_the_first(
    flights: list[Path],
) -> None:
    report = replay(flights[0])
    assert report.difference == "" and report.commands == 5 and report.ticks == 201
    with pytest.raises(ReplayError, match="it is episode 2 of flight: replay that one"):
        replay(flights[2])


def test_page_and_flight_logs_read_each_episode(flights: list[Path]) -> None:
    for i, (folder, end) in enumerate(zip(flights, ENDS)):
        recording = Recording(folder)
        assert recording.end_ns == end * S // 500 and recording.world(recording.begin_ns)
        told = [f"goes on in ../flight_{i + 1}/flight_{i + 1}_0.mcap" in n for n in recording.notes]
        assert told == ([True] if i < len(flights) - 1 else [])
        pose = read_flight_log(folder).pose
        assert (np.diff(pose.time) > 0).all() and pose.values[-1, 2] > 0.02


@pytest.mark.skipif(not shutil.which("rerun"), reason="rerun-sdk, 200 MB, is not installed")
def test_rerun_reads_each_episode(flights: list[Path], tmp_path: Path) -> None:
    for folder in flights:
        bag, converted = folder / f"{folder.name}_0.mcap", tmp_path / f"{folder.name}.rrd"
        for words in (["mcap", "check", bag], ["mcap", "convert", bag, "-o", converted]):
            done = subprocess.run(["rerun", *words], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0 and "PROBLEM" not in done.stdout, done.stderr
        assert converted.stat().st_size > 10_000


def test_files_of_others_stay_and_a_jump_forward_begins_a_file_too(tmp_path: Path) -> None:
    now = [5]
    path = tmp_path / "a.mcap"
    recorder = Recorder(path, {}, get_logger("test"), is_complete=False)
    recorder.time_ns = lambda: now[0]
    path.with_name("a_1.mcap").write_bytes(b"of another recording")
    recorder.start()
    latched = Channel("/map", String, LATCHED, 2)
    gone = Channel("/gone", String, LATCHED, is_there=lambda: False)
    payload = b"\0\1\0\0\2\0\0\0x\0"
    for channel in (gone, latched, latched, latched, Channel("/x", String, QoSProfile(depth=1))):
        recorder.put(channel, payload)
    recorder.expect_jump(9)
    recorder.put(gone, payload)  # from another thread, before the jump
    now[0] = 9
    recorder.put(latched, payload)
    recorder.close(60.0)
    found = {}
    for name in ("a", "a_2"):
        with path.with_name(f"{name}.mcap").open("rb") as file:
            reader = make_reader(file)
            found[name] = [(c.topic, m.log_time) for _, c, m in reader.iter_messages()]
    assert [topic for topic, _ in found["a"]] == ["/gone", *["/map"] * 3, "/x", "/gone"]
    assert found["a_2"] == [("/map", 9)] * 3
    assert path.with_name("a_1.mcap").read_bytes() == b"of another recording"


def test_a_folder_with_other_files_is_no_place_for_a_recording(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileExistsError, match=str(tmp_path)):
        Recorder(tmp_path, {}, get_logger("test"))
