"""The interface that sensors read from, the same for C MuJoCo and for MJX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import jax.numpy as jnp
import mujoco
import numpy as np

from crazyflow_ros.scene.frames import body_to_world
from crazyflow_ros.sensors.objects import ObjRef

if TYPE_CHECKING:
    from crazyflow_ros.sim.data import SimData

Array: TypeAlias = Any
"""An array of NumPy or JAX, depending on the back end."""


Limits: TypeAlias = Callable[[mujoco.MjModel], tuple[float | np.ndarray, np.ndarray | None]]
"""Takes the model in which rays are cast. Returns the longest distance of a hit [m], one number or
one for each geom, and the reflectances of the geoms if hits are as far as a VL53L1X sees."""


class RayCaster(NamedTuple):
    """Casts rays of F frames in B worlds."""

    cast: Callable[[Array, Array], tuple[Array, Array | None]]
    """Takes origins (B, F, R or 1, 3) and unit directions (B, F, R, 3) in the world. Returns
    distances (B, F, R), -1 where nothing is hit, and normals (B, F, R, 3), zero there, or None."""
    no_normals: str = ""
    """Why there are no normals; empty if there are."""


class Contacts(NamedTuple):
    """C contacts in each of B worlds; unused slots have no geoms."""

    geoms: Array
    """The two geoms, shape (B, C, 2); -1 where there is no contact."""
    dist: Array
    """Distance of the surfaces [m], negative in penetration, shape (B, C)."""
    pos: Array
    """Position in the world [m], shape (B, C, 3)."""
    axes: Array
    """Axes of the contact in the world as columns, shape (B, C, 3, 3): the normal from the first
    geom to the second, and two tangents."""
    force: Array | None
    """Force of the first geom on the second in these axes [N], shape (B, C, 3); None if unknown."""
    torque: Array | None
    """Torque in these axes [N m], shape (B, C, 3); None if unknown."""


class Backend(Protocol):
    """B worlds of one model.

    All arrays have the world axis first, and the caller may keep them; positions and axes are in
    the axes of the world.
    """

    model: mujoco.MjModel
    contact_forces: bool
    """Whether contacts come with forces."""

    @property
    def xp(self) -> ModuleType:
        """NumPy or `jax.numpy`: the module of all arrays."""

    @property
    def n_worlds(self) -> int:
        """Number of worlds, B."""

    @property
    def keys(self) -> Sequence[Sequence[int]] | None:
        """Seeds of the random numbers of each of the B worlds; None for the world's number."""

    def sensordata(self) -> Array:
        """Return the readings of all built-in sensors, shape (B, nsensordata)."""

    def frame(self, ref: ObjRef) -> tuple[Array, Array]:
        """Return the position [m] (B, 3) of an object, and its axes (B, 3, 3) as columns."""

    def geoms(self) -> tuple[Array, Array]:
        """Return the positions [m] (B, ngeom, 3) and axes (B, ngeom, 3, 3) of all geoms."""

    def motions(self, bodies: np.ndarray) -> tuple[Array, Array, Array]:
        """Return centres of mass [m], velocities [m/s] and angular velocities [rad/s] of K bodies.

        In the axes of the world, each (B, K, 3).

        Raises:
            ValueError: The velocity of a body is unknown.
        """

    def contacts(self) -> Contacts:
        """Return all contacts."""

    def ray_caster(
        self,
        excluded: Sequence[Sequence[int]],
        groups: np.ndarray,
        limits: Limits,
        *,
        one_origin: bool,
    ) -> RayCaster:
        """Prepare to cast rays.

        Args:
            excluded: For each frame F the bodies whose geoms its rays pass through.
            groups: Whether each geom group can be hit, shape (6,), uint8.
            limits: Says how far rays hit.
            one_origin: The rays of a frame all start at the same point.

        Raises:
            ValueError: This back end has no rays against some of the geoms.
        """

    def check_sensor(self, sensor: int) -> None:
        """Raise a ValueError if the readings of the built-in sensor of this id would be wrong."""

    def poses(self, world: int) -> mujoco.MjData:
        """Return data with the frames of one world, to draw from."""


def motions_of(model: mujoco.MjModel, data: Any, bodies: np.ndarray) -> tuple[Array, Array, Array]:
    """Return `Backend.motions` of data of MuJoCo or MJX, for one world or with an axis of worlds.

    Raises:
        ValueError: A body is carried by a mocap body, which has no velocity in MuJoCo.
    """
    roots = model.body_rootid[bodies]
    carried = roots[model.body_mocapid[roots] >= 0]
    if carried.size:
        raise ValueError(
            f"the mocap body {model.body(carried[0]).name!r} has no velocity in MuJoCo; use a "
            "model with free joints"
        )
    ang_vel, vel = data.cvel[..., bodies, :3], data.cvel[..., bodies, 3:]
    centre = data.xipos[..., bodies, :]
    away = centre - data.subtree_com[..., roots, :]  # where cvel is taken
    xp = away.__array_namespace__()
    return centre, vel + xp.linalg.cross(ang_vel, away), ang_vel


def carriers(model: mujoco.MjModel, n_drones: int, bodies: np.ndarray) -> np.ndarray:
    """Return the numbers of the drones that bodies are part of, -1 for none."""
    place = np.full(model.nbody, -1)
    place[[model.body(f"drone:{i}").id for i in range(n_drones)]] = np.arange(n_drones)
    return place[model.body_rootid[bodies]]


def motions_in_sim(data: SimData, carriers: np.ndarray) -> tuple[Array, Array, Array]:
    """Return `Backend.motions` of bodies with these `carriers`; those with -1 stand still."""
    states = data.states
    ang_vel = body_to_world(states.quat, states.ang_vel)
    parts = (states.pos, states.vel, ang_vel)
    moving = (carriers >= 0)[:, None]
    centre, vel, turn = (jnp.where(moving, part[:, carriers], 0.0) for part in parts)
    return centre, vel, turn


def check_not_mocap(model: mujoco.MjModel, sensor: int) -> None:
    """Refuse to measure the motion of a mocap body, which has only poses.

    Raises:
        ValueError: The reading would always be zero, or gravity alone.
    """
    position_stage = model.sensor_needstage[sensor] == mujoco.mjtStage.mjSTAGE_POS
    if position_stage or model.sensor_type[sensor] == mujoco.mjtSensor.mjSENS_CONTACT:
        return
    owners = {
        mujoco.mjtObj.mjOBJ_BODY: np.arange(model.nbody),
        mujoco.mjtObj.mjOBJ_XBODY: np.arange(model.nbody),
        mujoco.mjtObj.mjOBJ_GEOM: model.geom_bodyid,
        mujoco.mjtObj.mjOBJ_SITE: model.site_bodyid,
        mujoco.mjtObj.mjOBJ_CAMERA: model.cam_bodyid,
    }
    bodies = owners.get(mujoco.mjtObj(model.sensor_objtype[sensor]))
    if bodies is None:
        return
    root = model.body_rootid[bodies[model.sensor_objid[sensor]]]
    if model.body_mocapid[root] >= 0:
        raise ValueError(
            f"sensor {model.sensor(sensor).name!r}: the mocap body {model.body(root).name!r} has "
            "no velocity or acceleration in MuJoCo; use a model with free joints"
        )
