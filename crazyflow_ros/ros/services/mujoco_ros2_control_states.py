"""States of free joints, rotors and joints of robots in mujoco_ros2_control's messages.

Error messages are those of mujoco_ros2_control 0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import mujoco
import numpy as np
from sensor_msgs.msg import JointState

from crazyflow_ros.checks import limits
from crazyflow_ros.engine.snapshot import SIZES
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import xyz, xyzw
from crazyflow_ros.scene import Mirror, MirrorState
from crazyflow_ros.scene.bodies import needs_mujoco
from crazyflow_ros.scene.frames import body_to_world, multiply, world_to_body, xyzw_to_wxyz
from crazyflow_ros.scene.robot_parts import joints_of

if TYPE_CHECKING:
    from mujoco_ros2_control_msgs.msg import FreeJointState

Edit = Callable[[MirrorState], MirrorState]


class _Place(NamedTuple):
    """Pose and twist of a body."""

    pos: np.ndarray
    """(3,) m."""
    quat: np.ndarray
    """(4,) xyzw."""
    vel: np.ndarray
    """(3,) m/s, axes of the world."""
    ang_vel: np.ndarray
    """(3,) rad/s, axes of the body."""


class StateEditor:
    """Checks messages against the present drones and bodies.

    Drones and bodies may change between two ticks, so create and use an editor within one such gap.

    A drone is identified by its name, its MuJoCo body (drone:cf0) or its frame (cf0/base_link), a
    rotor by its joint in MuJoCo (rotor0:cf0) or in the robot description (cf0_rotor0). Bodies and
    joints of the world have their names there.
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
            for rotor in range(mirror.n_rotors)
            for name in (f"rotor{rotor}:{drone}", f"{drone}_rotor{rotor}")
        }
        self._joints = {joint.name: joint.id for joint in joints_of(self._model)}

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
        """Return an edit that sets poses and twists of drones and of other free bodies.

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
            places: list[tuple[int, _Place]] = []
            for message in messages:
                pose, twist = message.pose.pose, message.twist.twist
                pos, quat = poses[self._body(message.pose.header.frame_id)]
                position = pos + body_to_world(quat, xyz(pose.position))
                attitude = limits.unit_quaternion("orientation", xyzw(pose.orientation))
                attitude = multiply(quat, attitude)
                _, axes = poses[self._body(message.twist.header.frame_id)]
                vel = body_to_world(axes, xyz(twist.linear))
                ang_vel = world_to_body(attitude, body_to_world(axes, xyz(twist.angular)))
                place = _Place(position, attitude, vel, ang_vel)
                if message.name in self._drones:
                    row = self._drones[message.name]
                    for array, value in zip(
                        (edited.pos, edited.quat, edited.vel, edited.ang_vel), place
                    ):
                        array[row] = value
                else:
                    places.append((self._free_joint(message.name), place))
            return self._with_places(edited, places)

        return edit

    def joints(self, message: JointState) -> Edit:
        """Return an edit that sets positions and velocities of rotors and joints of robots.

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
            if name not in self._rotors and (name not in self._joints or not self._moves):
                raise ValueError(f"Entry {i} ('{name}'): {self._why_no_joint(name)}")

        def edit(state: MirrorState) -> MirrorState:
            edited = _copy(state)
            for values, array in (
                (message.position, edited.rotor_angle),
                (message.velocity, edited.rotor_vel),
            ):
                for name, value in zip(message.name, values):  # empty if the field is empty
                    if name in self._rotors:
                        array[self._rotors[name]] = value
            return self._with_joints(edited, message)

        return edit

    @property
    def _moves(self) -> bool:
        """Whether bodies besides the drones move."""
        return needs_mujoco(self._model)

    def _with_joints(self, state: MirrorState, message: JointState) -> MirrorState:
        """Return a state in which joints of robots have the values of a message."""
        ids = [self._joints.get(name) for name in message.name]
        if state.bodies is None or not any(i is not None for i in ids):
            return state
        model = self._model

        def edit(data: mujoco.MjData) -> None:
            for values, array, addresses in (
                (message.position, data.qpos, model.jnt_qposadr),
                (message.velocity, data.qvel, model.jnt_dofadr),
            ):
                for i, value in zip(ids, values):
                    if i is not None:
                        array[addresses[i]] = value

        return replace(state, bodies=state.bodies.edited(model, edit))

    def _with_places(self, state: MirrorState, places: list[tuple[int, _Place]]) -> MirrorState:
        """Return a state in which free joints of the world are elsewhere."""
        if state.bodies is None or not places:
            return state
        model = self._model

        def edit(data: mujoco.MjData) -> None:
            for joint, (pos, quat, vel, ang_vel) in places:
                start, dof = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
                data.qpos[start : start + 7] = np.concatenate((pos, xyzw_to_wxyz(quat)))
                data.qvel[dof : dof + 6] = np.concatenate((vel, ang_vel))

        return replace(state, bodies=state.bodies.edited(model, edit))

    def _free_joint(self, name: str) -> int:
        """Return the free joint of a body of the world, or -1."""
        body = self._id(mujoco.mjtObj.mjOBJ_BODY, name)
        joint = int(self._model.body_jntadr[body]) if body > 0 else -1
        is_free = joint >= 0 and self._model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
        return joint if is_free else -1

    def _what_is_wrong(self, message: FreeJointState) -> str:
        if message.name not in self._drones and self._free_joint(message.name) < 0:
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
