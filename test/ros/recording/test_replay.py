"""A recorded flight, flown again: every bit is the same, unless a command is missing."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import known_recordings
import mcap_files
import numpy as np
import pytest
from crazyflie_interfaces.msg import Hover
from crazyflow_ros_interfaces.srv import Attach, SetBattery, SetMotorEfficiency
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, Pose, PoseStamped, Twist, TwistStamped, Vector3, WrenchStamped
from mcap.reader import make_reader
from mcap.writer import Writer
from mujoco_ros2_control_msgs.msg import ExternalWrench, ExternalWrenchArray
from mujoco_ros2_control_msgs.srv import ApplyExternalWrench
from nav_msgs.msg import Odometry
from rclpy.logging import get_logger
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from ros_client import Client, SimulatorProcess, own_domain, stamp_ns
from sensor_msgs.msg import JointState
from simulation_interfaces.msg import EntityState, Resource
from simulation_interfaces.srv import (
    DeleteEntity,
    LoadWorld,
    ResetSimulation,
    SetEntityState,
    SpawnEntity,
)
from std_msgs.msg import String
from std_srvs.srv import Trigger

from crazyflow_ros.checks.plain_values import values_of
from crazyflow_ros.crazyswarm.link import CrazyflieLink
from crazyflow_ros.flight import (
    Emergency,
    GoTo,
    Land,
    Recover,
    Setpoint,
    SwitchOff,
    Takeoff,
    Velocity,
)
from crazyflow_ros.resources import package_version
from crazyflow_ros.ros.commands.setpoint_messages import POSE
from crazyflow_ros.ros.extensions import configured, from_all_values
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.recording.episode_file import Channel
from crazyflow_ros.ros.recording.recorded_effects import RecordedEffects
from crazyflow_ros.ros.recording.recorded_messages import recorded_messages
from crazyflow_ros.ros.recording.recorder import Recorder
from crazyflow_ros.ros.recording.replay import ReplayError, Report, replay, run
from crazyflow_ros.ros.simulation_interfaces.scenery_changes import SceneryChanges, SpawnedObject
from crazyflow_ros.runtime import DroneState, PhysicsThread, ResetScope, Snapshot, TimedWrench
from crazyflow_ros.scene.description import Description, read_text

DOMAIN = own_domain("test_replay")
T = 120.0  # s, no wait of a test is longer
CHANGES = "/crazyflow/changes"
RESET, BALL, SPAWNED, RESTORED = 1, 3, 4, 5
"""Which of the changes of the flight these are."""
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
        *(f"scene:={scene}", f"record:={path}", f"checkpoint_folder:={path.parent}"),
        *("checkpoint:=flight.checkpoint", "drones:=[cf0,cf1]", "max_drones:=3"),
        *("real_time_factor:=5.0", "battery:=true"),
    ]
    with SimulatorProcess(DOMAIN, arguments) as simulator, Client(DOMAIN) as client:
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
        shape = Resource(
            resource_string='<mujoco><worldbody><geom size="0.4"/></worldbody></mujoco>'
        )
        ball = {"name": "ball", "entity_resource": shape}
        pose = PoseStamped(pose=Pose(position=Point(z=1.0)))
        client.call(SpawnEntity, "crazyflow/spawn_entity", initial_pose=pose, **ball)
        client.advance(501)
        guest = {"name": "guest", "entity_resource": Resource(uri="cf2x_L250")}
        pose = PoseStamped(pose=Pose(position=Point(x=3.0, z=1.0)))
        client.call(SpawnEntity, "crazyflow/spawn_entity", initial_pose=pose, **guest)
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
        client.publish("cf1/cmd_pose", target)
        client.advance(300)
        assert client.set_parameter("wind", [1.0, 0.5, 0.0]).successful
        failure = {"motor": 1, "efficiency": 0.9}
        assert client.call(SetMotorEfficiency, "cf0/set_motor_efficiency", **failure).success
        assert client.call(SetBattery, "cf1/set_battery", charge=0.04).success
        client.publish("cf0/cmd_hover", Hover(vx=0.3, yaw_rate=0.5, z_distance=0.9))
        client.publish("cf1/cmd_vel_legacy", Twist(linear=Vector3(y=4.0, z=50000.0)))
        client.advance(200)
        assert simulator.end(signal.SIGTERM)[0] == 0
        assert "Traceback" not in simulator.log
    return path


def messages_of(path: Path) -> list[tuple[str, int, bytes]]:
    """Topic, time and content of each message of a recording."""
    _, *messages = recorded_messages([path])
    return messages


def episodes_of(path: Path) -> list[Path]:
    """The files of a recording."""
    files = [path]
    list(recorded_messages(files))
    return files


def rewritten(path: Path, to: Path, keep: Callable[[str, int], bool]) -> Path:
    """A copy without some messages, told by topic and how many of it were before.

    As older versions wrote it, all episodes are in one file.
    """
    channels: dict[str, int] = {}
    counts: dict[str, int] = {}
    with to.open("wb") as target:
        writer = Writer(target)
        writer.start("ros2")
        for part in episodes_of(path):
            with part.open("rb") as source:
                reader = make_reader(source)
                first = next(reader.iter_metadata())
                if not channels:
                    writer.add_metadata(first.name, first.metadata)
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
    assert report.commands == 12
    assert report.ticks == 501  # since it began again
    assert report.states > 500


def check_needed(path: Path, *changes: int) -> None:
    """Without any one of these changes another flight is replayed."""
    for missing in changes:
        less = path.with_name(f"{missing}.mcap")
        rewritten(path, less, lambda *message, n=missing: message != ("/node/changes", n))
        assert "became" in replay(less).difference


def requests_of(path: Path) -> list[int]:
    """Which of the changes in a recording are requests."""
    changes = [payload for topic, _, payload in messages_of(path) if topic == "/node/changes"]
    return [i for i, change in enumerate(changes) if b"request" in change]


def _full_name(topic: str) -> str:
    return topic.replace("~", "/node") if topic.startswith("~") else f"/{topic}"


class Told:
    """A simulation that other threads tell things, some of them by messages, and records it."""

    def __init__(self, path: Path, wall_time: bool = False, **others: Any) -> None:
        values = values_of(Parameters()) | {"drones": ["cf0", "cf1"], "start_paused": True} | others
        parameters, extensions = from_all_values(values)
        config = configured(parameters.simulation_config(), parameters, extensions)
        self.physics = physics = PhysicsThread(config, parameters.drones)
        self.recorder = Recorder(path, values, get_logger("test"), wall_time)
        self._effects = RecordedEffects(self.recorder, physics, _full_name)
        self._odom = Channel("/cf0/odom", Odometry, QoSProfile(depth=1))
        for name, rate in values_of(parameters.publish_rates).items():
            if rate:
                physics.every(rate, lambda _: None, f"publish_rates.{name}", observes=True)
        physics.every(100, self._record, "odometry", observes=True)
        self.recorder.start()
        physics.start()
        self.path = path

    def step(self, ticks: int) -> None:
        self.physics.step(ticks).result(T)

    def _record(self, now: Snapshot) -> None:
        message = Odometry()
        pose, twist = message.pose.pose, message.twist.twist
        for part, values in zip(
            (pose.position, pose.orientation, twist.linear, twist.angular),
            (now.pos[0], now.quat[0], now.body_vel[0], now.ang_vel[0]),
        ):
            for axis, value in zip("xyzw", values.tolist()):
                setattr(part, axis, value)
        self.recorder.put(self._odom, serialize_message(message))

    def message(self, drone: str, *pos: float) -> Setpoint:
        """A message comes for a drone."""
        pose = PoseStamped()
        pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = pos
        setpoint: Setpoint = POSE.convert(pose, drone)
        self._effects.record_command(drone, POSE.topic, pose, setpoint)
        return setpoint

    def end(self) -> None:
        """Complete the file."""
        self.physics.stop()
        assert not self.physics.statistics().failures
        self.recorder.close(T)

    def replayed(self) -> Report:
        """Complete the file, and fly it again: every bit is the same."""
        self.end()
        report = replay(self.path)
        assert report.difference == "" and report.ticks == self.physics.snapshot.tick
        return report


def test_what_drones_are_told_without_messages_is_replayed_bit_for_bit(tmp_path: Path) -> None:
    told = Told(tmp_path / "flight.mcap")
    physics, step = told.physics, told.step
    step(3)
    physics.fly({"cf0": Takeoff(0.6, 1.0), "cf1": Takeoff(0.4)}).result(T)
    step(601)
    told.message("cf0", 9.0, 9.0, 9.0)  # comes, and is overtaken before the next tick
    physics.command("cf0", told.message("cf0", 0.5, 0.0, 1.0))
    step(18)
    waiting = told.message("cf1", 0.5, 1.0, 1.0)
    physics.fly({"cf1": GoTo((0.0, 0.3, 0.2), 1.0, relative=True)}).result(T)
    step(100)
    physics.command("cf1", waiting)  # its message must not be lost meanwhile
    physics.command("cf0", Velocity((0.5, 0.2, 0.0), 0.3))  # and lapses
    step(407)
    physics.fly({"cf0": Land(), "cf1": Emergency()}).result(T)
    step(1401)
    assert physics.commands.states == {"cf0": "landed", "cf1": "locked"}
    report = told.replayed()
    assert report.commands == 8 and report.states > 400
    check_needed(told.path, 4, 5)  # the velocity, and the landing


def test_what_brings_drones_back_is_replayed_bit_for_bit(tmp_path: Path) -> None:
    """A crash and the recovery from it, and a restart in the air after the power was off.

    Then another controller, which without an estimator is compiled sooner.
    """
    told = Told(tmp_path / "flight.mcap")
    physics, step = told.physics, told.step
    physics.fly({"cf0": Takeoff(0.6, 1.0)}).result(T)
    step(601)
    fallen = DroneState(pos=(0.3, 0.1, 0.05), quat=(1.0, 0.0, 0.0, 0.1), vel=(0.0, 0.0, 0.0))
    physics.state.set_drone_states({"cf0": fallen}).result(T)
    step(703)
    assert physics.commands.states["cf0"] == "crashed"
    assert physics.firmware.set_upright("cf0").result(T)
    assert not physics.firmware.set_upright("cf0").result(T)  # it stands
    assert not physics.fly({"cf0": Recover()}).result(T).refused
    step(51)
    assert not physics.fly({"cf0": Takeoff(1.2, 1.5)}).result(T).refused
    step(807)
    physics.fly({"cf0": SwitchOff()}).result(T)
    step(199)
    assert physics.snapshot.vel[0, 2] < -0.5
    physics.firmware.restart("cf0", charged=True).result(T)
    assert physics.snapshot.vel[0, 2] < -0.5  # it falls on
    step(501)
    physics.fly({"cf0": Takeoff(0.4, 1.0)}).result(T)
    step(601)
    assert physics.snapshot.pos[0, 2] > 0.35
    physics.firmware.tune("cf0", "pid", {"state.kp": [0.3, 0.3, 1.0]}).result(T)
    physics.world.set_controller("pid").result(T)
    step(100)
    assert told.replayed().commands == 5
    tuned, switched = requests_of(told.path)
    check_needed(told.path, tuned, switched)


def test_what_firmwares_are_told_is_replayed_bit_for_bit(tmp_path: Path) -> None:
    """Gains, an estimate that starts elsewhere, poses, where resets end."""
    path = tmp_path / "flight.mcap"
    link = values_of(CrazyflieLink(port=19850), "crazyflie.")
    told = Told(path, estimator="kalman", **link)
    assert told.physics.config.positioning.external
    physics, step = told.physics, told.step
    physics.fly({"cf0": Takeoff(0.6, 1.0), "cf1": Takeoff(0.4)}).result(T)
    step(401)
    physics.firmware.tune(
        "cf0", "mellinger", {"state.kp": [0.7, 0.6, 1.5], "attitude.kR": [5e4] * 3}
    )
    step(203)
    physics.firmware.untune("cf0").result(T)
    x, y, z = physics.snapshot.pos[0].tolist()
    physics.firmware.restart_estimate("cf0", [x + 0.2, y, z, 0.1]).result(T)
    step(99)
    pose = np.array([x, y - 0.1, z], np.float32), np.array([0.1, 0.2, 0.0, 1.1], np.float32)
    physics.firmware.tell_pose("cf0", *pose, (0.01, 0.05)).result(T)
    physics.firmware.tell_pose("cf1", (0.1, 1.0, 0.4), None, (0.02, 0.05)).result(T)
    step(301)
    physics.state.capture_initial_state().result(T)
    step(55)
    physics.state.reset(ResetScope.state).result(T)
    step(100)
    assert told.replayed().states > 200
    requests = requests_of(path)
    assert len(requests) == 6
    check_needed(path, *set(requests) - {requests[4]})  # only cf0 has recorded states


CRATE = """<robot name="crate"><link name="box">
<inertial><mass value="0.02"/>
<inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.06 0.06 0.06"/></geometry></collision></link></robot>"""
DOOR = """<mujoco><worldbody><body><joint type="slide" axis="1 0 0" name="rail"/>
<geom type="box" size="0.05 0.3 0.3" mass="1"/></body></worldbody>
<actuator><position joint="rail" name="rail" kp="50" kv="5"/></actuator></mujoco>"""


