"""A recorded flight, flown again: every bit is the same, unless a command is missing."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, Pose, PoseStamped, TwistStamped, WrenchStamped
from mcap.reader import make_reader
from mcap.writer import Writer
from ros_client import Client, SimulatorProcess, own_domain
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import DeleteEntity, LoadWorld, ResetSimulation, SpawnEntity
from std_srvs.srv import Trigger

from crazyflow_ros.ros.declaration import values_of
from crazyflow_ros.ros.parameters import Parameters
from crazyflow_ros.ros.replay import ReplayError, Report, replay

DOMAIN = own_domain("test_replay")
CHANGES = "/crazyflow/changes"
START, RESET, RESET_ALL, BALL, SPAWNED, RESTORED = range(6)
"""The first changes of the flight, in their order."""
HUT = '<body name="hut" pos="9 0 0"><geom type="box" size="1 1 1"/></body>'
SHELF = '<body name="shelf" pos="0 0 0.4"><geom type="box" size="1 1 0.01"/></body>'
WORLD = '<mujoco><worldbody><geom type="plane" size="0 0 1"/>{}</worldbody></mujoco>'


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two drones, told things at ticks that nobody chose; one is pushed and reset.

    Then one meets a ball in the air, a guest comes, time goes back to a checkpoint, one goes, and
    all begins again, the last time below a shelf.
    """
    path = tmp_path_factory.mktemp("replay") / "flight.mcap"
    scene = path.with_name("scene.xml")
    scene.write_text(WORLD.format(HUT))
    arguments = [
        f"scene:={scene}",
        f"record:={path}",
        f"checkpoint:={path.with_suffix('.checkpoint')}",
        "drones:=[cf0,cf1]",
        "max_drones:=3",
        "real_time_factor:=5.0",
    ]
    parameters = [word for argument in arguments for word in ("-p", argument)]
    with SimulatorProcess(DOMAIN, parameters) as simulator:
        client = Client(DOMAIN)
        target, twist, push = PoseStamped(), TwistStamped(), WrenchStamped()
        target.pose.position.z = 1.0
        twist.twist.linear.x, twist.twist.angular.z = 0.3, 0.7
        push.header.frame_id, push.wrench.force.x = "cf1/base_link", 0.02
        status = client.collect(DiagnosticArray, "crazyflow/status")

        def wait() -> None:
            seen = len(status)
            client.until(lambda: len(status) > seen, "status")

        client.publish("cf1/cmd_pose", target)
        wait()
        client.publish("cf0/cmd_vel", twist)
        client.publish("cf1/wrench", push)
        wait()
        client.call(Trigger, "cf0/reset")
        client.publish("cf0/cmd_vel", twist)
        client.pause(True)
        client.advance(7)
        client.publish("cf1/cmd_pose", target)
        client.advance(13)
        client.reset()
        client.publish("cf0/cmd_pose", target)
        ball = Resource(
            resource_string='<mujoco><worldbody><geom size="0.4"/></worldbody></mujoco>'
        )
        pose = PoseStamped(pose=Pose(position=Point(z=1.0)))
        client.call(
            SpawnEntity,
            "crazyflow/spawn_entity",
            name="ball",
            entity_resource=ball,
            initial_pose=pose,
        )
        client.advance(501)
        client.call(
            SpawnEntity,
            "crazyflow/spawn_entity",
            name="guest",
            entity_resource=Resource(uri="cf2x_L250"),
            initial_pose=PoseStamped(pose=Pose(position=Point(x=3.0, z=1.0))),
        )
        client.publish("guest/cmd_pose", target)
        push.header.frame_id = "guest/base_link"
        client.publish("guest/wrench", push)
        client.advance(21)
        assert client.call(Trigger, "crazyflow/save_checkpoint").success
        client.advance(34)
        client.publish("cf1/cmd_vel", twist)
        client.advance(5)
        assert client.call(Trigger, "crazyflow/load_checkpoint").success
        client.advance(200)
        client.call(DeleteEntity, "crazyflow/delete_entity", entity="cf0")
        client.advance(15)
        client.call(ResetSimulation, "crazyflow/reset_simulation")
        client.publish("cf0/cmd_pose", target)
        client.advance(100)
        shelf = Resource(resource_string=WORLD.format(SHELF))
        client.call(LoadWorld, "crazyflow/load_world", world_resource=shelf)
        client.publish("cf0/cmd_pose", target)
        client.advance(300)
        client.close()
        assert simulator.end(signal.SIGTERM)[0] == 0
        assert "Traceback" not in simulator.log
    return path


def rewritten(path: Path, to: Path, keep: Callable[[str, int], bool]) -> Path:
    """A copy without some messages, told by topic and how many of it were before."""
    with path.open("rb") as source, to.open("wb") as target:
        reader, writer = make_reader(source), Writer(target)
        writer.start("ros2")
        for metadata in reader.iter_metadata():
            writer.add_metadata(metadata.name, metadata.metadata)
        channels: dict[str, int] = {}
        counts: dict[str, int] = {}
        for _, channel, message in reader.iter_messages(log_time_order=False):
            topic = channel.topic
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, "cdr", 0)
            counts[topic] = counts.get(topic, 0) + 1
            if keep(topic, counts[topic] - 1):
                time = message.log_time
                writer.add_message(channels[topic], time, message.data, time)
        writer.finish()
    return to


def test_replay_is_the_same_bit_for_bit(flight: Path) -> None:
    report = replay(flight)
    print(report)
    assert report.difference == ""
    assert report.commands == 9
    assert report.ticks == 301  # since it began again
    assert report.states > 500


@pytest.mark.parametrize(
    "missing",
    [
        ("/cf0/cmd_vel", 0),
        ("/cf1/external_wrench", 0),
        (CHANGES, RESET),
        (CHANGES, BALL),
        (CHANGES, RESTORED),
    ],
)
def test_replay_without_one_of_its_causes_differs(
    flight: Path, tmp_path: Path, missing: tuple[str, int]
) -> None:
    path = rewritten(flight, tmp_path / "less.mcap", lambda *message: message != missing)
    assert "became" in replay(path).difference


def test_replay_without_a_drone_is_refused(flight: Path, tmp_path: Path) -> None:
    spawned = (CHANGES, SPAWNED)
    path = rewritten(flight, tmp_path / "less.mcap", lambda *message: message != spawned)
    with pytest.raises(ReplayError, match="is of the drones cf0, cf1, guest, here are cf0, cf1"):
        replay(path)


def test_replay_of_a_file_that_breaks_off_ends_there(flight: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken.mcap"
    path.write_bytes(flight.read_bytes()[: flight.stat().st_size // 2])
    report = replay(path)
    assert report.difference == ""
    assert report.states > 100


def with_parameters(path: Path, **parameters: Any) -> Path:
    values = values_of(Parameters()) | parameters
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start("ros2")
        writer.add_metadata("crazyflow_ros", {"parameters": json.dumps(values)})
        writer.finish()
    return path


def test_file_that_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    path = tmp_path / "other.mcap"
    path.write_bytes(b"")
    with pytest.raises(ReplayError, match="not a recording of this simulator"):
        replay(path)
    with pytest.raises(ReplayError, match=r"ros2_control.mode lock_step are not recorded"):
        replay(with_parameters(path, **{"ros2_control.mode": "lock_step"}))
    with pytest.raises(ReplayError, match="other parameters than there are: colour"):
        replay(with_parameters(path, colour="red"))
    assert replay(with_parameters(path)) == Report(ticks=1)
