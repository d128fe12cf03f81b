"""The MuJoCo side of `Sim`: the scene, its MJX copy for all worlds, contacts and rendering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec

from crazyflow_ros.extras import extra
from crazyflow_ros.scene import frames
from crazyflow_ros.sim.contacts import (
    Contact,
    ContactQuery,
    ContactSlots,
    kinematics,
    listed,
    touching_geoms,
    with_drones,
)
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.worlds import of_world, put
from crazyflow_ros.xla.on_device import on_device

# MuJoCo is imported where the scene is needed: most users of `Sim` only step.
if TYPE_CHECKING:
    import mujoco
    from mujoco import mjx

    from crazyflow_ros.scene.markers import Marker
    from crazyflow_ros.sim.pictures import Pictures

_MODES = ("human", "rgb_array", "depth_array", "rgbd_tuple")


class SimScene:
    """Builds the scene when it is first needed, because simulations without rendering need none.

    Attributes:
        max_visual_geom: Maximum number of lines, points and capsules in a picture; the last ones
            drawn are kept. A change applies to renderers and windows that are created afterwards.
    """

    max_visual_geom = 10_000

    data: SimData
    drone: str | tuple[str, ...]
    n_worlds: int
    n_drones: int

    def __init__(self, scene: str, fused_mjx_model: bool) -> None:
        self.scene, self.fused_mjx_model = scene, fused_mjx_model
        self._spec: mujoco.MjSpec | None = None
        self._mj: tuple[mujoco.MjModel, mujoco.MjData] | None = None
        self._mjx: tuple[mjx.Model, mjx.Data] | None = None
        self._unposed: tuple[Array, Array, Array] | None = None  # states newer than those of _mjx
        self._query: ContactQuery | None = None
        self._slots: ContactSlots | None = None
        self._pictures: Pictures | None = None
        self._markers: list[Marker] = []  # for the next picture

    @property
    def spec(self) -> mujoco.MjSpec:
        """The scene before compilation. Edit it, then call `build_mjx`."""
        if self._spec is None:
            from crazyflow_ros.scene import build_spec

            names = [str(i) for i in range(self.n_drones)]
            fused = self.fused_mjx_model
            self._spec = build_spec(self.drone, names, scene=self.scene, mocap=True, fused=fused)
        return self._spec

    @property
    def mj_model(self) -> mujoco.MjModel:
        """The compiled scene, one world."""
        return self._compiled()[0]

    @property
    def mj_data(self) -> mujoco.MjData:
        """Scratch data of `mj_model`."""
        return self._compiled()[1]

    @property
    def mjx_model(self) -> mjx.Model:
        """The compiled scene in MJX, shared by all worlds."""
        return self._batched()[0]

    @property
    def mjx_data(self) -> mjx.Data:
        """Time, poses and contacts of all worlds, as of the last `sync`."""
        model, data = self._batched()
        if self._unposed is not None:
            unposed, core = self._unposed, self.data.core
            if len(devices := unposed[0].devices()) == 1:
                # MJX may have another device: arrays not committed to it would
                # recompile.
                unposed = jax.device_put(unposed, *devices)
            self._unposed = None
            data = _posed(*unposed, core.freq, core.drone_mocap_ids, data, model)
            self._mjx = (model, data)
        return data

    @mjx_data.setter
    def mjx_data(self, mjx_data: mjx.Data) -> None:
        self._mjx, self._unposed = (self.mjx_model, mjx_data), None
        if self._query is not None:
            self._query.take(*self._mjx)
        self.data = self.data  # no longer synchronised: bodies may have moved

    def build_mjx(self) -> None:
        """Compile the edited `spec`. Closes the viewer."""
        self.close()
        self._mj = self._mjx = self._unposed = self._query = self._slots = None
        model = self.mj_model
        ids = [model.body(f"drone:{i}").mocapid.item() for i in range(self.n_drones)]
        data = self.data
        core = data.core.replace(drone_mocap_ids=on_device(np.array(ids, np.int32)))
        self.data = data.replace(core=core)

    def sync(self) -> None:
        """Update `mjx_data` from `data`, if it is out of date."""
        if not self._is_synced():
            states = self.data.states  # the MJX data are computed when they are read
            self._unposed = states.pos, states.quat, self.data.core.steps
            self._slots = None
            self._mark_synced()

    def _is_synced(self) -> bool:
        """Return whether the MJX data show the present state."""
        raise NotImplementedError

    def _mark_synced(self) -> None:
        """Record that the MJX data show the present state."""
        raise NotImplementedError

    def contacts(self, body: str | None = None) -> Array:
        """Return which contacts exist.

        Args:
            body: Name of a body, to return only the contacts of its own geoms, not those of bodies
                fixed to it.

        Returns:
            (n_worlds, n_slots) bool; see `contact_slots` and `contact_list` for details.
        """
        slots = self.contact_slots()
        if body is None:
            return slots.touching
        owner = self.mj_model.body(body)
        first = int(owner.geomadr[0])
        touching: Array = touching_geoms(slots, first, first + int(owner.geomnum[0]))
        return touching

    def contact_list(self, world: int = 0, body: str | None = None) -> list[Contact]:
        """Return the contacts in a world, deepest first; with `body`, only those of that body.

        Raises:
            ValueError: The world does not exist, or is that of another process.
        """
        self._check_world(world)
        touching = self.contacts(body)
        return listed(self.contact_slots(), world, touching, self.mj_model)

    def contact_slots(self) -> ContactSlots:
        """Return the positions of geoms in all worlds that touch or may touch."""
        self.sync()
        if self._slots is None:
            states = self.data.states
            if self._query is None:
                ids = self.data.core.drone_mocap_ids
                self._query = ContactQuery(*self._batched(), states.pos, states.quat, ids)
            self._slots = self._query(states.pos, states.quat)
        return self._slots

    def render(
        self,
        mode: str = "human",
        world: int = 0,
        camera: int | str = -1,
        cam_config: Mapping[str, Any] | None = None,
        width: int = 640,
        height: int = 480,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray] | None:
        """Render one world.

        Args:
            mode: `human` (a viewer window), `rgb_array`, `depth_array` or `rgbd_tuple`.
            world: Index of the world.
            camera: Name or id of a camera, -1 for the free camera.
            cam_config: Where the free camera is: `distance` [m], `azimuth` and `elevation`
                [degrees], `lookat` (3,) [m], `trackbodyid`; by default the scene's view.
            width: Pixels.
            height: Pixels.

        Returns:
            (height, width, 3) uint8 or (height, width) float32 or both, according to `mode`. Depth
            is in metres along the optical axis, infinite where there is nothing.

        Raises:
            ValueError: The mode, world, camera or its configuration is unknown, the world is that
                of another process, or the size is not positive.
            RenderingUnavailable: OpenGL is not available, or there is no display for a window.
        """
        if mode not in _MODES:
            raise ValueError(f"unknown render mode {mode!r}")
        self._check_world(world)
        import mujoco

        from crazyflow_ros.sim.pictures import Pictures

        self.sync()
        model, data = self._compiled()
        if self._mjx is not None:  # obstacles that have moved
            moved = self._mjx[1]
            data.mocap_pos[:] = of_world(moved.mocap_pos, world)
            data.mocap_quat[:] = of_world(moved.mocap_quat, world)
        states, ids = self.data.states, np.asarray(self.data.core.drone_mocap_ids)
        data.mocap_pos[ids] = of_world(states.pos, world)
        data.mocap_quat[ids] = frames.xyzw_to_wxyz(np.asarray(of_world(states.quat, world)))
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        if self._pictures is None:
            self._pictures = Pictures(model, self.max_visual_geom)
        view, markers = (camera, cam_config), self._markers
        if mode == "human":
            self._pictures.show(data, view, markers)
            picture = None
        else:
            picture = self._pictures.draw(data, mode, view, (width, height), markers)
        self._markers = []
        return picture

    @property
    def viewer(self) -> Any:
        """The handle of MuJoCo's viewer that `render` has opened, or None."""
        return None if self._pictures is None else self._pictures.viewer

    def mark(self, markers: list[Marker]) -> None:
        """Draw markers in the next picture; see `visualize`."""
        self._markers = (self._markers + markers)[-self.max_visual_geom :]

    def close(self) -> None:
        """Close the viewer, and free the renderers."""
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None

    def _check_world(self, world: int) -> None:
        if not 0 <= world < self.n_worlds:
            raise ValueError(f"world must be one of 0 to {self.n_worlds - 1}, got {world}")

    def _compiled(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        if self._mj is None:
            import mujoco

            model = self.spec.compile()
            self._mj = (model, mujoco.MjData(model))
        return self._mj

    def _batched(self) -> tuple[mjx.Model, mjx.Data]:
        if self._mjx is None:
            with extra("mjx"):
                from mujoco import mjx
            from crazyflow_ros.scene.mjx_scene import fitted_to_mjx

            names = [str(i) for i in range(self.n_drones)]
            model, data = fitted_to_mjx(self.spec, self.mj_model, names)
            scratch = self.mj_data
            data.qpos[:], data.qvel[:] = scratch.qpos, scratch.qvel
            data.mocap_pos[:], data.mocap_quat[:] = scratch.mocap_pos, scratch.mocap_quat
            sharding = self.data.states.pos.sharding
            device = next(iter(sharding.addressable_devices))
            batch = jax.tree.map(  # with NumPy, because JAX would compile a function for each shape
                lambda x: np.repeat(np.asarray(x)[None], self.n_worlds, axis=0),
                mjx.put_data(model, data, device=device),  # by default that of the first process
            )
            # The placement after the first sync; otherwise the second sync would
            # recompile.
            whole = sharding
            if isinstance(sharding, NamedSharding):
                whole = NamedSharding(sharding.mesh, PartitionSpec())
            shared = mjx.put_model(model, device=device)
            self._mjx = (
                jax.tree.map(lambda x: put(x, whole), shared),
                jax.tree.map(lambda x: put(x, sharding), batch),
            )
        return self._mjx


@jax.jit
def _posed(
    pos: Array,
    quat: Array,
    steps: Array,
    freq: int,
    ids: Array,
    mjx_data: mjx.Data,
    mjx_model: mjx.Model,
) -> mjx.Data:
    """Return MJX data with the drones at these poses, after a number of steps."""
    from mujoco import mjx

    time = (steps[:, 0] / freq).astype(mjx_data.time.dtype)
    mjx_data = with_drones(pos, quat, ids, mjx_data).replace(time=time)
    for stage in (kinematics, mjx.com_pos, mjx.camlight, mjx.collision):
        mjx_data = jax.vmap(stage, in_axes=(None, 0))(mjx_model, mjx_data)
    return mjx_data


def _synced(data: SimData) -> SimData:
    return data.replace(core=data.core.replace(mjx_synced=jnp.array(True)))


@jax.jit
def sync_sim2mjx(
    data: SimData, mjx_data: mjx.Data, mjx_model: mjx.Model
) -> tuple[SimData, mjx.Data]:
    """Compute time, poses, cameras and contacts of all worlds from the states of the drones.

    Args:
        data: The states.
        mjx_data: Batched over worlds.
        mjx_model: Shared by all worlds.

    Returns:
        `data` with `core.mjx_synced` set, and the new MJX data.
    """
    states, core = data.states, data.core
    return _synced(data), _posed(
        states.pos,
        states.quat,
        core.steps,
        core.freq,
        core.drone_mocap_ids,
        mjx_data,
        mjx_model,
    )


def use_box_collision(sim: SimScene, enable: bool = True) -> None:
    """Give the drones boxes, or their default spheres, as collision shapes in MuJoCo.

    This concerns `Sim.contacts` only. It compiles the scene again.

    Args:
        sim: The simulation.
        enable: Whether the shapes are boxes.
    """
    from crazyflow_ros.scene.groups import COLLISION_GROUP, UNUSED_GROUP

    for geom in sim.spec.geoms:
        shape = geom.name.partition(":")[0]
        if shape in ("col_box", "col_sphere"):
            used = (shape == "col_box") == enable
            geom.contype = geom.conaffinity = int(used)
            geom.group = COLLISION_GROUP if used else UNUSED_GROUP
    sim.build_mjx()