def test_objects_that_move_and_what_happens_to_them_are_replayed_bit_for_bit(
    tmp_path: Path,
) -> None:
    """All of it shows in the flight of a drone, which the objects touch or hang from."""
    told = Told(tmp_path / "flight.mcap")
    physics, step, changes = told.physics, told.step, SceneryChanges()
    upright = np.array([0.0, 0.0, 0.0, 1.0])
    floor = physics.world.scene.description

    def put(new: SceneryChanges, scene: Description | None = None) -> SceneryChanges:
        physics.world.set_scene(scene, new).result(T)
        return new

    def pushed(name: str, **how: Any) -> None:
        wrench = TimedWrench((0.05, 0.02, 0.1), (0.0, 0.0, 1e-4), 0.3, **how)
        physics.apply_wrench(name, wrench, name)

    step(7)
    crate = SpawnedObject.of(read_text(CRATE))
    above = physics.snapshot.pos[0] + np.array([0.01, 0.0, 0.3])
    changes = put(changes.with_spawned("crate", crate, (above, upright)))
    step(203)  # it falls on the drone
    pushed("crate", in_body=True, ramp_down=0.1)
    step(97)
    physics.fly({"cf0": Takeoff(1.0, 1.0)}).result(T)
    step(211)
    physics.world.attach("cf0", "crate", cable=True, length=2.0, stiffness=3.0).result(T)
    step(301)
    pushed("crate")
    step(50)
    below = physics.snapshot.pos[0] - np.array([0.0, 0.0, 0.5])
    door = SpawnedObject.of(read_text(DOOR))
    changes = put(changes.with_spawned("door", door, (below, upright)))
    step(102)
    physics.world.detach("cf0").result(T)
    step(103)
    changes = put(changes.without("crate"))
    step(44)
    physics.state.reset(ResetScope.state).result(T)
    step(52)
    put(SceneryChanges(), read_text(WORLD.format(SHELF)))
    physics.fly({"cf0": Takeoff(0.7, 1.0)}).result(T)
    step(303)
    put(SceneryChanges(), floor)
    step(51)
    report = told.replayed()
    assert report.states > 100
    texts = [payload for topic, _, payload in messages_of(told.path) if topic == "/node/changes"]
    assert sum(b"<robot" in text for text in texts) == 1  # each description once
    pushes = [i for i, text in enumerate(texts) if b'"pushed"' in text]
    assert len(pushes) > 10  # also as it turns with the crate, and fades
    check_needed(told.path, pushes[0])


