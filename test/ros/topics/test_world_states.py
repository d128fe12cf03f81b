"""What moves in the world, as topics, sensors, recordings and the page show it.

The reference is the same world in plain MuJoCo, with nothing of the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest
from images import can_draw
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from moving_worlds import FRAMES, SHOWN
from paths import ROOT
from ros_client import LATCHED, Client, SimulatorProcess, numbers, own_domain, stamp_ns, time_ns
from sensor_msgs.msg import CameraInfo, Image, JointState, LaserScan, MultiDOFJointState
from simulation_interfaces.msg import Resource, Result
from simulation_interfaces.srv import LoadWorld
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from crazyflow_ros.ros.messages import shapes_of
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.recording import Recording

DOMAIN = own_domain("test_ros_world_states")
TICKS = 300  # the box is about to land, before the drone
BODIES = ("a box", "cf0/load", "arm", None, "tool", "pad")  # of FRAMES
RENDERERS = ("rays", "opengl") if can_draw() else ("rays",)
SENSORS = "all:\n  scan: {type: lidar, rate: 50, samples: 180, max_distance: 9.0}\n" + "".join(
    f"  {name}: {{type: camera, rate: 50, width: 48, height: 36, fovy: 80, pos: [0.1, 0, 0.03], "
    f"renderer: {name}, data_types: [depth, segmentation, rgb]}}\n"
    for name in RENDERERS
)


class Run(NamedTuple):
    """What the node has sent up to the same tick, and the world in plain MuJoCo then."""

    client: Client
    heard: dict[str, list[Any]]
    data: mujoco.MjData
    path: Path
    simulator: SimulatorProcess

    def at(self, topic: str) -> Any:
        """The message of the last tick."""
        return self.client.newest(self.heard[topic], TICKS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("world_states")
    (folder / "world.xml").write_text(SHOWN)
    (folder / "sensors.yaml").write_text(SENSORS)
    path = folder / "flight.mcap"
    arguments = [
        f"scene:={folder / 'world.xml'}",
        f"sensors:={folder / 'sensors.yaml'}",
        f"record:={path}",
        "start_paused:=true",
    ]
    model = mujoco.MjModel.from_xml_string(SHOWN)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, TICKS - 1)  # the first tick is 1
    mujoco.mj_forward(model, data)
    with SimulatorProcess(DOMAIN, arguments) as simulator:
        client = Client(DOMAIN)
        topics = {
            "crazyflow/world/odometry": MultiDOFJointState,
            "crazyflow/world/joint_states": JointState,
            "crazyflow/world/cables": Marker,
        }
        for name in RENDERERS:
            topics |= {
                f"cf0/{name}/{kind}image_raw": Image for kind in ("depth/", "segmentation/", "")
            }
            topics[f"cf0/{name}/camera_info"] = CameraInfo
        scans = client.collect(LaserScan, "cf0/scan")  # none while time stands still
        heard = {topic: client.listen(kind, topic) for topic, kind in topics.items()}
        heard["cf0/scan"] = scans
        heard["/tf"] = client.listen(TFMessage, "/tf")
        heard["/tf_static"] = client.collect(TFMessage, "/tf_static", LATCHED)
        heard["scene"] = client.collect(MarkerArray, "crazyflow/scene", LATCHED)
        client.until(lambda: heard["scene"], "the scene")
        assert client.advance(TICKS - 1) == TICKS
        yield Run(client, heard, data, path, simulator)
        client.close()
        assert simulator.process.poll() is not None or simulator.end()[0] == 0
        assert "Traceback" not in simulator.log and "ERROR" not in simulator.log


def body_of(run: Run, number: int) -> int:
    name = BODIES[number]
    arm = run.data.model.body("arm").id
    return arm + 1 if name is None else int(run.data.model.body(name).id)


def check_pose(run: Run, number: int, transform: Any) -> None:
    body = body_of(run, number)
    np.testing.assert_allclose(numbers(transform.translation), run.data.xpos[body], atol=1e-6)
    turn = rotation_matrix(numbers(transform.rotation))
    np.testing.assert_allclose(turn, run.data.xmat[body].reshape(3, 3), atol=1e-5)


def test_tf_has_the_frame_of_each_body(run: Run) -> None:
    """In messages of their own: those of the drones stay as they are."""

    def last(first: str) -> Any:
        return run.client.until(
            lambda: [
                message.transforms
                for message in run.heard["/tf"]
                if message.transforms[0].child_frame_id == first
                and time_ns(message.transforms[0].header.stamp) == stamp_ns(TICKS)
            ],
            f"the frame {first}",
        )[-1]

    edges = last(FRAMES[0])
    assert [edge.child_frame_id for edge in edges] == list(FRAMES)
    assert {edge.header.frame_id for edge in edges} == {"map"}
    for number, edge in enumerate(edges):
        check_pose(run, number, edge.transform)
    (drone,) = last("cf0/base_link")
    assert drone.header.frame_id == "cf0/odom"


def test_odometry_has_poses_and_twists(run: Run) -> None:
    message = run.at("crazyflow/world/odometry")
    assert message.joint_names == list(FRAMES) and message.header.frame_id == "map"
    for number, (transform, twist) in enumerate(zip(message.transforms, message.twist)):
        check_pose(run, number, transform)
        expected, body = np.zeros(6), body_of(run, number)
        mujoco.mj_objectVelocity(
            run.data.model, run.data, mujoco.mjtObj.mjOBJ_XBODY, body, expected, 1
        )
        found = np.append(numbers(twist.angular), numbers(twist.linear))
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_joint_states_are_those_of_the_robot(run: Run) -> None:
    message, joints = run.at("crazyflow/world/joint_states"), ("shoulder", "lift")
    assert message.name == list(joints)
    for name, *found in zip(joints, message.position, message.velocity, message.effort):
        joint = run.data.joint(name)
        expected = joint.qpos[0], joint.qvel[0], joint.qfrc_actuator[0]
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_cables_are_lines(run: Run) -> None:
    marker = run.at("crazyflow/world/cables")
    assert marker.type == Marker.LINE_LIST and marker.header.frame_id == "map"
    points = [[point.x, point.y, point.z] for point in marker.points]
    np.testing.assert_allclose(points[0], run.data.site("hook").xpos, atol=1e-6)
    ends = np.linalg.norm(np.array(points) - run.data.site("eye").xpos, axis=1)
    assert ends.min() < 1e-6 and marker.colors[0].r == 1.0


def test_markers_are_in_frames_that_tf_moves(run: Run) -> None:
    markers = run.client.until(lambda: run.heard["scene"], "the scene")[-1].markers[1:]
    frames = {marker.header.frame_id for marker in markers}
    assert frames == {"map", *FRAMES}
    for marker in markers:
        assert marker.frame_locked == (marker.header.frame_id != "map")
        if marker.header.frame_id == "a_box":
            assert numbers(marker.pose.position).tolist() == [0, 0, 0]


def frame_of(run: Run, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Place and axes of a frame on the drone, in the world."""
    (drone,) = [
        message.transforms[0].transform
        for message in run.heard["/tf"]
        if message.transforms[0].child_frame_id == "cf0/base_link"
        and time_ns(message.transforms[0].header.stamp) == stamp_ns(TICKS)
    ][-1:]
    place, axes = numbers(drone.translation), rotation_matrix(numbers(drone.rotation))
    fixed = {
        edge.child_frame_id: edge
        for message in run.heard["/tf_static"]
        for edge in message.transforms
    }
    chain = []
    while name != "cf0/base_link":
        chain.append(fixed[name].transform)
        name = fixed[name].header.frame_id
    for transform in reversed(chain):
        place = place + axes @ numbers(transform.translation)
        axes = axes @ rotation_matrix(numbers(transform.rotation))
    return place, axes


