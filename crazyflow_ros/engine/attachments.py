"""What drones hold: a body, or another drone, as it is, or on a cable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.engine.snapshot import Fields
from crazyflow_ros.scene.frames import body_to_world, multiply, world_to_body, wxyz_to_xyzw

Point = tuple[float, float, float]

REACH = 0.1
"""Distance [m] from which a drone takes hold of something, unless told otherwise."""
_PREFIX = "held:"  # of the elements in MuJoCo; the drone's name follows
_LIMITS = {
    "length": limits.POSITION,
    "stiffness": limits.Limit(1e6, "N/m"),
    "damping": limits.Limit(1e6, "N s/m"),
}
_FLAT = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
_POSE = slice(3, 10)  # of the relative pose in the data of a weld


@dataclass(frozen=True)
class Attachment:
    """What a drone holds, and how.

    Raises:
        ValueError: A value is beyond its limits.
    """

    body: str
    """Name of the body in MuJoCo, such as "box", or "drone:cf1" for another drone."""
    cable: bool = False
    """Whether the body hangs on a cable, or keeps its pose relative to the drone."""
    length: float = 0.0
    """Length of the cable [m]; 0 for the distance at the beginning."""
    stiffness: float = 0.0
    """Stiffness of the cable [N/m] beyond its length; 0 for a cable that does not stretch."""
    damping: float = 0.0
    """Damping of a cable that stretches [N s/m]. It also acts while the cable is slack."""
    drone_point: Point = (0.0, 0.0, 0.0)
    """Where the cable begins [m], from the drone's centre of mass, in its axes."""
    body_point: Point = (0.0, 0.0, 0.0)
    """Where the cable ends [m], from the origin of the body, in its axes."""
    pose: tuple[float, ...] = ()
    """Pose that the body keeps relative to the drone, (7,), position [m] and quaternion wxyz; empty
    until the drone holds it."""

    def __post_init__(self) -> None:
        for name, most in _LIMITS.items():
            value = limits.number(name, getattr(self, name), most)
            if value < 0:
                raise ValueError(f"{name} must be 0 or more, got {value:g}")
            object.__setattr__(self, name, value)
        for name in ("drone_point", "body_point"):
            point = limits.vector(name, getattr(self, name), (3,), limits.POSITION)
            object.__setattr__(self, name, tuple(point.tolist()))
        object.__setattr__(self, "pose", tuple(self.pose))
        if self.pose:
            limits.vector("pose", self.pose, (7,), limits.POSITION)
        if self.damping and not self.stiffness:
            raise ValueError("damping is that of a cable that stretches: give a stiffness, too")

    @property
    def name(self) -> str:
        """Name of the body or drone for messages."""
        return self.body.removeprefix("drone:")

    def add_to(self, spec: mujoco.MjSpec, drone: str) -> None:
        """Add what a drone holds to a scene with the drone.

        Raises:
            ValueError: The scene lacks the body.
        """
        own, name = f"drone:{drone}", _PREFIX + drone
        body = spec.body(self.body)
        if body is None:
            raise ValueError(f"{drone} holds {self.name}: let it detach first")
        if not self.cable:
            kind, objects = mujoco.mjtEq.mjEQ_WELD, mujoco.mjtObj.mjOBJ_BODY
            weld = spec.add_equality(
                name=name, type=kind, objtype=objects, name1=own, name2=self.body, active=True
            )
            weld.data[:] = 0.0  # MuJoCo's default is for joints
            weld.data[_POSE] = self.pose or (0, 0, 0, 1, 0, 0, 0)
            weld.data[_POSE.stop] = 1.0  # torque per force
            spec.add_exclude(bodyname1=own, bodyname2=self.body)
            return
        tendon = spec.add_tendon(name=name, width=0.001, rgba=[0.1, 0.1, 0.1, 1.0])
        for end, at, point in (
            ("start", spec.body(own), self.drone_point),
            ("end", body, self.body_point),
        ):
            at.add_site(name=f"{name}/{end}", pos=point, size=[0.001] * 3)
            tendon.wrap_site(f"{name}/{end}")
        if self.stiffness:
            tendon.stiffness[0], tendon.damping[0] = self.stiffness, self.damping
            tendon.springlength = [0.0, self.length or 1.0]
        else:
            tendon.limited = mujoco.mjtLimited.mjLIMITED_TRUE
            tendon.range = [0.0, self.length or 1.0]

    def adjusted(self, model: mujoco.MjModel, data: mujoco.MjData, drone: str) -> Attachment:
        """Adjust what a drone holds to where both are now.

        Args:
            model: Compiled with `add_to`; it is changed.
            data: State with the frames of bodies and sites.
            drone: Name of the drone.

        Returns:
            The same with the length or the pose, to be added to later scenes.
        """
        if self.cable:
            if self.length:
                return self
            length = _distance(data, f"{_PREFIX}{drone}/start", f"{_PREFIX}{drone}/end")
            tendon = model.tendon(_PREFIX + drone).id
            which = model.tendon_lengthspring if self.stiffness else model.tendon_range
            which[tendon, 1] = length
            return replace(self, length=length)
        if self.pose:
            return self
        one, other = data.body(f"drone:{drone}"), data.body(self.body)
        pos, quat, back = np.zeros(3), np.zeros(4), np.zeros(4)
        mujoco.mju_negQuat(back, one.xquat)
        mujoco.mju_rotVecQuat(pos, other.xpos - one.xpos, back)
        mujoco.mju_mulQuat(quat, back, other.xquat)
        pose = tuple(np.concatenate((pos, quat)).tolist())
        model.eq_data[model.equality(_PREFIX + drone).id, _POSE] = pose
        return replace(self, pose=pose)


