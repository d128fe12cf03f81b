"""Description of a drone for ROS (URDF), generated from its MuJoCo model so that both agree.

Links are called `<name>/base_link`, `<name>/body`, `<name>/imu_link`, `<name>/range_link`,
`<name>/fpv_camera_link`, `<name>/fpv_camera_optical_frame` and `<name>/rotor<i>`, rotor joints
`<name>_rotor<i>`. The base link has no shape and no inertia, which KDL ignores in a root link:
`body` has them, at the same place. Axes are those of REP 103: x forward, y left, z up; z forward,
x right, y down in the optical frame; x along the ray, downwards, in the range sensor's frame.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.description.interfaces import Component, rotors
from crazyflow_ros.description.ros2_control import Hardware, blocks, most_commanded
from crazyflow_ros.drones import load_drone, resolve, rotors_of
from crazyflow_ros.scene import build_spec, frames
from crazyflow_ros.scene.drone_mjcf import max_rotor_speed, numbers

MAP = "map"
"""Root link of a robot of several drones: the world."""

_DRONE = "drone"  # name of the drone in the model that the description is made from
_VISUAL_GROUP = 2  # of geoms


class FixedFrame(NamedTuple):
    """A frame fixed in another one."""

    parent: str
    child: str
    pos: np.ndarray
    """Origin of the child in the parent [m], shape (3,)."""
    quat: np.ndarray
    """Attitude (xyzw) of the child in the parent, shape (4,)."""


class RotorJoint(NamedTuple):
    """A frame that turns with a rotor."""

    frame: FixedFrame
    """The frame at the angle 0."""
    axis: np.ndarray
    """Unit vector in the frame, shape (3,); the angle is positive in flight."""


def rotor_joints(drone_model: str, name: str) -> list[RotorJoint]:
    """Return the frames of the rotors of the drone `name`."""
    model, joints = _model(drone_model), []
    for i in range(len(rotors_of(drone_model))):
        rotor = model.body(f"rotor{i}:{_DRONE}")
        quat = frames.wxyz_to_xyzw(rotor.quat)
        frame = FixedFrame(f"{name}/base_link", f"{name}/rotor{i}", rotor.pos.copy(), quat)
        joints.append(RotorJoint(frame, model.joint(f"rotor{i}:{_DRONE}").axis.copy()))
    return joints


def fixed_frames(drone_model: str, name: str) -> list[FixedFrame]:
    """Return the fixed frames of the drone `name`: body, sensors, the camera's optical frame."""
    model = _model(drone_model)
    imu, tof = model.site(f"imu:{_DRONE}"), model.site(f"range:{_DRONE}")
    camera = model.camera(f"fpv_cam:{_DRONE}")
    base, camera_link = f"{name}/base_link", f"{name}/fpv_camera_link"
    camera_attitude = frames.camera_link(frames.wxyz_to_xyzw(camera.quat))
    return [
        FixedFrame(base, f"{name}/body", np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])),
        FixedFrame(base, f"{name}/imu_link", imu.pos.copy(), frames.wxyz_to_xyzw(imu.quat)),
        FixedFrame(base, f"{name}/range_link", tof.pos.copy(), frames.wxyz_to_xyzw(tof.quat)),
        FixedFrame(base, camera_link, camera.pos.copy(), camera_attitude),
        FixedFrame(
            camera_link,
            f"{name}/fpv_camera_optical_frame",
            np.zeros(3),
            frames.OPTICAL_IN_LINK.copy(),
        ),
    ]


def urdf(
    drone_model: str,
    names: str | Sequence[str],
    hardware: str = Hardware.none,
    parameters: Mapping[str, str] | None = None,
    carried: Callable[[str], Sequence[Component]] = lambda _: (),
) -> str:
    """Return the URDF with shapes, colours, masses and inertias of the MuJoCo model.

    Rotors turn at positive speed in flight. Their limits are speed and drag torque at full thrust.
    `xacro` generates the same from `urdf_mjcf/crazyflow.urdf.xacro`.

    Args:
        drone_model: Name of the drone model, as in `crazyflow_ros.drones.Drone`, or path of
            a drone's folder.
        names: Name of the drone; or names of drones, which then float in the root link `map`.
        hardware: How ros2_control reaches the drones, a member of `Hardware`.
        parameters: Parameters of each drone's hardware component, see `ros2_control.PARAMETERS`.
        carried: Takes the name of a drone; returns further sensors of it, see `blocks`.

    Returns:
        The XML text.

    Raises:
        ValueError: There is no such drone model, hardware or parameter.
    """
    single = isinstance(names, str)
    robot = ET.Element("robot", name=names if isinstance(names, str) else "crazyflow")
    robot.extend(materials(drone_model))
    if not single:
        ET.SubElement(robot, "link", name=MAP)
    for name in [names] if isinstance(names, str) else names:
        robot.extend(drone(drone_model, name))
        if not single:
            robot.append(floating_joint(MAP, name))
        robot.extend(blocks(drone_model, name, hardware, parameters, carried(name)))
    ET.indent(robot)
    # No encoding, because some parsers refuse one in text that is already decoded.
    return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode")