def seen(run: Run, place: np.ndarray, ray: np.ndarray) -> tuple[float, str]:
    """Distance to what MuJoCo finds on a ray, -1 for nothing, and the name of its body."""
    geom = np.zeros(1, np.int32)
    distance = mujoco.mj_ray(run.data.model, run.data, place, ray, None, 1, -1, geom)
    body = run.data.model.geom_bodyid[geom[0]]
    return distance, run.data.model.body(body).name if distance >= 0 else ""


def test_a_lidar_sees_bodies_where_they_are(run: Run) -> None:
    scan = run.at("cf0/scan")
    place, axes = frame_of(run, scan.header.frame_id)
    angles = scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
    names = set()
    for angle, found in zip(angles, scan.ranges):
        distance, name = seen(run, place, axes @ [np.cos(angle), np.sin(angle), 0.0])
        if 0 <= distance < scan.range_max:
            assert found == pytest.approx(distance, abs=2e-3)
            names.add(name)
        else:
            assert np.isinf(found)
    assert "world" in names


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_camera_sees_bodies_where_they_are(run: Run, renderer: str) -> None:
    """Beside rays of MuJoCo, in the middle of each pixel; a few are on an edge."""
    prefix = f"cf0/{renderer}"
    image = run.at(f"{prefix}/depth/image_raw")
    info = run.at(f"{prefix}/camera_info")
    depth = np.frombuffer(image.data, np.float32).reshape(image.height, image.width)
    ids = run.at(f"{prefix}/segmentation/image_raw")
    kind = {"32SC1": np.int32, "32SC2": np.int32, "16UC1": np.uint16, "mono16": np.uint16}
    of_pixels = np.frombuffer(ids.data, kind[ids.encoding]).reshape(*depth.shape, -1)[..., 0]
    place, axes = frame_of(run, image.header.frame_id)
    wrong, numbers_of = 0, dict[str, list[int]]()
    for v, u in np.ndindex(depth.shape):
        ray = np.array([(u - info.k[2]) / info.k[0], (v - info.k[5]) / info.k[4], 1.0])
        length = np.linalg.norm(ray)
        distance, name = seen(run, place, axes @ ray / length)
        if distance >= 0:
            is_equal = abs(depth[v, u] - distance / length) < 0.02 * distance
            wrong += not is_equal
            numbers_of.setdefault(name, []).append(int(of_pixels[v, u]))
    assert wrong < 0.05 * depth.size
    assert {"a box", "world"} <= numbers_of.keys()
    (of_box, count) = np.unique(numbers_of["a box"], return_counts=True)
    (of_world, _) = np.unique(numbers_of["world"], return_counts=True)
    assert count.max() > 0.8 * count.sum() and of_box[count.argmax()] not in of_world[:1]