def chosen(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    drone: str,
    wanted: Attachment,
    reach: float,
    freq: int,
) -> Attachment:
    """Return what a drone can take hold of, as it is wanted.

    Args:
        model: The present scene.
        data: Its state, with the frames of bodies and geoms.
        drone: Name of the drone.
        wanted: What it is to hold; if the body has no name, it is the nearest within reach.
        reach: Greatest distance [m] between the surfaces, unless there is a cable to a body with a
            name.
        freq: Ticks per simulated second.

    Raises:
        ValueError: There is no such body, it is too far away, or the cable is too stiff.
    """
    own = model.body(f"drone:{drone}").id
    if not wanted.body:
        found = [
            (distance, body)
            for body in np.flatnonzero(model.body_parentid == 0)[1:].tolist()
            if body != own
            and model.body_mass[body] > 0
            and model.body(body).name
            and (distance := _gap(model, data, own, body, reach)) < reach
        ]
        if not found:
            raise ValueError(f"there is nothing to hold within {reach:g} m of {drone}")
        wanted = replace(wanted, body=model.body(min(found)[1]).name)
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, wanted.body)
    if body <= 0:
        every = [model.body(i).name for i in np.flatnonzero(model.body_parentid == 0)[1:]]
        known = [name.removeprefix("drone:") for name in every if name]
        raise ValueError(limits.unknown("body", wanted.name, known))
    if model.body_rootid[body] == own:
        raise ValueError(f"{drone} cannot hold itself")
    if not wanted.cable:
        if not _gap(model, data, own, body, reach) < reach:
            far = _gap(model, data, own, body, limits.POSITION.most)
            text = f"{far:.3g} m away" if far < limits.POSITION.most else "without a shape to hold"
            raise ValueError(f"{wanted.name} is {text}, the reach of {drone} is {reach:g} m")
        return wanted
    start, end = (
        data.xpos[i] + data.xmat[i].reshape(3, 3) @ point
        for i, point in ((own, wanted.drone_point), (body, wanted.body_point))
    )
    apart = math.dist(start, end)
    if wanted.length and not wanted.stiffness and apart > wanted.length + 1e-3:
        raise ValueError(
            f"{wanted.name} is {apart:.3g} m away, the cable is {wanted.length:g} m long"
        )
    if not wanted.length and not apart:
        raise ValueError("the ends of the cable are at the same place: give it a length")
    masses = (model.body_subtreemass[i] for i in (own, model.body_rootid[body]))
    moves = model.body_weldid[body] > 0
    mass = 1 / sum(1 / m for m, is_free in zip(masses, (True, moves)) if is_free)
    if wanted.stiffness > (most := mass * freq**2):
        text = f"at most {most:.3g} N/m with these masses at {freq} ticks/s"
        raise ValueError(f"stiffness must be {text}, or 0 for no stretch, got {wanted.stiffness:g}")
    if wanted.damping > (most := mass * freq):
        text = f"at most {most:.3g} N s/m with these masses at {freq} ticks/s"
        raise ValueError(f"damping must be {text}, got {wanted.damping:g}")
    return wanted