def materials(drone_model: str) -> list[ET.Element]:
    """Return the colours that the links of all drones of a model share."""
    model, elements = _model(drone_model), []
    for i in np.unique(model.geom_matid[model.geom_group == _VISUAL_GROUP]):
        elements.append(material := ET.Element("material", name=model.material(i).name))
        ET.SubElement(material, "color", rgba=numbers(model.mat_rgba[i]))
    return elements


def drone(drone_model: str, name: str) -> list[ET.Element]:
    """Return the links and joints of one drone."""
    model = _model(drone_model)
    robot = ET.Element("robot")
    ET.SubElement(robot, "link", name=f"{name}/base_link")
    _add_link(robot, model, model.body(f"drone:{_DRONE}").id, f"{name}/body")

    figures = load_drone(drone_model)
    speed, most = max_rotor_speed(figures), most_commanded(drone_model)
    curves, joints = figures["rotors"].rpm2torque, rotor_joints(drone_model, name)
    for i, (component, rotor) in enumerate(zip(rotors(len(curves)), joints)):
        torque = np.polynomial.Polynomial(curves[i])(speed * 60 / math.tau)
        _add_link(robot, model, model.body(f"rotor{i}:{_DRONE}").id, rotor.frame.child)
        joint = _add_joint(robot, component.name(name), "continuous", rotor.frame)
        ET.SubElement(joint, "axis", xyz=numbers(rotor.axis))
        ET.SubElement(joint, "limit", velocity=most["velocity"], effort=numbers(torque))

    for frame in fixed_frames(drone_model, name):
        if frame.child != f"{name}/body":
            ET.SubElement(robot, "link", name=frame.child)
        _add_joint(robot, f"{frame.child.replace('/', '_')}_joint", "fixed", frame)
    return list(robot)


def floating_joint(parent: str, name: str) -> ET.Element:
    """Return the floating joint between a link and a drone."""
    joint = ET.Element("joint", name=f"{name}_free", type="floating")
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=f"{name}/base_link")
    return joint


@cache
def _compiled(drone_model: str) -> mujoco.MjModel:
    return build_spec(drone_model, [_DRONE]).compile()


def _model(drone_model: str) -> mujoco.MjModel:
    """Return the model of the drone alone, at the origin."""
    return _compiled(resolve(drone_model))


def _add_joint(robot: ET.Element, name: str, kind: str, frame: FixedFrame) -> ET.Element:
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=frame.parent)
    ET.SubElement(joint, "child", link=frame.child)
    _add_origin(joint, frame.pos, frame.quat)
    return joint


def _add_link(robot: ET.Element, model: mujoco.MjModel, body: int, name: str) -> None:
    link = ET.SubElement(robot, "link", name=name)
    _add_inertial(link, model, body)
    first = model.body_geomadr[body]
    for geom in range(first, first + model.body_geomnum[body]):
        if model.geom_group[geom] == _VISUAL_GROUP:
            visual = _add_shape(link, "visual", model, geom)
            material = model.material(model.geom_matid[geom]).name
            ET.SubElement(visual, "material", name=material)
        elif model.geom_contype[geom]:
            _add_shape(link, "collision", model, geom)


def _add_inertial(link: ET.Element, model: mujoco.MjModel, body: int) -> None:
    """Add mass and inertia about the centre of mass, in the axes of the link."""
    axes = frames.rotation_matrix(frames.wxyz_to_xyzw(model.body_iquat[body]))
    inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
    inertial = ET.SubElement(link, "inertial")
    ET.SubElement(inertial, "origin", xyz=numbers(model.body_ipos[body]))
    ET.SubElement(inertial, "mass", value=numbers(model.body_mass[body]))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = (numbers(value) for value in inertia[np.triu_indices(3)])
    ET.SubElement(inertial, "inertia", dict(zip(names, values, strict=True)))


def _add_shape(link: ET.Element, tag: str, model: mujoco.MjModel, geom: int) -> ET.Element:
    element = ET.SubElement(link, tag)
    _add_origin(element, model.geom_pos[geom], frames.wxyz_to_xyzw(model.geom_quat[geom]))
    geometry = ET.SubElement(element, "geometry")
    size = model.geom_size[geom]
    match model.geom_type[geom]:
        case mujoco.mjtGeom.mjGEOM_BOX:
            ET.SubElement(geometry, "box", size=numbers(2 * size))
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            radius, length = numbers(size[0]), numbers(2 * size[1])
            ET.SubElement(geometry, "cylinder", radius=radius, length=length)
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            ET.SubElement(geometry, "sphere", radius=numbers(size[0]))
        case other:
            shape = mujoco.mjtGeom(other).name
            raise ValueError(f"geom {model.geom(geom).name!r} is a {shape}, which URDF lacks")
    return element


def _add_origin(element: ET.Element, pos: np.ndarray, quat: np.ndarray) -> None:
    angles = np.round(frames.rpy(quat), 12) + 0.0  # further digits differ between processors
    ET.SubElement(element, "origin", xyz=numbers(pos), rpy=numbers(angles))