def test_a_session_of_the_node_with_objects_is_replayed_bit_for_bit(tmp_path: Path) -> None:
    """Services spawn, throw, push, hold, delete and reset while a camera looks and time runs."""
    path, sensors = tmp_path / "flight.mcap", tmp_path / "sensors.yaml"
    sensors.write_text("all:\n  eye: {type: camera, rate: 10, width: 32, height: 24}\n")
    arguments = ["drones:=[cf0,cf1]", f"record:={path}", f"sensors:={sensors}"]
    with SimulatorProcess(DOMAIN, arguments) as simulator, Client(DOMAIN) as client:

        def spawn(name: str, text: str, x: float, z: float) -> None:
            pose = PoseStamped(pose=Pose(position=Point(x=x, z=z)))
            resource = Resource(resource_string=text)
            client.call(
                SpawnEntity,
                "crazyflow/spawn_entity",
                name=name,
                entity_resource=resource,
                initial_pose=pose,
            )

        target = PoseStamped()
        target.pose.position.z = 0.6
        client.publish("cf0/cmd_pose", target)
        client.pass_time(0.5)
        spawn("crate", CRATE, 0.03, 1.2)  # it meets the drone
        client.pass_time(0.5)
        state = EntityState(twist=Twist(linear=Vector3(x=0.5), angular=Vector3(z=2.0)))
        state.pose.position.x, state.pose.position.z = -0.3, 0.7
        state.header.frame_id = "map"
        client.call(SetEntityState, "crazyflow/set_entity_state", entity="crate", state=state)
        push = ExternalWrench()
        push.wrench.header.frame_id, push.wrench.wrench.force.z = "crate", 0.3
        push.duration.nanosec = 300_000_000
        wrenches = ExternalWrenchArray(external_wrenches=[push])
        kind = ApplyExternalWrench
        assert client.call(kind, "external_wrench/apply_wrench", wrenches=wrenches).success
        how = {"body": "crate", "cable": True, "stiffness": 2.0}
        assert client.call(Attach, "cf0/attach", **how).success
        spawn("door", DOOR, 2.0, 1.0)
        client.publish(
            "crazyflow/world/joint_commands", JointState(name=["door/rail"], position=[0.2])
        )
        client.pass_time(0.7)
        assert client.call(Trigger, "cf0/detach").success
        client.call(DeleteEntity, "crazyflow/delete_entity", entity="door")
        client.call(ResetSimulation, "crazyflow/reset_simulation")
        shelf = Resource(resource_string=WORLD.format(SHELF))
        client.call(LoadWorld, "crazyflow/load_world", world_resource=shelf)
        client.pause(False)
        client.publish("cf0/cmd_pose", target)
        spawn("crate", CRATE, 0.0, 1.0)  # on the shelf
        client.pass_time(0.7)
        assert simulator.end(signal.SIGTERM)[0] == 0
        print(simulator.log)
    report = replay(path)
    print(report)
    assert report.difference == "" and report.states > 200