def carried(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    held: Mapping[str, Attachment],
    states: Mapping[str, Fields],
) -> dict[str, Fields]:
    """Return what drones hold, moved with drones that are put elsewhere.

    What keeps its pose relative to a drone moves as if both were one rigid body. What hangs on a
    cable is displaced by as much as the drone, and its velocity changes by as much. What several
    drones hold moves with the first of them; what does not move freely stays where it is.

    Args:
        model: The present scene.
        data: Its state.
        held: What drones hold, by their names.
        states: New states of drones by name: some of pos, quat (xyzw), vel and ang_vel.

    Returns:
        New states of bodies with free joints and of further drones, by their names in MuJoCo.

    Raises:
        ValueError: A drone that is put elsewhere keeps its pose to what does not move freely.
    """
    moved: dict[str, Fields] = {f"drone:{name}": state for name, state in states.items()}
    waiting = list(moved)
    for holder in waiting:
        one = held.get(holder.removeprefix("drone:")) if holder.startswith("drone:") else None
        if one is None:
            continue
        name = model.body(model.body_rootid[model.body(one.body).id]).name
        if name in moved:
            continue
        own = _motion(model, data, name)
        if own is None:
            if not one.cable and not moved[holder].keys().isdisjoint(("pos", "quat")):
                drone = holder.removeprefix("drone:")
                raise ValueError(f"{drone} holds {one.name}, which does not move freely")
            continue
        before = _motion(model, data, holder)
        assert before is not None
        after = {**before, **moved[holder]}
        if one.cable:
            own = {k: own[k] + after[k] - before[k] for k in ("pos", "vel")}
        else:
            turn = multiply(after["quat"], before["quat"] * (-1, -1, -1, 1))
            arm = body_to_world(turn, own["pos"] - before["pos"])
            rate = body_to_world(after["quat"], after["ang_vel"])
            quat = multiply(turn, own["quat"])
            own = {
                "pos": after["pos"] + arm,
                "quat": quat,
                "vel": after["vel"] + np.cross(rate, arm),
                "ang_vel": world_to_body(quat, rate),
            }
        moved[name] = own
        waiting.append(name)
    return {name: moved[name] for name in waiting[len(states) :]}


def _motion(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> dict[str, np.ndarray] | None:
    """Return the state of a body with a free joint, or None if it has none."""
    joint = int(model.body(name).jntadr[0]) if name else -1
    if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
        return None
    position, velocity = data.qpos[model.jnt_qposadr[joint] :], data.qvel[model.jnt_dofadr[joint] :]
    quat = wxyz_to_xyzw(position[3:7])
    return {"pos": position[:3], "quat": quat, "vel": velocity[:3], "ang_vel": velocity[3:6]}


def _gap(model: mujoco.MjModel, data: mujoco.MjData, one: int, other: int, most: float) -> float:
    """Return the distance [m] between the surfaces of two bodies with all below them, or `most`."""
    solid = (model.geom_contype | model.geom_conaffinity) > 0
    solid &= ~np.isin(model.geom_type, _FLAT)
    roots = model.body_rootid[model.geom_bodyid]
    ours, theirs = (
        np.flatnonzero(solid & (roots == model.body_rootid[body])).tolist() for body in (one, other)
    )
    distances = (
        mujoco.mj_geomDistance(model, data, i, j, most, None) for i in ours for j in theirs
    )
    return min(distances, default=most)


def _distance(data: mujoco.MjData, one: str, other: str) -> float:
    return math.dist(data.site(one).xpos, data.site(other).xpos)
