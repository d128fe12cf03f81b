"""The drone's description for ROS, against its compiled MuJoCo model."""

import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.description.urdf import fixed_frames, urdf
from crazyflow_ros.drones import Drone, load_drone, rotors_of
from crazyflow_ros.scene import build_spec


@pytest.fixture(params=list(Drone))
def drone_model(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def rotors(drone_model: str) -> list[str]:
    return [f"rotor{i}" for i in range(len(rotors_of(drone_model)))]


def parse(drone_model: str, name: str = "cf3") -> ET.Element:
    return ET.fromstring(urdf(drone_model, name))


def vector(text: str | None) -> np.ndarray:
    assert text is not None
    return np.array([float(v) for v in text.split()])


def find(element: ET.Element, path: str) -> ET.Element:
    found = element.find(path)
    assert found is not None, path
    return found


def pose(element: ET.Element) -> np.ndarray:
    """Homogeneous transformation (4, 4) of an origin."""
    origin = find(element, "origin")
    result = np.eye(4)
    result[:3, :3] = Rotation.from_euler("xyz", vector(origin.get("rpy", "0 0 0"))).as_matrix()
    result[:3, 3] = vector(origin.get("xyz"))
    return result


def link_poses(robot: ET.Element) -> dict[str, np.ndarray]:
    """Transformations (4, 4) of all links in the root link, with joints at zero."""
    joints = {find(j, "child").get("link"): j for j in robot.findall("joint")}
    poses = {}
    for link in robot.findall("link"):
        name = link.get("name")
        assert name is not None
        transform, at = np.eye(4), name
        while at in joints:
            transform = pose(joints[at]) @ transform
            at = find(joints[at], "parent").get("link") or ""
        assert at.endswith("/base_link")
        poses[name] = transform
    return poses


def test_links_and_joints_have_the_agreed_names(drone_model: str, rotors: list[str]) -> None:
    robot = parse(drone_model)
    assert robot.get("name") == "cf3"
    parts = [
        "base_link",
        "body",
        "imu_link",
        "range_link",
        "fpv_camera_link",
        "fpv_camera_optical_frame",
        *rotors,
    ]
    assert {link.get("name") for link in robot.findall("link")} == {f"cf3/{p}" for p in parts}
    kinds = {joint.get("name"): joint.get("type") for joint in robot.findall("joint")}
    assert {name for name, kind in kinds.items() if kind == "continuous"} == {
        f"cf3_{rotor}" for rotor in rotors
    }
    assert sorted(kinds.values()) == ["continuous"] * len(rotors) + ["fixed"] * 5


def test_the_text_is_taken_by_parsers_that_refuse_an_encoding(drone_model: str) -> None:
    first_line = urdf(drone_model, "cf3").splitlines()[0]
    assert first_line == '<?xml version="1.0"?>'


def test_masses_and_inertias_are_those_of_the_mujoco_model(
    drone_model: str, rotors: list[str]
) -> None:
    robot = parse(drone_model)
    assert not len(find(robot, "link[@name='cf3/base_link']"))  # KDL ignores a root's inertia
    model = build_spec(drone_model, ["x"]).compile()
    total = 0.0
    for link, body in [("body", "drone"), *((r, r) for r in rotors)]:
        inertial = find(robot, f"link[@name='cf3/{link}']/inertial")
        mass = float(find(inertial, "mass").get("value", "nan"))
        total += mass
        ours = model.body(f"{body}:x")
        assert mass == pytest.approx(ours.mass[0], rel=1e-12)
        np.testing.assert_allclose(
            vector(find(inertial, "origin").get("xyz")), ours.ipos, atol=1e-12
        )
        w, x, y, z = ours.iquat
        axes = Rotation.from_quat([x, y, z, w]).as_matrix()
        element = find(inertial, "inertia")
        xx, xy, xz, yy, yz, zz = (
            float(element.get(key, "nan")) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        np.testing.assert_allclose(
            [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]],
            axes @ np.diag(ours.inertia) @ axes.T,
            rtol=1e-9,
            atol=1e-15,
        )
    assert total == pytest.approx(load_drone(drone_model)["mass"], rel=1e-12)


def test_frames_are_those_of_the_mujoco_model(drone_model: str, rotors: list[str]) -> None:
    poses = link_poses(parse(drone_model))
    model = build_spec(drone_model, ["x"], poses=[[0, 0, 0, 0, 0, 0, 1]]).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = data.camera("fpv_cam:x")
    optical = camera.xmat.reshape(3, 3) @ np.diag([1, -1, -1])
    expected = {
        "body": (np.zeros(3), np.eye(3)),
        "imu_link": (data.site("imu:x").xpos, data.site("imu:x").xmat.reshape(3, 3)),
        "range_link": (data.site("range:x").xpos, data.site("range:x").xmat.reshape(3, 3)),
        "fpv_camera_optical_frame": (camera.xpos, optical),
        "fpv_camera_link": (camera.xpos, np.eye(3)),
    }
    for rotor in rotors:
        body = data.body(f"{rotor}:x")
        expected[rotor] = body.xpos, body.xmat.reshape(3, 3)
    for link, (position, rotation) in expected.items():
        np.testing.assert_allclose(poses[f"cf3/{link}"][:3, 3], position, atol=1e-12)
        np.testing.assert_allclose(poses[f"cf3/{link}"][:3, :3], rotation, atol=1e-12)


def test_fixed_frames_are_the_fixed_joints(drone_model: str) -> None:
    robot = parse(drone_model)
    fixed = {
        find(joint, "child").get("link"): joint
        for joint in robot.findall("joint")
        if joint.get("type") == "fixed"
    }
    frames = fixed_frames(drone_model, "cf3")
    assert {frame.child for frame in frames} == set(fixed)
    for frame in frames:
        joint = fixed[frame.child]
        assert frame.parent == find(joint, "parent").get("link")
        transform = pose(joint)
        np.testing.assert_allclose(frame.pos, transform[:3, 3], atol=1e-12)
        rotation = Rotation.from_quat(frame.quat).as_matrix()
        np.testing.assert_allclose(rotation, transform[:3, :3], atol=1e-12)


def test_rotors_turn_about_their_axes_at_positive_speed(
    drone_model: str, rotors: list[str]
) -> None:
    robot, own = parse(drone_model), rotors_of(drone_model)
    for i, rotor in enumerate(rotors):
        joint = find(robot, f"joint[@name='cf3_{rotor}']")
        axis = vector(find(joint, "axis").get("xyz"))
        np.testing.assert_array_equal(axis, [0, 0, own.spin[i]])
        limit = find(joint, "limit")
        rpm = float(limit.get("velocity", "nan")) * 60 / (2 * np.pi)
        curves = own.rpm2thrust[i], own.rpm2torque[i]
        thrust, drag = (np.polyval(curve[::-1], rpm) for curve in curves)
        assert thrust == pytest.approx(own.thrust_limits[1, i])
        assert float(limit.get("effort", "nan")) == pytest.approx(drag)


def test_shapes_and_colours_are_those_of_the_mujoco_model(
    drone_model: str, rotors: list[str]
) -> None:
    robot = parse(drone_model)
    model = build_spec(drone_model, ["x"]).compile()
    colours = {
        material.get("name"): vector(find(material, "color").get("rgba"))
        for material in robot.findall("material")
    }
    for link, body in [("body", "drone"), *((r, r) for r in rotors)]:
        element = find(robot, f"link[@name='cf3/{link}']")
        ours = model.body(f"{body}:x")
        geoms = [model.geom(ours.geomadr[0] + i) for i in range(ours.geomnum[0])]
        visuals = element.findall("visual")
        drawn = [geom for geom in geoms if geom.group == 2]
        assert len(visuals) == len(drawn) > 0
        for visual, geom in zip(visuals, drawn, strict=True):
            check_shape(visual, geom)
            rgba = colours[find(visual, "material").get("name")]
            np.testing.assert_allclose(rgba, model.mat_rgba[geom.matid[0]], atol=1e-6)
        assert len(element.findall("collision")) == (1 if body == "drone" else 0)
    collision = find(robot, "link[@name='cf3/body']/collision")
    check_shape(collision, model.geom("col_box:x"))


def check_shape(element: ET.Element, geom: mujoco._structs._MjModelGeomViews) -> None:
    shape = find(element, "geometry")[0]
    match shape.tag:
        case "box":
            assert geom.type == mujoco.mjtGeom.mjGEOM_BOX
            np.testing.assert_allclose(vector(shape.get("size")), 2 * geom.size)
        case "cylinder":
            assert geom.type == mujoco.mjtGeom.mjGEOM_CYLINDER
            assert float(shape.get("radius", "nan")) == pytest.approx(geom.size[0])
            assert float(shape.get("length", "nan")) == pytest.approx(2 * geom.size[1])
        case "sphere":
            assert geom.type == mujoco.mjtGeom.mjGEOM_SPHERE
            assert float(shape.get("radius", "nan")) == pytest.approx(geom.size[0])
    w, x, y, z = geom.quat
    transform = pose(element)
    np.testing.assert_allclose(transform[:3, 3], geom.pos, atol=1e-12)
    np.testing.assert_allclose(
        transform[:3, :3], Rotation.from_quat([x, y, z, w]).as_matrix(), atol=1e-9
    )


def test_unknown_drones_are_refused() -> None:
    with pytest.raises(ValueError, match="cf9"):
        urdf("cf9", "cf0")


def test_several_drones_are_one_tree_below_the_map(drone_model: str) -> None:
    robot = ET.fromstring(urdf(drone_model, ["a", "b"]))
    children = {find(j, "child").get("link"): j for j in robot.findall("joint")}
    links = [link.get("name") for link in robot.findall("link")]
    assert len(links) == len(set(links)) == len(children) + 1
    assert set(links) - children.keys() == {"map"}
    for drone in ("a", "b"):
        joint = children[f"{drone}/base_link"]
        assert (joint.get("type"), find(joint, "parent").get("link")) == ("floating", "map")
    names = [material.get("name") for material in robot.findall("material")]
    assert len(names) == len(set(names))


def test_native_hardware_has_all_interfaces_of_each_drone(
    drone_model: str, rotors: list[str]
) -> None:
    robot = ET.fromstring(urdf(drone_model, ["a", "b"], "native", {"shared_memory": "lab.sim"}))
    figures = load_drone(drone_model)
    joints = {joint.get("name"): joint for joint in robot.findall("joint")}
    for drone in ("a", "b"):
        block = find(robot, f"ros2_control[@name='{drone}']")
        assert block.get("type") == "system"
        assert find(block, "hardware/plugin").text == "crazyflow_ros/CrazyflowSystem"
        assert find(block, "hardware/param[@name='shared_memory']").text == "lab.sim"
        for rotor in rotors:
            command = find(block, f"joint[@name='{drone}_{rotor}']/command_interface")
            assert command.get("name") == "velocity"
            limit = find(joints[f"{drone}_{rotor}"], "limit").get("velocity")
            assert find(command, "param[@name='max']").text == limit
        thrust = find(block, f"gpio[@name='{drone}_body']/command_interface[@name='thrust']")
        assert find(thrust, "param[@name='max']").text == f"{4 * figures['thrust_max']:.12g}"
        states = {
            f"{component.get('name')}/{state.get('name')}"
            for component in block
            for state in component.findall("state_interface")
        }
        imu = [f"orientation.{a}" for a in "xyzw"]
        imu += [f"{q}.{a}" for q in ("angular_velocity", "linear_acceleration") for a in "xyz"]
        pose = [f"position.{a}" for a in "xyz"] + imu[:4]
        assert {f"{drone}_imu/{name}" for name in imu} <= states
        assert {f"{drone}_pose/{name}" for name in pose} <= states
        assert {f"{drone}_range/range", f"{drone}_body/level", f"{drone}_yaw/position"} <= states


def test_topic_hardware_commands_rotors_alone(drone_model: str, rotors: list[str]) -> None:
    robot = ET.fromstring(urdf(drone_model, ["a"], "topic"))
    block, sensors = robot.findall("ros2_control")
    assert find(block, "hardware/plugin").text == (
        "joint_state_topic_hardware_interface/JointStateTopicSystem"
    )
    assert [joint.get("name") for joint in block.findall("joint")] == [f"a_{r}" for r in rotors]
    assert find(sensors, "hardware/plugin").text == "cm_topic_hardware_component/CMTopicSystem"
    assert sensors.get("name") == "a_sensors"
    assert not sensors.findall("*/command_interface")