def test_commands_of_robots_are_replayed_bit_for_bit(tmp_path: Path) -> None:
    """A drone on the deck of a rover feels them."""
    poses = [0.0, -1.0, 0.17, 0.0, 5.0, 5.0, 0.02, 0.0]
    told = Told(tmp_path / "flight.mcap", scene="robots", initial_poses=poses)
    step, robots = told.step, told.physics.robots
    step(103)
    for speed in (3.0, -2.0):
        wheels = {"left_wheel_joint": speed, "right_wheel_joint": 0.5 * speed}
        robots.command_joints(velocity=wheels, position={"arm_joint1": 0.1 * speed}).result(T)
        step(151)
    told.replayed()
    assert len(requests_of(told.path)) == 2
    check_needed(told.path, *requests_of(told.path))


def test_a_file_may_end_between_a_change_and_the_state_after_it(tmp_path: Path) -> None:
    """A simulator may be killed before or after it has recorded that state, which comes first."""
    path, cut = tmp_path / "flight.mcap", tmp_path / "cut.mcap"
    told = Told(path)
    told.physics.fly({"cf0": Takeoff(0.6, 1.0)}).result(T)
    told.step(700 - told.physics.snapshot.tick)
    told.physics.state.set_drone_states({"cf0": DroneState(pos=(0.3, 0.1, 0.5))}).result(T)
    told.end()
    messages = messages_of(path)
    states = [time for topic, time, _ in messages if topic == "/cf0/odom"]
    assert states[-2:] == [1_400_000_000] * 2  # before the change, and after it
    after = len(states) - 1
    rewritten(path, cut, lambda *message: message != ("/cf0/odom", after))
    report = replay(cut)
    assert report.difference == "" and report.ticks == 700
    last = sum(topic == "/node/changes" for topic, *_ in messages) - 1
    complete = rewritten(
        path, tmp_path / "complete.mcap", lambda *message: message != ("/node/changes", last)
    )
    assert "tick 700, pos of cf0: [0.29999" in replay(complete).difference
    cut.write_bytes(complete.read_bytes()[:-1])
    report = replay(cut)
    assert report.difference == "" and report.ticks == 700 and report.states