def test_the_page_follows_bodies(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    with closing(Follower()) as follower:

        def has_all() -> bool:
            frame = follower.frame()
            return bool(follower.world and frame and frame.bodies and frame.cables is not None)

        run.client.until(has_all, "bodies on the page")
        frame = follower.frame()
        assert frame is not None and frame.bodies is not None and frame.cables is not None
        assert frame.bodies.names == FRAMES
        for number, pos in enumerate(frame.bodies.pos):
            np.testing.assert_allclose(pos, run.data.xpos[body_of(run, number)], atol=1e-6)
        np.testing.assert_allclose(frame.cables[0, 0], run.data.site("hook").xpos, atol=1e-6)
        assert {shape.frame for shape in follower.world or ()} == {"", *FRAMES}


def test_page_lists_the_topics(run: Run) -> None:
    text = (ROOT / "docs" / "reference" / "interface.md").read_text()
    (table,) = re.findall(
        r"^\| topic of a world that moves \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M
    )
    rows = re.findall(r"^\| (.+?) \| `(\S+)` \|", table, re.M)
    listed = {(name, kind) for cell, kind in rows for name in re.findall("`(.+?)`", cell)}
    published = run.client.node.get_publisher_names_and_types_by_node("crazyflow", "/")
    assert listed == {
        (name.replace("/crazyflow/", "~/"), kinds[0])
        for name, kinds in published
        if "/world/" in name or name == "/tf"
    }


def test_topics_go_with_the_bodies(run: Run) -> None:
    """And the recording has what was there before."""
    client, count = run.client, run.client.node.count_publishers
    plain = "<mujoco><worldbody><geom type='plane' size='0 0 1'/></worldbody></mujoco>"
    loaded = client.call(
        LoadWorld, "crazyflow/load_world", world_resource=Resource(resource_string=plain)
    ).result
    assert loaded.result == Result.RESULT_OK, loaded.error_message
    for topic in ("world/odometry", "display/world/odometry", "world/joint_states"):
        client.until(lambda t=f"/crazyflow/{topic}": not count(t), f"the end of {topic}")
    client.until(
        lambda: {m.header.frame_id for m in run.heard["scene"][-1].markers[1:]} == {"map"},
        "the markers of the other world",
    )
    assert run.simulator.end()[0] == 0
    with run.path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        of_bodies = [
            message.transforms
            for _, _, _, message in reader.iter_decoded_messages(["/tf"])
            if message.transforms[0].child_frame_id == FRAMES[0]
        ]
        worlds = [m[3] for m in reader.iter_decoded_messages(["/crazyflow/scene"])]
    assert len(of_bodies) > TICKS // 5 - 2
    frames = [{shape.frame for shape in shapes_of(world)} for world in worlds]
    assert {"", *FRAMES} in frames  # loading the other one has set time back
    recording = Recording(run.path)
    frame = recording.frame(recording.zero_ns + stamp_ns(TICKS))
    assert frame is not None and frame.bodies is not None and frame.cables is not None
    for number, pos in enumerate(frame.bodies.pos):
        np.testing.assert_allclose(pos, run.data.xpos[body_of(run, number)], atol=1e-6)
