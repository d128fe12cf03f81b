"""States of free joints and rotors in mujoco_ros2_control's messages.

Error messages are those of mujoco_ros2_control 0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from sensor_msgs.msg import JointState

from crazyflow_ros.checks import limits
from crazyflow_ros.engine.snapshot import SIZES
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import xyz, xyzw
from crazyflow_ros.scene import Mirror, MirrorState
from crazyflow_ros.scene.frames import body_to_world, multiply, world_to_body

if TYPE_CHECKING:
    from mujoco_ros2_control_msgs.msg import FreeJointState

Edit = Callable[[MirrorState], MirrorState]


class StateEditor:
    """Checks messages against the present drones and bodies.

    Drones and bodies may change between two ticks, so create and use an editor within one such gap.

    A drone is identified by its name, its MuJoCo body (drone:cf0) or its frame (cf0/base_link), a
    rotor by its joint in MuJoCo (rotor0:cf0) or in the robot description (cf0_rotor0).
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror, self._model, self._names = mirror, mirror.model, mirror.names
        self._drones = {
            name: i
            for i, drone in enumerate(self._names)
            for name in (drone, f"drone:{drone}", frame_ids.base_link(drone))
        }
        self._rotors = {
            name: (i, rotor)
            for i, drone in enumerate(self._names)
            for rotor in range(4)
            for name in (f"rotor{rotor}:{drone}", f"{drone}_rotor{rotor}")
        }

    def drone(self, name: str) -> str:
        """Return the drone that a body belongs to.

        Raises:
            ValueError: There is no such drone.
        """
        if name not in self._drones:
            raise ValueError(f"Body '{name}' not found in MuJoCo model.")
        return self._names[self._drones[name]]

    def pushed(self, name: str) -> str:
        """Return the drone that a body belongs to, or the body itself, to apply a wrench to it.

        Raises:
            ValueError: There is no such body.
        """
        if name in self._drones or self._body(name) <= 0:
            return self.drone(name)
        return name

    def free_joints(self, messages: Sequence[FreeJointState]) -> Edit:
        """Return an edit that sets poses and twists of drones.

        Poses and twists are in the world, or in the frame of a body before the edit.

        Raises:
            ValueError: A message is invalid; the text names it and the reason.
        """
        for i, message in enumerate(messages):
            reason = self._what_is_wrong(message)
            if reason:
                raise ValueError(f"Entry {i} ('{message.name}'): {reason}")

        def edit(state: MirrorState) -> MirrorState:
            edited, poses = _copy(state), self._mirror.body_poses(state)
            for message in messages:
                i = self._drones[message.name]
                pose, twist = message.pose.pose, message.twist.twist
                pos, quat = poses[self._body(message.pose.header.frame_id)]
                edited.pos[i] = pos + body_to_world(quat, xyz(pose.position))
                attitude = xyzw(pose.orientation)
                attitude = limits.unit_quaternion("orientation", attitude)
                edited.quat[i] = multiply(quat, attitude)
                _, axes = poses[self._body(message.twist.header.frame_id)]
                edited.vel[i] = body_to_world(axes, xyz(twist.linear))
                ang_vel = body_to_world(axes, xyz(twist.angular))
                edited.ang_vel[i] = world_to_body(edited.quat[i], ang_vel)
            return edited

        return edit

    def joints(self, message: JointState) -> Edit:
        """Return an edit that sets angles and speeds of rotors.

        Raises:
            ValueError: The message is invalid; the text has the reason.
        """
        n = len(message.name)
        if len(message.effort):
            raise ValueError("Joint state effort is not supported; leave 'effort' empty.")
        for field, limit in (("position", limits.ROTOR_ANGLE), ("velocity", limits.ROTOR_VELOCITY)):
            values = getattr(message, field)
            if len(values) not in (0, n):
                rule = "it must be empty or the same length."
                raise ValueError(
                    f"Joint state '{field}' has {len(values)} entries but 'name' has {n}; {rule}"
                )
            if not np.isfinite(values).all():
                raise ValueError(f"Joint state '{field}' is not finite: {list(values)}.")
            if any(abs(value) > limit.most for value in values):
                raise ValueError(f"Joint state '{field}' is not within {limit}: {list(values)}.")
        for i, name in enumerate(message.name):
            if name not in self._rotors:
                raise ValueError(f"Entry {i} ('{name}'): {self._why_no_joint(name)}")

        def edit(state: MirrorState) -> MirrorState:
            edited = _copy(state)
            for values, array in (
                (message.position, edited.rotor_angle),
                (message.velocity, edited.rotor_vel),
            ):
                for name, value in zip(message.name, values):  # empty if the field is empty
                    array[self._rotors[name]] = value
            return edited

        return edit

    def _what_is_wrong(self, message: FreeJointState) -> str:
        if message.name not in self._drones:
            known = self._id(mujoco.mjtObj.mjOBJ_BODY, message.name) >= 0
            return "Body is not driven by a free joint." if known else "Unknown body name."
        for field in ("pose", "twist"):
            frame = getattr(message, field).header.frame_id
            if self._body(frame) < 0:
                return f"Unknown {field} frame_id body name: '{frame}'."
        pose, twist = message.pose.pose, message.twist.twist
        for name, values, limit in (
            ("position", xyz(pose.position), limits.POSITION),
            ("orientation", xyzw(pose.orientation), limits.QUATERNION),
            ("linear velocity", xyz(twist.linear), limits.VELOCITY),
            ("angular velocity", xyz(twist.angular), limits.ANGULAR_VELOCITY),
        ):
            if not np.isfinite(values).all():
                return f"The {name} is not finite: {values.tolist()}."
            if np.abs(values).max() > limit.most:
                return f"The {name} is not within {limit}: {values.tolist()}."
        if not xyzw(pose.orientation).any():
            return "The orientation is the zero quaternion."
        return ""

    def _body(self, frame: str) -> int:
        """Return the id of a body in MuJoCo, or -1; the world is 0."""
        if frame in ("", frame_ids.MAP):
            return 0
        if frame in self._drones:
            frame = f"drone:{self._names[self._drones[frame]]}"
        return self._id(mujoco.mjtObj.mjOBJ_BODY, frame)

    def _why_no_joint(self, name: str) -> str:
        joint = self._id(mujoco.mjtObj.mjOBJ_JOINT, name)
        if joint < 0:
            return "Unknown joint name."
        text = "Not a single-DOF (hinge or slide) joint."
        if self._model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            text += " Free joints are set through 'state_overrides.free_joints' by body name."
        return text

    def _id(self, kind: Any, name: str) -> int:
        return int(mujoco.mj_name2id(self._model, kind, name))


def _copy(state: MirrorState) -> MirrorState:
    copies: dict[str, Any] = {name: np.array(getattr(state, name)) for name in SIZES}
    return replace(state, **copies)