def test_times_of_the_wall_in_a_file_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "flight.mcap"
    before = time.time_ns()
    told = Told(path, wall_time=True)
    told.step(3)
    told.physics.fly({"cf0": Takeoff(0.6, 1.0)}).result(T)
    told.step(300)
    assert told.replayed().commands == 1
    with path.open("rb") as file:
        times = [message.log_time for _, _, message in make_reader(file).iter_messages()]
    assert before < min(times) < time.time_ns()
    assert max(times) - min(times) <= stamp_ns(told.physics.snapshot.tick)


@pytest.mark.parametrize("missing", range(8))
def test_replay_without_one_of_its_causes_differs(
    flight: Path, tmp_path: Path, missing: int
) -> None:
    changes = [payload for topic, _, payload in messages_of(flight) if topic == CHANGES]
    disturbances = [i for i, change in enumerate(changes) if b"disturbance" in change]
    assert len(disturbances) == 3
    told = [("/cf0/cmd_vel", 0), ("/cf1/external_wrench", 0)]
    causes = told + [(CHANGES, i) for i in (RESET, BALL, RESTORED, *disturbances)]
    path = rewritten(flight, tmp_path / "less.mcap", lambda *message: message != causes[missing])
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


def with_parameters(path: Path, version: str = "", lacks: str = "", **parameters: Any) -> Path:
    values = values_of(Parameters()) | parameters
    values.pop(lacks, None)
    metadata = {"parameters": json.dumps(values), "version": version}
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start("ros2")
        writer.add_metadata("crazyflow_ros", metadata)
        writer.finish()
    return path


