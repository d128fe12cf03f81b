"""Description of a drone for ROS (URDF), made from its MuJoCo model so that both are one drone.

Links are called `<name>/base_link`, `<name>/imu_link`, `<name>/range_link`,
`<name>/fpv_camera_link`, `<name>/fpv_camera_optical_frame` and `<name>/rotor<i>`, rotor joints
`<name>_rotor<i>`. Axes are those of REP 103: x forward, y left, z up; z forward, x right, y down in
the optical frame; x along the ray, downwards, in the range sensor's.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.dynamics import load_drone
from crazyflow_ros.scene import build_spec, frames
from crazyflow_ros.scene.drone import N_ROTORS, max_rotor_speed, numbers

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


def fixed_frames(drone_model: str, name: str) -> list[FixedFrame]:
    """The frames that are fixed on the drone `name`: its sensors, and the camera's image."""
    model = _model(drone_model)
    imu, tof = model.site(f"imu:{_DRONE}"), model.site(f"range:{_DRONE}")
    camera = model.camera(f"fpv_cam:{_DRONE}")
    base, camera_link = f"{name}/base_link", f"{name}/fpv_camera_link"
    camera_attitude = frames.camera_link(frames.wxyz_to_xyzw(camera.quat))
    return [
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


def urdf(drone_model: str, name: str) -> str:
    """URDF of the drone `name`: shapes, colours, masses and inertias of its MuJoCo model.

    Rotors turn at positive speed in flight. Their limits are speed and drag torque at most thrust.

    Args:
        drone_model: Name of the drone model, as in `crazyflow_ros.dynamics.Drone`.
        name: Name of the drone.

    Returns:
        The XML text.

    Raises:
        ValueError: There is no such drone model.
    """
    model = _model(drone_model)
    robot = ET.Element("robot", name=name)
    for i in np.unique(model.geom_matid[model.geom_group == _VISUAL_GROUP]):
        material = ET.SubElement(robot, "material", name=model.material(i).name)
        ET.SubElement(material, "color", rgba=numbers(model.mat_rgba[i]))
    base = f"{name}/base_link"
    _add_link(robot, model, model.body(f"drone:{_DRONE}").id, base)

    figures = load_drone(drone_model)
    speed = max_rotor_speed(figures)
    torque = np.polynomial.Polynomial(figures["rpm2torque"])(speed * 60 / math.tau)
    for i in range(N_ROTORS):
        rotor, link = model.body(f"rotor{i}:{_DRONE}"), f"{name}/rotor{i}"
        _add_link(robot, model, rotor.id, link)
        frame = FixedFrame(base, link, rotor.pos, frames.wxyz_to_xyzw(rotor.quat))
        joint = _add_joint(robot, f"{name}_rotor{i}", "continuous", frame)
        ET.SubElement(joint, "axis", xyz=numbers(model.joint(f"rotor{i}:{_DRONE}").axis))
        ET.SubElement(joint, "limit", velocity=numbers(speed), effort=numbers(torque))

    for frame in fixed_frames(drone_model, name):
        ET.SubElement(robot, "link", name=frame.child)
        _add_joint(robot, f"{frame.child.replace('/', '_')}_joint", "fixed", frame)
    ET.indent(robot)
    # Without an encoding, which some parsers refuse in text that is decoded already.
    return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode")


@cache
def _model(drone_model: str) -> mujoco.MjModel:
    """The drone alone, at the origin."""
    return build_spec(drone_model, [_DRONE]).compile()


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
    """Mass and inertia about the centre of mass, in the axes of the link."""
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
            raise ValueError(f"URDF has no {shape}, shape of geom {model.geom(geom).name!r}")
    return element


def _add_origin(element: ET.Element, pos: np.ndarray, quat: np.ndarray) -> None:
    ET.SubElement(element, "origin", xyz=numbers(pos), rpy=numbers(frames.rpy(quat)))