def test_what_an_older_version_recorded_is_replayed_or_refused_with_its_name(
    flight: Path, tmp_path: Path
) -> None:
    path, said = tmp_path / "older.mcap", list[str]()
    assert replay(with_parameters(path, lacks="forces"), said.append) == Report(ticks=1)
    assert any("default values: forces" in text for text in said)
    with pytest.raises(ReplayError, match=r"0\.1\.0 wrote the file, .* parameters: colour"):
        replay(with_parameters(path, version="0.1.0", colour="red"))
    with flight.open("rb") as file:
        metadata = next(make_reader(file).iter_metadata())
    assert metadata.metadata["version"] == package_version()


def test_requests_that_are_no_settings_are_refused(tmp_path: Path) -> None:
    """A file may come from a newer version, or from a stranger."""
    path = tmp_path / "strange.mcap"
    known_recordings.write(
        path, [known_recordings.change(0, request="stop", arguments={})], values_of(Parameters())
    )
    with pytest.raises(ReplayError, match="there is no request 'stop', only halt, tune, "):
        replay(path)


def test_file_that_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    path = tmp_path / "other.mcap"
    for content, what in ((b"", "it is empty"), (b"text", "not an MCAP file")):
        path.write_bytes(content)
        with pytest.raises(ReplayError, match=what):
            replay(path)
    path.write_bytes(mcap_files.complete())
    with pytest.raises(ReplayError, match="not a recording of this simulator"):
        replay(path)
    with pytest.raises(ReplayError, match=r"ros2_control.mode lock_step are not recorded"):
        replay(with_parameters(path, **{"ros2_control.mode": "lock_step"}))
    with pytest.raises(ReplayError, match="different parameters: colour"):
        replay(with_parameters(path, colour="red"))
    assert replay(with_parameters(path)) == Report(ticks=1)


def test_random_damage_is_found_before_anything_is_compared(flight: Path, tmp_path: Path) -> None:
    """A flipped bit is an error of its place; a file that breaks off ends there."""
    whole = rewritten(flight, tmp_path / "whole.mcap", lambda *_: True)
    rng, content, path = random.Random(11), whole.read_bytes(), tmp_path / "damaged.mcap"
    counts = {"damaged": 0, "read": 0}
    everything = len(list(recorded_messages([whole])))
    for i in range(24):
        changed = bytearray(content)
        if i % 4:
            bit = rng.randrange(8 * len(content))
            changed[bit // 8] ^= 1 << bit % 8
        else:
            del changed[rng.randrange(9, len(changed)) :]
        path.write_bytes(changed)
        try:
            n = len(list(recorded_messages([path])))
            counts["read"] += 1
        except ReplayError:
            assert i % 4, "a file that breaks off is no damage"
            counts["damaged"] += 1
        else:
            assert n == everything if i % 4 else n <= everything  # else it was in the index
    assert min(counts.values()) > 3, counts


def test_damaged_recording_is_no_difference(
    flight: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, path = flight.read_bytes(), tmp_path / "damaged.mcap"
    with flight.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    chunk = summary.chunk_indexes[len(summary.chunk_indexes) // 2]  # what is read of it
    middle = chunk.chunk_start_offset + chunk.chunk_length // 2
    path.write_bytes(content[:middle] + b"\xff" * 9 + content[middle + 9 :])
    assert run([str(path)]) == 2
    said = capsys.readouterr().err
    assert f"replay: {path}: damaged before byte" in said
    assert "replay: compiling, which " in said or "replay: loading compiled code" in said


def with_messages(path: Path, *entries: tuple[str, int, bytes], origin_ns: int = 0) -> Path:
    """A file with messages of topics at times [ns]."""
    metadata = {"parameters": json.dumps(values_of(Parameters())), "origin_ns": str(origin_ns)}
    records = [mcap_files.metadata(metadata)]
    for i, (topic, time_ns, payload) in enumerate(entries):
        records += [mcap_files.channel(i, topic, 0), mcap_files.message(i, time_ns, payload)]
    path.write_bytes(mcap_files.complete(*records))
    return path


@pytest.mark.parametrize("origin_ns", [0, 1_700_000_000 * 10**9])
@pytest.mark.parametrize("time_ns", [10**18, 2 * 10**15, -3 * 10**9])
def test_far_times_are_refused_at_once(tmp_path: Path, time_ns: int, origin_ns: int) -> None:
    """A step of days would look like a replay that hangs."""
    payload = serialize_message(Odometry())
    path, far = tmp_path / "far.mcap", origin_ns + time_ns
    if far < 0:
        pytest.skip("times in a file are not negative")
    for times in ([far], [origin_ns, far]):
        entries = [("/cf0/odom", at, payload) for at in times]
        with pytest.raises(
            ReplayError, match=r"\d s (from the first one, expected|at) |0 to 1000000 s"
        ):
            replay(with_messages(path, *entries, origin_ns=origin_ns))


def test_a_long_silence_in_a_file_is_told_and_flown_through(tmp_path: Path) -> None:
    told = []
    nothing = serialize_message(WrenchStamped())
    entries = [("/cf0/external_wrench", at * 10**9, nothing) for at in (0, 61)]
    report = replay(with_messages(tmp_path / "a.mcap", *entries), told.append)
    assert report.ticks == 61 * 500
    assert "nothing is recorded from 0 s to 61 s" in told


def test_parameters_that_come_late_or_twice_are_no_others(tmp_path: Path) -> None:
    path, values = tmp_path / "a.mcap", {"parameters": json.dumps(values_of(Parameters()))}
    described = mcap_files.metadata(values)
    message = mcap_files.channel(1, "/a/b", 0) + mcap_files.message(1, 0)
    path.write_bytes(mcap_files.complete(message, described))
    with pytest.raises(ReplayError, match="it has no parameters"):
        replay(path)
    path.write_bytes(mcap_files.complete(described, message, described))
    assert replay(path).difference == ""


def test_a_change_that_would_take_gigabytes_is_refused(tmp_path: Path) -> None:
    many = serialize_message(String(data=f'{{"names": [{"[]," * 3_000_000}[]]}}'))
    with pytest.raises(ReplayError, match=r"a change of \d+ values, expected at most 2000000"):
        replay(with_messages(tmp_path / "a.mcap", (CHANGES, 10**7, many)))


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        ("/cf0/cmd_vel", b"\0\1\0\0\xff\xff"),
        (CHANGES, serialize_message(String(data="[1, 2"))),
        (CHANGES, serialize_message(String(data='{"names": 3}'))),
        (CHANGES, serialize_message(String(data='{"checkpoint": "AAAA"}'))),
        (CHANGES, serialize_message(String(data="[" * 100_000))),
    ],
)
def test_message_that_says_what_cannot_be_is_refused_with_its_place(
    tmp_path: Path, topic: str, payload: bytes
) -> None:
    path = with_messages(tmp_path / "damaged.mcap", (topic, 10_000_000, payload))
    with pytest.raises(ReplayError, match=rf"cannot be replayed: {topic} at 0\.010 s: "):
        replay(path)
